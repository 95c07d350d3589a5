//! `fledge fix`: if the gate fails on the base, its failures become the task; otherwise the run
//! ends.

use crate::support::{Ended, Fledge, Model, call, needs, say, shell, write};
use serde_json::json;

const LANE: &str =
    "steps:\n  - { name: ready, run: 'true' }\n  - { name: sum, run: 'echo expected 3 >&2; grep -q 3 s?m' }\n";

fn fix(model: &Model) -> Fledge {
    Fledge::new().args(&["fix"]).anthropic(model).lane("verify", LANE).file("sum", "4\n")
}

fn first(ended: &Ended) -> String {
    let first = ended.stderr.lines().find(|line| line.contains("error: "));
    first.unwrap_or_default().to_owned()
}

#[test]
fn a_gate_that_passes_is_all_there_is_to_it_without_a_model_or_a_key() {
    long_test!();
    for args in [&["fix"][..], &["fix", "--model", "anthropic/claude-sonnet-4-5"], &["fix", "--model", "nobodys"]] {
        let ended = Fledge::new().args(args).lane("verify", LANE).file("sum", "3\n").run();
        let report = ended.must_be(0, "verified");
        let of_report = (&report["title"], &report["verification"], &report["turns"]);
        assert_eq!(of_report, (&json!("Fix verify"), &json!("passed"), &json!(0)));
        let (attempts, proof) = (report["attempts"].as_array().unwrap(), &report["attempts"][0]["verdict"]["proof"]);
        assert_eq!((attempts.len(), &proof["tree"], &proof["base"]), (1, &report["tree"], &report["base"]));
        assert_eq!(report["message"], "the gate already passes: there is nothing to fix");
        for said in ["✓ the gate passes on the base", "✓ Verified: the gate already passes: there is nothing to fix"]
        {
            assert!(ended.stderr.contains(said), "{}", ended.story());
        }
    }
}

#[test]
fn a_green_that_is_known_is_judged_anew_with_the_ignored_files_of_today() {
    long_test!();
    let lane = "include_ignored: [.env]\nsteps: [{ name: env, run: grep -q good .env }]";
    let place = Fledge::new().args(&["fix"]).lane("verify", lane).file(".gitignore", ".env\n").file(".env", "good\n");
    let green = place.run();
    green.must_be(0, "verified");
    let red = green.again(&["fix"]).file(".env", "bad\n").run();
    red.must_exit(2);
    assert!(red.stderr.contains("✗ the gate fails on the base: verify/env"), "{}", red.story());
    let red_again = red.again(&["fix"]).run();
    assert!(red_again.stderr.contains("✗ the gate fails on the base: verify/env"), "{}", red_again.story());
    let green = red_again.again(&["fix"]).file(".env", "good\n").run();
    green.must_exit(0);
    assert!(green.stderr.contains("✓ verify/env"), "{}", green.story());
}

#[test]
fn what_a_lane_mends_is_brought_into_the_work_and_may_become_the_commit() {
    long_test!();
    let lane = "writes: true\nsteps: [{ name: fmt, run: echo 3 | tee s?m }]";
    let fix = Fledge::new().args(&["fix", "--commit=on-success"]).lane("verify", lane).file("sum", "4\n").committed();
    let ended = fix.run();
    let report = ended.must_be(0, "verified");
    assert_eq!((ended.file("sum").as_deref(), ended.git(&["show", "HEAD:sum"]).as_str()), (Some("3\n"), "3"));
    assert_eq!(ended.git(&["rev-parse", "HEAD^{tree}"]), report["tree"]);
    assert!(ended.stderr.contains("passes with the changes that its lanes made"), "{}", ended.story());
    let silent = "steps: [{ name: fmt, run: echo 3 | tee s?m }]";
    let ended = Fledge::new().args(&["fix"]).lane("verify", silent).file("sum", "4\n").run();
    ended.must_be(2, "bad_input");
    assert_eq!(ended.file("sum").as_deref(), Some("4\n"));
}

#[test]
fn a_pass_at_the_second_try_is_none_where_the_lane_says_so() {
    let lane = "flaky: fail\nroom: in-place\nsteps: [{ name: f, retries: 1, run: 'test -e .once || { touch .once; exit 1; }' }]";
    let ended = Fledge::new().args(&["fix"]).lane("verify", lane).file(".gitignore", ".once\n").run();
    ended.must_be(2, "bad_input");
}

#[test]
fn lanes_that_only_the_gate_knows_judge_what_is_there_too() {
    long_test!();
    let folder = crate::support::temp_dir();
    std::fs::write(folder.path().join("hidden.yaml"), "steps: [{ run: grep -q 3 sum }]").unwrap();
    let holdout = format!("--holdout={}", folder.path().display());
    let fix = |sum| Fledge::new().args(&["fix", &holdout]).lane("verify", "steps: [run: 'true']").file("sum", sum);
    fix("3\n").run().must_be(0, "verified");
    fix("4\n").run().must_be(2, "bad_input");
    let model = Model::new([write("sum", "3\n"), say("Done.")]);
    fix("4\n").anthropic(&model).run().must_be(0, "verified");
    assert!(model.asked()[0].newest().contains("a hold-out check failed"), "{}", model.asked()[0].newest());
}

#[test]
fn a_branch_that_is_good_as_it_is_can_be_attested_and_its_report_verified() {
    long_test!();
    let fix = Fledge::new()
        .args(&["fix", "--report=../r.json", "--patch=../r.patch"])
        .lane("verify", LANE)
        .file("sum", "3\n")
        .committed();
    let ended = fix.run();
    ended.must_be(0, "verified");
    assert!(!ended.path("../r.patch").exists(), "a patch of nothing");
    let ended = ended.again(&["verify-report", "../r.json", "--lanes-from", "HEAD"]).run();
    ended.must_exit(0);
    let tree = ended.git(&["rev-parse", "HEAD^{tree}"]);
    let attested = ended.again(&["runs", "attest", "last"]).run();
    attested.must_exit(0);
    assert!(attested.stdout.contains(&tree), "{}", attested.story());
}

#[test]
fn of_several_lanes_that_fail_the_model_is_told_all_and_they_count_as_failed_before() {
    let model = Model::new([say("Nothing.").always()]);
    let ended = Fledge::new()
        .args(&["fix", "--lane=one", "--lane=two", "--max-retries=1"])
        .anthropic(&model)
        .lane("one", "steps: [{ name: a, run: 'false' }, { name: b, run: 'false' }]")
        .lane("two", "steps: [{ name: c, run: 'false' }]")
        .run();
    ended.must_exit(1);
    let (first, second) = (model.asked()[0].newest(), model.asked()[1].newest());
    for step in ["`a` of lane `one`", "`b` of lane `one`", "`c` of lane `two`"] {
        assert!(first.contains(step), "{step} is not in {first}");
    }
    assert!(!first.contains("failed before any change") && second.contains("failed before any change"), "{second}");
}

#[test]
fn a_gate_that_fails_needs_a_model_and_says_which() {
    long_test!();
    let bare = Fledge::new().args(&["fix"]).lane("verify", LANE).file("sum", "4\n").run();
    bare.must_be(2, "bad_input");
    assert!(first(&bare).contains("no model is configured (set ANTHROPIC_API_KEY"), "{}", bare.story());
    assert!(bare.stderr.contains("✗ the gate fails on the base: verify/sum"), "{}", bare.story());
    let unknown = bare.again(&["fix", "--model", "nobodys"]).run();
    unknown.must_exit(2);
    assert!(first(&unknown).contains("no model `nobodys`"), "{}", unknown.story());
}

#[test]
fn what_fails_is_the_task_and_the_gate_then_judges_the_repair() {
    long_test!();
    let model = Model::new([write("sum", "3\n"), say("The sum was wrong.")]);
    let ended = fix(&model).run();
    let report = ended.must_be(0, "verified");
    let asked = model.asked()[0].newest();
    for part in ["Repair the code, not the checks", "step `sum` of lane `verify` failed (exit 1", "expected 3"] {
        assert!(asked.contains(part), "{part:?} is not in {asked}");
    }
    assert_eq!((&report["title"], &report["task"]["source"]), (&json!("Fix verify"), &json!("fix")));
    assert_eq!(report["attempts"].as_array().unwrap().len(), 1);
    assert!(ended.stderr.contains("proof    tree "), "{}", ended.story());
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
    long_test!();
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
    long_test!();
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
    unknown.must_be_refused("did you mean `verify`?");
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

#[test]
fn what_a_task_expects_is_asked_today_and_not_of_what_is_kept() {
    // A step's result may change without any change to the project: here a program outside it
    // changes.
    let tools = crate::support::temp_dir();
    let tool = tools.path().join("is-good");
    let says = |code: u8| {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::write(&tool, format!("#!/bin/sh\nexit {code}\n")).unwrap();
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let path = format!("{}:{}", tools.path().display(), std::env::var("PATH").unwrap());
    let model = Model::new([say("Done.").always()]);
    let lane = "steps: [{ name: good, run: is-good }]";
    says(0);
    let passing = Fledge::simple(&model).lane("verify", lane).task("---\nexpect: passing\n---\nLook at it.\n");
    let passed = passing.env("PATH", &path).arg("--sandbox=off").run();
    passed.must_exit(0);
    says(1);
    let failed = passed.again(&["run", "task.md", "--sandbox=off"]).anthropic(&model).env("PATH", &path).run();
    failed.must_exit(2);
    assert!(failed.stderr.contains("the gate fails on the base"), "{}", failed.story());
}
