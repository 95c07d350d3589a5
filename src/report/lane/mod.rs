//! A lane's result in exchange formats: JUnit, Markdown, SARIF, GitLab's code quality report, and
//! the commands of GitHub's runner. Pure.

pub(crate) mod code_quality;
mod complaints;
pub(crate) mod github;
pub(crate) mod junit;
pub(crate) mod markdown;
pub(crate) mod sarif;

use crate::verdict::{StepReport, StepStatus, TestCase};
use serde::Serialize;

/// The maximum number of failing tests of a step that are listed by name.
pub(crate) const TESTS_NAMED: usize = 10;

/// The result of a finished lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneResult<'a> {
    /// The name of the lane.
    pub(crate) lane: &'a str,
    /// The outcome, in words that follow the name: `passed`, `ran nothing`.
    pub(crate) word: &'a str,
    /// True if the lane passed.
    pub(crate) passed: bool,
    /// The duration, in milliseconds.
    pub(crate) duration_ms: u64,
    /// All steps.
    pub(crate) steps: &'a [StepReport],
    /// Failed tries that another try followed, in the order in which they ended.
    pub(crate) retried: &'a [StepReport],
    /// The reason for the outcome, if no step gives one; else empty.
    pub(crate) why: &'a str,
    /// The failures that existed before any change, in one line; empty if there were none.
    pub(crate) before: &'a str,
    /// The file and the line, from 1, that a complaint about the whole lane refers to.
    pub(crate) at: Option<(&'a str, u32)>,
}

impl LaneResult<'_> {
    /// Returns the complaint about the whole lane, if it has not passed and no step failed: `the
    /// lane ran nothing`.
    pub(crate) fn complaint(&self) -> Option<String> {
        let is_said = self.passed || self.steps.iter().any(|step| step.status.is_failure());
        let why = if self.why.is_empty() { String::new() } else { format!(": {}", self.why) };
        (!is_said).then(|| format!("the lane {}{why}", self.word))
    }

    /// Returns the file and the line for that complaint. The default is the first line of the
    /// lane's file.
    pub(crate) fn place(&self) -> (String, u32) {
        self.at.map_or_else(|| (format!("lanes/{}.yaml", self.lane), 1), |(file, line)| (file.to_owned(), line))
    }
}

/// The number of steps per outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct StepCounts {
    failed: u64,
    timed_out: u64,
    errored: u64,
    passed: u64,
    flaky: u64,
    allowed_failures: u64,
    skipped: u64,
    not_run: u64,
    cancelled: u64,
}

impl StepCounts {
    pub(crate) fn count<'a>(steps: impl IntoIterator<Item = &'a StepReport>) -> Self {
        let mut counts = Self::default();
        for step in steps {
            *match step.status {
                StepStatus::Failed => &mut counts.failed,
                StepStatus::TimedOut => &mut counts.timed_out,
                StepStatus::Errored => &mut counts.errored,
                StepStatus::Passed => &mut counts.passed,
                StepStatus::Flaky => &mut counts.flaky,
                StepStatus::AllowedFailure => &mut counts.allowed_failures,
                StepStatus::Skipped => &mut counts.skipped,
                StepStatus::NotRun => &mut counts.not_run,
                StepStatus::Cancelled => &mut counts.cancelled,
            } += 1;
        }
        counts
    }

    pub(crate) fn cancelled(self) -> u64 {
        self.cancelled
    }

    pub(crate) fn without_cancelled(self) -> Self {
        Self { cancelled: 0, ..self }
    }

    /// Lists the counts that are not zero: `3 passed, 1 flaky, 1 skipped`.
    pub(crate) fn words(self) -> String {
        let allowed = if self.allowed_failures == 1 { "allowed failure" } else { "allowed failures" };
        let all = [
            (self.failed, "failed"),
            (self.timed_out, "timed out"),
            (self.errored, "could not run"),
            (self.passed, "passed"),
            (self.flaky, "flaky"),
            (self.allowed_failures, allowed),
            (self.skipped, "skipped"),
            (self.not_run, "not run"),
            (self.cancelled, "cancelled"),
        ];
        let some: Vec<_> = all.iter().filter(|(count, _)| *count > 0).map(|(n, what)| format!("{n} {what}")).collect();
        if some.is_empty() { "no steps".into() } else { some.join(", ") }
    }
}

/// Describes how a step ended, in words that follow its name: `passed`, `exit 1`, `ended by signal
/// 11`, `skipped (…)`.
pub(crate) fn how(report: &StepReport) -> String {
    let word = match (report.status, report.exit_code, report.signal) {
        (StepStatus::Failed, Some(code), _) => format!("exit {code}"),
        (StepStatus::Failed, None, Some(_)) if !report.note.is_empty() => return report.note.clone(), // the note names the signal
        (StepStatus::Failed, None, Some(signal)) => format!("signal {signal}"),
        (StepStatus::AllowedFailure, Some(code), _) => format!("allowed failure, exit {code}"),
        (StepStatus::Flaky, _, _) => format!("flaky, try {}", report.tries),
        (StepStatus::Errored, _, _) => "could not run".into(),
        (status, _, _) => status.as_str().replace('_', " "),
    };
    if report.note.is_empty() { word } else { format!("{word} ({})", report.note) }
}

/// Returns the failing tests of a step that are listed by name, and the number of the others.
pub(crate) fn failing(report: &StepReport) -> (&[TestCase], u64) {
    let Some(tests) = &report.tests else { return (&[], 0) };
    let named = &tests.failing[..tests.failing.len().min(TESTS_NAMED)];
    let all = tests.counts.failures.saturating_add(tests.counts.errors).max(tests.failing.len() as u64);
    (named, all - named.len() as u64)
}

/// Returns a test's name after the name of its suite.
pub(crate) fn test_name(test: &TestCase) -> String {
    if test.suite.is_empty() { test.name.clone() } else { format!("{} {}", test.suite, test.name) }
}

/// Returns the place of a test, such as `tests/a.rs:12`, if it is known.
pub(crate) fn test_place(test: &TestCase) -> Option<String> {
    let file = test.file.as_ref()?;
    Some(test.line.map_or_else(|| file.clone(), |line| format!("{file}:{line}")))
}

#[cfg(test)]
pub(crate) mod tests;
