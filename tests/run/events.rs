//! Tests of `--json`: one event a line, nothing else, and a reliable order.

use crate::support::{Ended, Fledge, Model, call, needs, say, shell, status, words, write};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// Runs a task whose gate fails once and then passes.
fn retried() -> (Ended, Model) {
    let model = Model::new([
        call("files-read", json!({"path": "task.md"})).saying("Let me see – an übung…"),
        say("It is done."),
        write("done", "1\n").saying("I forgot the file."),
        say("Now it is there."),
    ]);
    // The gate judges the base while the agent works, so the position of its events varies.
    (Fledge::simple(&model).arg("--json").arg("--baseline=never").run(), model)
}

#[test]
fn standard_output_has_only_events_in_their_envelope() {
    let (run, _model) = retried();
    let report = run.must_be(0, "verified");
    let members = ["schema_version", "run", "seq", "at", "type", "data"].map(str::to_owned);
    for (place, event) in run.events().iter().enumerate() {
        let found: BTreeSet<String> = event.as_object().unwrap().keys().cloned().collect();
        assert_eq!(found, BTreeSet::from(members.clone()), "{event}");
        assert_eq!((&event["schema_version"], &event["run"]), (&json!(1), &report["run"]));
        assert_eq!(event["seq"], place + 1);
        let at = event["at"].as_str().unwrap();
        assert!(at.len() == 24 && at.ends_with('Z') && at.contains('T'), "{at}");
    }
}

#[test]
fn states_are_told_at_every_entry_and_the_end_is_last() {
    let (run, _model) = retried();
    let states = run.events_of("state_changed");
    let wanted = ["planning", "executing", "verifying", "executing", "verifying", "reporting", "idle"];
    assert_eq!(words(&states), wanted);
    let events = run.events();
    assert_eq!(events[0]["type"], "started");
    assert_eq!(events[0]["data"]["models"], json!(["anthropic/claude-sonnet-4-5"]));
    let last = &events.last().unwrap();
    assert_eq!(last["type"], "finished");
    assert_eq!((&last["data"]["reason"], &last["data"]["verified"]), (&json!("verified"), &json!(true)));
}

#[test]
fn pieces_of_text_joined_are_what_the_model_said() {
    let (run, _model) = retried();
    let texts = run.events_of("text");
    let all: String = texts.iter().filter_map(Value::as_str).collect();
    assert_eq!(all, "Let me see – an übung…It is done.I forgot the file.Now it is there.");
    assert!(texts.len() > 4, "the text comes in pieces");
}

#[test]
fn a_tool_call_is_told_once_with_whole_arguments_and_then_its_result() {
    let (run, _model) = retried();
    assert_eq!(
        run.events_of("tool_call"),
        [
            json!({"name": "files-read", "args": {"path": "task.md"}}),
            json!({"name": "files-write", "args": {"path": "done", "content": "1\n"}}),
        ]
    );
    let results = run.events_of("tool_result");
    assert_eq!(
        results,
        [json!({"name": "files-read", "success": true}), json!({"name": "files-write", "success": true})]
    );
    let details = run.events_of("tool_detail");
    assert_eq!(details[1]["change"], json!({"path": "done", "kind": "created", "added": 1, "removed": 0}));
    assert_eq!((&details[0]["id"], &details[0]["denied"]), (&json!("call_1_0"), &json!(false)));
}

#[test]
fn verdicts_and_usage_are_told_as_they_come() {
    long_test!();
    let (run, _model) = retried();
    let verdicts = run.events_of("verify_result");
    let first = &verdicts[0];
    assert_eq!((&first["success"], &first["attempt"]), (&json!(false), &json!(1)));
    assert_eq!(first["failed_steps"], json!(["verify/there"]));
    assert!(first["feedback"].as_str().unwrap().contains("test -f done"));
    assert_eq!((&verdicts[1]["success"], &verdicts[1]["attempt"]), (&json!(true), &json!(2)));
    let inputs: Vec<Value> = run.events_of("usage").iter().map(|usage| usage["input_tokens"].clone()).collect();
    assert_eq!(inputs, [100, 200, 300, 400].map(Value::from));
    let steps = run.events_of("lane_step");
    assert_eq!(steps[0]["started"]["command"], "test -f done");
    assert_eq!(steps[1]["ended"]["status"], "failed");
}

#[test]
fn what_a_command_prints_is_told_while_it_runs_and_belongs_to_the_call() {
    let model = Model::new([shell("echo one; echo two"), say("Done.")]);
    let run = Fledge::simple(&model).arg("--no-verify").arg("--json").run();
    let printed: String = run.events_of("tool_output").iter().filter_map(|output| output["text"].as_str()).collect();
    assert_eq!(printed, "one\ntwo\n");
    let types: Vec<Value> = run.events().iter().map(|event| event["type"].clone()).collect();
    let place = |kind: &str| types.iter().position(|found| found == kind).unwrap();
    assert!(place("tool_call") < place("tool_output") && place("tool_output") < place("tool_result"), "{types:?}");
}

#[test]
fn a_discarded_turn_is_told_and_its_tool_call_has_no_result() {
    long_test!();
    let model = Model::new([write("done", "1\n").saying("Half").breaking_off(), write("done", "2\n"), say("Done.")]);
    let run = Fledge::simple(&model).arg("--json").run();
    run.must_be(0, "verified");
    let types: Vec<Value> = run.events().iter().map(|event| event["type"].clone()).collect();
    let kinds = ["tool_call", "turn_discarded", "retry", "tool_result"];
    let told: Vec<&str> = words(&types).into_iter().filter(|kind| kinds.contains(kind)).collect();
    assert_eq!(told, ["tool_call", "turn_discarded", "retry", "tool_call", "tool_result"]);
    assert_eq!(run.file("done").as_deref(), Some("2\n"));
}

#[test]
fn an_error_before_the_run_leaves_standard_output_empty() {
    let model = Model::new([status(500).always()]);
    let run = Fledge::simple(&model).arg("--json").arg("--model").arg("gpt9").run();
    run.must_exit(2);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("no model `gpt9`"));
}

#[test]
fn quiet_and_json_together_print_events_alone() {
    let model = Model::new([write("done", ""), say("Done.")]);
    let run = Fledge::simple(&model).lane("verify", &needs("done")).arg("--json").arg("--quiet").run();
    run.must_be(0, "verified");
    assert_eq!(run.stderr, "");
    assert_eq!(run.events().last().unwrap()["type"], "finished");
}

#[test]
fn a_reader_that_comes_late_has_lost_nothing_and_the_run_did_not_wait_for_it() {
    long_test!();
    let text = "seven. ".repeat(20_000);
    let model = Model::new([write("done", ""), say(&text)]);
    let late = "\"$@\" | { until [ -e ../read-now ]; do sleep 0.02; done; cat; }";
    let run = Fledge::simple(&model).arg("--json").under(&["sh", "-c", late, "sh"]).start();
    let place = run.place();
    run.until(|| reports(&place.join("state")) == 1);
    std::fs::write(place.join("read-now"), "").unwrap();
    let ended = run.end();
    ended.must_be(0, "verified");
    let pieces: Vec<String> = ended.events_of("text").iter().map(|event| event.as_str().unwrap().to_owned()).collect();
    assert!(pieces.concat().contains(text.trim_end()) && pieces.len() > 10_000, "{} pieces", pieces.len());
    let seqs: Vec<u64> = ended.events().iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(seqs.iter().zip(1..).all(|(seq, number)| *seq == number), "numbers are missing");
}

#[test]
fn a_late_reader_of_a_batch_has_lost_nothing_either() {
    long_test!();
    let text = "seven. ".repeat(20_000);
    let model = Model::new([write("done", ""), say(&text), write("done", ""), say(&text)]);
    let late = "\"$@\" | { until [ -e ../read-now ]; do sleep 0.02; done; cat; }";
    let fledge = Fledge::simple(&model).lane("verify", &needs("done")).file("other.md", "Do it, too.").committed();
    let run =
        fledge.args(&["run", "task.md", "other.md", "--json", "--jobs=1"]).under(&["sh", "-c", late, "sh"]).start();
    let place = run.place();
    run.until(|| reports(&place.join("state")) == 2);
    std::fs::write(place.join("read-now"), "").unwrap();
    let ended = run.end();
    ended.must_exit(0);
    let pieces = ended.events_of("text").len();
    assert!(pieces > 20_000, "{pieces} pieces");
}

/// Returns the number of runs of all projects that have their report.
fn reports(state: &Path) -> usize {
    let below = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let runs = below(state).flat_map(|project| below(&project.join("runs")).collect::<Vec<_>>());
    runs.filter(|run| run.join("report.json").exists()).count()
}
