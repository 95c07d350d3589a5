//! `fledge lanes run --json=events`: events as JSON lines while the lane runs.

use crate::support::{Fledge, SOON, must_be_gone, running_with, unique, words};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::time::Instant;

fn lane(yaml: &str, args: &[&str]) -> Fledge {
    Fledge::new().lane("verify", yaml).args(&[&["lanes", "run", "verify"], args].concat())
}

#[test]
fn events_tell_the_whole_story_in_order() {
    let yaml = "steps:\n  - { name: a, run: 'test -f again || { touch again; echo no; exit 1; }', retries: 1 }\n  - { name: b, run: echo yes }\n";
    let run = lane(yaml, &["--json=events"]).run();
    run.must_exit(0);
    let events = run.events();
    assert_eq!(
        words(events.iter().map(|event| &event["event"])),
        [
            "lane_started",
            "step_started",
            "output",
            "step_retried",
            "step_started",
            "step_ended",
            "step_started",
            "output",
            "step_ended",
            "lane_ended",
        ]
    );
    assert!(events.iter().all(|event| event["schema_version"] == 1 && event["at_ms"].is_u64()));
    let times: Vec<u64> = events.iter().filter_map(|event| event["at_ms"].as_u64()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let without_time = |event: &Value| {
        let mut event = event.clone();
        let members = event.as_object_mut().unwrap();
        members.retain(|key, _| !["at_ms", "schema_version", "duration_ms"].contains(&key.as_str()));
        event
    };
    assert_eq!(without_time(&events[0]), json!({ "event": "lane_started", "lane": "verify", "steps": ["a", "b"] }));
    let begun = json!({ "event": "step_started", "lane": "verify", "step": "b", "command": "echo yes" });
    assert_eq!(without_time(&events[6]), begun);
    assert_eq!(without_time(&events[7]), json!({ "event": "output", "lane": "verify", "step": "b", "line": "yes" }));
    assert_eq!((&events[3]["report"]["status"], &events[5]["report"]["status"]), (&json!("failed"), &json!("flaky")));
    let counts = json!({ "passed": 1, "flaky": 1, "failed": 0, "timed_out": 0, "errored": 0, "allowed_failures": 0,
        "skipped": 0, "not_run": 0, "cancelled": 0 });
    let ended = json!({ "event": "lane_ended", "lane": "verify", "result": "passed", "success": true, "exit_code": 0,
        "counts": counts });
    assert_eq!(without_time(&events[9]), ended);
}

#[test]
fn json_alone_is_one_object_and_another_form_is_refused() {
    for form in ["--json", "--json=object"] {
        let run = lane("steps: [{ name: a, run: 'true' }]", &[form]).run();
        run.must_exit(0);
        let [object] = run.events().try_into().unwrap();
        assert_eq!(object["result"], "passed");
    }
    let run = lane("steps: [{ name: a, run: 'true' }]", &["--json=xml"]).run();
    run.must_exit(2);
    assert!(run.stderr.contains("[possible values: object, events]"), "{}", run.stderr);
}

#[test]
fn a_reader_that_takes_nothing_holds_up_no_lane() {
    let number = unique();
    let yaml = format!(
        "steps:\n  - {{ name: flood, run: seq 100000 }}\n  - {{ name: mark, run: touch marked; sleep {number} }}\n"
    );
    let fledge = lane(&yaml, &["--json=events", "--output=all"]).unread();
    let marked = fledge.workspace().join("marked");
    let run = fledge.start();
    run.until(|| marked.exists());
    let asked = run.signal(Signal::TERM);
    let ended = run.end();
    ended.must_exit(143);
    assert!(ended.at - asked < SOON, "took {:?}", ended.at - asked);
    must_be_gone(&number);
}

/// Floods a reader that takes 4 KiB every 20 ms with short and empty lines.
#[test]
fn a_slow_reader_delays_neither_a_steps_timeout_nor_a_signal() {
    long_test!();
    let number = unique();
    let yaml = format!(
        "fail_fast: false\nsteps:\n  - {{ name: flood, run: \"yes '' | head -c 300000; touch marked\" }}\n  \
         - {{ name: late, run: 'yes', timeout: 1s }}\n  - {{ name: stays, run: sleep {number} }}\n"
    );
    let slowly =
        "\"$@\" | while dd bs=4096 count=1 2>/dev/null | grep -q .; do sleep 0.02; done; exit ${PIPESTATUS[0]}";
    let fledge = lane(&yaml, &["--json=events"]).under(&["bash", "-c", slowly, "bash"]);
    let run = fledge.start();
    run.until(|| !running_with(&format!("sleep {number}")).is_empty());
    let children = run.children_with("--json=events");
    let fledge = children.iter().find(|(_, line)| !line.starts_with("bash")).unwrap().0;
    let asked = Instant::now();
    kill_process(Pid::from_raw(fledge).unwrap(), Signal::TERM).unwrap();
    let ended = run.end();
    ended.must_exit(143);
    assert!(ended.at - asked < SOON, "took {:?}", ended.at - asked);
    must_be_gone(&number);
}

#[test]
fn a_reader_that_is_late_once_loses_no_line() {
    let fledge = lane("steps: [{ name: flood, run: \"yes '' | head -c 8000\" }]", &["--json=events"]);
    let run = fledge.under(&["bash", "-c", "\"$@\" | (sleep 0.3; cat)", "bash"]).run();
    let events = run.events();
    let lines = events.iter().filter(|event| event["event"] == "output").count();
    assert_eq!((lines, events.iter().any(|event| event["event"] == "output_dropped")), (8000, false));
}

#[test]
fn a_reader_that_goes_away_harms_no_lane() {
    for form in ["--json=events", "--json", "--summary=-"] {
        lane("steps: [{ name: a, run: seq 1000 }]", &[form]).without_output_reader().run().must_exit(0);
    }
}
