//! Concurrent activity beside runs in worktrees: many processes, a killed one, users who interfere,
//! and the preview of a run.

use crate::delivery::worktrees::{branches, isolated, known, left, working, worktree};
use crate::support::{Model, PATIENCE, say, write};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};

/// A task whose model never answers.
const HANGING: &str = "hang.md";

/// Starts a run beside others.
fn begin(place: &Path, model: &str, task: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fledge"));
    command.args(["run", task, "--isolation=worktree", "--sandbox=off", "--no-verify"]);
    command.current_dir(place.join("workspace")).env_clear().env("PATH", std::env::var("PATH").unwrap());
    command.env("HOME", place.join("home")).env("FLEDGE_STATE_DIR", place.join("state"));
    command.env("ANTHROPIC_BASE_URL", model).env("ANTHROPIC_API_KEY", "sk-test");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Starts five runs, one after the other. If `hangs` is given, kills the third while it works.
fn five(place: &Path, model: &str, hangs: Option<Receiver<()>>) {
    for number in 0..5 {
        if let Some(hangs) = hangs.as_ref().filter(|_| number == 2) {
            let mut child = begin(place, model, HANGING);
            hangs.recv_timeout(PATIENCE).unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
            continue;
        }
        let output = begin(place, model, "task.md").wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn of_four_processes_with_worktrees_only_the_killed_one_leaves_its_worktree() {
    long_test!();
    let (tell, hangs) = channel();
    let model = Model::thinking(move |body, _| {
        let messages = body["messages"].as_array().unwrap();
        let is_hanging = messages[0].to_string().contains("never ends");
        let turn = match messages.len() {
            1 if is_hanging => write("half", "1\n"),
            _ if is_hanging => {
                tell.send(()).unwrap();
                say("Going on").hanging()
            }
            _ => say("There is nothing to do."),
        };
        (Some(turn), 0)
    });
    let fledge = isolated(&model).arg("--sandbox=off").arg("--no-verify");
    let run = fledge.file(HANGING, "# Work that never ends\n\nGo on.\n").committed().run();
    run.must_exit(0);
    let (place, url) = (run.path("..").canonicalize().unwrap(), model.url());
    std::thread::scope(|scope| {
        let (place, url) = (&place, url.as_str());
        (0..3).for_each(|_| drop(scope.spawn(move || five(place, url, None))));
        scope.spawn(move || five(place, url, Some(hangs)));
    });
    let run = run.again(&["worktrees", "clean"]).run();
    run.must_exit(0);
    assert!(run.stderr.contains("0 worktrees removed, 1 stay"), "{}", run.story());
    let [name, _record] = left(&run).try_into().unwrap();
    assert_eq!((known(&run), branches(&run)), (2, format!("fledge/{name}")));
    let all = fs::read_dir(place.join("state")).unwrap().map(|project| project.unwrap().path().join("worktrees"));
    let folder = all.map(|all| all.join(&name)).find(|folder| folder.is_dir()).unwrap();
    assert_eq!(fs::read_to_string(folder.join("workspace/half")).unwrap(), "1\n");
    let run = run.again(&["worktrees", "clean", &format!("--discard={name}")]).run();
    assert_eq!((left(&run), known(&run), branches(&run)), (Vec::new(), 1, String::new()), "{}", run.story());
}

#[test]
fn a_run_whose_worktree_is_deleted_under_it_ends_and_says_so() {
    let state: Arc<OnceLock<PathBuf>> = Arc::default();
    let seen = state.clone();
    let model = Model::thinking(move |body, _| {
        if body["messages"].as_array().unwrap().len() == 1 {
            return (Some(write("half", "1\n")), 0);
        }
        for project in fs::read_dir(seen.get().unwrap()).unwrap().flatten() {
            for entry in fs::read_dir(project.path().join("worktrees")).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    fs::remove_dir_all(entry.path()).unwrap();
                }
            }
        }
        (Some(say("Done.")), 0)
    });
    let fledge = isolated(&model).arg("--sandbox=off").arg("--max-retries=0").committed();
    state.set(fledge.state()).unwrap();
    let run = fledge.run();
    let report = run.must_be(5, "gate_errored");
    assert_eq!(worktree(&report)["state"], "removed", "{report:#}");
    assert!(report["message"].as_str().unwrap().contains("is gone, with its uncommitted changes"), "{report:#}");
    assert_eq!((left(&run), known(&run), branches(&run)), (Vec::new(), 1, String::new()));
}

#[test]
fn a_dry_run_shows_the_lanes_and_files_of_the_commit_that_its_worktree_would_have() {
    let model = working();
    let fledge =
        isolated(&model).file("AGENTS.md", "Be brief.").arg("--from-commit").arg("--json").arg("--dry-run").committed();
    let fledge = fledge.file("AGENTS.md", "Be long.").lane("verify", "steps:\n  - { name: other, run: 'true' }\n");
    let run = fledge.run();
    run.must_exit(0);
    let plan: Value = serde_json::from_str(run.stdout.trim()).unwrap();
    let (system, lane) = (plan["system"].as_str().unwrap(), plan["lanes"][0].to_string());
    assert!(system.contains("Be brief.") && lane.contains("test -f done") && !lane.contains("other"), "{plan:#}");
    assert_eq!(plan["workspace"], run.path("").canonicalize().unwrap().display().to_string());
    let head = run.git(&["rev-parse", "HEAD"]);
    let note = format!("the run would begin in a worktree of {}, without uncommitted changes", &head[..12]);
    assert!(plan["warnings"].to_string().contains(&note), "{}", plan["warnings"]);
    assert_eq!((known(&run), branches(&run), run.path("../state").exists()), (1, String::new(), false));
    let again = ["run", "task.md", "--isolation=worktree", "--base=nowhere", "--dry-run"];
    let run = run.again(&again).run();
    run.must_exit(2);
    assert!(run.stderr.contains("there is no commit `nowhere`"), "{}", run.story());
    let run = isolated(&model).arg("--dry-run").run();
    run.must_exit(2);
    assert!(run.stderr.contains("is not in a git repository"), "{}", run.story());
    assert!(model.asked().is_empty());
}
