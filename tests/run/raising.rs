//! Tests of runs that a limit ended and that go on with a higher one.

use crate::support::{Ended, Fledge, Model, say, shell, write};
use fledge::store::StoredRunState;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const ASK: &str = "Make the file `done`.";

/// Returns the run after `runs resume last` with these flags.
fn resumed(ended: Ended, model: &Model, flags: &[&str]) -> Ended {
    ended.again(&[&["runs", "resume", "last"], flags].concat()).anthropic(model).run()
}

/// Insists that the journal gives the result of the run again.
#[track_caller]
fn must_replay(ended: Ended) {
    ended.again(&["runs", "replay", "last"]).run().must_exit(0);
}

#[test]
fn a_run_that_the_limit_of_turns_ended_goes_on_with_a_higher_one() {
    long_test!();
    let model = Model::new([write("half", "1\n"), write("done", "2\n"), say("Done.")]);
    let mut ended = Fledge::simple(&model).task(&format!("---\nbudget: {{ turns: 1 }}\n---\n{ASK}")).run();
    ended.must_be(4, "max_turns");
    for (flags, says) in [
        (&[][..], "hint: to resume with a higher limit, add it"),
        (&["--max-turns=1"], "cannot go on: the turn limit was reached; raise --max-turns"),
        (&["--max-tokens=5", "--max-turns=9"], "--max-tokens 5 is too low: 110 are used by run "),
        (&["--max-time=3h"], "cannot go on: the turn limit was reached; raise --max-turns"),
        (&["--max-turns=0"], "expected a whole number of at least 1"),
        (&["--max-tokens=5", "--dry-run"], "--max-tokens 5 is too low"),
    ] {
        ended = resumed(ended, &model, flags);
        ended.must_exit(2);
        assert!(ended.stderr.contains(says), "{flags:?}: {}", ended.story());
    }
    let ended = resumed(ended, &model, &["--max-turns=9", "--dry-run"]);
    ended.must_exit(0);
    assert!(ended.stdout.contains("  turns    1 used, of 9\n  tokens   110 used, no limit\n"), "{}", ended.story());
    let ended = resumed(ended, &model, &["--max-turns=9", "--dry-run", "--json"]);
    let data: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!([&data["used"]["turns"], &data["limits"]["turns"]], [&json!(1), &json!(9)], "{}", ended.story());
    assert_eq!(model.count(), 1, "nothing is resumed so far");
    let ended = resumed(ended, &model, &["--max-turns=9"]);
    let report = ended.must_be(0, "verified");
    assert_eq!((ended.rows().len(), model.count(), &report["usage"]["requests"]), (1, 3, &json!(3)));
    assert_eq!((ended.file("half").unwrap(), ended.file("done").unwrap()), ("1\n".into(), "2\n".into()));
    let ended = ended.again(&["runs", "show", "last"]).run();
    assert!(ended.stdout.contains("● resumed"), "{}", ended.story());
    must_replay(ended);
}

#[test]
fn a_run_without_changes_goes_on_in_its_worktree_unless_that_is_gone() {
    long_test!();
    let model = Model::new([shell("true"), write("done", "2\n"), say("Done.")]);
    let task = format!("---\nbudget: {{ turns: 1 }}\nisolation: worktree\n---\n{ASK}");
    let ended = Fledge::simple(&model).task(&task).committed().run();
    let report = ended.must_be(4, "max_turns");
    let folder = PathBuf::from(report["worktree"]["path"].as_str().unwrap());
    assert_eq!(report["worktree"]["state"], "kept", "{}", ended.story());
    let away = folder.with_extension("away");
    fs::rename(&folder, &away).unwrap();
    let ended = resumed(ended, &model, &["--max-turns=9"]);
    ended.must_exit(5);
    assert!(ended.stderr.contains("is gone"), "{}", ended.story());
    let [row] = ended.rows().try_into().unwrap();
    let StoredRunState::Ended(outcome) = row.state else { panic!("{:?}", row.state) };
    assert_eq!((outcome.reason.as_str(), model.count()), ("max_turns", 1));
    fs::rename(&away, &folder).unwrap();
    resumed(ended, &model, &["--max-turns=9"]).must_be(0, "verified");
}

#[test]
fn a_run_without_retries_left_makes_another_attempt_with_the_verdict_of_the_last() {
    long_test!();
    let model = Model::new([say("Done."), write("done", "1\n"), say("Done now.")]);
    let ended = Fledge::simple(&model).arg("--max-retries=0").run();
    ended.must_be(1, "gate_failed");
    let ended = resumed(ended, &model, &["--max-retries=1"]);
    let report = ended.must_be(0, "verified");
    assert_eq!(report["attempts"].as_array().unwrap().len(), 2);
    let told = model.asked()[1].newest();
    assert!(told.contains("verify/there"), "the model gets what failed: {told}");
    must_replay(ended);
}

#[test]
fn a_run_whose_time_or_tokens_ended_goes_on() {
    long_test!();
    let front = |budget: &str| format!("---\nbudget: {{ {budget} }}\n---\n{ASK}");
    let model = Model::new([say("Going on").hanging(), write("done", "1\n"), say("Done.")]);
    let ended = Fledge::simple(&model).task(&front("time: 3s")).run();
    ended.must_be(4, "budget_time");
    let ended = resumed(ended, &model, &["--max-time=1h"]);
    ended.must_be(0, "verified");
    must_replay(ended);
    let model = Model::new([write("half", "1\n").using(3000, 20), write("done", "1\n"), say("Done.")]);
    let ended = Fledge::simple(&model).task(&front("tokens: 4000")).run();
    ended.must_be(4, "budget_tokens");
    let ended = resumed(ended, &model, &["--max-tokens=90000"]);
    ended.must_be(0, "verified");
    must_replay(ended);
}

#[test]
fn time_that_ends_in_the_gate_lets_the_gate_begin_again() {
    long_test!();
    let slow = "steps: [{ name: slow, run: 'test -f again || { touch again; sleep 60; }; test -f done' }]";
    let model = Model::new([write("done", "1\n"), say("Done.")]);
    let task = format!("---\nbudget: {{ time: 4s }}\nbaseline: never\n---\n{ASK}");
    let ended = Fledge::simple(&model).lane("verify", &format!("room: in-place\n{slow}")).task(&task).run();
    ended.must_be(4, "budget_time");
    let ended = resumed(ended, &model, &["--max-time=1h"]);
    ended.must_be(0, "verified");
    assert_eq!(model.count(), 2, "the model is not asked again");
}

#[test]
fn a_continued_run_has_the_limits_that_it_is_given() {
    long_test!();
    let model = Model::new([write("done", "1\n"), say("Done."), write("more", "2\n"), say("More is done.")]);
    let ended = Fledge::simple(&model).task(&format!("---\nbudget: {{ turns: 2 }}\n---\n{ASK}")).run();
    ended.must_be(0, "verified");
    let ended = ended.again(&["runs", "continue", "last", "Make `more` too.", "--max-turns=7"]).anthropic(&model).run();
    ended.must_exit(0);
    let shown = ended.again(&["runs", "show", "last", "--json"]).run();
    assert!(shown.stdout.contains("\"turns\":7"), "{}", shown.story());
}
