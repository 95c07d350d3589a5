//! The doors between states, and what must be brought through each.

use super::executing::{BackingOff, ToolTurn};
use super::reporting::Ended;
use crate::id::CallId;
use crate::run::done_tool::DoneTool;
use crate::run::query::Query;
use crate::verdict::{Reason, StopCause, Verdict};

/// A door.
#[derive(Debug)]
pub(in crate::run) enum Next {
    /// To Planning.
    Plan,
    /// To Executing, for a new attempt.
    Begin,
    /// To a model call, if the limits allow it; by way of compaction if the conversation is long.
    CallModel,
    /// To this try of a model call.
    TryModel { tries: u32, compacted: bool },
    /// To a pause.
    BackOff(BackingOff),
    /// To the tools of a turn.
    UseTools(ToolTurn),
    /// To the hooks that follow a turn, which had these calls.
    RunHooks(Vec<DoneTool>),
    /// To a question asked in prose.
    Answer(Query),
    /// To this try of a compaction.
    Compact { tries: u32 },
    /// To Verifying.
    Verify,
    /// By way of Verifying, with a final answer that the gate need not see: this is wrong with it.
    Reject(String),
    /// By way of Verifying, with a verdict on what was there before any change: it passed.
    Accept(Box<Verdict>),
    /// To the end: by way of a delivery where one is due.
    End(Ending),
    /// To the report.
    Report(Ending),
    /// To Idle.
    Rest(Ended),
}

/// What is brought to Reporting.
#[derive(Debug)]
pub(in crate::run) struct Ending {
    pub(in crate::run) reason: Reason,
    pub(in crate::run) message: String,
    pub(in crate::run) stopped_by: Option<StopCause>,
    /// What the model had said of an unfinished answer.
    pub(in crate::run) said: String,
    /// The tools that were under way.
    pub(in crate::run) turn: Option<ToolTurn>,
    /// Calls in flight, to be stopped.
    pub(in crate::run) late: Vec<CallId>,
}

impl Next {
    /// The run ends by its own decision, with nothing in flight.
    pub(in crate::run) fn end(reason: Reason, message: impl Into<String>) -> Self {
        let said = String::new();
        Self::End(Ending { reason, message: message.into(), stopped_by: None, said, turn: None, late: Vec::new() })
    }
}
