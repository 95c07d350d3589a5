//! Recorded runs: the cassette replays the same events, holds no secret, and exists however the run
//! ended.

use crate::sandbox::secrets::{canary, dressed, must_be_clean};
use crate::support::{Ended, Fledge, Model, call, garbled, hang, needs, say, status, write};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

/// Returns the events of a run without values that differ between equal runs. Adjacent pieces of
/// text are joined.
fn told(ended: &Ended) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for event in ended.events() {
        let mut event = json!({ "type": event["type"], "data": event["data"] });
        forget(&mut event);
        if let (Some(last), "text" | "thinking") = (all.last_mut(), event["type"].as_str().unwrap_or_default())
            && last["type"] == event["type"]
        {
            let joined = format!("{}{}", last["data"].as_str().unwrap(), event["data"].as_str().unwrap());
            last["data"] = joined.into();
        } else {
            all.push(event);
        }
    }
    all
}

/// Removes times, prices and model names.
fn forget(value: &mut Value) {
    const DIFFERENT: [&str; 7] = ["duration_ms", "elapsed_ms", "wait_ms", "models", "cost_micros", "log", "at"];
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !DIFFERENT.contains(&name.as_str()));
            fields.values_mut().for_each(forget);
        }
        Value::Array(items) => items.iter_mut().for_each(forget),
        Value::String(text) => {
            // The text about a step for the model includes its duration.
            while let Some(at) = text.find(", after ")
                && let Some(length) = text[at..].find(" s)")
            {
                text.replace_range(at..at + length + 2, "");
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn place() -> Fledge {
    Fledge::new().lane("verify", &needs("done")).task("Make the file `done`.").file("hint.txt", "one\n")
}

#[test]
fn a_recorded_run_plays_again_with_the_same_events_and_is_exported_alike() {
    long_test!();
    let model = Model::new([
        call("files-read", json!({ "path": "hint.txt" })).saying("I'll look.\nFirst: here.").using(120, 30),
        garbled("files-write"),
        status(500).header("retry-after-ms", "1"),
        call("files-read", json!({ "path": "none" }))
            .also("files-write", json!({ "path": "other", "content": "é: \"x\"\n" })),
        say("Done, I think."),
        write("done", "1\n").saying("Now."),
        say("Done."),
    ]);
    let run = place().anthropic(&model).args(&["run", "task.md", "--json", "--record", "../tape.yaml"]).run();
    run.must_be(0, "verified");
    let tape = fs::read_to_string(run.path("../tape.yaml")).unwrap();
    let again = place().file("../tape.yaml", &tape);
    let again = again.args(&["run", "task.md", "--json", "--model", "cassette/../tape.yaml"]).run();
    again.must_be(0, "verified");
    // The base is judged beside the agent, so its verdict may come between any two events. The run
    // waits for it only if it comes late.
    let is_wait = |event: &Value| event["data"] == "judging_base";
    let of_base =
        |event: &Value| event["data"].as_str().is_some_and(|data| data.starts_with("failed before any change"));
    let apart = |ended: &Ended| {
        let told = told(ended).into_iter().filter(|event| !is_wait(event));
        told.partition::<Vec<Value>, _>(|event| !of_base(event))
    };
    let ((first, base_first), (second, base_second)) = (apart(&run), apart(&again));
    for (one, other) in first.iter().zip(&second) {
        assert_eq!(one, other);
    }
    assert_eq!((first.len(), base_first), (second.len(), base_second));
    let by_model =
        |ended: &Ended| ended.report()["usage"]["by_model"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(by_model(&run), by_model(&again));
    let exported = run.again(&["runs", "export", "last", "--cassette"]).run();
    assert_eq!(exported.stdout, tape);
    let filed = exported.again(&["runs", "export", "last", "--cassette", "-o", "../second.yaml"]).run();
    assert_eq!(fs::read_to_string(filed.path("../second.yaml")).unwrap(), tape);
    let refused = filed.again(&["runs", "export", "last", "--cassette", "-o", "../x/.git/tape.yaml"]);
    fs::create_dir_all(refused.workspace().join("../x/.git")).unwrap();
    refused.run().must_exit(2);
}

#[test]
fn a_run_whose_conversation_was_shortened_plays_again_with_the_same_events() {
    long_test!();
    let talk = |n: u32, tokens| {
        write(&format!("f{n}"), "1").saying(&"All right, and on I go. ".repeat(120)).using(tokens, 700)
    };
    let model = Model::new([
        talk(1, 1_000),
        talk(2, 2_000),
        talk(3, 3_000),
        talk(4, 4_500),
        say("Current state: four files are there."),
        write("done", "1\n"),
        say("Done."),
    ]);
    let entry = format!("{{ provider: anthropic, model: m, base_url: '{}', max_context_tokens: 6000 }}", model.url());
    let config = format!("models: {{ m: {entry} }}\ndefault_model: m\ncompact_at: 0.7\n");
    let run = place().file("../home/.config/fledge/config.yaml", config);
    let run = run.args(&["run", "task.md", "--json", "--baseline=never", "--record", "../tape.yaml"]).run();
    run.must_be(0, "verified");
    let shortened = |ended: &Ended| ended.events_of("compaction").len();
    assert_eq!((shortened(&run), model.count()), (1, 7), "{}", run.stderr);
    let tape = fs::read_to_string(run.path("../tape.yaml")).unwrap();
    assert!(tape.contains("window: 6000\ncompact_at: 70\n") && tape.contains("summary: true"), "{tape}");
    let again = place().file("../tape.yaml", &tape);
    let again = again.args(&["run", "task.md", "--json", "--baseline=never", "--model", "cassette/../tape.yaml"]).run();
    again.must_be(0, "verified");
    assert_eq!(told(&run), told(&again));
}

#[test]
fn twelve_secrets_in_five_dresses_leave_no_trace_in_a_cassette() {
    long_test!();
    let all: Vec<String> = (0..12).map(|number| dressed(&canary(number))).collect();
    let model = Model::new([
        write("notes", &all[..6].concat()).saying(&all[6..].concat()),
        call("files-read", json!({ "path": canary(0), "why": all.concat() })),
        status(500).header("retry-after-ms", "1"),
        write("done", "1\n"),
        say(&all.concat()),
    ]);
    let fledge = place().anthropic(&model).args(&["run", "task.md", "--record", "../tape.yaml"]);
    let fledge = (0..12).fold(fledge, |fledge, number| fledge.env(&format!("SERVICE_{number}_TOKEN"), &canary(number)));
    let run = fledge.run();
    run.must_be(0, "verified");
    let tape = fs::read(run.path("../tape.yaml")).unwrap();
    must_be_clean("the cassette", &tape);
    let text = String::from_utf8(tape).unwrap();
    assert!(text.matches("***").count() >= 5 * 12 * 2, "{text}");
}

#[test]
fn a_run_that_is_stopped_or_fails_is_recorded_as_far_as_it_went() {
    long_test!();
    let model = Model::new([write("other", "1\n"), hang()]);
    let running = place().anthropic(&model).args(&["run", "task.md", "--record", "../tape.yaml"]).start();
    model.wait_for(2);
    running.signal(Signal::INT);
    let stopped = running.end();
    stopped.must_be(130, "cancelled");
    let tape = fs::read_to_string(stopped.path("../tape.yaml")).unwrap();
    assert_eq!((tape.matches("- name: files-write").count(), tape.matches("stop:").count()), (0, 1), "{tape}");
    let failing = Model::new([write("other", "1\n"), status(401)]);
    let failed = place().anthropic(&failing).args(&["run", "task.md", "--record", "../tape.yaml"]).run();
    let message = failed.must_be(3, "provider_failed")["message"].clone();
    let tape = fs::read_to_string(failed.path("../tape.yaml")).unwrap();
    let again = place().file("../tape.yaml", tape).args(&["run", "task.md", "--model", "cassette/../tape.yaml"]).run();
    assert_eq!(again.must_be(3, "provider_failed")["message"], message);
}

#[test]
fn a_recording_has_a_place_or_the_run_does_not_begin() {
    let model = Model::new([say("Done.").always()]);
    for (path, why) in [
        (".git/tape.yaml", "inside `.git`"),
        ("../tape.yaml", "the file exists already"),
        ("nowhere/tape.yaml", "its folder does not exist"),
    ] {
        let place = place().anthropic(&model).file(".git/x", "").file("../tape.yaml", "mine");
        let refused = place.args(&["run", "task.md", "--record", path]).run();
        refused.must_exit(2);
        assert!(refused.stderr.contains(why), "{path}: {}", refused.story());
        assert_eq!(fs::read_to_string(refused.path("../tape.yaml")).unwrap(), "mine");
    }
    assert_eq!(model.count(), 0);
}

#[test]
fn what_was_said_before_an_answer_broke_off_is_recorded_and_played_again() {
    long_test!();
    let model = Model::new([
        say("I was about to say something.").breaking_off(),
        write("done", "1\n").saying("Half a call").breaking_off(),
        write("done", "1\n").saying("Now."),
        say("Done."),
    ]);
    let run = place()
        .anthropic(&model)
        .args(&["run", "task.md", "--json", "--baseline=never", "--record", "../tape.yaml"])
        .run();
    run.must_be(0, "verified");
    let tape = fs::read_to_string(run.path("../tape.yaml")).unwrap();
    assert_eq!(tape.matches("fault:").count(), 2, "{tape}");
    let again = place().file("../tape.yaml", &tape);
    let again = again.args(&["run", "task.md", "--json", "--baseline=never", "--model", "cassette/../tape.yaml"]).run();
    again.must_be(0, "verified");
    let (first, second) = (told(&run), told(&again));
    assert!(first.iter().any(|event| event["type"] == "text" && event["data"].as_str().unwrap().starts_with("I was")));
    assert_eq!(first, second);
    let exported = run.again(&["runs", "export", "last", "--cassette"]).run();
    assert_eq!(exported.stdout, tape);
}
