//! Flags of `run` for a task's gate settings: a flag overrides the task, and patterns add to the
//! task's own.

use crate::support::{Fledge, Model, needs, say, shell, write};
use serde_json::json;

#[test]
fn changed_tests_inside_of_product_files_are_reported_and_unchanged_ones_are_not() {
    long_test!();
    let tests = "#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n}\n";
    let file = |sign: &str, tests: &str| format!("pub fn add(a: i32, b: i32) -> i32 {{\n    a {sign} b\n}}\n\n{tests}");
    let hollow = tests.replace("assert_eq!(add(1, 2), 3);", "");
    let told = "src/lib.rs: tests inside it, or code that they use, differ from the base; the lanes also pass with the tests of the base";
    for (after, warnings) in [(file("+", tests), json!([])), (file("-", &hollow), json!([told]))] {
        let model = Model::new([
            write("src/lib.rs", &after).also("files-write", json!({ "path": "done", "content": "" })),
            say("Done."),
        ]);
        let run = Fledge::simple(&model).file("src/lib.rs", file("-", tests)).run();
        let report = run.must_be(0, "verified");
        assert_eq!(report["warnings"], warnings);
        assert_eq!(run.stderr.contains(told), warnings != json!([]), "{}", run.stderr);
    }
}

#[test]
fn a_protected_path_is_opened_and_each_use_is_reported() {
    long_test!();
    let model = Model::new([
        write("conftest.py", "x = 1\n").also("files-write", json!({"path": "done", "content": ""})),
        say("Done."),
    ]);
    let ended = Fledge::simple(&model).file("conftest.py", "").arg("--allow-edit=conftest.py").run();
    let report = ended.must_be(0, "verified");
    assert_eq!(report["warnings"], json!(["allow_edit: conftest.py changed"]));
    assert!(ended.stderr.contains("! allow_edit: conftest.py changed"), "{}", ended.story());
}

#[test]
fn a_path_is_protected_beside_those_of_the_task() {
    let model = Model::new([shell("echo x > a; echo x > b; touch done"), say("Done.").always()]);
    let task = "---\nprotect: [a]\n---\nDo it.";
    let ended = Fledge::simple(&model).task(task).file("a", "").file("b", "").args(&["run", "task.md", "--protect=b"]);
    let ended = ended.arg("--on-tamper=fail").run();
    let report = ended.must_be(6, "gate_tampered");
    let found = report["attempts"][0]["verdict"]["findings"].as_array().unwrap();
    let paths: Vec<_> = found.iter().map(|finding| finding["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["a", "b"]);
    for said in ["! protected: a changed: ", "  findings a changed: ", "           b changed: "] {
        assert!(ended.stderr.contains(said), "{said:?} is not in {}", ended.story());
    }
    let shown = ended.again(&["runs", "show"]).run();
    assert!(shown.stdout.contains("! protected: b changed: "), "{}", shown.story());
}

#[test]
fn failures_that_are_all_the_same_end_the_run_early_where_that_is_said() {
    long_test!();
    let model = || Model::new([say("Done.").always()]);
    let (by_flag, by_key, off) = (model(), model(), model());
    let stuck = Fledge::simple(&by_flag).arg("--stuck-after=2").run();
    assert_eq!(stuck.must_be(1, "stuck")["attempts"].as_array().unwrap().len(), 2);
    let stuck = Fledge::simple(&by_key).task("---\nstuck_after: 3\n---\nDo it.").run();
    assert_eq!(stuck.must_be(1, "stuck")["attempts"].as_array().unwrap().len(), 3);
    let failed = Fledge::simple(&off).arg("--max-retries=2").run();
    assert_eq!(failed.must_be(1, "gate_failed")["attempts"].as_array().unwrap().len(), 3);
}

#[test]
fn what_the_base_must_be_is_asked_before_the_model() {
    long_test!();
    let model = Model::new([]);
    let ended = Fledge::simple(&model).file("done", "").arg("--expect=failing").run();
    ended.must_be(2, "bad_input");
    let ended = Fledge::simple(&model).arg("--expect=passing").run();
    ended.must_be(2, "bad_input");
    assert_eq!(model.asked().len(), 0);
}

#[test]
fn the_base_is_judged_when_the_flag_says_so() {
    let model = Model::new([write("done", ""), say("Done.")]);
    let ended = Fledge::simple(&model).arg("--baseline=always").run();
    ended.must_be(0, "verified");
    let said = ["  judging the base", "✗ the gate fails on the base: verify/there", "● attempt 1 of "];
    let places = said.map(|line| ended.stderr.find(line).unwrap_or_else(|| panic!("{line}: {}", ended.story())));
    assert!(places.is_sorted() && ended.stderr.matches("judging the base").count() == 1, "{}", ended.story());
}

#[test]
fn what_contradicts_itself_or_is_no_value_is_refused_with_what_there_is() {
    for (args, said) in [
        (&["--on-tamper=ignore"][..], "expected one of restore, fail"),
        (&["--baseline=maybe"], "expected one of auto, always, never"),
        (&["--expect=red"], "expected one of failing, passing"),
        (&["--stuck-after=1"], "expected a whole number from 2 to 100"),
        (&["--protect=../x"], "`..` would leave the workspace (name a path inside it)"),
        (&["--allow-edit=!x"], "a glob cannot begin with `!`"),
        (&["--expect=failing", "--baseline=never"], "`expect` needs a gate run on the base"),
        (&["--expect=failing", "--no-verify"], "cannot be used with"),
    ] {
        let ended = args.iter().fold(Fledge::new().task("Do it."), |fledge, arg| fledge.arg(arg)).run();
        ended.must_exit(2);
        assert!(ended.stderr.contains(said), "{args:?}: {}", ended.story());
        assert_eq!(ended.runs().len(), 0);
    }
    let skipped = Fledge::new().task("---\nlane: false\n---\nDo it.").arg("--expect=failing").run();
    assert!(skipped.code == Some(2) && skipped.stderr.contains("verification is skipped"), "{}", skipped.story());
}

#[test]
fn a_pass_says_its_tree_and_room_and_what_it_does_not_prove() {
    long_test!();
    let model = || Model::new([write("done", ""), say("Done.")]);
    let (counted, compared, bare, inside) = (model(), model(), model(), model());
    let tests = format!(
        "{}  - {{ name: test, run: 'echo \"test result: ok. 3 passed; 0 failed; 0 ignored\"' }}\n",
        needs("done")
    );
    let ended = Fledge::simple(&counted).lane("verify", &tests).arg("--baseline=never").run();
    let proof = ended.must_be(0, "verified")["attempts"][0]["verdict"]["proof"].clone();
    let said = format!("proof    tree {} in a clean room behind ", &proof["tree"].as_str().unwrap()[..12]);
    assert!(
        ended.stderr.contains(&said) && ended.stderr.contains("; 3 tests, no canary (the base was not judged)\n"),
        "{}",
        ended.story()
    );
    assert!(ended.stderr.contains("unproven whether as many tests ran as on the base"), "{}", ended.story());
    let ended = Fledge::simple(&compared).lane("verify", &tests).run();
    let counted = "; 3 tests, no canary (the base does not have a Cargo.toml with a package)\n";
    assert!(ended.stderr.contains(counted) && !ended.stderr.contains("unproven"), "{}", ended.story());
    let ended = Fledge::simple(&bare).arg("--sandbox=off").run();
    for said in [
        "in a clean room without a sandbox; exit codes alone",
        "  unproven that the gate was not tampered with: ",
        "whether any test ran: ",
    ] {
        assert!(ended.stderr.contains(said), "{said:?} is not in {}", ended.story());
    }
    let ended = Fledge::simple(&inside).lane("verify", &format!("room: in-place\n{}", needs("done"))).run();
    assert!(ended.stderr.contains(" in the workspace itself; "), "{}", ended.story());
    let shown = ended.again(&["runs", "show"]).run();
    assert!(shown.stdout.contains("not proven: that files outside the tree"), "{}", shown.story());
}

#[test]
fn why_a_gate_did_not_pass_although_every_step_did_is_said() {
    let model = Model::new([write("done", ""), say("Done.").always()]);
    let canary = "canary: { file: planted, text: fails }\n";
    let lane = format!("{canary}steps:\n  - {{ name: there, run: 'test -f done || test ! -e planted' }}\n");
    let ended = Fledge::simple(&model).lane("verify", &lane).arg("--max-retries=0").arg("--baseline=never").run();
    let report = ended.must_be(1, "gate_failed");
    assert!(report["message"].as_str().unwrap().contains("did not report a planted failing"), "{}", report["message"]);
    assert!(ended.stderr.contains("    | lane `verify` did not report a planted failing test"), "{}", ended.story());
    let shown = ended.again(&["runs", "show"]).run();
    assert!(shown.stdout.contains("│ lane `verify` did not report a planted failing test"), "{}", shown.story());
}

#[test]
fn a_hold_out_lane_may_add_tests_and_tells_the_agent_only_that_it_failed() {
    long_test!();
    let hidden = "steps: [{ name: hidden, run: 'cp \"$FLEDGE_HOLDOUT\"/hidden.sh tests/ && sh tests/hidden.sh' }]";
    let spy = shell("cat ../held/hidden.sh ../held/hidden.yaml; touch done");
    let model = Model::new([spy, say("Done."), write("right", ""), say("Now.")]);
    let fledge = Fledge::simple(&model).file("tests/a.sh", "true\n").file("../held/hidden.yaml", hidden);
    let ended = fledge.file("../held/hidden.sh", "test -f right\n").arg("--holdout=../held").run();
    let report = ended.must_be(0, "verified");
    assert_eq!(report["attempts"][1]["verdict"]["proof"]["held_out"], 1);
    let told = model.asked();
    assert!(told[2].newest().contains("a hold-out check failed"), "{}", told[2].newest());
    assert!(told.iter().all(|asked| !asked.body.to_string().contains("test -f right")), "the agent has seen it");
}

#[test]
fn a_hold_out_that_is_not_found_when_a_run_is_taken_up_is_an_error_and_not_in_sight() {
    let model = Model::new([crate::support::hang()]);
    let fledge = Fledge::simple(&model).file("../held/hidden.yaml", needs("done")).arg("--holdout=../held");
    let run = fledge.start();
    model.wait_for(1);
    run.signal(rustix::process::Signal::KILL);
    let ended = run.end();
    let (held, moved) = (ended.path("../held"), ended.path("../moved"));
    let settings = ended.store().task(&ended.row().head.id).unwrap().settings;
    let settings: serde_json::Value = serde_json::from_str(&settings).unwrap();
    assert!(std::path::Path::new(settings["holdout"].as_str().unwrap()).is_absolute(), "{settings}");
    std::fs::rename(held, moved).unwrap();
    let ended = ended.again(&["runs", "resume", "last"]).anthropic(&model).run();
    ended.must_exit(5);
    assert!(ended.stderr.contains("there is no hold-out folder "), "{}", ended.story());
}

#[test]
fn without_a_base_a_step_that_passes_while_its_tests_failed_is_no_pass() {
    long_test!();
    let said = "printf 'running 2 tests\\ntest result: FAILED. 1 passed; 1 failed;\\n   Doc-tests a\\ntest result: ok. 0 passed; 0 failed;\\n'";
    for room in ["", "room: in-place\n"] {
        let model = Model::new([write("done", ""), say("Done.")]);
        let lane = format!("{room}steps:\n  - name: test\n    run: |\n      {said}\n");
        let ended = Fledge::simple(&model).lane("verify", &lane).arg("--max-retries=0").arg("--baseline=never").run();
        let report = ended.must_be(1, "gate_failed");
        let why = "the step passed although its test output reports failures";
        assert!(report["message"].as_str().unwrap().contains(why), "{}", report["message"]);
    }
}

#[test]
fn a_count_of_tests_that_the_work_does_not_explain_is_a_warning() {
    long_test!();
    let lane = "steps: [{ name: test, run: 'cat *.count; test -f done' }]";
    for (count, explained, told) in [
        (
            891,
            false,
            Some("more tests were counted than on the base, where a step failed: 891 instead of 2; the work adds 0"),
        ),
        (1, false, Some("fewer tests were counted than on the base, where a step failed: 1 instead of 2")),
        (3, true, None),
        (2, false, None),
    ] {
        let more = if explained { "printf 'def test_c():\\n    pass\\n' > test_c.py; " } else { "" };
        let work = format!("{more}echo '{count} passed in 0.01s' > a.count; touch done");
        let model = Model::new([shell(&work), say("Done.")]);
        let ended = Fledge::simple(&model).file("a.count", "2 passed in 0.01s\n").lane("verify", lane).run();
        let report = ended.must_be(0, "verified");
        let warnings = report.get("warnings").map(ToString::to_string).unwrap_or_default();
        match told {
            Some(told) => assert!(warnings.contains(told), "{warnings}"),
            None => assert!(!warnings.contains("tests were counted"), "{warnings}"),
        }
    }
}
