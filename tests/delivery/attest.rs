//! Proof of verified work for others: a statement to sign, and a check that a commit matches a
//! report.

use crate::support::{Ended, Fledge, Model, needs, say, write};
use serde_json::{Value, json};
use std::fs;

/// Returns a verified run with a commit and a report beside the workspace.
fn committed() -> Ended {
    let model = Model::new([write("done", "yes\n"), say("Done.")]);
    let fledge = Fledge::simple(&model).arg("--commit=on-success").arg("--report=../report.json");
    let run = fledge.lane("also", "steps:\n  - { name: a, run: 'true' }\n").arg("--lane=verify").arg("--lane=also");
    let run = run.committed().run();
    run.must_be(0, "verified");
    run
}

#[test]
fn a_statement_names_tree_and_commit_and_the_steps_that_passed() {
    long_test!();
    let run = committed();
    let report = run.report();
    let run = run.again(&["runs", "attest", "--url=https://ci.example/1"]).run();
    run.must_exit(0);
    let statement: Value = serde_json::from_str(&run.stdout).unwrap();
    let proof = &report["attempts"][0]["verdict"]["proof"];
    let annotations =
        json!({ "run": report["run"], "base": report["base"], "room": "clean", "sandbox": proof["sandbox"] });
    let wanted = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            { "name": "tree", "digest": { "gitTree": report["tree"] } },
            { "name": "commit", "digest": { "gitCommit": report["commit"] } },
        ],
        "predicateType": "https://in-toto.io/attestation/test-result/v0.1",
        "predicate": {
            "result": "PASSED",
            "configuration": [
                { "name": "lanes", "digest": { "sha256": report["gate_digest"] }, "annotations": annotations },
            ],
            "url": "https://ci.example/1",
            "passedTests": ["verify/there", "also/a"],
            "warnedTests": [],
            "failedTests": [],
        },
    });
    assert_eq!(statement, wanted);
}

#[test]
fn nothing_is_attested_of_what_did_not_pass() {
    let model = Model::new([say("No.")]);
    let run = Fledge::simple(&model).arg("--max-retries=0").run().again(&["runs", "attest"]).run();
    run.must_exit(1);
    assert_eq!(run.stdout, "");
}

#[test]
fn a_report_holds_for_the_commit_that_was_verified_by_the_lanes_of_another_one() {
    long_test!();
    let verify = ["verify-report", "../report.json", "--lanes-from=main^"];
    let run = committed().again(&verify).run();
    run.must_exit(1);
    assert!(run.stderr.contains("the run was judged by verify, also, but verify is required"), "{}", run.story());
    let run = run.again(&[verify.as_slice(), &["--lane=also", "--lane=verify"]].concat()).run();
    run.must_exit(0);
    assert!(run.stderr.contains("judged by verify, also\n  "), "{}", run.story());
    // The lanes of the target have changed since.
    run.git(&["checkout", "-q", "-b", "target"]);
    fs::write(run.path("lanes/verify.yaml"), needs("other")).unwrap();
    run.git(&["commit", "-qam", "another gate"]);
    run.git(&["checkout", "-q", "main"]);
    let run =
        run.again(&["verify-report", "../report.json", "--lanes-from=target", "--lane=verify", "--lane=also"]).run();
    run.must_exit(1);
    assert!(run.stderr.contains("the lanes that judged the run differ from those at target"), "{}", run.story());
    // The work has changed too.
    fs::write(run.path("done"), "more\n").unwrap();
    run.git(&["commit", "-qam", "more"]);
    let run = run.again(&["verify-report", "../report.json", "--json"]).run();
    run.must_exit(1);
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&answer["holds"], answer["reasons"].as_array().unwrap().len()), (&json!(false), 1));
    for args in [["verify-report", "task.md", "--json"], ["verify-report", "../report.json", "--lanes-from=--all"]] {
        assert_eq!(super::apply::run_again(&run, &args).0, Some(2), "{args:?}");
    }
}

#[test]
fn a_report_that_contradicts_itself_or_was_not_verified_does_not_hold() {
    long_test!();
    let run = committed();
    let mut report = run.report();
    report["tree"] = "0".repeat(40).into();
    fs::write(run.path("../report.json"), report.to_string()).unwrap();
    let run = run.again(&["verify-report", "../report.json"]).run();
    run.must_exit(1);
    assert!(run.stderr.contains("has no verified tree"), "{}", run.story());
}
