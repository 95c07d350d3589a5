//! The end of a run for continuous integration: the verdict as a lane's result, a Markdown page,
//! and the outputs of a job's step. Pure.

use super::lane::LaneResult;
use super::lane::markdown::{self, code};
use super::{REPORT_SCHEMA_VERSION, SummaryFact, closing, hint};
use crate::run::TaskResult;
use crate::verdict::{Reason, StepReport, Verification};
use serde_json::{Value, json};

/// The lane name for a run that no lane has judged.
const NO_LANE: &str = "gate";

/// Returns the names of the lanes in the last verdict.
pub(crate) fn lanes(result: &TaskResult) -> String {
    let mut lanes: Vec<&str> = steps(result).iter().map(|step| step.lane.as_str()).collect();
    lanes.dedup();
    if lanes.is_empty() { NO_LANE.into() } else { lanes.join(", ") }
}

/// Returns the last verdict as the result of one lane with the name `lanes`.
pub(crate) fn judged<'a>(result: &'a TaskResult, lanes: &'a str, before: &'a str) -> LaneResult<'a> {
    LaneResult {
        lane: lanes,
        word: word(result.verification),
        passed: result.verified,
        duration_ms: duration_ms(result),
        steps: steps(result),
        retried: &[],
        why: &result.message,
        before,
        at: Some(("lanes", 1)),
    }
}

/// Describes the failures that existed before any change, in one line; empty if there were none.
pub(crate) fn before(result: &TaskResult) -> String {
    result.attempts.last().and_then(|attempt| attempt.verdict.failed_before_line()).unwrap_or_default()
}

/// Returns a run that could not begin, as a lane that was not reached.
pub(crate) fn unbegun(why: &str) -> LaneResult<'_> {
    let (lane, word) = (NO_LANE, word(Verification::NotReached));
    LaneResult {
        lane,
        word,
        passed: false,
        duration_ms: 0,
        steps: &[],
        retried: &[],
        why,
        before: "",
        at: Some(("lanes", 1)),
    }
}

/// Returns the duration of the gate run that ran the steps of the last verdict, in milliseconds.
fn duration_ms(result: &TaskResult) -> u64 {
    let last = result.attempts.last().map(|last| last.verdict.unchanged_since.unwrap_or(last.number));
    let judged = result.attempts.iter().find(|attempt| Some(attempt.number) == last);
    judged.map_or(0, |attempt| attempt.verdict.duration_ms)
}

fn steps(result: &TaskResult) -> &[StepReport] {
    result.attempts.last().map_or(&[], |attempt| &attempt.verdict.steps)
}

/// Returns the outcome of the gate, in words that follow the names of its lanes.
fn word(verification: Verification) -> &'static str {
    match verification {
        Verification::Passed => "passed",
        Verification::Skipped => "was skipped",
        Verification::Failed => "failed",
        Verification::Errored => "could not run",
        Verification::Tampered => "was tampered with",
        Verification::NotReached => "was not reached",
    }
}

/// Builds the page: how the run ended, the closing summary, and the lane.
pub(crate) fn page(result: &TaskResult, lane: &LaneResult<'_>) -> String {
    let mark = if result.verified { "✓" } else { "✗" };
    let how = if result.verified { "verified" } else { result.message.as_str() };
    let mut text = format!("# {mark} {}\n\n{}\n\n", code(&result.title), code(how));
    for SummaryFact { about, says } in closing(result).into_iter().chain(hint(result)) {
        let about = if about.is_empty() { String::new() } else { format!("{about}: ") };
        text.push_str(&format!("- {about}{}\n", code(&says)));
    }
    text.push('\n');
    text.push_str(&markdown::page(&LaneResult { why: "", ..*lane })); // the reason is already above
    text
}

/// Builds the page of a run that could not begin.
pub(crate) fn unbegun_page(lane: &LaneResult<'_>) -> String {
    format!("# ✗ the run did not start\n\n{}", markdown::page(lane))
}

/// Builds the report of a run that could not begin and so has no result.
pub(crate) fn unbegun_report(exit_code: u8, reason: Reason, why: &str) -> Value {
    json!({
        "schema_version": REPORT_SCHEMA_VERSION,
        "fledge": env!("CARGO_PKG_VERSION"),
        "run": null,
        "reason": reason,
        "exit_code": exit_code,
        "verified": false,
        "verification": Verification::NotReached,
        "cancelled": reason == Reason::Cancelled,
        "message": why,
    })
}

/// Returns the outputs of a run that could not begin.
pub(crate) fn unbegun_outputs(exit_code: u8, reason: Reason) -> String {
    let [run, tree, commit, branch] = [""; 4].map(str::to_owned);
    lines([
        ("verified", false.to_string()),
        ("exit-code", exit_code.to_string()),
        ("reason", reason.to_string()),
        ("run", run),
        ("tree", tree),
        ("commit", commit),
        ("branch", branch),
        ("attempts", 0.to_string()),
    ])
}

/// Returns the outputs of a job's step, one line `name=value` each.
pub(crate) fn outputs(result: &TaskResult) -> String {
    lines([
        ("verified", result.verified.to_string()),
        ("exit-code", result.exit_code.to_string()),
        ("reason", result.reason.to_string()),
        ("run", result.run.to_string()),
        ("tree", result.tree.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("commit", result.commit.clone().unwrap_or_default()),
        ("branch", result.branch.clone().unwrap_or_default()),
        ("attempts", result.attempts.len().to_string()),
    ])
}

fn lines(all: [(&str, String); 8]) -> String {
    let one_line = |value: &str| value.split(['\r', '\n']).collect::<Vec<_>>().join(" ");
    all.iter().map(|(name, value)| format!("{name}={}\n", one_line(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elapsed::Elapsed;
    use crate::run::{Event, Run};
    use crate::verdict::StopCause;

    fn cancelled() -> TaskResult {
        let mut run = Run::new();
        run.handle(Elapsed(5), Event::CancelRequested { cause: StopCause::Terminate, partial_text: String::new() });
        TaskResult { title: "a `b`\n::error::c".into(), ..run.result().unwrap() }
    }

    #[test]
    fn outputs_are_one_line_each_whatever_is_in_them() {
        let result = TaskResult { branch: Some("x\nverified=true".into()), ..cancelled() };
        let all = outputs(&result);
        assert_eq!(all.lines().count(), 8);
        assert!(all.starts_with("verified=false\nexit-code=143\nreason=cancelled\nrun="), "{all}");
        assert!(all.contains("branch=x verified=true\n"), "{all}");
    }

    #[test]
    fn a_run_that_reached_no_gate_has_a_page_and_a_lane_that_says_so() {
        let result = cancelled();
        let lanes = lanes(&result);
        let page = page(&result, &judged(&result, &lanes, ""));
        assert!(page.starts_with("# ✗ ``a `b` ::error::c``\n\n"), "{page}");
        assert!(page.contains("## ✗ lane `gate` was not reached\n"), "{page}");
    }
}
