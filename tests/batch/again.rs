//! Resumed batches: the jobs that run again, the jobs that keep their results, and the money
//! already spent.

use crate::support::{Ended, Fledge, Model, hang, needs, say, shell, status, write};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

const ARGS: [&str; 4] = ["run", "tasks", "-j1", "--json"];

fn batch(args: &[&str]) -> Fledge {
    Fledge::new().lane("verify", &needs("done")).args(&[&ARGS[..], args].concat())
}

/// Adds a model that costs one dollar for a million input tokens.
fn priced(run: Fledge) -> Fledge {
    let own = run.state().parent().unwrap().join("home/.config/fledge");
    fs::create_dir_all(&own).unwrap();
    let models = "models: { priced: { provider: anthropic, model: m, price: { input: 1, output: 1 } } }\n";
    fs::write(own.join("config.yaml"), models).unwrap();
    run
}

#[track_caller]
fn resumed(ended: Ended, model: &Model, more: &[&str]) -> Ended {
    ended.again(&[&ARGS[..], &["--resume"], more].concat()).anthropic(model).run()
}

/// Returns the last line of `--json`.
#[track_caller]
fn summary(ended: &Ended) -> Value {
    let last = ended.events().pop().unwrap();
    assert_eq!(last["type"], "batch_finished", "{}", ended.story());
    last["data"].clone()
}

#[track_caller]
fn must_stand(ended: &Ended, expected: &[&str]) -> Value {
    let summary = summary(ended);
    let how: Vec<&str> =
        summary["jobs"].as_array().unwrap().iter().map(|job| job["standing"].as_str().unwrap()).collect();
    assert_eq!(how, expected, "{}", ended.story());
    summary
}

#[test]
fn a_gate_that_could_not_run_is_asked_again_and_one_that_said_no_is_not() {
    long_test!();
    let model = Model::new([say("Done."), write("done", "1\n"), say("Done.")]);
    let broken = "steps: [{ name: a, run: no-such-program }]";
    let run = batch(&[]).lane("broken", broken).file("tasks/a.md", "---\nlane: broken\n---\nDo it, a.");
    let run = run.file("tasks/b.md", "---\nmax_retries: 0\n---\nDo it, b.").anthropic(&model).committed();
    let ended = run.run();
    ended.must_exit(5);
    must_stand(&ended, &["errored", "failed"]);
    fs::write(ended.path("lanes/broken.yaml"), needs("done")).unwrap();
    ended.git(&["commit", "-qam", "mended"]);
    let ended = resumed(ended, &model, &[]);
    ended.must_exit(1);
    must_stand(&ended, &["verified", "failed"]);
    assert_eq!((ended.events()[0]["data"]["over"].clone(), model.count(), ended.rows().len()), (json!(1), 3, 3));
}

#[test]
fn an_error_behind_a_verdict_is_not_given_again_and_its_run_is_paid_for() {
    long_test!();
    let dollar = 1_000_000;
    let model = Model::new([
        say("Done.").using(dollar, 0), // the gate rejects the work
        status(401),
        write("done", "1\n").using(dollar, 0),
        say("Done.").using(dollar, 0),
    ]);
    let run = priced(batch(&["--max-usd", "4"])).file("tasks/a.md", "---\nmodel: priced\n---\nDo it.");
    let ended = run.anthropic(&model).committed().run();
    ended.must_exit(3);
    assert_eq!(must_stand(&ended, &["errored"])["usd_micros"], 1_000_000);
    // Earlier spending counts: the budget of one dollar is used up, so fledge sends no request.
    let ended = resumed(ended, &model, &["--max-usd", "1"]);
    ended.must_exit(4);
    assert_eq!((must_stand(&ended, &["not_started"])["usd_micros"].clone(), model.count()), (json!(1_000_000), 2));
    let ended = resumed(ended, &model, &["--max-usd", "4"]);
    ended.must_exit(0);
    let summary = must_stand(&ended, &["verified"]);
    assert_eq!((&summary["usd_micros"], &summary["jobs"][0]["usd_micros"]), (&json!(3_000_000), &json!(3_000_000)));
    assert_eq!((model.count(), ended.rows().len()), (4, 2));
}

#[test]
fn the_cost_of_a_killed_run_counts_once_and_the_current_limit_applies() {
    long_test!();
    let dollar = 1_000_000;
    let model = Model::new([
        write("half", "1\n").using(dollar, 0),
        shell("echo begun; sleep 60").using(dollar, 0),
        write("done", "1\n").using(dollar, 0),
        say("Done.").using(dollar, 0),
    ]);
    // The first budget does not cover the run, which costs four dollars in all.
    let run = priced(batch(&["--max-usd", "2.50"])).file("tasks/a.md", "---\nmodel: priced\n---\nDo it.");
    let mut running = run.anthropic(&model).committed().start();
    running.wait_for("{\"text\":\"begun");
    running.signal(Signal::KILL);
    let ended = resumed(running.end(), &model, &["--max-usd", "5"]);
    ended.must_exit(0);
    let summary = must_stand(&ended, &["verified"]);
    assert_eq!((&summary["usd_micros"], model.count(), ended.rows().len()), (&json!(4_000_000), 4, 1));
    assert_eq!(ended.events_of("resumed").len(), 1);
    let replayed = ended.again(&["runs", "replay", "last"]).run();
    replayed.must_exit(0);
}

#[test]
fn what_was_ended_by_its_runner_goes_on_and_what_a_person_has_stopped_begins_anew() {
    long_test!();
    for (signal, code, runs) in [(Signal::TERM, 143, 1), (Signal::INT, 130, 2)] {
        let model = Model::new([write("half", "1\n"), hang(), write("done", "1\n"), say("Done.")]);
        let run = batch(&[]).file("tasks/a.md", "Do it.").anthropic(&model).committed();
        let running = run.start();
        model.wait_for(2);
        running.signal(signal);
        let ended = running.end();
        ended.must_exit(code);
        let ended = resumed(ended, &model, &[]);
        ended.must_exit(0);
        let summary = must_stand(&ended, &["verified"]);
        assert_eq!((ended.rows().len(), model.count()), (runs, 4), "{}", ended.story());
        let branch = summary["jobs"][0]["end"]["ran"]["branch"].as_str().unwrap().to_owned();
        let expected = if runs == 1 { "done\nhalf" } else { "done" };
        assert_eq!(ended.git(&["diff", "--name-only", "main", &branch]), expected);
    }
}

#[test]
fn by_another_model_what_was_interrupted_begins_anew() {
    long_test!();
    let model = Model::new([write("half", "1\n"), hang(), write("done", "1\n"), say("Done.")]);
    let running = batch(&[]).file("tasks/a.md", "Do it.").anthropic(&model).committed().start();
    model.wait_for(2);
    running.signal(Signal::KILL);
    let ended = resumed(running.end(), &model, &["--model", "anthropic/other"]);
    ended.must_exit(0);
    assert_eq!((ended.rows().len(), model.count()), (2, 4), "{}", ended.story());
}
