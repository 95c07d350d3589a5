//! Everything that a run may ask for, in the imperative. Plain data: the driver does it and answers with an event.

use super::query::Query;
use super::watch::AgentEvent;
use crate::chat::ToolCall;
use crate::id::{CallId, TreeId};
use crate::limits::Limits;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Something the machine wants done. Each action with a `call` is answered by one event that carries it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum Action {
    /// Freeze the gate, load specs and context, make the first message.
    Plan { call: CallId },
    /// Send the conversation to the model with this place in the task's list; `most`: the most tokens that the answer may have, where that is
    /// not left to what is configured.
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
    /// Run a sub-agent, which may spend so much; `None`: an older program did not say.
    RunChild {
        call: CallId,
        input: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<Limits>,
    },
    /// Run the hooks that follow a turn in which something may have changed.
    RunHooks { call: CallId },
    /// Look up what the model asked for in prose.
    AnswerQuery { call: CallId, query: Query },
    /// Summarise the conversation's first `upto` messages, in at most so many tokens; `None`: an older program did not say.
    Compact {
        call: CallId,
        upto: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        most: Option<u64>,
    },
    /// Run the frozen gate.
    RunGate { call: CallId, attempt: u32 },
    /// Bring the verified tree, made from this base, to where it belongs.
    Deliver { call: CallId, tree: TreeId, base: TreeId },
    /// Write the report.
    SaveReport { call: CallId },
    /// Stop every effect in flight, and hand over what had ended by then.
    AbortInFlight,
    /// Tell whoever watches.
    Emit { event: AgentEvent },
}

impl Action {
    /// The call that an answer will carry.
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

    /// Whether it cannot be taken back or costs money, so that what led to it must be safe on disk before it is done.
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

    /// The action's name, as the transition table prints it.
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
