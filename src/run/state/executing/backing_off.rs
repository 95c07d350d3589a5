//! Pause before an effect is tried again.

use super::super::NextState;
use super::turn::ToolTurn;
use crate::elapsed::Elapsed;
use crate::run::context::RunContext;
use crate::run::watch::AgentEvent;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Waiting until `due`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct BackingOff {
    pub(in crate::run::state) due: Elapsed,
    /// Tries so far.
    tries: u32,
    origin: RetryOrigin,
}

/// The effect that is tried again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RetryOrigin {
    /// The model call.
    Model { compacted: bool },
    /// The summary of the conversation.
    Summary,
    /// The first queued call of a turn: a read-only tool with a transient failure.
    Tool { turn: ToolTurn },
}

impl BackingOff {
    /// Starts a pause. `what` names the effect for people.
    pub(super) fn start(
        origin: RetryOrigin,
        what: &str,
        tries: u32,
        wait: Duration,
        error: &str,
        cx: &mut RunContext,
    ) -> Self {
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        cx.emit(AgentEvent::Retry { what: what.into(), tries, wait_ms, error: error.into() });
        Self { due: cx.now.plus(wait), tries, origin }
    }

    pub(in crate::run::state) fn over(&mut self) -> NextState {
        let tries = self.tries + 1;
        match &mut self.origin {
            RetryOrigin::Model { compacted } => NextState::TryModel { tries, compacted: *compacted },
            RetryOrigin::Summary => NextState::Compact { tries },
            RetryOrigin::Tool { turn } => NextState::UseTools(std::mem::take(turn)),
        }
    }

    pub(in crate::run::state) fn into_turn(self) -> Option<ToolTurn> {
        match self.origin {
            RetryOrigin::Model { .. } | RetryOrigin::Summary => None,
            RetryOrigin::Tool { turn } => Some(turn),
        }
    }
}
