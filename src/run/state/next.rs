//! Transitions between states, with the data that each one needs.

use super::executing::{BackingOff, ToolTurn};
use super::reporting::EndedRun;
use crate::id::CallId;
use crate::run::event::DoneTool;
use crate::run::query::ModelQuery;
use crate::verdict::{Reason, StopCause, Verdict};

/// A transition.
#[derive(Debug)]
pub(in crate::run) enum NextState {
    /// Go to Planning.
    Plan,
    /// Go to Executing, for a new attempt.
    Begin,
    /// Call the model if the limits allow it. Compact the conversation first if it is long.
    CallModel,
    /// Make this try of a model call.
    TryModel { tries: u32, compacted: bool },
    /// Pause before the next try.
    BackOff(BackingOff),
    /// Run the tools of a turn.
    UseTools(ToolTurn),
    /// Run the hooks after a turn with these calls.
    RunHooks(Vec<DoneTool>),
    /// Answer a question asked in prose.
    Answer(ModelQuery),
    /// Make this try of a compaction.
    Compact { tries: u32 },
    /// Go to Verifying.
    Verify,
    /// Count a failed attempt without running the gate: the final answer is wrong for this reason.
    Reject(String),
    /// Accept the verdict on the base: the gate passed before any change.
    Accept(Box<Verdict>),
    /// End the run, with a delivery if one is due.
    End(RunEnding),
    /// Write the report.
    Report(RunEnding),
    /// Go to Idle.
    Rest(EndedRun),
}

/// The data for the end of a run.
#[derive(Debug)]
pub(in crate::run) struct RunEnding {
    pub(in crate::run) reason: Reason,
    pub(in crate::run) message: String,
    pub(in crate::run) stopped_by: Option<StopCause>,
    /// The model's text in an unfinished answer.
    pub(in crate::run) partial_text: String,
    /// The tools in progress.
    pub(in crate::run) turn: Option<ToolTurn>,
    /// Calls in flight that must be stopped.
    pub(in crate::run) late: Vec<CallId>,
}

impl NextState {
    /// Ends the run by the machine's own decision, with nothing in flight.
    pub(in crate::run) fn end(reason: Reason, message: impl Into<String>) -> Self {
        let partial_text = String::new();
        Self::End(RunEnding {
            reason,
            message: message.into(),
            stopped_by: None,
            partial_text,
            turn: None,
            late: Vec::new(),
        })
    }
}
