//! Outcomes of the jobs of a batch. They are plain data and are stored, so that a resume does not
//! repeat ended jobs.

use crate::id::{RunId, TreeId};
use crate::report::{is_by_exit_codes_alone, proof_of};
use crate::run::{TaskResult, Workplace, WorkplaceState};
use crate::verdict::{HeldBack, Reason, StopCause, Verification};
use serde::{Deserialize, Serialize};

/// Characters kept of the model's last text.
const SUMMARY: usize = 4000;
/// The maximum number of changed paths that are kept.
const FILES: usize = 200;

/// A job that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FinishedJob {
    /// The name of the job, unique in its batch.
    pub job: String,
    /// The title of its task.
    pub title: String,
    /// The number of runs started for it.
    pub tries: u32,
    /// The known cost of all its runs, in millionths of a US dollar.
    pub usd_micros: u64,
    /// True if another candidate of its race won. The outcome is shown, but does not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beaten: bool,
    /// The end of the job.
    pub end: JobEnding,
}

/// The end of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobEnding {
    /// With a run that ended.
    Ran(Box<RunSummary>),
    /// Without a run.
    NotRun(NotRunReason),
}

/// The main data of a run's result. The report has the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RunSummary {
    /// The id of the run.
    pub run: RunId,
    /// The reason why the run ended.
    pub reason: Reason,
    /// The exit code for this reason.
    pub exit_code: u8,
    /// True if the gate passed, or was skipped on purpose.
    pub verified: bool,
    /// The result of the gate.
    pub verification: Verification,
    /// True if the gate passed by exit codes alone: no test was counted or named, and no canary was
    /// seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exit_codes_alone: bool,
    /// True if the run ended because of a stop request.
    pub cancelled: bool,
    /// One line on why the run ended.
    pub message: String,
    /// The model's last text, shortened.
    pub summary: String,
    /// Attempts that reached the gate.
    pub attempts: u64,
    /// Model calls that completed.
    pub turns: u64,
    /// Input tokens.
    pub tokens_in: u64,
    /// Output tokens.
    pub tokens_out: u64,
    /// The tokens among these that no provider counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub estimated_tokens: u64,
    /// The cost, in millionths of a US dollar; `None` if no price is known.
    pub usd_micros: Option<u64>,
    /// Time from start to end, in milliseconds.
    pub duration_ms: u64,
    /// Paths that differ from the base. If the difference is unknown, paths that file tools
    /// changed.
    pub files_changed: Vec<String>,
    /// The tree that passed the gate.
    pub tree: Option<TreeId>,
    /// The commit of that tree.
    pub commit: Option<String>,
    /// The full name of the commit's branch.
    pub branch: Option<String>,
    /// The run's own worktree, and its state at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Workplace>,
    /// Changes of protected paths that did not become part of the work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<HeldBack>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl RunSummary {
    /// Returns the worktree if it still exists.
    pub fn left(&self) -> Option<&Workplace> {
        let stays = |worktree: &&Workplace| matches!(worktree.state, WorkplaceState::Kept | WorkplaceState::Unclear);
        self.worktree.as_ref().filter(stays)
    }
}

/// The reason why a job ended without a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NotRunReason {
    /// It needs these jobs, and they were not verified.
    Need(Vec<String>),
    /// The money limit of the batch or of the race was reached.
    Money,
    /// Another job was not verified, and the batch ends at the first of these.
    FailFast,
    /// Another candidate was verified first.
    Lost,
    /// The batch was stopped.
    Stopped(StopCause),
    /// The job could not begin.
    #[expect(missing_docs, reason = "the fields are named after what they hold")]
    Refused { reason: Reason, message: String },
}

/// The result of a job in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// The gate passed, or was skipped on purpose.
    Verified,
    /// The gate failed, or a limit was reached: the attempt did not succeed.
    Failed,
    /// The work could not be judged, or verified work could not be delivered.
    Errored,
    /// The run was stopped.
    Cancelled,
    /// A job that it needs was not verified.
    Skipped,
    /// The job did not begin.
    NotStarted,
}

impl JobStatus {
    /// All values, in the order of a summary.
    pub const ALL: [Self; 6] =
        [Self::Verified, Self::Failed, Self::Errored, Self::Cancelled, Self::Skipped, Self::NotStarted];

    /// Returns the word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Failed => "failed",
            Self::Errored => "errored",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
            Self::NotStarted => "not started",
        }
    }

    /// Returns true if a resume keeps this outcome. Verdicts and reached limits are final; all
    /// other jobs are repeated.
    pub fn stays(self) -> bool {
        match self {
            Self::Verified | Self::Failed => true,
            Self::Errored | Self::Cancelled | Self::Skipped | Self::NotStarted => false,
        }
    }
}

impl FinishedJob {
    /// Returns true if the gate passed, or was skipped on purpose.
    pub fn is_verified(&self) -> bool {
        self.standing() == JobStatus::Verified
    }

    /// Returns how the job ended, in one word.
    pub fn standing(&self) -> JobStatus {
        match &self.end {
            JobEnding::Ran(ran) => ran.standing(),
            JobEnding::NotRun(NotRunReason::Need(_)) => JobStatus::Skipped,
            JobEnding::NotRun(
                NotRunReason::Money | NotRunReason::FailFast | NotRunReason::Lost | NotRunReason::Stopped(_),
            ) => JobStatus::NotStarted,
            JobEnding::NotRun(NotRunReason::Refused { .. }) => JobStatus::Errored,
        }
    }

    /// Returns the exit code of the job, as for a single run. It is 0 for a job that was left out
    /// because of another job, since that job has its own code.
    pub fn exit_code(&self) -> u8 {
        match &self.end {
            _ if self.beaten => 0,
            JobEnding::Ran(ran) => ran.exit_code,
            JobEnding::NotRun(NotRunReason::Need(_) | NotRunReason::FailFast | NotRunReason::Lost) => 0,
            JobEnding::NotRun(NotRunReason::Money) => Reason::BudgetMoney.row().exit_code,
            JobEnding::NotRun(NotRunReason::Stopped(cause)) => Reason::Cancelled.exit_code(Some(*cause)),
            JobEnding::NotRun(NotRunReason::Refused { reason, .. }) => reason.row().exit_code,
        }
    }

    /// Returns true if a further try could end differently, because the work was not judged. A
    /// verdict of the gate is final.
    pub fn is_worth_another_try(&self) -> bool {
        let reason = match &self.end {
            JobEnding::Ran(ran) => ran.reason,
            JobEnding::NotRun(NotRunReason::Refused { reason, .. }) => *reason,
            JobEnding::NotRun(
                NotRunReason::Need(_)
                | NotRunReason::Money
                | NotRunReason::FailFast
                | NotRunReason::Lost
                | NotRunReason::Stopped(_),
            ) => {
                return false;
            }
        };
        matches!(reason, Reason::ProviderFailed | Reason::EmptyResponse | Reason::IoError | Reason::Internal)
    }

    /// Returns true if the gate passed by exit codes alone.
    pub fn is_by_exit_codes_alone(&self) -> bool {
        matches!(&self.end, JobEnding::Ran(ran) if ran.exit_codes_alone)
    }

    /// Describes in one line how the job ended.
    pub fn says(&self) -> String {
        match &self.end {
            JobEnding::Ran(ran) if self.beaten && (ran.cancelled || ran.verified) => {
                "another candidate was verified first".into()
            }
            JobEnding::Ran(ran) if ran.verified => ran.reason.row().meaning.to_owned(),
            JobEnding::Ran(ran) => ran.message.strip_prefix("failed: ").unwrap_or(&ran.message).to_owned(),
            JobEnding::NotRun(NotRunReason::Need(jobs)) => format!("needed but not verified: {}", jobs.join(", ")),
            JobEnding::NotRun(NotRunReason::Money) => "the batch has reached its money limit".into(),
            JobEnding::NotRun(NotRunReason::FailFast) => "fail-fast: another job was not verified".into(),
            JobEnding::NotRun(NotRunReason::Lost) => "another candidate was verified first".into(),
            JobEnding::NotRun(NotRunReason::Stopped(_)) => "the batch stopped before this job began".into(),
            JobEnding::NotRun(NotRunReason::Refused { message, .. }) => message.clone(),
        }
    }
}

impl RunSummary {
    /// Extracts the main data of a result.
    pub fn from_result(result: &TaskResult) -> Self {
        let usage = &result.usage.total;
        Self {
            run: result.run.clone(),
            reason: result.reason,
            exit_code: result.exit_code,
            verified: result.verified,
            verification: result.verification,
            exit_codes_alone: proof_of(result).is_some_and(is_by_exit_codes_alone),
            cancelled: result.cancelled,
            message: result.message.clone(),
            summary: result.summary.chars().take(SUMMARY).collect(),
            attempts: result.attempts.len() as u64,
            turns: result.turns,
            tokens_in: usage.input_tokens,
            tokens_out: usage.output_tokens,
            estimated_tokens: usage.estimated_tokens,
            usd_micros: usage.cost_micros,
            duration_ms: result.duration_ms,
            files_changed: result.changed_paths().take(FILES).map(str::to_owned).collect(),
            tree: result.tree.clone(),
            commit: result.commit.clone(),
            branch: result.branch.clone(),
            worktree: result.worktree.clone(),
            protected: result.protected.clone(),
        }
    }

    /// Returns how the run ended, in one word.
    pub fn standing(&self) -> JobStatus {
        match self.reason {
            Reason::Verified | Reason::Skipped => JobStatus::Verified,
            Reason::Cancelled => JobStatus::Cancelled,
            Reason::GateFailed
            | Reason::Stuck
            | Reason::MaxTurns
            | Reason::BudgetTokens
            | Reason::BudgetMoney
            | Reason::BudgetTime
            | Reason::LoopDetected
            | Reason::GateTampered => JobStatus::Failed,
            Reason::BadInput
            | Reason::PlanFailed
            | Reason::ProviderFailed
            | Reason::Refused
            | Reason::EmptyResponse
            | Reason::ModelProtocol
            | Reason::GateErrored
            | Reason::NotDelivered
            | Reason::NoSandbox
            | Reason::Blocked
            | Reason::IoError
            | Reason::Internal => JobStatus::Errored,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_resume_does_again_is_what_the_documentation_says() {
        let page = include_str!("../../docs/reference/batch.md");
        for standing in JobStatus::ALL {
            let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", standing.word())));
            let last = row.and_then(|row| row.trim_end_matches(['|', ' ']).rsplit('|').next()).map(str::trim);
            assert_eq!(last, Some(if standing.stays() { "stays" } else { "is done again" }), "{}", standing.word());
        }
    }
}
