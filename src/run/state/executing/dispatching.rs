//! Sub-agents of a turn in progress.

use super::super::NextState;
use super::turn::ToolTurn;
use crate::chat::ToolOutcome;
use crate::id::CallId;
use crate::run::bill::RunBill;
use crate::run::context::RunContext;
use crate::run::watch::AgentEvent;
use serde::{Deserialize, Serialize};

/// Waiting for the sub-agents of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Dispatching {
    pub(in crate::run::state) turn: ToolTurn,
}

impl Dispatching {
    pub(in crate::run::state) fn finished(
        &mut self,
        call: CallId,
        outcome: ToolOutcome,
        bill: &RunBill,
        cx: &mut RunContext,
    ) -> NextState {
        cx.charge_child(call, bill);
        cx.emit(AgentEvent::Subagent { finished: true, note: outcome.content.clone() });
        let mut turn = std::mem::take(&mut self.turn);
        turn.note_changed(call, &bill.changes);
        turn.end(call, outcome, cx);
        NextState::UseTools(turn)
    }
}
