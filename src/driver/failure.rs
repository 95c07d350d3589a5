//! Errors of `run_task`. An error of a run that began carries the whole result, so that no work is
//! lost.

use super::resume::ResumeError;
use crate::run::TaskResult;
use crate::store::StoreError;
use crate::verdict::Reason;
use crate::workspace::OutputError;
use std::path::PathBuf;

/// A run that did not end as verified, skipped or cancelled.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The gate failed and no retries are left, or it failed in the same way too often.
    #[error("verification failed: {}", .0.message)]
    VerificationFailed(Box<TaskResult>),
    /// The task, a lane or the configuration is wrong, or the run could not be planned.
    #[error("{}", .0.message)]
    BadInput(Box<TaskResult>),
    /// The provider failed for good, or the model refused, gave an empty answer, or broke the
    /// protocol.
    #[error("the model failed: {}", .0.message)]
    Model(Box<TaskResult>),
    /// A limit was reached, or a loop was found.
    #[error("{}", .0.message)]
    Limit(Box<TaskResult>),
    /// The gate could not run.
    #[error("the gate could not run: {}", .0.message)]
    Gate(Box<TaskResult>),
    /// The work is verified, but could not be committed.
    #[error("{}", .0.message)]
    NotDelivered(Box<TaskResult>),
    /// The resumed run was ended, because what was kept of its frozen gate is gone.
    #[error("the frozen gate of run {} is gone: {why}", .result.run)]
    #[expect(missing_docs, reason = "the fields are named after what they hold")]
    GateLost { result: Box<TaskResult>, why: String },
    /// The gate was tampered with.
    #[error("tampered with: {}", .0.message)]
    Tampered(Box<TaskResult>),
    /// The run is blocked for now and can be resumed.
    #[error("blocked: {}", .0.message)]
    Blocked(Box<TaskResult>),
    /// fledge could not write its own state, or failed internally.
    #[error("{}", .0.message)]
    Own(Box<TaskResult>),
    /// The run never began: its state would be where the agent can write.
    #[error("the state folder `{}` is inside the workspace", .0.display())]
    StateInside(PathBuf),
    /// The run never began: an agent could redirect the path of one of its output files.
    #[error(transparent)]
    NoOutlet(OutputError),
    /// The run never began: its folder or journal could not be created.
    #[error("cannot store the state of a run")]
    NotBegun(#[source] StoreError),
    /// The run was not resumed.
    #[error(transparent)]
    NotResumed(#[from] ResumeError),
    /// The run rests: nothing of it is under way, it has not ended, and a resume continues it.
    #[error("the run is suspended; a resume continues it")]
    Rests,
    /// The driver failed without leaving a result.
    #[error("the run ended without a result")]
    NeverEnded,
}

impl RunError {
    /// Returns the answer of `run_task` for a result, by its reason.
    pub(super) fn judge(result: TaskResult) -> Result<TaskResult, Self> {
        let result = Box::new(result);
        Err(match result.reason {
            Reason::Verified | Reason::Skipped | Reason::Cancelled => return Ok(*result),
            Reason::GateFailed | Reason::Stuck => Self::VerificationFailed(result),
            Reason::BadInput | Reason::PlanFailed => Self::BadInput(result),
            Reason::ProviderFailed | Reason::Refused | Reason::EmptyResponse | Reason::ModelProtocol => {
                Self::Model(result)
            }
            Reason::MaxTurns
            | Reason::BudgetTokens
            | Reason::BudgetMoney
            | Reason::BudgetTime
            | Reason::LoopDetected => Self::Limit(result),
            Reason::GateErrored | Reason::NoSandbox => Self::Gate(result),
            Reason::NotDelivered => Self::NotDelivered(result),
            Reason::GateTampered => Self::Tampered(result),
            Reason::Blocked => Self::Blocked(result),
            Reason::IoError | Reason::Internal => Self::Own(result),
        })
    }

    /// Returns the result, if the run began.
    pub fn result(&self) -> Option<&TaskResult> {
        self.carried().ok()
    }

    /// Returns the reason, which determines the exit code.
    pub fn reason(&self) -> Reason {
        self.carried().map_or_else(|reason| reason, |result| result.reason)
    }

    /// Returns the result or, for a run without one, the reason.
    fn carried(&self) -> Result<&TaskResult, Reason> {
        match self {
            Self::VerificationFailed(result)
            | Self::BadInput(result)
            | Self::Model(result)
            | Self::Limit(result)
            | Self::Gate(result)
            | Self::NotDelivered(result)
            | Self::GateLost { result, .. }
            | Self::Tampered(result)
            | Self::Blocked(result)
            | Self::Own(result) => Ok(result),
            Self::StateInside(_) | Self::NoOutlet(_) => Err(Reason::BadInput),
            Self::NotBegun(StoreError::KeyTaken { .. }) => Err(Reason::BadInput),
            Self::NotBegun(_) => Err(Reason::IoError),
            Self::NotResumed(fault) => Err(fault.reason()),
            Self::Rests => Err(Reason::Cancelled),
            Self::NeverEnded => Err(Reason::Internal),
        }
    }
}
