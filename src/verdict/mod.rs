//! The results of the gate and of runs, and the one table that maps reasons to exit codes.

mod held_back;
mod outside;
mod reason;

pub use held_back::{HeldBack, IN_THE_ROOM, are_tests_in, flags_open_folders, joined_flags, shell_word, tests_in};
pub use outside::{IgnoredFile, OutsidePath, OutsideTree, shown_path};
pub use reason::{Reason, ReasonRow, gravest, mildest};

use crate::id::TreeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The result of one gate run on the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// The ruling.
    pub ruling: Ruling,
    /// Every examined step, in the order of the lanes.
    pub steps: Vec<StepReport>,
    /// Protected paths that had changed, sorted. `PATH#tests` means the tests inside a product
    /// file.
    pub findings: Vec<TamperFinding>,
    /// The duration of the gate run, in milliseconds.
    pub duration_ms: u64,
    /// The feedback for the model if the ruling is not [`Ruling::Passed`]; limited in length.
    pub feedback: String,
    /// A signature of the failing steps: equal if the failing steps are the same, empty for a pass.
    pub signature: String,
    /// Further notes, one line each. Each note becomes a warning of the run.
    pub notes: Vec<String>,
    /// Steps and tests that failed and had also failed before any change, such as `lane/step` or
    /// `lane/step: test`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_before: Vec<String>,
    /// The attempt whose verdict this one repeats, or 0 for the base. No file differs from that
    /// attempt, so the checks did not run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged_since: Option<u32>,
    /// The packages installed for the checks, if the dependencies of the work differ from those of
    /// the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<Box<InstalledForChecks>>,
    /// The evidence for a pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Box<Proof>>,
}

/// The packages installed for the checks of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct InstalledForChecks {
    /// The commands, derived from the manifests and lock files.
    pub commands: Vec<String>,
    /// New packages, by name and version, sorted, as far as the package manager keeps records.
    pub packages: Vec<String>,
}

/// The evidence for a pass: exactly this tree passed these lanes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Proof {
    /// The tree before the agent's work.
    pub base: TreeId,
    /// The tree that passed.
    pub tree: TreeId,
    /// The digest of the frozen lanes.
    pub lanes: String,
    /// The room of the lanes: `clean`, or `in-place` when one of them ran in the workspace itself.
    pub room: String,
    /// The sandbox around the lanes: `bubblewrap`, `landlock`, `off`.
    pub sandbox: String,
    /// The number of tests that ran, if known.
    pub tests: Option<u64>,
    /// The number of tests that ran on the base, for comparison. Absent if the base was not judged,
    /// or counts no tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests_before: Option<u64>,
    /// The number of tests known by name. Each test of the base was looked up among these names.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tests_by_name: u64,
    /// The number of canaries, the planted failing tests, that the checks reported.
    pub canaries: u64,
    /// The lanes in which no failing test was planted, each with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub without_canary: BTreeMap<String, String>,
    /// The number of passed hold-out lanes, which only the gate knows.
    pub held_out: u64,
    /// The number of hidden files of the base, which the agent did not see and the lanes used.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hidden: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The ruling of a gate run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// Every required step passed.
    Passed,
    /// A step ran and failed, or exceeded its time.
    Failed,
    /// A step could not run. The agent did not cause this and gets no feedback about it.
    Errored,
    /// A file that defines the gate changed.
    Tampered,
}

/// A protected path that changed during the run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TamperFinding {
    /// The path, relative to the workspace, with `/` between its parts.
    pub path: String,
    /// The kind of change: `added`, `changed`, `removed`.
    pub change: String,
    /// The rule that protects the path.
    pub rule: String,
}

/// Explains why the checks do not run on an attempt with the files of an earlier one; 0 is the
/// base.
pub fn as_judged(attempt: u32) -> String {
    match attempt {
        0 => "no file differs from the base".into(),
        attempt => format!("all files are as in attempt {attempt}"),
    }
}

/// The maximum number of earlier failures named in one line.
const BEFORE_NAMED: usize = 20;

/// The result of one step of a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StepReport {
    /// The name of the lane.
    pub lane: String,
    /// The name of the step.
    pub step: String,
    /// The command line, as in the lane.
    pub command: String,
    /// The status.
    pub status: StepStatus,
    /// The number of starts.
    pub tries: u32,
    /// The exit code, if the step exited.
    pub exit_code: Option<i32>,
    /// The signal that ended the step, if any.
    pub signal: Option<i32>,
    /// The duration, in milliseconds.
    pub duration_ms: u64,
    /// The file with the whole output, if it exists.
    pub log: Option<String>,
    /// The part of the output that explains the result: valid text, a few KiB at most.
    pub excerpt: String,
    /// A further note in one line, such as why the step could not run, or what it left behind.
    /// Empty if none exists.
    pub note: String,
    /// The summary of the step's own test report, if the lane names one and it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<Box<TestSummary>>,
}

/// The kept log of a step of a gate run, with its whole output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepLog {
    /// The judged attempt; 0 is the state before any change.
    pub attempt: u32,
    /// The name of the lane.
    pub lane: String,
    /// The name of the step.
    pub step: String,
    /// The status of the step.
    pub status: StepStatus,
    /// The path of the file.
    pub path: String,
}

/// The summary of a test report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TestSummary {
    /// The number of tests, by status.
    pub counts: TestCounts,
    /// The failed tests in the order of the report: the first hundred.
    pub failing: Vec<TestCase>,
}

/// The number of tests by status. Tests in none of the last three fields passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TestCounts {
    /// All tests.
    pub tests: u64,
    /// Tests whose check failed.
    pub failures: u64,
    /// Tests that broke before their check.
    pub errors: u64,
    /// Tests that did not run.
    pub skipped: u64,
}

/// One test of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TestCase {
    /// The class, module or file of the test; empty if the report names none.
    pub suite: String,
    /// The name of the test.
    pub name: String,
    /// The file with the test, as in the report.
    pub file: Option<String>,
    /// The line of the test, from 1.
    pub line: Option<u32>,
    /// The duration, in milliseconds.
    pub duration_ms: Option<u64>,
    /// The status.
    pub status: TestStatus,
    /// The reason why the test failed or was skipped: valid text, 1 KiB at most.
    pub message: String,
}

/// The status of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TestStatus {
    /// The test passed.
    Passed,
    /// The check of the test failed.
    Failed,
    /// The test broke before its check.
    Errored,
    /// The test did not run.
    Skipped,
}

/// The status of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Exit code 0 at the first try.
    Passed,
    /// Exit code 0, but not at the first try.
    Flaky,
    /// The step failed, and the lane only reports this failure.
    AllowedFailure,
    /// The step exited with another code, or a signal ended it.
    Failed,
    /// The step exceeded its time and was killed.
    TimedOut,
    /// The step could not be started.
    Errored,
    /// The step was stopped because another step failed, or because the run was cancelled.
    Cancelled,
    /// The step was left out on purpose: its conditions do not hold, or it was not selected.
    Skipped,
    /// The step did not run, because the lane ended before, or because a step that it needs did not
    /// pass.
    NotRun,
}

impl StepStatus {
    /// Returns the word for output, JSON and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Flaky => "flaky",
            Self::AllowedFailure => "allowed_failure",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Errored => "errored",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
            Self::NotRun => "not_run",
        }
    }

    /// Returns true if the step failed by itself: it was not stopped because of another step, and
    /// the lane does not allow the failure.
    pub fn is_failure(self) -> bool {
        match self {
            Self::Failed | Self::TimedOut | Self::Errored => true,
            Self::Passed | Self::Flaky | Self::AllowedFailure | Self::Cancelled | Self::Skipped | Self::NotRun => false,
        }
    }
}

/// The progress of a gate run, step by step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepProgress {
    /// A step started.
    Started {
        /// The name of the lane.
        lane: String,
        /// The name of the step.
        step: String,
        /// The command line.
        command: String,
    },
    /// A step printed a line; valid text, without control characters.
    Output {
        /// The name of the lane.
        lane: String,
        /// The name of the step.
        step: String,
        /// The line.
        line: String,
    },
    /// A step has printed this much of a line that has not ended. The whole line follows as
    /// `Output`.
    Partial {
        /// The name of the lane.
        lane: String,
        /// The name of the step.
        step: String,
        /// The line so far.
        line: String,
    },
    /// A step failed and will be tried again.
    Retried(StepReport),
    /// A step ended, or will not start.
    Ended(StepReport),
}

impl StepProgress {
    /// Returns the name of the step.
    pub fn step(&self) -> &str {
        match self {
            Self::Started { step, .. } | Self::Output { step, .. } | Self::Partial { step, .. } => step,
            Self::Retried(report) | Self::Ended(report) => &report.step,
        }
    }

    /// Returns the printed text, complete or not, if this is one.
    pub fn printed(&self) -> Option<&str> {
        match self {
            Self::Output { line, .. } | Self::Partial { line, .. } => Some(line),
            Self::Started { .. } | Self::Retried(_) | Self::Ended(_) => None,
        }
    }

    /// Returns the progress as that of a lane with this name.
    pub fn in_lane(mut self, name: &str) -> Self {
        match &mut self {
            Self::Started { lane, .. } | Self::Output { lane, .. } | Self::Partial { lane, .. } => {
                name.clone_into(lane);
            }
            Self::Retried(report) | Self::Ended(report) => name.clone_into(&mut report.lane),
        }
        self
    }
}

impl Verdict {
    /// Lists the failures from before any change, in one line. `None` if there were none.
    pub fn failed_before_line(&self) -> Option<String> {
        let (named, more) = self.failed_before.split_at(self.failed_before.len().min(BEFORE_NAMED));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        (!named.is_empty()).then(|| format!("failed before any change, too: {}{more}", named.join(", ")))
    }

    /// Returns true if the gate passed.
    pub fn passed(&self) -> bool {
        self.ruling == Ruling::Passed
    }

    /// Returns the logs of the steps, as those of `attempt`.
    pub fn logs(&self, attempt: u32) -> impl Iterator<Item = StepLog> {
        self.steps.iter().filter_map(move |step| {
            let StepReport { lane, step, status, log, .. } = step.clone();
            Some(StepLog { attempt, lane, step, status, path: log? })
        })
    }

    /// Returns the duration of the gate run.
    pub fn duration(&self) -> Duration {
        Duration::from_millis(self.duration_ms)
    }
}

/// The state of the verification in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verification {
    /// The last verdict passed.
    Passed,
    /// The run skipped the gate on purpose.
    Skipped,
    /// The last verdict failed.
    Failed,
    /// The gate could not run.
    Errored,
    /// The gate was tampered with.
    Tampered,
    /// The run ended before any verdict that counts.
    NotReached,
}

/// The source of a request to stop the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// The cancellation token of a library user.
    Token,
}
