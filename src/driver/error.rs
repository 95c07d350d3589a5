//! Errors of planning, of runs and of resumed runs. An error of a run that began carries the whole
//! result, so that no work is lost.

use super::JOURNAL_SCHEMA_VERSION;
use crate::id::RunId;
use crate::lane::LaneError;
use crate::limits::LimitName;
use crate::run::TaskResult;
use crate::store::StoreError;
use crate::verdict::{Reason, StopCause};
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
    BadOutputFile(OutputError),
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
            Self::StateInside(_) | Self::BadOutputFile(_) => Err(Reason::BadInput),
            Self::NotBegun(StoreError::KeyTaken { .. }) => Err(Reason::BadInput),
            Self::NotBegun(_) => Err(Reason::IoError),
            Self::NotResumed(fault) => Err(fault.reason()),
            Self::Rests => Err(Reason::Cancelled),
            Self::NeverEnded => Err(Reason::Internal),
        }
    }
}

/// A limit that does not let a run go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message(LimitName::flag))]
pub struct LimitError {
    /// The run.
    pub(super) run: RunId,
    /// The limit.
    pub limit: LimitName,
    pub(super) flaw: LimitFlaw,
}

/// The flaw of a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LimitFlaw {
    /// The run has used more.
    TooLow { value: String, used: String },
    /// The limit ended the run and is not higher now.
    Reached(Reason),
}

impl LimitError {
    /// Describes the error, with the limit named as `name` says.
    pub fn message(&self, name: fn(LimitName) -> &'static str) -> String {
        let (run, limit) = (&self.run, name(self.limit));
        match &self.flaw {
            LimitFlaw::TooLow { value, used } => {
                format!("{limit} {value} is too low: {used} are used by run {run} already")
            }
            LimitFlaw::Reached(reason) => format!("run {run} cannot go on: {}; raise {limit}", reason.row().meaning),
        }
    }
}

/// An error that prevents a resume or a replay.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum ResumeError {
    /// The run does not exist, is damaged, or another process drives it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run ended and was not verified.
    #[error(
        "run {run} has ended ({reason}), so it cannot be resumed; \
         start another run with its conversation: `fledge runs continue {run} \"…\"`"
    )]
    Over { run: RunId, reason: String },
    /// The new limits do not let the run go on.
    #[error(transparent)]
    Limits(#[from] LimitError),
    /// The run has not ended yet.
    #[error("run {run} has not ended: continue it with `fledge runs resume {run}`")]
    NotOver { run: RunId },
    /// The run worked in another folder.
    #[error("run {run} works in {theirs}, not in {ours}")]
    Elsewhere { run: RunId, theirs: String, ours: String },
    /// The run worked with other models.
    #[error("run {run} was started with {theirs}, but the configuration now selects {ours}")]
    OtherModels { run: RunId, theirs: String, ours: String },
    /// The records have a newer format.
    #[error(
        "the journal of run {run} has version {found}, but this fledge supports versions up to {JOURNAL_SCHEMA_VERSION}"
    )]
    Newer { run: RunId, found: u32 },
    /// A record cannot be understood. Number 0 means the terms of the run.
    #[error("cannot parse record {seq} of the journal of run {run}")]
    Unclear { run: RunId, seq: u64, source: serde_json::Error },
    /// The gate from before the agent started is missing or changed. fledge never freezes it again
    /// from files that an agent may have changed.
    #[error("the frozen gate of run {run} is gone: {why}")]
    Gate { run: RunId, why: String },
    /// The report contradicts the journal and cannot be written again.
    #[error("cannot correct the report of run {run}: {why}")]
    Report { run: RunId, why: String },
    /// The run is verified, but its patch cannot be written again.
    #[error("run {run} is verified, but its patch cannot be written again: {why}")]
    Patch { run: RunId, why: String },
    /// A stop was requested before the run continued.
    #[error("run {run} was not resumed: a stop was requested")]
    Stopped { run: RunId, by: StopCause },
    /// The gate or the tools cannot be prepared for now.
    #[error("cannot resume run {run}: {why}")]
    NotReady { run: RunId, why: String },
}

impl ResumeError {
    /// Returns the reason, which determines the exit code.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Store(StoreError::Held { .. }) => Reason::Blocked,
            Self::Store(StoreError::Unknown { .. } | StoreError::Ambiguous { .. } | StoreError::Elsewhere { .. }) => {
                Reason::BadInput
            }
            Self::Over { .. } | Self::NotOver { .. } | Self::Limits(_) => Reason::BadInput,
            Self::Elsewhere { .. } | Self::OtherModels { .. } => Reason::BadInput,
            Self::Stopped { .. } => Reason::Cancelled,
            Self::Gate { .. } | Self::NotReady { .. } => Reason::GateErrored,
            Self::Store(_) | Self::Newer { .. } | Self::Unclear { .. } => Reason::IoError,
            Self::Report { .. } | Self::Patch { .. } => Reason::IoError,
        }
    }
}

/// An error that prevents the planning of a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PlanError {
    /// The reason with which the run ends.
    pub reason: Reason,
    /// The message for people, of one or more lines.
    pub message: String,
    /// The faulty lane with the places in its files, if a lane is the cause.
    pub lane: Option<LaneError>,
    /// The key of the task with the faulty value, and that value, if one value is the cause.
    pub value: Option<(&'static str, String)>,
}

impl PlanError {
    pub(super) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), lane: None, value: None }
    }

    /// Names the key of the task with the faulty value.
    pub(super) fn of_value(self, key: &'static str, value: &str) -> Self {
        Self { value: Some((key, value.to_owned())), ..self }
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(Reason::BadInput, message)
    }

    /// Renames the files of the faulty lane by `name`.
    #[must_use]
    pub fn renamed(self, name: impl Fn(&str) -> String) -> Self {
        match self.lane.clone().map(|lane| lane.renamed(name)) {
            None => self,
            Some(lane) => Self { message: lane.to_string(), lane: Some(lane), ..self },
        }
    }
}
