//! What is shown of runs that were taken up again, and which run is taken for the one that is meant.

use crate::support::{Ended, Fledge, Model, say, shell, write};
use rustix::process::Signal;
use serde_json::Value;

/// A run of the simple task that was killed in the middle of a command, with these arguments.
fn killed(model: &Model, arguments: &[&str]) -> Ended {
    let mut fledge = Fledge::simple(model).arg("--json");
    for argument in arguments {
        fledge = fledge.arg(argument);
    }
    let mut running = fledge.lane("strict", "steps: [{ name: no, run: 'false' }]").start();
    running.wait_for("{\"text\":\"begun");
    running.signal(Signal::KILL);
    running.end()
}

#[test]
fn a_run_that_was_taken_up_again_is_told_whole() {
    let model = Model::new([shell("echo begun; sleep 60"), write("done", ""), say("Done.")]);
    let ended = killed(&model, &[]).again(&["runs", "resume", "last"]).anthropic(&model).run();
    ended.must_exit(0);
    let ended = ended.again(&["runs", "show", "last"]).run();
    ended.must_exit(0);
    assert!(
        ended.stdout.contains("● taken up again") && ended.stdout.contains("gate, attempt 1: passed"),
        "{}",
        ended.story()
    );
    let ended = ended.again(&["runs", "show", "last", "--json"]).run();
    ended.must_exit(0);
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(shown["result"]["reason"], "verified");
    let ended = ended.again(&["runs", "export", "--thread", "last"]).run();
    ended.must_exit(0);
    let ended = ended.again(&["runs", "logs", "last"]).run();
    ended.must_exit(0);
    assert!(!ended.stdout.contains("no verdict") && ended.stderr.is_empty(), "{}", ended.story());
}

#[test]
fn what_was_asked_for_under_another_gate_is_another_task() {
    let model = Model::new([write("done", ""), say("Done.")]);
    let ended = Fledge::simple(&model).arg("--run-key=ci").lane("strict", "steps: [{ name: no, run: 'false' }]").run();
    ended.must_be(0, "verified");
    let again = ["run", "--resume-or-start", "--run-key=ci", "task.md"];
    let ended = ended.again(&[&again[..], &["--lane=strict"]].concat()).anthropic(&model).run();
    ended.must_exit(2);
    assert!(ended.stderr.contains("was begun with another task, gate or options"), "{}", ended.story());
    let ended = ended.again(&[&again[..], &["--report=again.json"]].concat()).anthropic(&model).run();
    ended.must_exit(0);
    let report: Value = serde_json::from_str(&ended.file("again.json").unwrap()).unwrap();
    assert_eq!((&report["reason"], model.count()), (&"verified".into(), 2));
    // Without a key the interrupted run of another gate is left alone, and a new one begins.
    let model = Model::new([shell("echo begun; sleep 60"), say("It is done."), say("It is.")]);
    let ended = killed(&model, &["--no-verify"]);
    let again = ["run", "--resume-or-start", "task.md", "--max-retries=0"];
    let ended = ended.again(&again).anthropic(&model).run();
    ended.must_exit(1);
    assert_eq!((ended.runs().len(), model.count()), (2, 2));
}

#[test]
fn names_that_mean_something_else_are_no_run_keys() {
    for key in ["last", "last-failed", "a#2", ""] {
        let run = Fledge::new().args(&["run", "task.md", "--run-key", key]).task("x").run();
        run.must_exit(2);
        assert!(run.stderr.contains("--run-key"), "{}", run.story());
    }
}

#[test]
fn a_key_leads_to_its_newest_run_also_when_the_first_ones_are_gone() {
    let model = Model::new([say("It is done."), write("done", ""), say("Done.")]);
    let ended = Fledge::simple(&model).args(&["run", "task.md", "--run-key=k", "--max-retries=0"]).run();
    ended.must_be(1, "gate_failed");
    let again = ["run", "task.md", "--run-key=k", "--max-retries=0", "--resume-or-start"];
    let ended = ended.again(&again).anthropic(&model).run();
    ended.must_exit(0);
    let ended = ended.again(&["runs", "prune", "--keep=1"]).run();
    ended.must_exit(0);
    let ended = ended.again(&again).anthropic(&model).run();
    ended.must_exit(0);
    assert_eq!((ended.runs().len(), model.count()), (1, 3));
}
