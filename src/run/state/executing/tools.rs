//! Tools of a turn in progress.

use super::super::NextState;
use super::backing_off::{BackingOff, RetryOrigin};
use super::turn::ToolTurn;
use crate::chat::ToolOutcome;
use crate::id::CallId;
use crate::run::context::RunContext;
use crate::run::event::Event;
use crate::run::watch::{AgentEvent, StateName};
use serde::{Deserialize, Serialize};

/// Waiting for tools of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct RunningTools {
    pub(in crate::run::state) turn: ToolTurn,
}

impl RunningTools {
    pub(in crate::run::state) fn on(&mut self, event: Event, cx: &mut RunContext) -> Option<NextState> {
        match event {
            Event::ToolProgress { text, .. } => {
                cx.emit(AgentEvent::ToolOutput { text });
                None
            }
            Event::ToolFinished { call, outcome } => Some(self.finished(call, outcome, cx)),
            Event::TaskSubmitted { .. }
            | Event::PlanReady { .. }
            | Event::PlanFailed { .. }
            | Event::ModelDelta { .. }
            | Event::ModelCompleted { .. }
            | Event::ModelFailed { .. }
            | Event::DeadlinePassed
            | Event::ConfirmationAnswered { .. }
            | Event::ChildFinished { .. }
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

    fn finished(&mut self, call: CallId, outcome: ToolOutcome, cx: &mut RunContext) -> NextState {
        let mut turn = std::mem::take(&mut self.turn);
        if let Some(tries) = turn.may_retry(call, &outcome, cx.charter.limits.tries) {
            let wait = cx.pause(tries, None);
            let tool = turn.requeue(call);
            return NextState::BackOff(BackingOff::start(
                RetryOrigin::Tool { turn },
                &tool,
                tries,
                wait,
                &outcome.content,
                cx,
            ));
        }
        turn.end(call, outcome, cx);
        NextState::UseTools(turn)
    }
}
