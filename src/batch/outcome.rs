//! What became of each job of a batch: plain data, kept so that nothing that is over is done twice.

use crate::id::{RunId, TreeId};
use crate::report::{is_by_exit_codes_alone, proof_of};
use crate::run::{TaskResult, Workplace, WorkplaceState};
use crate::verdict::{HeldBack, Reason, StopCause, Verification};
use serde::{Deserialize, Serialize};

/// Characters that are kept of what a model said last.
const SUMMARY: usize = 4000;
/// Paths that are kept of those that were changed.
const FILES: usize = 200;

/// A job that is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// The job's name, which no other of its batch has.
    pub job: String,
    /// The title of its task.
    pub title: String,
    /// How often a run was begun for it.
    pub tries: u32,
    /// What its runs have cost in all, in millionths of a US dollar, as far as that is known.
    pub usd_micros: u64,
    /// Whether another candidate of its race was verified: what became of this one is told, and counts for nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beaten: bool,
    /// How it ended.
    pub end: End,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// With a run that ended.
    Ran(Box<Ran>),
    /// Without any.
    NotRun(NotRun),
}

/// What is kept of a run's result: the rest is in its report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Ran {
    /// The run.
    pub run: RunId,
    /// Why it ended.
    pub reason: Reason,
    /// The exit code that goes with it.
    pub exit_code: u8,
    /// Whether the gate has passed, or was skipped on purpose.
    pub verified: bool,
    /// What became of the gate.
    pub verification: Verification,
    /// Whether the gate passed by exit codes alone: no test was counted or named, and no canary was seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exit_codes_alone: bool,
    /// Whether somebody asked for it to stop.
    pub cancelled: bool,
    /// One line on why it ended.
    pub message: String,
    /// What the model said last.
    pub summary: String,
    /// Attempts that reached the gate.
    pub attempts: u64,
    /// Model calls that completed.
    pub turns: u64,
    /// Tokens that models read and wrote.
    pub tokens_in: u64,
    /// Tokens that models wrote.
    pub tokens_out: u64,
    /// What it cost, in millionths of a US dollar; `None` where no price is known.
    pub usd_micros: Option<u64>,
    /// From start to end, in milliseconds.
    pub duration_ms: u64,
    /// Paths that differ from the base; where that is not known, those that file tools changed.
    pub files_changed: Vec<String>,
    /// The tree that the gate has passed.
    pub tree: Option<TreeId>,
    /// The commit that it became.
    pub commit: Option<String>,
    /// The full name of the branch that this is on.
    pub branch: Option<String>,
    /// The worktree that it had for itself, and what is left of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Workplace>,
    /// Changes of protected paths that did not become part of the work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<HeldBack>,
}

impl Ran {
    /// What is left of its worktree, where that is there still.
    pub fn left(&self) -> Option<&Workplace> {
        let stays = |worktree: &&Workplace| matches!(worktree.state, WorkplaceState::Kept | WorkplaceState::Unclear);
        self.worktree.as_ref().filter(stays)
    }
}

/// Why no run ended for a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NotRun {
    /// These jobs were not verified, and it needs them.
    Need(Vec<String>),
    /// The batch's money is spent.
    Money,
    /// Another one was not verified, and the first of these ends the batch.
    FailFast,
    /// Another candidate was verified first.
    Lost,
    /// Somebody asked for the batch to stop.
    Stopped(StopCause),
    /// It could not be begun.
    #[expect(missing_docs, reason = "the fields are named after what they hold")]
    Refused { reason: Reason, message: String },
}

/// How a job ended, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The gate has passed, or was skipped on purpose.
    Verified,
    /// The gate has said no, or a limit was reached: what was tried did not succeed.
    Failed,
    /// It could not be said whether it succeeds, or what succeeded not be delivered.
    Errored,
    /// It was cut off.
    Cancelled,
    /// What it needs was not verified.
    Skipped,
    /// It was not begun.
    NotStarted,
}

impl Standing {
    /// Every one, in the order of a summary.
    pub const ALL: [Self; 6] =
        [Self::Verified, Self::Failed, Self::Errored, Self::Cancelled, Self::Skipped, Self::NotStarted];

    /// Its word, as people read it.
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

    /// Whether who goes on with a batch has such a job behind them; any other is done again. A verdict and a limit are results.
    pub fn stays(self) -> bool {
        match self {
            Self::Verified | Self::Failed => true,
            Self::Errored | Self::Cancelled | Self::Skipped | Self::NotStarted => false,
        }
    }
}

impl Outcome {
    /// Whether the gate has passed, or was skipped on purpose.
    pub fn is_verified(&self) -> bool {
        self.standing() == Standing::Verified
    }

    /// How it ended, in one word.
    pub fn standing(&self) -> Standing {
        match &self.end {
            End::Ran(ran) => ran.standing(),
            End::NotRun(NotRun::Need(_)) => Standing::Skipped,
            End::NotRun(NotRun::Money | NotRun::FailFast | NotRun::Lost | NotRun::Stopped(_)) => Standing::NotStarted,
            End::NotRun(NotRun::Refused { .. }) => Standing::Errored,
        }
    }

    /// The exit code that a run of its own would have had. A job that was left out has none of its own: what it was left out for has one.
    pub fn exit_code(&self) -> u8 {
        match &self.end {
            _ if self.beaten => 0,
            End::Ran(ran) => ran.exit_code,
            End::NotRun(NotRun::Need(_) | NotRun::FailFast | NotRun::Lost) => 0,
            End::NotRun(NotRun::Money) => Reason::BudgetMoney.row().exit_code,
            End::NotRun(NotRun::Stopped(cause)) => Reason::Cancelled.exit_code(Some(*cause)),
            End::NotRun(NotRun::Refused { reason, .. }) => reason.row().exit_code,
        }
    }

    /// Whether the same may end otherwise when it is tried again: the work was not judged. What a gate has said is a result.
    pub fn is_worth_another_try(&self) -> bool {
        let reason = match &self.end {
            End::Ran(ran) => ran.reason,
            End::NotRun(NotRun::Refused { reason, .. }) => *reason,
            End::NotRun(NotRun::Need(_) | NotRun::Money | NotRun::FailFast | NotRun::Lost | NotRun::Stopped(_)) => {
                return false;
            }
        };
        matches!(reason, Reason::ProviderFailed | Reason::EmptyResponse | Reason::IoError | Reason::Internal)
    }

    /// Whether the gate passed by exit codes alone.
    pub fn is_by_exit_codes_alone(&self) -> bool {
        matches!(&self.end, End::Ran(ran) if ran.exit_codes_alone)
    }

    /// One line on how it ended, for people.
    pub fn says(&self) -> String {
        match &self.end {
            End::Ran(ran) if self.beaten && (ran.cancelled || ran.verified) => {
                "another candidate was verified first".into()
            }
            End::Ran(ran) if ran.verified => ran.reason.row().meaning.to_owned(),
            End::Ran(ran) => ran.message.strip_prefix("failed: ").unwrap_or(&ran.message).to_owned(),
            End::NotRun(NotRun::Need(jobs)) => format!("it needs {}, not verified", jobs.join(", ")),
            End::NotRun(NotRun::Money) => "the batch's money is spent".into(),
            End::NotRun(NotRun::FailFast) => "another one was not verified before".into(),
            End::NotRun(NotRun::Lost) => "another candidate was verified first".into(),
            End::NotRun(NotRun::Stopped(_)) => "the batch was stopped before".into(),
            End::NotRun(NotRun::Refused { message, .. }) => message.clone(),
        }
    }
}

impl Ran {
    /// What is kept of a result.
    pub fn of(result: &TaskResult) -> Self {
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

    /// How it ended, in one word.
    pub fn standing(&self) -> Standing {
        match self.reason {
            Reason::Verified | Reason::Skipped => Standing::Verified,
            Reason::Cancelled => Standing::Cancelled,
            Reason::GateFailed
            | Reason::Stuck
            | Reason::MaxTurns
            | Reason::BudgetTokens
            | Reason::BudgetMoney
            | Reason::BudgetTime
            | Reason::LoopDetected
            | Reason::GateTampered => Standing::Failed,
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
            | Reason::Internal => Standing::Errored,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_resume_does_again_is_what_the_documentation_says() {
        let page = include_str!("../../docs/batch.md");
        for standing in Standing::ALL {
            let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", standing.word())));
            let last = row.and_then(|row| row.trim_end_matches(['|', ' ']).rsplit('|').next()).map(str::trim);
            assert_eq!(last, Some(if standing.stays() { "stays" } else { "is done again" }), "{}", standing.word());
        }
    }
}
