//! `fledge fix`: the gate on the base first; nothing to do where it passes, its failures as the task where it fails.

use crate::support::{Ended, Fledge, Model, call, needs, say, shell, write};
use serde_json::json;

const LANE: &str =
    "steps:\n  - { name: ready, run: 'true' }\n  - { name: sum, run: 'echo expected 3 >&2; grep -q 3 s?m' }\n";

fn fix(model: &Model) -> Fledge {
    Fledge::new().args(&["fix"]).anthropic(model).lane("verify", LANE).file("sum", "4\n")
}

fn first(ended: &Ended) -> String {
    let first = ended.stderr.lines().find(|line| line.contains("error: ") || line.contains("bad_input"));
    first.unwrap_or_default().to_owned()
}

#[test]
fn a_gate_that_passes_is_all_there_is_to_it_without_a_model_or_a_key() {
    for args in [&["fix"][..], &["fix", "--model", "anthropic/claude-sonnet-4-5"], &["fix", "--model", "nobodys"]] {
        let ended = Fledge::new().args(args).lane("verify", LANE).file("sum", "3\n").run();
        let report = ended.must_be(0, "verified");
        let of_report = (&report["title"], &report["verification"], &report["turns"], &report["attempts"]);
        assert_eq!(of_report, (&json!("Fix verify"), &json!("passed"), &json!(0), &json!([])));
        assert_eq!(report["message"], "the gate passes as it is: there is nothing to fix");
        for said in ["✓ the gate passes on the base", "✓ verified: the gate passes as it is: there is nothing to fix"]
        {
            assert!(ended.stderr.contains(said), "{}", ended.story());
        }
    }
}

#[test]
fn a_gate_that_fails_needs_a_model_and_says_which() {
    let bare = Fledge::new().args(&["fix"]).lane("verify", LANE).file("sum", "4\n").run();
    bare.must_be(2, "bad_input");
    assert!(first(&bare).contains("no model is configured (set ANTHROPIC_API_KEY"), "{}", bare.story());
    assert!(bare.stderr.contains("✗ the gate fails on the base: sum"), "{}", bare.story());
    let unknown = bare.again(&["fix", "--model", "nobodys"]).run();
    unknown.must_exit(2);
    assert!(first(&unknown).contains("no model `nobodys`"), "{}", unknown.story());
}

#[test]
fn what_fails_is_the_task_and_the_gate_then_judges_the_repair() {
    let model = Model::new([write("sum", "3\n"), say("The sum was wrong.")]);
    let ended = fix(&model).run();
    let report = ended.must_be(0, "verified");
    let asked = model.asked()[0].newest();
    for part in ["Repair the code, not the checks", "step `sum` of lane `verify` failed (exit 1", "expected 3"] {
        assert!(asked.contains(part), "{part:?} is not in {asked}");
    }
    assert_eq!((&report["title"], &report["task"]["source"]), (&json!("Fix verify"), &json!("fix")));
    assert_eq!(report["attempts"].as_array().unwrap().len(), 1);
    assert!(ended.stderr.contains("✓ verified: tree "), "{}", ended.story());
}

#[test]
fn a_repair_of_the_checks_is_no_repair() {
    let model = Model::new([shell("echo 'steps: [run: true]' > lanes/verify.yaml"), say("Done.").always()]);
    let ended = fix(&model).arg("--on-tamper=fail").run();
    ended.must_be(6, "gate_tampered");
    assert!(ended.stderr.contains("  findings lanes/verify.yaml changed: "), "{}", ended.story());
}

#[test]
fn it_has_the_lanes_that_are_named_and_the_options_of_a_run() {
    let model = Model::new([write("done", ""), say("Done.")]);
    let place = Fledge::new().anthropic(&model).lane("quick", &needs("done")).lane("other", &needs("task.md")).task("");
    let ended = place.args(&["fix", "--lane=other", "--lane=quick", "--run-key=k", "--json", "--report=r.json"]).run();
    let report = ended.must_be(0, "verified");
    assert_eq!(report["title"], "Fix other, quick");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&ended.file("r.json").unwrap()).unwrap(), report);
    let proof = &ended.events_of("proved")[0]["proof"];
    assert_eq!(*proof, report["attempts"][0]["verdict"]["proof"]);
    let again = ended.again(&["fix", "--lane=other", "--lane=quick", "--run-key=k", "--resume-or-start"]).run();
    again.must_be(0, "verified");
    assert_eq!(again.rows().len(), 1, "a verified run gives its result again");
}

#[test]
fn a_fix_that_was_continued_does_what_it_is_told_then() {
    let model = Model::new([write("sum", "3\n"), say("Done."), write("more", ""), say("More.")]);
    let fixed = fix(&model).run();
    fixed.must_be(0, "verified");
    let further = fixed.again(&["runs", "continue", "last", "now write more"]).anthropic(&model).run();
    further.must_exit(0);
    assert_eq!((model.asked().len(), further.file("more").is_some()), (4, true), "{}", further.story());
}

#[test]
fn a_lane_that_is_not_there_or_cannot_run_is_said_for_nothing() {
    let unknown = Fledge::new().args(&["fix", "--lane=verfy"]).lane("verify", LANE).run();
    unknown.must_be(2, "bad_input");
    assert!(unknown.stderr.contains("did you mean `verify`?"), "{}", unknown.story());
    let lane = "steps: [{ name: a, run: no-such-program-here }]";
    Fledge::new().args(&["fix"]).lane("verify", lane).run().must_be(5, "gate_errored");
}

#[test]
fn a_dry_run_asks_nothing_of_gate_or_model() {
    let model = Model::new([call("files-read", json!({}))]);
    let ended = fix(&model).arg("--dry-run").run();
    ended.must_exit(0);
    assert!(ended.stdout.contains("# Fix verify") && ended.stdout.contains("- verify/sum: "), "{}", ended.story());
    assert_eq!((model.asked().len(), ended.runs().len()), (0, 0));
}
