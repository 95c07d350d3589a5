//! Tests of the logs of the gate: the model can read all output page by page, for each attempt, but
//! never that of hold-outs.

use crate::support::{Asked, Fledge, Model, Turn, call, hang, say, write};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A lane that prints its requirement only in the middle of a long output.
const LANE: &str = "steps:\n  - { name: fmt, run: 'echo fine' }\n  \
    - { name: test, run: 'seq 6000 | sed \"s/^3000$/the& total/\"; grep -qs 7 *um' }\n";

fn look(input: Value) -> Turn {
    call("lane-log", input)
}

fn find() -> Turn {
    look(json!({"step": "test", "pattern": "the.*total"}))
}

fn tools(asked: &Asked) -> Vec<&str> {
    asked.body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn the_middle_of_a_long_log_is_found_and_what_a_hold_out_prints_is_not() {
    long_test!();
    let hidden = crate::support::temp_dir();
    std::fs::write(hidden.path().join("h.yaml"), "steps: [{ name: h, run: 'echo canary-held; grep -qs 77 *um' }]")
        .unwrap();
    let model = Model::new([
        look(json!({})),
        say("Done."),
        find(),
        write("sum", "7\n"),
        say("Done."),
        look(json!({})),
        look(json!({"lane": "h"})),
        write("sum", "77\n"),
        say("Done."),
    ]);
    let holdout = format!("--holdout={}", hidden.path().display());
    let ended = Fledge::new().lane("verify", LANE).task("Sum.").anthropic(&model).arg(&holdout).run();
    let report = ended.must_be(0, "verified");
    let asked = model.asked();
    let heard = |request: usize| asked[request].newest();
    assert!(heard(1).contains("no log: the project's checks have not been run on your work yet"), "{}", heard(1));
    let told = heard(2);
    assert!(
        !told.contains("the3000 total") && told.contains("read more of the output with the tool `lane-log`"),
        "{told}"
    );
    let found = heard(3);
    assert!(
        found.contains("step `test` of lane `verify`, attempt 1: failed, 6000 lines\\n  3000\\tthe3000 total"),
        "{found}"
    );
    // The second attempt fails only in the hold-out: the model learns of the failure, but not its
    // output or name.
    assert!(heard(5).contains("a hold-out check failed"), "{}", heard(5));
    assert!(heard(6).contains("step `fmt` of lane `verify`, attempt 2: passed"), "{}", heard(6));
    assert!(heard(7).contains("no such log"), "{}", heard(7));
    assert!(asked.iter().all(|asked| !asked.text.contains("canary-held")));
    assert_eq!(report["tools"]["lane-log"], json!({"called": 4, "denied": 0, "failed": 2}));
}

#[test]
fn what_a_fix_begins_with_can_be_read_whole() {
    long_test!();
    let model = Model::new([find(), write("sum", "7\n"), say("Done.")]);
    let ended = Fledge::new().args(&["fix"]).lane("verify", LANE).file("sum", "4\n").anthropic(&model).run();
    ended.must_be(0, "verified");
    let found = model.asked()[1].newest();
    assert!(found.contains("before any change: failed, 6000 lines\\n  3000\\tthe3000 total"), "{found}");
}

#[test]
fn after_a_crash_and_in_a_sub_agent_the_logs_are_those_of_the_run() {
    long_test!();
    let spawn = call("subagent-spawn", json!({"task": "Find what the sum is.", "tools": ["lane-log"]}));
    let scripts = [vec![say("Done."), hang()], vec![spawn, write("sum", "7\n"), say("Done.")]];
    let (mut own, mut of_child) = (scripts.into_iter().flatten(), [find(), say("It is 7.")].into_iter());
    let model = Model::thinking(move |body, count| {
        let is_child = body["messages"][0]["content"].to_string().contains("Find what");
        (if is_child { of_child.next() } else { own.next() }, count)
    });
    let running = Fledge::new().lane("verify", LANE).task("Sum.").anthropic(&model).start();
    model.wait_for(2);
    running.signal(Signal::KILL);
    let ended = running.end().again(&["runs", "resume", "last"]).anthropic(&model).run();
    ended.must_exit(0);
    let asked = model.asked();
    let child: Vec<&Asked> = asked.iter().filter(|asked| asked.text.contains("Find what the sum is.")).collect();
    let heard = child.iter().find(|asked| asked.newest().contains("tool_result")).unwrap();
    assert_eq!(tools(heard), ["lane-log"]);
    assert!(heard.newest().contains("attempt 1: failed, 6000 lines\\n  3000\\tthe3000 total"), "{}", heard.newest());
}

#[test]
fn it_is_offered_where_there_is_a_gate_and_the_task_lets_it() {
    long_test!();
    let told = |front: &str, turns: usize| {
        let model = Model::new((0..turns).flat_map(|_| [say("Done.")]));
        Fledge::new().lane("verify", LANE).task(&format!("---\n{front}\n---\nSum.")).anthropic(&model).run();
        let asked = model.asked();
        (tools(&asked[0]).contains(&"lane-log"), asked.last().unwrap().newest().contains("lane-log"))
    };
    assert_eq!(told("max_retries: 1", 2), (true, true));
    assert_eq!(told("lane: false", 1), (false, false));
    assert_eq!(told("max_retries: 1\ntier: read", 2), (false, false));
    assert_eq!(told("max_retries: 1\ntools: { deny: [lane-*] }", 2), (false, false));
}
