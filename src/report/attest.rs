//! Attestations of verified work: in-toto Statements of version 1 with the predicate test-result of
//! version 0.1, as <https://github.com/in-toto/attestation> defines them. Pure. A statement is not
//! signed here; its worth depends on the signature that is added later.

use crate::run::TaskResult;
use crate::verdict::{Proof, StepReport, StepStatus};
use serde_json::{Value, json};

/// Builds the statement for this proof. `url` is the address at which the run can be viewed.
pub fn statement(result: &TaskResult, proof: &Proof, url: Option<&str>) -> Value {
    let mut subject = vec![json!({ "name": "tree", "digest": { "gitTree": proof.tree } })];
    subject.extend(result.commit.iter().map(|commit| json!({ "name": "commit", "digest": { "gitCommit": commit } })));
    subject
        .extend(result.commit_tree.iter().map(|tree| json!({ "name": "commit tree", "digest": { "gitTree": tree } })));
    let steps = result.attempts.last().map(|attempt| attempt.verdict.steps.as_slice()).unwrap_or_default();
    let with = |wanted: &[StepStatus]| -> Vec<String> {
        let named = |step: &StepReport| format!("{}/{}", step.lane, step.step);
        steps.iter().filter(|step| wanted.contains(&step.status)).map(named).collect()
    };
    let warned = with(&[StepStatus::Flaky, StepStatus::AllowedFailure]);
    let lanes = json!({
        "name": "lanes",
        "digest": { "sha256": proof.lanes },
        "annotations": { "run": result.run, "base": proof.base, "room": proof.room, "sandbox": proof.sandbox },
    });
    let mut predicate = json!({
        "result": if warned.is_empty() { "PASSED" } else { "WARNED" },
        "configuration": [lanes],
        "passedTests": with(&[StepStatus::Passed]),
        "warnedTests": warned,
        "failedTests": [],
    });
    if let Some(url) = url {
        predicate["url"] = url.into();
    }
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subject,
        "predicateType": "https://in-toto.io/attestation/test-result/v0.1",
        "predicate": predicate,
    })
}
