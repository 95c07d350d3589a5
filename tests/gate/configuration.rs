//! Configuration that an agent writes for later runs: fledge restores it when the run ends, or at
//! the next start if the run was killed.

use crate::support::{Ended, Fledge, KEY, Model, Running, Turn, hang, needs, nothing, say, shell, write};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

/// Settings that only the operator may choose.
const EVIL: &str = "hooks: { post_tools: [touch ran] }";

/// Writes configuration that would steer the next run.
fn spoil() -> Turn {
    shell(&format!(
        "echo '{EVIL}' >fledge.local.yaml; echo 'sandbox: off' >>fledge.yaml; echo 'steps: []' >lanes/verify.yaml; mkdir fledge.toml"
    ))
}

fn place(model: &Model) -> Fledge {
    Fledge::simple(model).file("fledge.yaml", "max_retries: 0\n").arg("--sandbox=off")
}

/// Asserts that the files are restored and a copy is kept. Standard error must say so, and so must
/// the report if there is one.
#[track_caller]
fn must_be_put_back(ended: &Ended, is_reported: bool) {
    let files = ["fledge.yaml", "lanes/verify.yaml", "fledge.local.yaml", "fledge.toml"].map(|path| ended.file(path));
    let lane = needs("done");
    assert_eq!(files, [Some("max_retries: 0\n".into()), Some(lane), None, None], "{}", ended.story());
    assert!(!ended.path("fledge.toml").exists());
    let said = "files that changed during the run: fledge.local.yaml (added), fledge.yaml (changed), lanes/verify.yaml (changed); ";
    assert!(ended.stderr.contains(said) || ended.stdout.contains(said), "{}", ended.story());
    let aside = fs::read_to_string(ended.run_folder().join("configuration-aside-1/fledge.local.yaml")).unwrap();
    assert_eq!(aside.trim(), EVIL);
    if is_reported {
        let warnings = ended.report()["warnings"].clone();
        let is_it = |line: &Value| line.as_str().unwrap().contains(said);
        assert_eq!(warnings.as_array().unwrap().iter().filter(|line| is_it(line)).count(), 1, "{warnings}");
    }
}

#[test]
fn configuration_that_an_agent_writes_is_put_back_whatever_ends_the_run() {
    long_test!();
    for (args, rest, code) in [
        (&["--no-verify"][..], say("Done."), 0),
        (&[], nothing().always(), 3),
        (&["--model=anthropic/claude-sonnet-4-5", "--max-retries=0"], crate::support::status(400).always(), 3),
    ] {
        let model = Model::new([spoil(), rest]);
        let ended = args.iter().fold(place(&model), |place, arg| place.arg(arg)).run();
        ended.must_exit(code);
        must_be_put_back(&ended, true);
    }
}

#[test]
fn configuration_that_an_agent_writes_is_put_back_when_its_run_is_cancelled() {
    let model = Model::new([spoil(), hang()]);
    let running = place(&model).start();
    model.wait_for(2);
    running.signal(Signal::INT);
    let ended = running.end();
    ended.must_exit(130);
    must_be_put_back(&ended, true);
}

/// A run that is killed after its agent wrote, during a model call.
fn killed() -> Ended {
    let model = Model::new([spoil(), hang()]);
    let running: Running = place(&model).start();
    model.wait_for(2);
    running.signal(Signal::KILL);
    let ended = running.end();
    assert_eq!(ended.code, None);
    assert!(ended.file("fledge.local.yaml").is_some());
    ended
}

#[test]
fn what_a_killed_run_has_left_is_put_back_before_the_next_one_reads_it() {
    long_test!();
    let model = Model::new([write("done", "x"), say("Done.")]);
    let ended =
        killed().again(&["run", "task.md", "--trust-project", "--report=../report.json"]).anthropic(&model).run();
    ended.must_exit(0);
    let said = "files that changed during the run: fledge.local.yaml (added), fledge.yaml (changed), lanes/verify.yaml (changed); ";
    assert!(ended.stderr.contains(said), "{}", ended.story());
    assert!(ended.file("fledge.local.yaml").is_none() && !ended.path("ran").exists());
}

#[test]
fn doctor_restores_the_leftovers_of_a_killed_run_once_and_keeps_later_edits() {
    long_test!();
    let looked = killed().again(&["doctor"]).env("ANTHROPIC_API_KEY", KEY).run();
    must_be_put_back(&looked, false);
    let own = "max_retries: 7\n";
    fs::write(looked.path("fledge.local.yaml"), own).unwrap();
    let looked = looked.again(&["doctor"]).env("ANTHROPIC_API_KEY", KEY).run();
    assert!(!looked.stdout.contains("fledge restored configuration files"), "{}", looked.story());
    assert_eq!(looked.file("fledge.local.yaml").as_deref(), Some(own));
}

#[test]
fn what_the_task_opens_stays() {
    let model = Model::new([shell("echo 'max_retries: 2' >fledge.local.yaml"), say("Done.")]);
    let ended = place(&model).arg("--no-verify").arg("--allow-edit=fledge.local.yaml").run();
    ended.must_exit(0);
    assert_eq!(ended.file("fledge.local.yaml").as_deref(), Some("max_retries: 2\n"));
    assert!(!ended.stderr.contains("fledge restored configuration files"), "{}", ended.story());
}

#[test]
fn behind_bubblewrap_configuration_that_is_there_cannot_be_written() {
    let model =
        Model::new([shell("echo x >>fledge.yaml || echo refused; mv fledge.yaml other || echo kept"), say("Done.")]);
    let ended = Fledge::simple(&model).file("fledge.yaml", "max_retries: 0\n").arg("--no-verify").run();
    ended.must_exit(0);
    if ended.report()["sandbox"] == "bubblewrap" {
        let heard = model.asked()[1].body.to_string();
        assert!(heard.contains("refused") && heard.contains("kept"), "{heard}");
        assert!(!ended.stderr.contains("fledge restored configuration files"), "{}", ended.story());
    }
    assert_eq!(ended.file("fledge.yaml").as_deref(), Some("max_retries: 0\n"));
}

#[test]
fn what_a_killed_run_has_left_is_put_back_before_a_resume_reads_it() {
    let model = Model::new([write("done", "x"), say("Done.")]);
    let ended = killed().again(&["runs", "resume", "last"]).anthropic(&model).run();
    ended.must_exit(0);
    let said = "files that changed during the run: fledge.local.yaml (added), fledge.yaml (changed), lanes/verify.yaml (changed); ";
    assert!(ended.stderr.contains(said), "{}", ended.story());
    assert!(ended.file("fledge.local.yaml").is_none() && !ended.path("ran").exists());
}

#[test]
fn what_a_killed_run_has_told_git_is_put_back_by_every_verb_that_may_ask_git() {
    long_test!();
    let evil = "git config core.fsmonitor 'touch PWNED; false'; echo x >.git/hooks/pre-commit";
    for verb in [&["runs", "list"][..], &["runs", "show", "last"], &["doctor"], &["lanes", "run", "verify"]] {
        let model = Model::new([shell(evil), hang()]);
        let running: Running = Fledge::simple(&model).committed().arg("--sandbox=off").start();
        model.wait_for(2);
        running.signal(Signal::KILL);
        let ended = running.end();
        assert!(ended.file(".git/config").unwrap().contains("fsmonitor"), "{}", ended.story());
        let next = ended.again(verb).env("ANTHROPIC_API_KEY", KEY).run();
        let said = "files that changed during the run: .git/config (changed), .git/hooks/pre-commit (added); ";
        assert!(next.stderr.contains(said) || next.stdout.contains(said), "{verb:?}: {}", next.story());
        assert!(!next.file(".git/config").unwrap().contains("fsmonitor"), "{verb:?}");
        assert!(next.file(".git/hooks/pre-commit").is_none() && !next.path("PWNED").exists(), "{verb:?}");
    }
}
