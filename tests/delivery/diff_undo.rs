//! Commands that show the changes of a run, and undo them without losing anything.

use crate::support::{Ended, Fledge, Model, needs, say, shell, write};
use serde_json::{Value, json};
use std::fs;

fn verified() -> Ended {
    let work = "printf 'two\\n' >code; rm gone; chmod +x tool; mkdir new; printf 'x' >new/file; printf 'a\\000b' >blob";
    let model = Model::new([shell(work), write("done", ""), say("Done.")]);
    let fledge = Fledge::simple(&model).file("code", "one\n").file("gone", "1\n").file("tool", "1\n");
    let run = fledge.file(".gitignore", "kept\n").file("kept", "ignored\n").run();
    run.must_be(0, "verified");
    run
}

#[track_caller]
fn data(run: Ended, args: &[&str]) -> (Value, Ended) {
    let ended = run.again(args).run();
    ended.must_exit(0);
    (serde_json::from_str(&ended.stdout).unwrap(), ended)
}

#[test]
fn base_candidate_and_now_are_compared() {
    long_test!();
    let run = verified();
    let report = run.report();
    let (diff, run) = data(run, &["runs", "diff", "--json"]);
    assert_eq!((&diff["from"], &diff["to"]), (&report["base"], &report["tree"]));
    let paths: Vec<_> = diff["changes"].as_array().unwrap().iter().map(|it| json!([it["path"], it["kind"]])).collect();
    let wanted = [
        json!(["blob", "added"]),
        json!(["code", "modified"]),
        json!(["done", "added"]),
        json!(["gone", "removed"]),
        json!(["new/file", "added"]),
        json!(["tool", "mode_changed"]),
    ];
    assert_eq!(paths, wanted);
    let run = run.again(&["runs", "diff", "last", "candidate", "now"]).run();
    run.must_exit(0);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", "no differences\n"));
    fs::write(run.path("code"), "three\n").unwrap();
    let run = run.again(&["runs", "diff", "last", "candidate", "now"]).run();
    assert!(run.stdout.contains("\n-two\n+three\n"), "{}", run.story());
    let run = run.again(&["runs", "diff", "--stat"]).run();
    assert!(run.stdout.contains(" 6 files changed"), "{}", run.story());
    let run = run.again(&["runs", "diff", "last", "nonsense"]).run();
    run.must_exit(2);
}

#[test]
fn undo_brings_the_base_back_and_undo_of_that_the_work() {
    long_test!();
    let run = verified();
    let tree = run.report()["tree"].clone();
    let (undone, run) = data(run, &["runs", "undo", "--json"]);
    assert_eq!((&undone["tree"], &undone["before"]), (&run.report()["base"], &tree));
    assert_eq!(
        [run.file("code"), run.file("gone"), run.file("kept")].map(Option::unwrap),
        ["one\n", "1\n", "ignored\n"]
    );
    assert!(run.file("done").is_none() && !run.path("new").exists(), "what the run made is gone");
    let run = run.again(&["runs", "undo"]).run();
    run.must_exit(0);
    assert_eq!(run.stderr, "no differences: no file was changed\n");
    let (_, run) = data(run, &["runs", "undo", "--json", "--to", tree.as_str().unwrap()]);
    assert_eq!((run.file("code").as_deref(), run.file("new/file").as_deref()), (Some("two\n"), Some("x")));
    let run = run.again(&["runs", "undo", "--to", &"0".repeat(40)]).run();
    run.must_exit(2);
}

#[test]
fn what_was_changed_after_the_run_is_undone_only_by_force_and_is_not_lost() {
    long_test!();
    let run = verified();
    fs::write(run.path("code"), "three\n").unwrap();
    let run = run.again(&["runs", "undo"]).run();
    run.must_exit(1);
    assert!(run.stderr.contains("was changed after run") && run.stderr.contains(": code\n"), "{}", run.story());
    assert_eq!(run.file("code").as_deref(), Some("three\n"));
    let (undone, run) = data(run, &["runs", "undo", "--force", "--json"]);
    assert_eq!(run.file("code").as_deref(), Some("one\n"));
    let (_, run) = data(run, &["runs", "undo", "--json", "--to", undone["before"].as_str().unwrap()]);
    assert_eq!(run.file("code").as_deref(), Some("three\n"));
}

#[test]
fn what_a_run_left_that_was_not_verified_is_kept_too() {
    long_test!();
    let cases = [
        (vec![write("half", "1\n"), say("Done.")], "--max-retries=0", 1),
        (vec![write("half", "1\n"), write("half2", "1\n")], "--no-memory", 3), // the model has no more answers
    ];
    for (turns, flag, code) in cases {
        let run = Fledge::simple(&Model::new(turns)).arg(flag).lane("verify", &needs("done")).run();
        run.must_exit(code);
        let (diff, run) = data(run, &["runs", "diff", "--json"]);
        assert_eq!(diff["changes"][0]["path"], "half", "{diff}");
        let run = run.again(&["runs", "undo"]).run();
        run.must_exit(0);
        assert_eq!(run.file("half"), None);
    }
}

#[test]
fn trees_of_runs_that_are_pruned_are_kept_no_longer() {
    long_test!();
    let run = verified();
    let kept = |run: &Ended| {
        let project = fs::read_dir(run.path("../state")).unwrap().flatten().next().unwrap().path();
        run.git(&["--git-dir", project.join("trees.git").to_str().unwrap(), "for-each-ref"])
    };
    assert!(!kept(&run).is_empty());
    let run = run.again(&["runs", "prune", "--keep=0"]).run();
    run.must_exit(0);
    assert_eq!(kept(&run), "");
}

#[test]
fn where_files_cannot_be_put_back_the_way_back_is_told_all_the_same() {
    long_test!();
    let model = Model::new([shell("rm plain; touch done"), say("Done.")]);
    let run = Fledge::simple(&model).file("plain", "1\n").file(".gitignore", "*.o\n").committed().run();
    run.must_be(0, "verified");
    fs::create_dir(run.path("plain")).unwrap();
    fs::write(run.path("plain/x.o"), "of the user").unwrap();
    let run = run.again(&["runs", "undo"]).run();
    run.must_exit(8);
    assert!(run.stderr.contains("  back: fledge runs undo "), "{}", run.story());
    let back = run.stderr.split("  back: fledge ").nth(1).and_then(|rest| rest.lines().next()).unwrap().to_owned();
    run.again(&back.split(' ').collect::<Vec<_>>()).run().must_exit(0);
}
