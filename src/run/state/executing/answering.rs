//! Answer to a question that the model asked in prose.

use super::super::NextState;
use crate::id::CallId;
use crate::run::action::Action;
use crate::run::context::RunContext;
use crate::run::event::Event;
use crate::run::prompt;
use crate::run::query::ModelQuery;
use crate::run::watch::StateName;
use serde::{Deserialize, Serialize};

/// Waiting for the answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct AnsweringQuery {
    pub(in crate::run::state) call: CallId,
    query: ModelQuery,
}

impl AnsweringQuery {
    pub(in crate::run::state) fn start(query: ModelQuery, cx: &mut RunContext) -> Self {
        let call = cx.call();
        cx.ask(Action::AnswerQuery { call, query: query.clone() });
        Self { call, query }
    }

    pub(in crate::run::state) fn on(&mut self, event: Event, cx: &mut RunContext) -> Option<NextState> {
        match event {
            Event::QueryAnswered { answer, .. } => {
                cx.transcript.say(prompt::answered(&answer));
                Some(NextState::CallModel)
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
            | Event::ChildFinished { .. }
            | Event::HooksFinished { .. }
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
