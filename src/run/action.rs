//! Actions that a run asks for. They are plain data: the driver carries each one out and answers
//! with an event.

use super::query::ModelQuery;
use super::watch::AgentEvent;
use crate::chat::ToolCall;
use crate::id::{CallId, TreeId};
use crate::limits::Limits;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An action that the machine wants done. For each action with a `call`, the driver returns one
/// event with the same `call`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum Action {
    /// Freeze the gate, load specs and context, and build the first message.
    Plan { call: CallId },
    /// Send the conversation to a model. `model` is its index in the task's list. `most` is the
    /// largest number of tokens for the answer; `None` leaves that to the configuration.
    CallModel {
        call: CallId,
        model: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        most: Option<u64>,
    },
    /// Ask a person whether this call may run.
    AskConfirmation { call: CallId, tool: ToolCall },
    /// Run a tool.
    RunTool { call: CallId, tool: String, input: Value },
    /// Run a sub-agent within these limits.
    RunChild { call: CallId, input: Value, limits: Limits },
    /// Run the hooks that follow a turn in which files may have changed.
    RunHooks { call: CallId },
    /// Look up the information that the model asked for in prose.
    AnswerQuery { call: CallId, query: ModelQuery },
    /// Summarise the first `upto` messages of the conversation in at most `most` tokens.
    Compact { call: CallId, upto: usize, most: u64 },
    /// Run the frozen gate.
    RunGate { call: CallId, attempt: u32 },
    /// Deliver the verified tree. `base` is the tree that the work began from.
    Deliver { call: CallId, tree: TreeId, base: TreeId },
    /// Write the report.
    SaveReport { call: CallId },
    /// Stop every effect in flight, and return the results that are already complete.
    AbortInFlight,
    /// Send an event to the watchers of the run.
    Emit { event: AgentEvent },
}

impl Action {
    /// Returns the call that the answer to this action carries, if it expects an answer.
    pub fn call(&self) -> Option<CallId> {
        match self {
            Self::Plan { call }
            | Self::CallModel { call, .. }
            | Self::AskConfirmation { call, .. }
            | Self::RunTool { call, .. }
            | Self::RunChild { call, .. }
            | Self::RunHooks { call }
            | Self::AnswerQuery { call, .. }
            | Self::Compact { call, .. }
            | Self::RunGate { call, .. }
            | Self::Deliver { call, .. }
            | Self::SaveReport { call } => Some(*call),
            Self::AbortInFlight | Self::Emit { .. } => None,
        }
    }

    /// Returns true if the action costs money or cannot be undone. The journal must be synced
    /// before the driver carries it out.
    pub fn is_irrevocable(&self) -> bool {
        match self {
            Self::CallModel { .. }
            | Self::RunTool { .. }
            | Self::RunChild { .. }
            | Self::RunHooks { .. }
            | Self::Compact { .. }
            | Self::Deliver { .. }
            | Self::SaveReport { .. } => true,
            Self::Plan { .. }
            | Self::AskConfirmation { .. }
            | Self::AnswerQuery { .. }
            | Self::RunGate { .. }
            | Self::AbortInFlight
            | Self::Emit { .. } => false,
        }
    }

    /// Returns the name of the action, as the transition table prints it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Plan { .. } => "Plan",
            Self::CallModel { .. } => "CallModel",
            Self::AskConfirmation { .. } => "AskConfirmation",
            Self::RunTool { .. } => "RunTool",
            Self::RunChild { .. } => "RunChild",
            Self::RunHooks { .. } => "RunHooks",
            Self::AnswerQuery { .. } => "AnswerQuery",
            Self::Compact { .. } => "Compact",
            Self::RunGate { .. } => "RunGate",
            Self::Deliver { .. } => "Deliver",
            Self::SaveReport { .. } => "SaveReport",
            Self::AbortInFlight => "AbortInFlight",
            Self::Emit { .. } => "Emit",
        }
    }
}
