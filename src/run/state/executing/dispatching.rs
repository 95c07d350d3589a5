//! Sub-agents of a turn in progress.

use super::super::NextState;
use super::turn::ToolTurn;
use crate::run::bill::RunBill;
use crate::run::context::RunContext;
use crate::run::event::Event;
use crate::run::watch::{AgentEvent, StateName};
use serde::{Deserialize, Serialize};

/// Waiting for the sub-agents of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Dispatching {
    pub(in crate::run::state) turn: ToolTurn,
}

impl Dispatching {
    pub(in crate::run::state) fn on(&mut self, event: Event, cx: &mut RunContext) -> Option<NextState> {
        match event {
            Event::ChildFinished { call, outcome, usage, turns, requests, by_model, changes } => {
                cx.book_child(call, &RunBill { usage, turns, requests, by_model, changes });
                cx.emit(AgentEvent::Subagent { finished: true, note: outcome.content.clone() });
                let mut turn = std::mem::take(&mut self.turn);
                turn.end(call, outcome, cx);
                Some(NextState::UseTools(turn))
            }
            Event::TaskSubmitted { .. }
            | Event::PlanReady { .. }
            | Event::PlanFailed { .. }
            | Event::ModelDelta { .. }
            | Event::ModelCompleted { .. }
            | Event::ModelFailed { .. }
            | Event::DeadlinePassed
            | Event::ConfirmationAnswered { .. }
            | Event::ToolProgress { .. }
            | Event::ToolFinished { .. }
            | Event::HooksFinished { .. }
            | Event::QueryAnswered { .. }
            | Event::CompactionFinished { .. }
            | Event::GateProgress { .. }
            | Event::GateFinished { .. }
            | Event::Delivered { .. }
            | Event::ReportSaved { .. }
            | Event::ReportFailed { .. }
            | Event::Interrupted { .. }
            | Event::BaseJudged { .. }
            | Event::LimitReached { .. }
            | Event::CancelRequested { .. } => {
                cx.senseless(StateName::Executing, event.name());
                None
            }
        }
    }
}
