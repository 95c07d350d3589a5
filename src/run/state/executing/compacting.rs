//! The older part of the conversation is being summarised.

use super::super::Next;
use crate::id::CallId;
use crate::run::action::Action;
use crate::run::compaction;
use crate::run::context::Context;
use crate::run::event::Event;
use crate::run::prompt;
use crate::run::watch::{AgentEvent, StateName};
use crate::verdict::Reason;
use serde::{Deserialize, Serialize};

/// Waiting for a summary of the first `upto` messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Compacting {
    pub(in crate::run::state) call: CallId,
    upto: usize,
}

impl Compacting {
    /// How many messages there are to summarise, or the limit that forbids to ask for it. `None` when there are too few.
    pub(in crate::run::state) fn due(cx: &Context) -> Option<Result<usize, (Reason, String)>> {
        let upto = compaction::cut(cx.transcript.messages())?;
        let limit = if cx.is_of_old() { None } else { cx.overdrawn_by(cx.next_summary(upto)) };
        Some(limit.map_or(Ok(upto), Err))
    }

    pub(in crate::run::state) fn start(upto: usize, cx: &mut Context) -> Self {
        let call = cx.call();
        cx.reserve(call, cx.next_summary(upto));
        cx.ask(Action::Compact { call, upto });
        Self { call, upto }
    }

    pub(in crate::run::state) fn on(&mut self, event: Event, cx: &mut Context) -> Option<Next> {
        match event {
            Event::CompactionFinished { call, result, usage, model } => {
                cx.book_summary(call, usage, &model, result.is_ok());
                let result = result.and_then(|summary| self.replace(summary.trim(), cx));
                let success = result.is_ok();
                cx.streaks.compactions = if success { 0 } else { cx.streaks.compactions + 1 };
                let note = result.unwrap_or_else(|error| error);
                cx.tell(AgentEvent::Compaction { success, note });
                Some(match cx.exhausted() {
                    Some((reason, message)) => Next::end(reason, message),
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

    /// Puts the summary in the place of what it is about. One that is no shorter is none.
    fn replace(&self, summary: &str, cx: &mut Context) -> Result<String, String> {
        if summary.is_empty() {
            return Err("the summary is empty: the conversation stays as it is".into());
        }
        let text = prompt::summary(cx, summary, self.upto);
        if text.len() >= cx.transcript.bytes_upto(self.upto) {
            return Err("the summary is no shorter than what it is about: the conversation stays as it is".into());
        }
        cx.transcript.summarise(self.upto, text);
        cx.ledger.context_tokens = 0; // of a conversation that is no more
        Ok(format!("{} messages became a summary", self.upto))
    }
}
