//! Question to a person whether a call may run. No answer in time means no.

use super::super::NextState;
use super::turn::ToolTurn;
use crate::elapsed::Elapsed;
use crate::id::CallId;
use crate::run::action::Action;
use crate::run::context::RunContext;
use crate::run::watch::AgentEvent;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Waiting for an answer about the call at `place` of the turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Confirming {
    pub(in crate::run::state) call: CallId,
    pub(in crate::run::state) due: Option<Elapsed>,
    place: usize,
    pub(in crate::run::state) turn: ToolTurn,
}

impl Confirming {
    pub(in crate::run::state) fn start(turn: ToolTurn, place: usize, cx: &mut RunContext) -> Self {
        let call = cx.call();
        let due = cx.spec.confirm_within_ms.map(|within| cx.now.plus(Duration::from_millis(within)));
        if let Some(tool) = turn.tool(place).cloned() {
            cx.emit(AgentEvent::Confirmation { name: tool.name.clone(), args: tool.input.to_value(), approved: None });
            cx.ask(Action::AskConfirmation { call, tool });
        }
        Self { call, due, place, turn }
    }

    pub(in crate::run::state) fn answered(&mut self, approved: bool, note: &str, cx: &mut RunContext) -> NextState {
        let mut turn = std::mem::take(&mut self.turn);
        if let Some(tool) = turn.tool(self.place) {
            let (name, args) = (tool.name.clone(), tool.input.to_value());
            cx.emit(AgentEvent::Confirmation { name, args, approved: Some(approved) });
        }
        if approved {
            turn.approve(self.place);
        } else {
            turn.deny(self.place, format!("denied: {note}"), cx);
        }
        NextState::UseTools(turn)
    }
}
