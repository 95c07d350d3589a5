//! `fledge lanes run --clean --base`: the verdict of a run's gate on the current files as work on a
//! commit.

use crate::support::{Ended, Fledge};
use serde_json::Value;

/// It names no test, because scripts that its commands lead to are protected too.
const LANE: &str = "steps:\n  - { name: test, run: 'for it in tests/*.sh; do sh $it || exit 1; done' }\n";
const CHECK: &str = "test \"$(sh sum.sh 20 22)\" = 42\n";
const WRONG: &str = "echo $(($1 - $2))\n";
const RIGHT: &str = "echo $(($1 + $2))\n";

/// A repository whose only commit has a bug that its lane finds.
fn place() -> Fledge {
    let place = Fledge::new().lane("verify", LANE).file("tests/check.sh", CHECK).file("sum.sh", WRONG);
    place.file("fledge.yaml", "protect: [notes.txt]\n").file("notes.txt", "keep\n").committed()
}

fn judged(place: Fledge) -> Ended {
    place.args(&["lanes", "run", "verify", "--clean", "--base", "main"]).arg("--json").run()
}

#[test]
fn the_current_files_are_judged_as_work_on_the_commit() {
    long_test!();
    judged(place()).must_exit(1);
    let ended = judged(place().file("sum.sh", RIGHT));
    ended.must_exit(0);
    let data: Value = serde_json::from_str(&ended.stdout).unwrap();
    let commit = ended.git(&["rev-parse", "main"]);
    assert_eq!((&data["result"], &data["base"]["commit"]), (&"passed".into(), &commit.trim().into()));
    assert_eq!(data["verdict"]["proof"]["base"], data["base"]["tree"]);
    assert_eq!((&data["verdict"]["ruling"], &data["commands"][0]["status"]), (&"passed".into(), &"passed".into()));
    // Committed work is judged as well, and a later commit is the base only if it is asked for.
    let committed = ended.again(&["lanes", "run", "verify", "--clean", "--base", "HEAD~1"]);
    let committed = committed.git(&["add", "-A"]).git(&["commit", "-qm", "repair"]).run();
    committed.must_exit(0);
    assert_eq!(committed.git(&["status", "--porcelain"]), "");
}

#[test]
fn lane_tests_and_configuration_are_those_of_the_commit() {
    long_test!();
    let empty = "steps:\n  - { name: test, run: 'true' }\n";
    for (place, path) in [
        (place().lane("verify", empty), "lanes/verify.yaml changed"),
        (place().file("tests/check.sh", "true\n"), "tests/check.sh changed"),
        (place().git(&["rm", "-q", "tests/check.sh"]), "tests/check.sh removed"),
        (place().file("fledge.yaml", "").file("notes.txt", "x\n"), "notes.txt changed"),
        (place().file("fledge.yaml", "").file("sum.sh", RIGHT), "fledge.yaml changed"),
    ] {
        let ended = judged(place);
        ended.must_exit(6);
        let flag = format!("(--allow-edit {} allows it)", path.split(' ').next().unwrap());
        assert!(ended.stderr.contains(&flag), "expected {flag}: {}", ended.story());
        let data: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!((&data["result"], &data["exit_code"]), (&"tampered".into(), &6.into()), "{}", ended.story());
        assert!(ended.stderr.contains(path), "{path}: {}", ended.story());
        assert_ne!(ended.git(&["status", "--porcelain"]), "", "nothing is put back");
    }
    let both = place().file("tests/check.sh", format!("{CHECK}true\n")).file("sum.sh", RIGHT);
    let opened = both.args(&["lanes", "run", "verify", "--clean", "--base=main", "--allow-edit=tests/check.sh"]).run();
    opened.must_exit(0);
    assert!(opened.stderr.contains("allow_edit: tests/check.sh changed"), "{}", opened.story());
}

#[test]
fn work_must_run_the_tests_that_the_commit_ran() {
    long_test!();
    let lane = "steps:\n  - { name: test, run: 'echo \"$(cat *.txt | wc -l) passed in 0.01s\"' }\n";
    let place = || Fledge::new().lane("verify", lane).file("a.txt", "1\n2\n").file("b.txt", "3\n").committed();
    judged(place().file("a.txt", "1\n2\n3\n")).must_exit(0);
    let ended = judged(place().file("a.txt", "1\n"));
    ended.must_exit(1);
    assert!(ended.stderr.contains("passed its steps but failed as a gate"), "{}", ended.story());
}

#[test]
fn a_lane_that_writes_changes_nothing_in_the_checkout() {
    let lane = "writes: true\nsteps:\n  - { name: format, run: 'for it in *.txt; do echo good > $it; done' }\n";
    let place = Fledge::new().lane("verify", lane).file("a.txt", "good\n").committed();
    let ended = judged(place.file("a.txt", "bad\n").file("new", "x"));
    ended.must_exit(0);
    assert!(ended.stderr.contains("your files stay as they are"), "{}", ended.story());
    assert_eq!(ended.file("a.txt").as_deref(), Some("bad\n"));
}

#[test]
fn a_commit_that_is_not_there_and_options_for_parts_are_refused() {
    let lane = ["lanes", "run", "verify"];
    for (more, says) in [
        (&["--clean", "--base", "nowhere"][..], "there is no commit `nowhere` that contains this folder"),
        (&["--base", "main"], "--clean"),
        (&["--clean", "--base", "main", "--only", "test"], "cannot be used with"),
    ] {
        let ended = place().args(&[&lane[..], more].concat()).run();
        ended.must_exit(2);
        assert!(ended.stderr.contains(says), "{}", ended.story());
    }
    let bare = Fledge::new().lane("verify", LANE).args(&["lanes", "run", "verify", "--clean", "--base", "main"]).run();
    bare.must_exit(2);
    assert!(bare.stderr.contains("not in a git repository"), "{}", bare.story());
    let other = place().args(&["lanes", "run", "other", "--clean", "--base", "main"]).run();
    other.must_exit(2);
    assert!(other.stderr.contains("there is no lane `other`"), "{}", other.story());
}
