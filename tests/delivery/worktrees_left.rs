//! Worktrees that runs leave behind: fledge lists them, finds them again, and removes them only if
//! no work is lost.

use crate::delivery::worktrees::{branches, isolated, known, left, working, worktree};
use crate::support::{Ended, Fledge, Model, say, shell, write};
use fledge::store::StoredRunState;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the worktrees as data.
#[track_caller]
fn listed(run: &Ended) -> Vec<(String, String)> {
    let all: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}", run.story()));
    let word = |tree: &Value, name: &str| tree[name].as_str().unwrap_or_default().to_owned();
    all["worktrees"].as_array().unwrap().iter().map(|tree| (word(tree, "state"), word(tree, "path"))).collect()
}

#[test]
fn what_runs_have_left_is_listed_and_only_what_is_safe_is_removed() {
    long_test!();
    let run = Fledge::new().args(&["worktrees", "list"]).run();
    run.must_exit(0);
    assert!(run.stderr.contains("has left a worktree"), "{}", run.story());
    let model = Model::new([write("half", "1\n"), say("Done.")]);
    let run = isolated(&model).arg("--max-retries=0").committed().run();
    let report = run.must_be(1, "gate_failed");
    let (id, folder) =
        (report["run"].as_str().unwrap().to_owned(), PathBuf::from(worktree(&report)["path"].as_str().unwrap()));
    let run = run.again(&["worktrees", "list", "--json"]).run();
    assert_eq!(listed(&run), [("uncommitted".to_owned(), folder.display().to_string())]);
    let run = run.again(&["doctor"]).run();
    assert!(run.stdout.contains("1 run left a worktree"), "{}", run.story());
    let run = run.again(&["worktrees", "clean"]).run();
    run.must_exit(0);
    assert!(run.stderr.contains("stays: it has uncommitted changes: half"), "{}", run.story());
    assert!(folder.join("half").exists());
    // Also after the run's record is pruned.
    let run = run.again(&["runs", "prune", "--keep=0"]).run();
    let run = run.again(&["worktrees", "clean"]).run();
    assert!(folder.join("half").exists(), "{}", run.story());
    fs::remove_file(folder.join("half")).unwrap();
    let run = run.again(&["worktrees", "list", "--json"]).run();
    assert_eq!(listed(&run), [("orphaned".to_owned(), folder.display().to_string())]);
    let run = run.again(&["worktrees", "clean", "--dry-run"]).run();
    assert!(run.stderr.contains("would be removed") && folder.exists(), "{}", run.story());
    let run = run.again(&["worktrees", "clean", "--older-than=1d"]).run();
    assert!(run.stderr.contains("less than 1d ago") && folder.exists(), "{}", run.story());
    let run = run.again(&["worktrees", "clean"]).run();
    assert_eq!((left(&run), known(&run), branches(&run)), (Vec::new(), 1, String::new()), "{}", run.story());
    assert!(!id.is_empty());
}

#[test]
fn remove_keeps_the_worktree_of_an_active_run_and_deletes_that_of_a_named_run() {
    long_test!();
    let model = Model::new([write("half", "1\n"), say("Going on").hanging()]);
    let mut running = isolated(&model).committed().arg("--json").start();
    running.wait_for("Going o");
    let place = running.place();
    for args in [["worktrees", "clean", "--discard=last"], ["worktrees", "clean", "--json"]] {
        let (_, said) = in_place(&place, &args);
        assert!(said.contains("is in progress"), "{said}");
    }
    running.signal(Signal::KILL);
    let run = running.end();
    let run = run.again(&["worktrees", "clean"]).run();
    assert!(run.stderr.contains("was interrupted: `fledge runs resume"), "{}", run.story());
    assert_eq!(known(&run), 2);
    let run = run.again(&["worktrees", "clean", "--discard=nobody"]).run();
    run.must_exit(2);
    let run = run.again(&["worktrees", "clean", "--discard=last"]).run();
    run.must_exit(0);
    assert_eq!((left(&run), known(&run), branches(&run)), (Vec::new(), 1, String::new()), "{}", run.story());
    let run = run.again(&["runs", "resume", "last"]).anthropic(&model).run();
    assert!(run.stderr.contains("is gone, with its uncommitted changes"), "{}", run.story());
}

#[test]
fn worktrees_of_failed_runs_go_with_their_work_once_a_person_agrees() {
    long_test!();
    let model = Model::new([write("half", "1\n"), say("Done.")]);
    let run = isolated(&model).arg("--max-retries=0").committed().run();
    let report = run.must_be(1, "gate_failed");
    let folder = PathBuf::from(worktree(&report)["path"].as_str().unwrap());
    for (args, code, said) in [
        (&["--failed", "--dry-run"][..], 0, "would be removed"),
        (&["--failed", "--older-than=1d"], 0, "stays: it has uncommitted changes"),
        (
            &["--failed"],
            2,
            "1 worktree would be removed with all contents: cannot ask for confirmation without a terminal",
        ),
        (&["--all"], 2, "pass --yes to confirm"),
    ] {
        let tried = in_place(run.path("..").as_path(), &[&["worktrees", "clean"], args].concat());
        assert_eq!((tried.0, tried.1.contains(said)), (code == 0, true), "{args:?}: {}", tried.1);
        assert!(folder.join("half").exists());
    }
    let run = run.again(&["worktrees", "clean", "--failed", "--yes"]).run();
    run.must_exit(0);
    assert!(run.stderr.contains("it has uncommitted changes: half"), "{}", run.story());
    assert_eq!((left(&run), known(&run), branches(&run)), (Vec::new(), 1, String::new()), "{}", run.story());
}

#[test]
fn caches_that_programs_leave_are_no_work() {
    let commands = "mkdir -p src/__pycache__ && touch src/__pycache__/a.pyc src/b.pyc && rm -f done";
    let model = Model::new([shell(commands), say("Done.")]);
    let run = isolated(&model).arg("--max-retries=0").file("src/a.py", "").committed().run();
    let report = run.must_be(1, "gate_failed");
    assert_eq!(worktree(&report)["state"], "removed", "{report:#}");
}

/// Runs the program in the workspace of a run that is under way.
fn in_place(place: &Path, args: &[&str]) -> (bool, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fledge"));
    command.args(args).current_dir(place.join("workspace")).env_clear();
    command.env("HOME", place.join("home")).env("FLEDGE_STATE_DIR", place.join("state"));
    let output = command.env("PATH", std::env::var("PATH").unwrap()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// Every fail point in the creation and removal of a worktree.
#[cfg(debug_assertions)] // fail points exist only in debug builds
const PLACES: [&str; 10] = [
    "worktree: written",
    "worktree: begun",
    "worktree: added",
    "worktree: filled",
    "worktree: ready",
    "worktree removal: begun",
    "worktree removal: aside",
    "worktree removal: unlinked",
    "worktree removal: unbranched",
    "worktree removal: forgotten",
];

#[test]
#[cfg(debug_assertions)]
fn a_process_that_dies_while_it_makes_or_removes_a_worktree_leaves_a_record() {
    long_test!();
    let tried = |place: &str| {
        let model = Model::thinking(|body, _| {
            let done = body["messages"].as_array().is_some_and(|all| all.len() > 1);
            (Some(if done { say("Done.") } else { write("done", "yes\n") }), 0)
        });
        let ended =
            isolated(&model).arg("--sandbox=off").committed().env("FLEDGE_FAIL", &format!("abort:{place}#1")).run();
        assert_eq!((ended.code, ended.row().state), (None, StoredRunState::Interrupted), "{place}: {}", ended.story());
        let run = ended.again(&["runs", "resume", "last"]).anthropic(&model).run();
        let report = run.must_be(0, "verified");
        let branch = worktree(&report)["branch"].as_str().unwrap();
        assert_eq!(worktree(&report)["state"], "removed", "{place}: {report:#}");
        assert_eq!((known(&run), branches(&run)), (1, branch.to_owned()), "{place}");
        assert_eq!(run.git(&["rev-parse", branch]), report["commit"].as_str().unwrap(), "{place}");
        let run = run.again(&["worktrees", "clean"]).run();
        assert_eq!(left(&run), Vec::<String>::new(), "{place}");
    };
    std::thread::scope(|scope| {
        for half in PLACES.chunks(PLACES.len() / 2) {
            scope.spawn(move || half.iter().for_each(|place| tried(place)));
        }
    });
}

#[test]
#[cfg(debug_assertions)]
fn what_fails_while_a_worktree_is_made_or_removed_is_said_and_cleaned_up_later() {
    long_test!();
    for place in ["worktree: filled", "worktree removal: aside", "worktree removal: forgotten"] {
        let model = working();
        let fledge = isolated(&model).arg("--sandbox=off").committed();
        let run = fledge.env("FLEDGE_FAIL", &format!("error:{place}#1")).run();
        let made = !place.contains("removal");
        let report = if made { run.must_be(2, "plan_failed") } else { run.must_be(0, "verified") };
        let said = if made { &report["message"] } else { &worktree(&report)["why"] };
        assert!(said.as_str().unwrap().contains("made to fail"), "{place}: {report:#}");
        let run = run.again(&["worktrees", "clean"]).run();
        run.must_exit(0);
        assert_eq!((left(&run), known(&run)), (Vec::new(), 1), "{place}: {}", run.story());
    }
}

#[test]
fn one_after_the_other_they_leave_nothing_in_the_repository() {
    long_test!();
    let model = Model::thinking(|_, _| (Some(say("There is nothing to do.")), 0));
    let fledge = isolated(&model).file("done", "").arg("--sandbox=off").committed();
    let mut run = fledge.run();
    let files = |run: &Ended| walk(&run.path(".git"));
    let first = files(&run);
    for _ in 0..4 {
        run = run.again(&["run", "task.md", "--isolation=worktree", "--sandbox=off"]).anthropic(&model).run();
        run.must_exit(0);
    }
    assert_eq!((files(&run), left(&run), known(&run)), (first, Vec::new(), 1));
}

/// Returns all files below a folder.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(walk(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}
