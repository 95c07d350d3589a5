//! Tests of the formats of a lane's result, and sample results for them.

use super::*;
use crate::verdict::{TestCounts, TestStatus, TestSummary};

/// Returns a step with this name and status.
pub(crate) fn step(name: &str, status: StepStatus) -> StepReport {
    let failed = matches!(status, StepStatus::Failed | StepStatus::AllowedFailure);
    StepReport {
        lane: "verify".into(),
        step: name.into(),
        command: format!("run {name}"),
        status,
        tries: if status == StepStatus::NotRun { 0 } else { 1 },
        exit_code: if failed { Some(1) } else { None },
        signal: None,
        duration_ms: 1200,
        log: Some(format!("/state/{name}.log")),
        excerpt: if failed { "error: it is broken\nassertion failed".into() } else { String::new() },
        note: String::new(),
        tests: None,
    }
}

/// Returns a failing test.
pub(crate) fn test(name: &str, place: Option<(&str, u32)>) -> TestCase {
    TestCase {
        suite: "dates".into(),
        name: name.into(),
        file: place.map(|(file, _)| file.into()),
        line: place.map(|(_, line)| line),
        duration_ms: None,
        status: TestStatus::Failed,
        message: format!("{name}: expected 1,\nfound 2: 50%"),
    }
}

/// Returns a step with failing tests.
pub(crate) fn with_tests(name: &str, failing: Vec<TestCase>, failures: u64) -> StepReport {
    let counts = TestCounts { tests: failures + 5, failures, ..TestCounts::default() };
    StepReport { tests: Some(Box::new(TestSummary { counts, failing })), ..step(name, StepStatus::Failed) }
}

/// Returns steps of every kind, some with text that tries to do harm.
pub(crate) fn all_kinds() -> Vec<StepReport> {
    let evil = "::error::mine\n````\n<b>]]> | %0A ##[error]x `a` \u{fffe}\u{1}";
    vec![
        step("fmt", StepStatus::Passed),
        StepReport { tries: 2, ..step("net", StepStatus::Flaky) },
        step("links", StepStatus::AllowedFailure),
        StepReport { excerpt: evil.into(), ..with_tests("t|e`st <b>", vec![test("leap", Some(("a,b:c.rs", 12)))], 1) },
        StepReport { exit_code: None, note: "ran out of its time of 1s".into(), ..step("slow", StepStatus::TimedOut) },
        StepReport { exit_code: None, note: "no such program".into(), log: None, ..step("tool", StepStatus::Errored) },
        step("lint", StepStatus::Cancelled),
        StepReport {
            note: "another step failed before".into(),
            log: None,
            duration_ms: 0,
            ..step("docs", StepStatus::NotRun)
        },
    ]
}

/// Returns a failed lane with these steps.
pub(crate) fn failed<'a>(steps: &'a [StepReport], retried: &'a [StepReport]) -> LaneResult<'a> {
    LaneResult {
        lane: "verify",
        word: "failed",
        passed: false,
        duration_ms: 4321,
        steps,
        retried,
        why: "",
        before: "",
        at: None,
    }
}

#[test]
fn every_way_to_end_is_counted_apart() {
    let steps = all_kinds();
    let words = "1 failed, 1 timed out, 1 could not run, 1 passed, 1 flaky, 1 allowed failure, 1 not run, 1 cancelled";
    assert_eq!(StepCounts::count(&steps).words(), words);
    assert_eq!(StepCounts::count(&steps[..2]).words(), "1 passed, 1 flaky");
    assert_eq!(StepCounts::default().words(), "no steps");
}

#[test]
fn a_signal_is_named_once() {
    let by = |note: &str| {
        let report =
            StepReport { exit_code: None, signal: Some(11), note: note.into(), ..step("a", StepStatus::Failed) };
        how(&report)
    };
    assert_eq!([by("ended by signal 11"), by("")], ["ended by signal 11", "signal 11"]);
}

#[test]
fn ten_failing_tests_are_named_and_the_others_counted() {
    let tests: Vec<TestCase> = (0..15).map(|n| test(&format!("t{n}"), None)).collect();
    let report = with_tests("test", tests.clone(), 27);
    assert_eq!(failing(&report), (&tests[..10], 17));
    assert_eq!(failing(&step("test", StepStatus::Failed)), (&[][..], 0));
}

#[test]
fn a_lane_that_came_to_nothing_says_why_and_where_in_every_form() {
    let why = "ci.toml:2:9: no task `a`,\nnone at all";
    let refused = LaneResult { word: "was refused", why, at: Some(("ci.toml", 2)), ..failed(&[], &[]) };
    assert_eq!(refused.complaint().as_deref(), Some("the lane was refused: ci.toml:2:9: no task `a`,\nnone at all"));
    let page =
        "## ✗ lane `verify` was refused\n\n``ci.toml:2:9: no task `a`,``\\\n`none at all`\n\nno steps were run\n";
    assert_eq!(markdown::page(&refused), page);
    let annotation =
        "::error title=verify,file=ci.toml,line=2::the lane was refused: ci.toml:2:9: no task `a`,%0Anone at all";
    assert_eq!(github::annotations(&refused, std::path::Path::new("")), [annotation]);
    let sarif: serde_json::Value = serde_json::from_str(&sarif::document(&refused)).unwrap();
    assert_eq!(sarif["runs"][0]["invocations"][0]["executionSuccessful"], false);
    let quality: serde_json::Value = serde_json::from_str(&code_quality::document(&refused)).unwrap();
    assert_eq!(quality[0]["location"], serde_json::json!({ "path": "ci.toml", "lines": { "begin": 2 } }));
    let steps = [step("a", StepStatus::Failed)];
    let reported = LaneResult { why, ..failed(&steps, &[]) };
    assert_eq!((reported.complaint(), LaneResult { passed: true, ..refused }.complaint()), (None, None));
    let sarif: serde_json::Value = serde_json::from_str(&sarif::document(&reported)).unwrap();
    assert_eq!(sarif["runs"][0]["invocations"], serde_json::json!([{ "executionSuccessful": true }]));
}
