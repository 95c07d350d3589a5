//! Tests of each exit reason that the command line can reach: its exit code, and the point at which
//! the run stops.
//!
//! `cancelling` tests the reasons of cancelled runs.

use crate::support::{
    Ended, Fledge, Model, SOON, call, garbled, hang, needs, nothing, refuse, say, shell, status, words, write,
};
use fledge::store::StoredRunState;
use serde_json::{Value, json};

/// Returns a turn that reads an existing file.
fn look() -> crate::support::Turn {
    call("files-read", json!({"path": "task.md"}))
}

/// Insists that nothing ran: exit code 2, a reason on standard error, no run, and no request.
#[track_caller]
fn must_be_refused(run: &Ended, model: &Model, says: &str) {
    run.must_be_refused(says);
    assert_eq!(model.count(), 0, "{}", run.story());
}

#[test]
fn work_that_passes_the_gate_is_verified_with_0() {
    let model = Model::new([write("done", "yes\n").using(1000, 50), say("Made the file.").using(1100, 7)]);
    let run = Fledge::simple(&model).run();
    let report = run.must_be(0, "verified");
    assert_eq!(report["verified"], true);
    assert_eq!(report["verification"], "passed");
    assert_eq!(report["done_reason"], "model_stop");
    assert_eq!(report["summary"], "Made the file.");
    assert_eq!(report["files_changed"], json!([{"path": "done", "kind": "created", "added": 1, "removed": 0}]));
    assert_eq!(report["tools"], json!({"files-write": {"called": 1, "failed": 0, "denied": 0}}));
    assert_eq!((&report["turns"], &report["usage"]["total"]["input_tokens"]), (&json!(2), &json!(2100)));
    assert_eq!(report["usage"]["total"]["output_tokens"], 57);
    assert_eq!(run.file("done").as_deref(), Some("yes\n"));
}

#[test]
fn work_that_nothing_verifies_on_purpose_is_skipped_with_0_and_says_so() {
    for (task, flag) in [("Do it.", Some("--no-verify")), ("---\nlane: false\n---\nDo it.", None)] {
        let model = Model::new([say("Done.")]);
        let fledge = Fledge::new().task(task).anthropic(&model);
        let run = flag.into_iter().fold(fledge, Fledge::arg).run();
        let report = run.must_be(0, "skipped");
        assert_eq!((&report["verified"], &report["verification"]), (&json!(true), &json!("skipped")));
        assert!(run.stderr.contains("not verified"), "{}", run.stderr);
    }
}

#[test]
fn a_gate_that_never_passes_fails_with_1_after_one_attempt_more_than_retries() {
    long_test!();
    for retries in [0, 2] {
        let model = Model::new([say("It is done, trust me.").always()]);
        let run = Fledge::simple(&model).arg("--max-retries").arg(&retries.to_string()).run();
        let report = run.must_be(1, "gate_failed");
        assert_eq!((&report["verified"], &report["verification"]), (&json!(false), &json!("failed")));
        let attempts = report["attempts"].as_array().unwrap();
        let rulings: Vec<&Value> = attempts.iter().map(|attempt| &attempt["verdict"]["ruling"]).collect();
        assert_eq!(words(rulings), vec!["failed"; retries + 1]);
        assert_eq!(model.count(), retries + 1);
    }
}

#[test]
fn input_that_is_wrong_ends_with_2_before_anything_is_run() {
    let cases = [
        (Fledge::new(), "there is no task file task.md"),
        (Fledge::new().task("---\nlanes: verify\n---\nDo it."), "task.md:2:1"),
        (Fledge::new().task("---\ntitle: [\n---\nDo it."), "task.md:"),
        (Fledge::new().task("---\ntitle: x\n---\n\n"), "the task has no text"),
        (Fledge::new().task("Do it.").arg("--lan").arg("x"), "--lan"),
        (Fledge::new().task("Do it.").arg("--max-retries").arg("101"), "101"),
        (Fledge::new().task("Do it.").arg("--lane").arg("a").arg("--no-verify"), "--no-verify"),
        (Fledge::new().task("Do it.").arg("--param").arg("x"), "expected NAME=VALUE"),
        (Fledge::new().task("Do it.").arg("--model").arg("gpt9"), "no model `gpt9`"),
        (Fledge::new().task("Do it.").arg("--model").arg("openai/gpt-5"), "set OPENAI_API_KEY"),
        (Fledge::new().task("Do it.").arg("--model").arg("cassette/none.yaml"), "there is no cassette"),
        (Fledge::new().task("Do it.").file("fledge.yaml", "modles: {}"), "fledge.yaml:1:1"),
        (Fledge::new().task("Do it.").arg("-C").arg("gone"), "there is no folder gone"),
        (Fledge::new().task("Do it.").args(&["rum"]), "rum"),
    ];
    for (fledge, says) in cases {
        let model = Model::new([say("No.").always()]);
        must_be_refused(&fledge.anthropic(&model).run(), &model, says);
    }
}

#[test]
fn a_gate_that_is_not_there_or_is_wrong_ends_with_2_before_a_model_is_asked() {
    let cases = [
        (Fledge::new(), "no lanes are defined"),
        (Fledge::new().lane("tests", &needs("done")), "known: tests"),
        (Fledge::new().lane("verify", "steps: []"), "lanes/verify.yaml:1:8"),
        (Fledge::new().lane("verify", "steps:\n  - runn: make"), "lanes/verify.yaml:2:5"),
        (Fledge::new().file("lanes/verify.yaml", b"steps: \xff"), "lanes/verify.yaml"),
    ];
    for (fledge, says) in cases {
        let model = Model::new([say("No.").always()]);
        let run = fledge.task("Do it.").anthropic(&model).args(&["run", "task.md", "--json"]);
        let run = run.arg("--report=../report.json").run();
        must_be_refused(&run, &model, says);
        let report: Value = serde_json::from_str(&run.file("../report.json").unwrap()).unwrap();
        assert_eq!((&report["reason"], &report["run"]), (&"bad_input".into(), &Value::Null), "{report}");
        assert!(report["message"].as_str().unwrap().contains(says), "expected {says:?} in {}", report["message"]);
    }
}

#[test]
fn what_a_task_asks_for_in_vain_is_refused_before_a_run_begins() {
    let task = |keys: &str| Fledge::new().lane("verify", &needs("done")).task(&format!("---\n{keys}\n---\nDo it."));
    let cases = [
        (task("mcp: [nowhere]"), "task.md:2:7: unknown MCP server `nowhere`"),
        (task("context: [a.md, nowhere.md]").file("a.md", ""), "task.md:2:17: context: "),
        (task("output_schema: nowhere.json"), "task.md:2:16: output_schema: "),
        (task("specs: [nowhere]"), "task.md:2:9: "),
        (task("lane: nowhere"), "task.md:2:7: there is no lane `nowhere`"),
        (task("lane: verify").arg("--lane=nowhere"), "error: there is no lane `nowhere`"),
        (task("title: x").arg("--holdout=../nowhere"), "there is no hold-out folder "),
        (task("title: x").arg("--lanes-from=nowhere"), "cannot read the lanes of `nowhere`"),
    ];
    for (fledge, says) in cases {
        let model = Model::new([say("No.").always()]);
        must_be_refused(&fledge.anthropic(&model).run(), &model, says);
    }
    let own = "models:\n  own: { provider: anthropic, model: own, base_url: http://127.0.0.1:9 }\n";
    let run = |keys: &str| {
        task(keys).file("fledge.local.yaml", own).env("ANTHROPIC_API_KEY", "k").args(&["run", "task.md"]).run()
    };
    run("model: nowhere").must_be_refused("task.md:2:8: no model `nowhere`");
    let unpriced = "price of anthropic/own is unknown\n  hint: add it to the model's entry";
    run("model: own\nbudget: { usd: 1 }").must_be_refused(unpriced);
}

#[test]
fn a_key_that_is_refused_ends_with_3_after_one_request() {
    long_test!();
    let model = Model::new([status(401).always()]);
    let report = Fledge::simple(&model).run().must_be(3, "provider_failed");
    assert!(
        report["message"].as_str().unwrap().contains("401 scripted 401 (check the key in ANTHROPIC_API_KEY)"),
        "{}",
        report["message"]
    );
    assert_eq!(model.count(), 1);
    let own = format!("models:\n  own: {{ provider: openai, model: own, base_url: '{}/v1' }}\n", model.url());
    let ended = Fledge::new()
        .task("---\nmodel: own\nlane: false\n---\nDo it.")
        .file("fledge.local.yaml", &own)
        .args(&["run", "task.md", "--json"])
        .run();
    let message = ended.must_be(3, "provider_failed")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("(no key was sent: name the key's variable in `api_key_env`)"), "{message}");
}

#[test]
fn a_model_that_refuses_ends_with_3_and_its_own_words() {
    let model = Model::new([refuse("I will not.").always()]);
    let report = Fledge::simple(&model).run().must_be(3, "refused");
    assert_eq!((&report["message"], &report["verified"]), (&json!("I will not."), &json!(false)));
    assert_eq!(model.count(), 1);
}

#[test]
fn a_model_that_says_nothing_is_nudged_once_and_then_ends_with_3() {
    let model = Model::new([nothing().always()]);
    Fledge::simple(&model).run().must_be(3, "empty_response");
    assert_eq!(model.count(), 2);
    assert!(model.asked()[1].newest().contains("Your answer was empty"));
}

#[test]
fn three_turns_in_a_row_that_cannot_be_understood_end_with_3() {
    let model = Model::new([garbled("files-read").always()]);
    let report = Fledge::simple(&model).run().must_be(3, "model_protocol");
    assert_eq!(report["tools"], json!({"files-read": {"called": 3, "failed": 0, "denied": 3}}));
    assert_eq!(model.count(), 3);
}

#[test]
fn the_turn_limit_ends_with_4_and_keeps_what_was_done() {
    let model = Model::new([write("half", "1\n"), look().always()]);
    let task = "---\nbudget: { turns: 2 }\n---\nDo it.";
    let report = Fledge::simple(&model).task(task).run().must_be(4, "max_turns");
    assert_eq!((&report["turns"], &report["verification"]), (&json!(2), &json!("not_reached")));
    assert_eq!(report["files_changed"][0]["path"], "half");
    assert_eq!(report["done_reason"], "max_turns");
    assert_eq!(model.count(), 2);
}

#[test]
fn the_token_limit_ends_with_4_before_another_request() {
    let model = Model::new([look().using(6_000, 2_000).always()]);
    let task = "---\nbudget: { tokens: 17000 }\n---\nDo it.";
    let report = Fledge::simple(&model).task(task).run().must_be(4, "budget_tokens");
    assert_eq!(
        (&report["usage"]["total"]["input_tokens"], &report["limits"]["tokens"]),
        (&json!(6_000), &json!(17_000))
    );
    assert_eq!(model.count(), 1, "another one of 8000 tokens leaves nothing for an answer");
}

#[test]
fn the_money_limit_ends_with_4_before_another_request() {
    let model = Model::new([look().using(600_000, 10).always()]);
    let models = "models: { priced: { provider: anthropic, model: m, price: { input: 1, output: 1 } } }\n";
    let task = "---\nmodel: priced\nbudget: { usd: 1 }\n---\nDo it.";
    let run = Fledge::simple(&model).file("../home/.config/fledge/config.yaml", models).task(task).run();
    let report = run.must_be(4, "budget_money");
    assert_eq!(report["usage"]["total"]["cost_micros"], 600_010);
    assert_eq!(model.count(), 1, "another one would pass the limit");
}

#[test]
fn the_time_limit_ends_with_4_in_the_middle_of_whatever_goes_on() {
    long_test!();
    let task = "---\nbudget: { time: 700ms }\n---\nDo it.";
    for script in [hang(), say("Let me think").hanging(), status(429).header("retry-after", "60"), shell("sleep 60")] {
        let model = Model::new([script]);
        let run = Fledge::simple(&model).task(task).run();
        run.must_be(4, "budget_time");
        assert!(run.took < SOON, "took {:?}", run.took);
    }
    let model = Model::new([say("Done.")]);
    let slow = "steps: [{ name: slow, run: sleep 60 }]";
    Fledge::simple(&model).lane("verify", slow).task(task).run().must_be(4, "budget_time");
}

#[test]
fn the_same_call_again_and_again_is_told_once_and_ends_with_4() {
    let model = Model::new([shell("echo the same").always()]);
    Fledge::simple(&model).run().must_be(4, "loop_detected");
    assert_eq!(model.count(), 8);
    let last = model.asked().pop().unwrap().text;
    assert_eq!(last.matches("nearly the same call several times").count(), 1);
}

#[test]
fn a_gate_that_cannot_run_ends_with_5_before_a_model_is_asked() {
    let cases = [
        ("steps: [{ name: a, run: no-such-program --all }]", "there is no program `no-such-program`"),
        ("steps: [{ name: a, run: ./gone.sh }]", "there is no program `./gone.sh`"),
        ("steps: [{ name: a, run: make, dir: gone }]", "there is no folder `gone`"),
    ];
    for (lane, says) in cases {
        let model = Model::new([say("Done.").always()]);
        let report = Fledge::simple(&model).lane("verify", lane).run().must_be(5, "gate_errored");
        assert!(report["message"].as_str().unwrap().contains(says), "{}", report["message"]);
        assert_eq!((&report["verification"], model.count()), (&json!("errored"), 0));
    }
}

#[test]
fn a_gate_whose_folder_the_model_removes_is_its_own_fault_and_it_is_told() {
    long_test!();
    let model =
        Model::new([shell("rm -r sub"), say("Done."), shell("mkdir sub && touch sub/a"), say("There it is again.")]);
    let lane = "steps: [{ name: a, run: 'true', dir: sub }]";
    let run = Fledge::simple(&model).lane("verify", lane).file("sub/a", "").run();
    let report = run.must_be(0, "verified");
    assert_eq!((model.count(), report["attempts"].as_array().unwrap().len()), (4, 2));
}

#[test]
fn a_gate_that_is_changed_twice_is_put_back_and_ends_with_6() {
    let model = Model::new([
        shell("echo 'steps: [{ name: a, run: \"true\" }]' > lanes/verify.yaml"),
        say("Done."),
        shell("echo 'steps: [{ name: a, run: \"true\" }]' > lanes/verify.yaml"),
        say("Done again."),
    ]);
    let run = Fledge::simple(&model).run();
    let report = run.must_be(6, "gate_tampered");
    let finding = json!({"path": "lanes/verify.yaml", "change": "changed", "rule": "it defines the gate"});
    assert_eq!(report["attempts"][0]["verdict"]["findings"], json!([finding]));
    assert_eq!((&report["verification"], report["attempts"].as_array().unwrap().len()), (&json!("tampered"), 2));
    assert_eq!(run.file("lanes/verify.yaml"), Some(needs("done")));
    assert_eq!(model.count(), 4);
    assert!(model.asked()[2].newest().contains("Files that define the checks were changed"));
}

#[test]
fn a_gate_that_is_changed_once_ends_with_6_where_the_task_says_so() {
    let model = Model::new([shell("touch done lanes/more.yaml"), say("Done."), say("No.").always()]);
    let run = Fledge::simple(&model).task("---\non_tamper: fail\n---\nDo it.").run();
    let report = run.must_be(6, "gate_tampered");
    assert_eq!(report["attempts"][0]["verdict"]["findings"][0]["change"], "added");
    assert_eq!(model.count(), 2);
}

#[test]
fn a_gate_that_was_changed_once_and_then_left_alone_can_still_pass() {
    long_test!();
    let model = Model::new([shell("rm lanes/verify.yaml"), say("Done."), write("done", ""), say("Now it is.")]);
    let run = Fledge::simple(&model).run();
    let report = run.must_be(0, "verified");
    assert_eq!(report["attempts"].as_array().unwrap().len(), 2);
    assert_eq!(run.file("lanes/verify.yaml"), Some(needs("done")));
}

#[test]
fn a_provider_that_wants_an_hour_blocks_with_7_at_once() {
    let model = Model::new([status(429).header("retry-after", "3600").always()]);
    let run = Fledge::simple(&model).run();
    let report = run.must_be(7, "blocked");
    assert!(report["message"].as_str().unwrap().contains("3600 s"), "{}", report["message"]);
    assert_eq!(model.count(), 1);
    assert!(run.took < SOON, "took {:?}", run.took);
}

#[test]
fn state_that_cannot_be_written_ends_with_8_before_a_model_is_asked() {
    let model = Model::new([say("Done.").always()]);
    let fledge = Fledge::simple(&model);
    std::fs::write(fledge.state(), "a file where a folder should be").unwrap();
    let run = fledge.run();
    run.must_exit(8);
    assert!(run.stderr.contains("FLEDGE_STATE_DIR"), "{}", run.stderr);
    assert_eq!(model.count(), 0);
}

#[test]
fn a_full_disk_ends_a_run_with_8_and_keeps_what_was_written() {
    // The largest permitted file is about 600 kB: the reports are far smaller, and the log of the
    // journal is larger.
    let full = "trap '' XFSZ; ulimit -f 1200; exec \"$@\"";
    let many =
        (0..30).map(|turn| shell(&format!("head -c 20000 /dev/zero | tr '\\0' {}", char::from(b'A' + turn % 26))));
    let model = Model::new(many.chain([write("done", ""), say("Done.")]).collect::<Vec<_>>());
    let run = Fledge::simple(&model).under(&["sh", "-c", full, "sh"]).run();
    let report = run.must_be(8, "io_error");
    assert_eq!(report["verified"], false);
    let kinds = run.kinds(); // reading fails if the journal is damaged
    assert!(kinds.len() > 10 && !kinds.contains(&"ReportSaved".to_owned()), "{kinds:?}");
    assert_eq!(run.row().state, StoredRunState::Interrupted);
    assert!(model.count() < 31, "{}", model.count());
}

#[test]
fn a_report_that_cannot_be_written_ends_with_8_and_no_report_says_otherwise() {
    let model = Model::new([shell("rm -r gone"), write("done", ""), say("Done.")]);
    let run = Fledge::simple(&model).file("gone/x", "").arg("--report=gone/report.json").run();
    let report = run.must_be(8, "io_error");
    assert!(report["message"].as_str().unwrap().contains("gone/report.json"), "{}", report["message"]);
}
