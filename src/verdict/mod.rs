//! What the gate said, and why a run ended: the words of judgement, and the one table that ties them to exit codes.

mod held_back;
mod outside;
mod reason;

pub use held_back::{HeldBack, IN_THE_ROOM, flags_open_folders, joined_flags, shell_word};
pub use outside::{IgnoredFile, OutsidePath, OutsideTree};
pub use reason::{Reason, ReasonRow, gravest, mildest};

use crate::id::TreeId;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What one gate run said about the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// The ruling.
    pub ruling: Ruling,
    /// Every step that was looked at, in the order of the lanes.
    pub steps: Vec<StepReport>,
    /// Protected paths that had changed, sorted.
    pub findings: Vec<Finding>,
    /// How long the gate took, in milliseconds.
    pub duration_ms: u64,
    /// What the model is told when the ruling is not [`Ruling::Passed`]; bounded.
    pub feedback: String,
    /// Equal for two verdicts whose failing steps are the same; empty for a passed one.
    pub signature: String,
    /// What else should be known, a line each; every one becomes a warning of the run.
    pub notes: Vec<String>,
    /// Steps and tests that failed and that failed before any change, too: `lane/step`, `lane/step: test`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_before: Vec<String>,
    /// The attempt whose verdict this one repeats: all files are as they were then, so the checks were not run again. 0: the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged_since: Option<u32>,
    /// The packages installed for the checks, where the dependencies of the work differ from the base's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<Box<Installs>>,
    /// What a pass rests on. A pass of an earlier version of fledge has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Box<Proof>>,
}

/// The packages installed for the checks of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Installs {
    /// The commands, as they were derived from the manifests and lock files.
    pub commands: Vec<String>,
    /// The packages that were not there before, by name and version, sorted, as far as the package manager leaves records.
    pub packages: Vec<String>,
}

/// What a pass rests on: this tree, and no other, passed these lanes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Proof {
    /// The tree that was there before the agent.
    pub base: TreeId,
    /// The tree that passed.
    pub tree: TreeId,
    /// The digest of the frozen lanes.
    pub lanes: String,
    /// Where they ran: `clean`, or `in-place` when one of them ran in the workspace itself.
    pub room: String,
    /// The wall around them: `bubblewrap`, `landlock`, `off`.
    pub sandbox: String,
    /// How many tests ran, where that is known.
    pub tests: Option<u64>,
    /// How many ran on the base, with which they were compared; absent where it was not judged, or counts none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests_before: Option<u64>,
    /// How many of the tests are known by name, so that each test of the base was looked for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tests_by_name: u64,
    /// How many planted failures were seen.
    pub canaries: u64,
    /// How many lanes passed that only the gate knows.
    pub held_out: u64,
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
    /// A step ran and said no, or ran out of time.
    Failed,
    /// A step could not run. Not the agent's fault, and never told to it.
    Errored,
    /// Something that defines the gate was changed.
    Tampered,
}

/// A protected path that was changed during the run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The path, relative to the workspace, with `/` between its parts.
    pub path: String,
    /// What happened to it: `added`, `changed`, `removed`.
    pub change: String,
    /// The rule that protects it.
    pub rule: String,
}

/// Why the checks are not run on an attempt whose files are those of an earlier one; 0 is the base.
pub fn as_judged(attempt: u32) -> String {
    match attempt {
        0 => "no file differs from the base".into(),
        attempt => format!("all files are as in attempt {attempt}"),
    }
}

/// The most failures of before that are named in one line.
const BEFORE_NAMED: usize = 20;

/// How one step of a lane ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StepReport {
    /// The lane's name.
    pub lane: String,
    /// The step's name.
    pub step: String,
    /// The command line as the lane has it.
    pub command: String,
    /// How it ended.
    pub status: StepStatus,
    /// How often it was started.
    pub tries: u32,
    /// The exit code, when it exited.
    pub exit_code: Option<i32>,
    /// The signal that ended it, when one did.
    pub signal: Option<i32>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The file with its whole output, when there is one.
    pub log: Option<String>,
    /// The part of the output that explains the result: valid text, a few KiB at most.
    pub excerpt: String,
    /// What else is to be said in one line (why it could not run, what it left behind), empty when nothing is.
    pub note: String,
    /// What the step's own test report says, when the lane names one that could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<Box<TestSummary>>,
}

/// The whole output of a step of a gate run, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepLog {
    /// The attempt that was judged; 0 is what was there before any change.
    pub attempt: u32,
    /// The lane's name.
    pub lane: String,
    /// The step's name.
    pub step: String,
    /// How the step ended.
    pub status: StepStatus,
    /// The file.
    pub path: String,
}

/// What a test report says, in short.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TestSummary {
    /// How many tests there were, and how they ended.
    pub counts: TestCounts,
    /// The tests that failed, in the order of the report: the first hundred.
    pub failing: Vec<TestCase>,
}

/// How many tests ended how. What is in none of the last three passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TestCounts {
    /// All tests.
    pub tests: u64,
    /// Those whose check said no.
    pub failures: u64,
    /// Those that broke before they could check.
    pub errors: u64,
    /// Those that were not run.
    pub skipped: u64,
}

/// One test of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TestCase {
    /// The class, module or file it belongs to; empty when the report names none.
    pub suite: String,
    /// Its name.
    pub name: String,
    /// The file it stands in, as the report has it.
    pub file: Option<String>,
    /// The line it stands in, from 1.
    pub line: Option<u32>,
    /// How long it took, in milliseconds.
    pub duration_ms: Option<u64>,
    /// How it ended.
    pub status: TestStatus,
    /// Why it failed or was skipped: valid text, 1 KiB at most.
    pub message: String,
}

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TestStatus {
    /// It passed.
    Passed,
    /// Its check said no.
    Failed,
    /// It broke before it could check.
    Errored,
    /// It was not run.
    Skipped,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Exit code 0.
    Passed,
    /// Exit code 0, but not at the first try.
    Flaky,
    /// It failed, and the lane says that this is only reported.
    AllowedFailure,
    /// It exited with another code, or by a signal.
    Failed,
    /// It ran out of time and was killed.
    TimedOut,
    /// It could not be started.
    Errored,
    /// It was stopped because another step failed, or the run was cancelled.
    Cancelled,
    /// It was left out on purpose: its conditions do not hold, or it was not selected.
    Skipped,
    /// It was to run, but the lane ended before, or what it needs did not pass.
    NotRun,
}

impl StepStatus {
    /// The word used everywhere: output, JSON, reports.
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

    /// Whether a step failed by itself: it was not stopped because of another, and the lane does not allow it.
    pub fn is_failure(self) -> bool {
        match self {
            Self::Failed | Self::TimedOut | Self::Errored => true,
            Self::Passed | Self::Flaky | Self::AllowedFailure | Self::Cancelled | Self::Skipped | Self::NotRun => false,
        }
    }
}

/// A gate while it runs, step by step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepProgress {
    /// A step was started.
    Started {
        /// The lane's name.
        lane: String,
        /// The step's name.
        step: String,
        /// The command line.
        command: String,
    },
    /// A step printed a line; valid text, without control characters.
    Output {
        /// The lane's name.
        lane: String,
        /// The step's name.
        step: String,
        /// The line.
        line: String,
    },
    /// A step failed and is tried again.
    Retried(StepReport),
    /// A step ended, or will not be started.
    Ended(StepReport),
}

impl Verdict {
    /// The failures that were there before any change, in one line; `None` where there were none.
    pub fn told_before(&self) -> Option<String> {
        let (named, more) = self.failed_before.split_at(self.failed_before.len().min(BEFORE_NAMED));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        (!named.is_empty()).then(|| format!("failed before any change, too: {}{more}", named.join(", ")))
    }

    /// Whether the gate passed.
    pub fn passed(&self) -> bool {
        self.ruling == Ruling::Passed
    }

    /// Where the whole output of its steps is, as that of an attempt.
    pub fn logs(&self, attempt: u32) -> impl Iterator<Item = StepLog> {
        self.steps.iter().filter_map(move |step| {
            let StepReport { lane, step, status, log, .. } = step.clone();
            Some(StepLog { attempt, lane, step, status, path: log? })
        })
    }

    /// How long the gate took.
    pub fn duration(&self) -> Duration {
        Duration::from_millis(self.duration_ms)
    }
}

/// What the report says about verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verification {
    /// The last verdict passed.
    Passed,
    /// There was no gate, on purpose.
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

/// Who asked for the run to stop.
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
