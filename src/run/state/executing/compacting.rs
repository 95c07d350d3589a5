//! The older part of the conversation is being summarised.

use super::super::Next;
use crate::id::CallId;
use crate::run::action::Action;
use crate::run::compaction;
use crate::run::context::Context;
use crate::run::event::Event;
use crate::run::prompt;
use crate::run::watch::{AgentEvent, StateName};
use serde::{Deserialize, Serialize};

/// Waiting for a summary of the first `upto` messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Compacting {
    pub(in crate::run::state) call: CallId,
    upto: usize,
}

impl Compacting {
    /// `None` when there is nothing that could be summarised.
    pub(in crate::run::state) fn start(cx: &mut Context) -> Option<Self> {
        let upto = compaction::cut(cx.transcript.messages())?;
        let call = cx.call();
        cx.ask(Action::Compact { call, upto });
        Some(Self { call, upto })
    }

    pub(in crate::run::state) fn on(&mut self, event: Event, cx: &mut Context) -> Option<Next> {
        match event {
            Event::CompactionFinished { result, usage, .. } => {
                cx.book_child(&usage);
                let success = result.is_ok();
                let note = match result {
                    Ok(summary) => {
                        cx.streaks.compactions = 0;
                        let text = prompt::summary(&cx.charter.prompt, &summary);
                        cx.transcript.summarise(self.upto, text);
                        format!("{} messages became a summary", self.upto)
                    }
                    Err(error) => {
                        cx.streaks.compactions += 1;
                        error
                    }
                };
                cx.tell(AgentEvent::Compaction { success, note });
                Some(match cx.exhausted() {
                    Some(reason) => Next::end(reason, reason.row().meaning),
                    None => Next::TryModel { tries: 1, compacted: true },
                })
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
            | Event::QueryAnswered { .. }
            | Event::GateProgress { .. }
            | Event::GateFinished { .. }
            | Event::Delivered { .. }
            | Event::ReportSaved { .. }
            | Event::ReportFailed { .. }
            | Event::LimitReached { .. }
            | Event::CancelRequested { .. } => {
                cx.senseless(StateName::Executing, event.name());
                None
            }
        }
    }
}
