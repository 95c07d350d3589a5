//! Tests of ended runs: a run ended by SIGTERM or SIGHUP continues where it was; a run that a
//! person stopped is over.

use crate::support::{Ended, Fledge, Model, Running, hang, say, shell, write};
use rustix::process::Signal;
use serde_json::json;

const AGAIN: [&str; 4] = ["run", "task.md", "--resume-or-start", "--json"];

/// Waits for this output, sends the signal, and insists on a cancelled run.
#[track_caller]
fn ended(mut running: Running, said: &str, signal: Signal) -> Ended {
    running.wait_for(said);
    running.signal(signal);
    let ended = running.end();
    let code = if signal == Signal::INT { 130 } else { 143 };
    ended.must_be(code, "cancelled");
    ended
}

#[track_caller]
fn must_replay(ended: Ended) -> Ended {
    let replayed = ended.again(&["runs", "replay", "last"]).run();
    replayed.must_exit(0);
    replayed
}

#[test]
fn in_a_command_which_is_not_repeated_and_of_which_the_model_is_told() {
    long_test!();
    for signal in [Signal::TERM, Signal::HUP] {
        let model = Model::new([shell("echo one >> log; echo begun; sleep 60"), write("done", ""), say("Done.")]);
        let run = ended(Fledge::simple(&model).arg("--json").start(), "{\"text\":\"begun", signal);
        let run = run.again(&AGAIN).anthropic(&model).run();
        let report = run.must_be(0, "verified");
        assert_eq!((run.file("log").unwrap(), run.runs().len(), model.count()), ("one\n".into(), 1, 3));
        assert!(model.asked()[1].newest().contains("fledge was interrupted while this call was running"));
        assert_eq!((&report["cancelled"], &report["stopped_by"]), (&json!(false), &json!(null)));
        let shown = must_replay(run).again(&["runs", "show", "last"]).run();
        shown.must_exit(0);
        assert!(shown.stdout.contains("● resumed") && shown.stdout.contains("SIGTERM"), "{}", shown.story());
        let over = shown.again(&AGAIN).anthropic(&model).run();
        over.must_exit(3); // the first run was verified, so a second run starts, and the script has no turn left for it
        assert_eq!(over.runs().len(), 2);
    }
}

#[test]
fn in_the_middle_of_an_answer_the_model_is_asked_again() {
    long_test!();
    let model = Model::new([write("half", "1\n"), say("Going on").hanging(), write("done", "2\n"), say("Done.")]);
    let run = ended(Fledge::simple(&model).arg("--json").start(), "Going o", Signal::TERM);
    let run = run.again(&["runs", "resume", "last", "--json"]).anthropic(&model).run();
    run.must_be(0, "verified");
    assert_eq!((run.file("half"), model.count()), (Some("1\n".into()), 4));
    assert_eq!(run.events_of("resumed"), [json!({ "state": "executing", "attempt": 1, "turn": 2 })]);
    must_replay(run);
}

#[test]
fn in_its_gate_which_starts_again() {
    long_test!();
    let lane = "room: in-place\nsteps: [{ name: slow, run: 'test -f again || { touch again; echo begun; sleep 60; }; test -f done' }]";
    let model = Model::new([write("done", ""), say("Done.")]);
    let run = Fledge::simple(&model).lane("verify", lane).arg("--json").start();
    let run = ended(run, "\"begun\"", Signal::TERM).again(&AGAIN).anthropic(&model).run();
    let report = run.must_be(0, "verified");
    assert_eq!((report["attempts"].as_array().unwrap().len(), model.count()), (1, 2));
    must_replay(run);
}

#[test]
fn in_a_worktree_which_stays_for_it() {
    long_test!();
    let model = Model::new([hang(), write("done", "1\n"), say("Done.")]);
    let run = Fledge::simple(&model).committed().arg("--isolation=worktree").start();
    model.wait_for(1);
    run.signal(Signal::TERM);
    let run = run.end();
    run.must_be(143, "cancelled");
    let list = run.again(&["worktrees", "list"]).run();
    assert!(list.stdout.contains("interrupted"), "{}", list.story());
    let run = list.again(&["run", "task.md", "--resume-or-start", "--isolation=worktree"]).anthropic(&model).run();
    let report = run.must_be(0, "verified");
    assert_eq!((run.runs().len(), model.count()), (1, 3));
    assert_eq!(run.git(&["diff", "--name-only", "main", report["branch"].as_str().unwrap()]), "done");
    assert_eq!(run.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn by_a_person_it_is_over_and_so_is_one_with_a_later_one_of_its_task() {
    long_test!();
    let begun = || shell("echo begun; sleep 60");
    let model = Model::new([begun(), say("It is done.")]);
    let run = ended(Fledge::simple(&model).arg("--json").start(), "{\"text\":\"begun", Signal::INT);
    let refused = run.again(&["runs", "resume", "last"]).anthropic(&model).run();
    refused.must_exit(2);
    let run = refused.again(&[&AGAIN[..], &["--max-retries=0"]].concat()).anthropic(&model).run();
    run.must_exit(1);
    assert_eq!(run.runs().len(), 2);
    let model = Model::new([begun(), say("It is done."), say("It is done.")]);
    let run =
        ended(Fledge::simple(&model).arg("--json").arg("--max-retries=0").start(), "{\"text\":\"begun", Signal::TERM);
    let later = run.again(&["run", "task.md", "--max-retries=0"]).anthropic(&model).run();
    later.must_exit(1);
    let run = later.again(&[&AGAIN[..], &["--max-retries=0"]].concat()).anthropic(&model).run();
    run.must_exit(1);
    assert_eq!(run.runs().len(), 3, "what came later has ended it");
}

#[test]
fn by_its_key_and_as_often_as_that_happens() {
    long_test!();
    let begun = || shell("echo begun; sleep 60");
    let model = Model::new([begun(), begun(), write("done", ""), say("Done.")]);
    let again = [&AGAIN[..], &["--run-key=ci"]].concat();
    let run = ended(Fledge::simple(&model).args(&again).start(), "{\"text\":\"begun", Signal::TERM);
    let run = ended(run.again(&again).anthropic(&model).start(), "{\"text\":\"begun", Signal::TERM);
    let run = run.again(&again).anthropic(&model).run();
    run.must_be(0, "verified");
    assert_eq!((run.runs().len(), model.count()), (1, 4));
    assert_eq!(run.kinds().iter().filter(|kind| *kind == "Resumed").count(), 2);
    must_replay(run);
}
