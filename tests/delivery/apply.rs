//! `apply` brings verified work into the checkout or onto a branch. It does not touch files that
//! changed after the run.

use crate::support::{Ended, Fledge, Model, say, shell, write};
use serde_json::{Value, json};
use std::fs;

/// Returns a verified run in a repository whose work was then removed from the checkout.
fn put_away() -> Ended {
    let model = Model::new([write("done", "yes\n"), shell("chmod +x kept"), say("Made the file.\n\nIt is there.")]);
    let run = Fledge::simple(&model).file("kept", "1\n").committed().run();
    run.must_be(0, "verified");
    run.git(&["stash", "-qu"]);
    assert_eq!(run.file("done"), None);
    run
}

#[track_caller]
fn data(run: Ended, args: &[&str]) -> (Value, Ended) {
    let ended = run.again(args).run();
    ended.must_exit(0);
    (serde_json::from_str(&ended.stdout).unwrap(), ended)
}

#[test]
fn the_verified_tree_is_put_into_a_checkout_that_is_at_the_base_and_only_once() {
    long_test!();
    let run = put_away();
    let report = run.report();
    let (would, run) = data(run, &["apply", "last", "--check", "--json"]);
    let changes = json!([
        { "path": "done", "kind": "added", "from_mode": null, "to_mode": "100644" },
        { "path": "kept", "kind": "mode_changed", "from_mode": "100644", "to_mode": "100755" },
    ]);
    assert_eq!((&would["changes"], run.file("done")), (&changes, None));
    assert_eq!((&would["tree"], &would["base"]), (&report["tree"], &report["base"]));
    let run = run.again(&["apply", "last"]).run();
    run.must_exit(0);
    assert_eq!(run.file("done").as_deref(), Some("yes\n"));
    assert_eq!(run.git(&["diff", "--summary"]), " mode change 100644 => 100755 kept");
    let run = run.again(&["apply", "last"]).run();
    run.must_exit(0);
    assert!(run.stderr.contains("already has the verified tree"), "{}", run.story());
}

#[test]
fn a_checkout_with_other_work_is_left_alone() {
    long_test!();
    let run = put_away();
    fs::write(run.path("mine"), "work\n").unwrap();
    let run = run.again(&["apply", "last"]).run();
    run.must_exit(1);
    assert!(run.stderr.contains("the workspace has changed since the run began: mine"), "{}", run.story());
    assert_eq!((run.file("done"), run.file("mine").as_deref()), (None, Some("work\n")));
}

#[test]
fn a_branch_is_made_or_moved_and_the_files_stay() {
    long_test!();
    let run = put_away();
    let (made, run) = data(run, &["apply", "last", "--branch=fix", "--json"]);
    let head = run.git(&["rev-parse", "main"]);
    assert_eq!(run.git(&["rev-parse", "fix", "fix^"]), format!("{}\n{head}", made["commit"].as_str().unwrap()));
    assert_eq!(run.git(&["rev-parse", "fix^{tree}"]), made["tree"]);
    let said = run.git(&["log", "-1", "--format=%s|%(trailers:key=Fledge-Run,valueonly)", "fix"]);
    assert_eq!(said.trim(), format!("fledge: task|{}", made["run"].as_str().unwrap()));
    assert_eq!((run.git(&["status", "--porcelain"]), run.file("done")), (String::new(), None));
    let (again, run) = data(run, &["apply", "last", "--branch=fix", "--json"]);
    assert_eq!(again["commit"], made["commit"]);
    run.git(&["branch", "old", "main"]);
    run.git(&["branch", "other", "fix"]);
    let (_, run) = data(run, &["apply", "last", "--branch=old", "--json"]);
    assert_eq!(run.git(&["rev-parse", "old^"]), head);
    for (name, code, said) in
        [("main", 1, "is checked out"), ("-x", 2, "invalid branch name"), ("a..b", 2, "invalid branch name")]
    {
        let run = run_again(&run, &["apply", "last", &format!("--branch={name}")]);
        assert_eq!(run.0, Some(code), "{}", run.1);
        assert!(run.1.contains(said), "{}", run.1);
    }
    run.git(&["commit", "-q", "--allow-empty", "-m", "moved"]);
    let run = run.again(&["apply", "last", "--branch=old2"]).run();
    run.must_exit(0); // the tree of the newest commit is still the base
    run.git(&["rm", "-q", "kept"]);
    run.git(&["commit", "-qm", "other work"]);
    let run = run.again(&["apply", "last", "--branch=late"]).run();
    run.must_exit(1);
    assert!(run.stderr.contains("is not the commit that the run began with"), "{}", run.story());
}

/// Runs the program again in the same folder, which remains.
pub(super) fn run_again(run: &Ended, args: &[&str]) -> (Option<i32>, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fledge"));
    command.args(args).current_dir(run.path("")).env("FLEDGE_STATE_DIR", run.path("../state"));
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn verified_work_without_a_commit_can_be_applied_to_a_branch_at_its_base() {
    long_test!();
    let commit = "git -c user.name=x -c user.email=x@localhost commit -q --allow-empty -m meanwhile";
    let model = Model::new([shell(commit), write("done", ""), say("Done.")]);
    let fledge = Fledge::simple(&model).arg("--commit=on-success").arg("--sandbox=off").committed();
    let run = fledge.run();
    run.must_be(5, "not_delivered");
    let run = run.again(&["apply", "last", "--branch=work"]).run();
    run.must_exit(0);
    assert_eq!(run.git(&["log", "--format=%s", "work"]), "fledge: task\nfirst");
}

#[test]
fn what_was_not_verified_or_is_not_whole_is_applied_nowhere() {
    long_test!();
    let model = Model::new([say("No.")]);
    let run = Fledge::simple(&model).arg("--max-retries=0").run().again(&["apply", "last"]).run();
    run.must_exit(1);
    assert!(run.stderr.contains("was not verified: it ended as `failed`"), "{}", run.story());
    let model = Model::new([say("Done.")]);
    let run = Fledge::simple(&model).arg("--no-verify").run().again(&["apply", "last"]).run();
    run.must_exit(1);
    let run = put_away();
    for project in fs::read_dir(run.path("../state")).unwrap().flatten() {
        fs::remove_dir_all(project.path().join("trees.git/objects")).unwrap();
    }
    let run = run.again(&["apply", "last"]).run();
    assert_ne!(run.code, Some(0), "{}", run.story());
    assert_eq!(run.file("done"), None);
}
