//! Tests of `fledge runs watch`: the journal of a run, during the run and after its end.

use crate::support::{Ended, Fledge, Model, Running, call, say, shell, write};
use rustix::process::Signal;
use serde_json::json;
use std::process::{Child, Command, Stdio};

/// Starts `fledge runs watch` beside a run.
fn watcher(running: &Running, args: &[&str]) -> Child {
    let place = running.place();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fledge"));
    command.args(["runs", "watch"]).args(args).current_dir(place.join("workspace")).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", place.join("home")).env("FLEDGE_STATE_DIR", place.join("state"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for a watcher. Returns its exit code and its output.
fn said(watcher: Child) -> (Option<i32>, String) {
    let output = watcher.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// Starts a run that waits for the file `go` and then fails its gate.
fn waiting() -> (Model, Running) {
    let wait = shell("echo begun; until test -f go; do sleep 0.01; done").saying("Waiting.");
    let model = Model::new([wait, say("Done.").always()]);
    let mut running = Fledge::simple(&model).arg("--json").arg("--max-retries=0").start();
    running.wait_for("{\"text\":\"begun");
    (model, running)
}

fn let_go(running: Running) -> Ended {
    std::fs::write(running.place().join("workspace/go"), "").unwrap();
    running.end()
}

#[test]
fn a_run_of_another_process_is_followed_to_its_end_and_its_exit_code() {
    let (_model, running) = waiting();
    let watcher = watcher(&running, &[]);
    let_go(running).must_be(1, "gate_failed");
    let (code, said) = said(watcher);
    assert_eq!(code, Some(1), "{said}");
    for part in
        ["● attempt 1 of 1\n", "│ Waiting.\n", "  shell echo begun; until ", "✗ Failed after 1 attempt: verify/there"]
    {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
}

#[test]
fn who_stops_watching_leaves_the_run_alone() {
    long_test!();
    let (_model, running) = waiting();
    let mut watcher = watcher(&running, &["last"]);
    let mut heard = Vec::new();
    while !String::from_utf8_lossy(&heard).contains("Waiting.") {
        let mut byte = [0];
        std::io::Read::read_exact(watcher.stderr.as_mut().unwrap(), &mut byte).unwrap();
        heard.push(byte[0]);
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&watcher), Signal::INT).unwrap();
    let (code, said) = said(watcher);
    let report = let_go(running).must_be(1, "gate_failed");
    let way_back =
        format!("the run continues: `fledge runs watch {}` watches it again", report["run"].as_str().unwrap());
    assert!(code == Some(130) && said.contains(&way_back), "{said}");
}

#[test]
fn a_run_that_is_over_is_told_as_a_whole() {
    long_test!();
    let read = call("files-read", json!({ "path": "task.md" }));
    let model = Model::new([read, write("done", "1\n").saying("Making it."), say("Done.")]);
    let run = Fledge::simple(&model).run();
    run.must_be(0, "verified");
    let run = run.again(&["runs", "watch"]).run();
    run.must_exit(2);
    assert!(run.stderr.contains("is in progress\n  hint: run `fledge runs watch last`"), "{}", run.stderr);
    let run = run.again(&["runs", "watch", "last"]).run();
    run.must_exit(0);
    for part in [
        "  read task.md (1 line)\n",
        "│ Making it.\n",
        "  write done +1 -0 (new)\n",
        "  ✓ verify/there ",
        "✓ Verified in ",
    ] {
        assert!(run.stderr.contains(part), "{part:?} is not in {}", run.stderr);
    }
}

#[test]
fn where_no_run_failed_that_is_said() {
    long_test!();
    let model = Model::new([write("done", "1\n"), say("Done.")]);
    let run = Fledge::simple(&model).run();
    let run = run.again(&["runs", "show", "last-failed"]).run();
    run.must_exit(2);
    assert!(run.stderr.contains(" has failed\n") && !run.stderr.contains("did you mean"), "{}", run.stderr);
    let run = run.again(&["runs", "resume", "last"]).run();
    run.must_exit(0);
    assert!(run.stderr.contains("ended verified, so there is nothing to resume"), "{}", run.stderr);
}
