//! The result of a lane that has run, as plain data.

use super::LaneRuling;
use crate::verdict::{StepReport, TestCase, TestCounts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// The result of a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaneOutcome {
    /// The ruling of the lane.
    pub ruling: LaneRuling,
    /// All steps in the order of the lane, including those that were not started.
    pub steps: Vec<StepReport>,
    /// The time span of each step, in the same order; `None` for steps that did not run.
    pub spans: Vec<Option<StepSpan>>,
    /// The test report that each step wrote, in the same order. `None` if the lane names no report,
    /// or the report cannot be read.
    #[serde(skip)]
    pub test_reports: Vec<Option<JunitReport>>,
    /// The tests from the reports that Maven and Gradle write by default, in the same order. Only
    /// for steps without a named report.
    #[serde(skip)]
    pub found_reports: Vec<Option<JunitReport>>,
    /// The tests that test runners reported to fledge during each step, in the same order. `None`
    /// for steps without reporters.
    #[serde(skip)]
    pub runner_reports: Vec<Option<RunnerReport>>,
    /// The time from the first order to the end of the last step.
    pub duration: Duration,
}

/// The time span of a step, from its first start to its last end, relative to the start of its
/// lane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct StepSpan {
    /// The start.
    pub begin: Duration,
    /// The end of the last try.
    pub end: Duration,
}

/// The tests of a report, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JunitReport {
    /// The number of tests by status. A suite may claim more failures than there are failing tests;
    /// each further one counts as an error.
    pub counts: TestCounts,
    /// All tests.
    pub cases: Vec<TestCase>,
}

/// The tests that test runners reported to fledge during a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunnerReport {
    /// All tests, in the order of their reports.
    pub tests: Vec<ReportedTest>,
    /// The number of test runs that began and did not end by themselves.
    pub broken: u64,
    /// The functions of test runners that were replaced while they ran, and the hooks that were
    /// added, each as `NAME in FILE`.
    pub changed: BTreeSet<String>,
}

/// A test that a test runner reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedTest {
    /// The runner's name for the test, such as `tests/test_a.py::test_b[1]`.
    pub name: String,
    /// Its result.
    pub state: ReportedState,
}

/// The result of a reported test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportedState {
    /// It ran and passed.
    Passed,
    /// It ran and failed, or its preparation failed.
    Failed,
    /// It did not run, or it ended itself before its end.
    Skipped,
    /// Its failure counts for nothing.
    ExpectedToFail,
    /// A try of it failed, and the runner tries it again.
    Retried,
}
