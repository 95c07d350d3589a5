//! A run's end for continuous integration: the verdict as a lane's result, a page in Markdown, the outputs of a step of a job. Pure.

use super::lane::LaneResult;
use super::lane::markdown::{self, code};
use super::{Fact, closing};
use crate::run::TaskResult;
use crate::verdict::{StepReport, Verification};

/// The names of the lanes of the last verdict.
pub(crate) fn lanes(result: &TaskResult) -> String {
    let mut lanes: Vec<&str> = steps(result).iter().map(|step| step.lane.as_str()).collect();
    lanes.dedup();
    if lanes.is_empty() { "gate".into() } else { lanes.join(", ") }
}

/// The last verdict as the result of one lane, by that name.
pub(crate) fn judged<'a>(result: &'a TaskResult, lanes: &'a str) -> LaneResult<'a> {
    LaneResult {
        lane: lanes,
        word: word(result.verification),
        passed: result.verified,
        duration_ms: result.attempts.last().map_or(0, |attempt| attempt.verdict.duration_ms),
        steps: steps(result),
        retried: &[],
    }
}

fn steps(result: &TaskResult) -> &[StepReport] {
    result.attempts.last().map_or(&[], |attempt| &attempt.verdict.steps)
}

/// What became of the gate, in words that follow the names of its lanes.
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

/// The page: how the run ended, what there is to know of it, and the lane.
pub(crate) fn page(result: &TaskResult, lane: &LaneResult<'_>) -> String {
    let mark = if result.verified { "✓" } else { "✗" };
    let how = if result.verified { "verified" } else { result.message.as_str() };
    let mut text = format!("# {mark} {}\n\n{}\n\n", code(&result.title), code(how));
    for Fact { about, says } in closing(result) {
        let about = if about.is_empty() { String::new() } else { format!("{about}: ") };
        text.push_str(&format!("- {about}{}\n", code(&says)));
    }
    text.push('\n');
    text.push_str(&markdown::page(lane));
    text
}

/// The outputs of a step of a job, each a line `name=value`.
pub(crate) fn outputs(result: &TaskResult) -> String {
    let reason = serde_json::to_value(result.reason).ok().and_then(|word| word.as_str().map(str::to_owned));
    let reason = reason.unwrap_or_default();
    let all = [
        ("verified", result.verified.to_string()),
        ("exit-code", result.exit_code.to_string()),
        ("reason", reason),
        ("run", result.run.to_string()),
        ("tree", result.tree.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("commit", result.commit.clone().unwrap_or_default()),
        ("branch", result.branch.clone().unwrap_or_default()),
        ("attempts", result.attempts.len().to_string()),
    ];
    let one_line = |value: &str| value.split(['\r', '\n']).collect::<Vec<_>>().join(" ");
    all.iter().map(|(name, value)| format!("{name}={}\n", one_line(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::Moment;
    use crate::run::{Event, Run};
    use crate::verdict::StopCause;

    fn cancelled() -> TaskResult {
        let mut run = Run::new();
        run.handle(Moment(5), Event::CancelRequested { cause: StopCause::Terminate, said: String::new() });
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
        let page = page(&result, &judged(&result, &lanes));
        assert!(page.starts_with("# ✗ ``a `b` ::error::c``\n\n"), "{page}");
        assert!(page.contains("## ✗ lane `gate` was not reached\n"), "{page}");
    }
}
