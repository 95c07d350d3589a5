//! Model call in flight. Its text is shown as it arrives; only the complete turn decides anything.

use super::super::NextState;
use super::backing_off::{BackingOff, RetryOrigin};
use super::processing;
use crate::chat::{Delta, ModelError, ModelErrorKind, Reply, Spent};
use crate::id::CallId;
use crate::run::action::Action;
use crate::run::context::RunContext;
use crate::run::watch::AgentEvent;
use crate::verdict::Reason;
use serde::{Deserialize, Serialize};

/// The message for a call that was in flight when fledge died.
pub(super) const CUT_OFF: &str = "fledge was interrupted during this answer";

/// Waiting for a model's turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct CallingModel {
    pub(in crate::run::state) call: CallId,
    /// The try of this request, from 1.
    tries: u32,
    /// True if compaction was already tried for this request.
    compacted: bool,
}

impl CallingModel {
    pub(in crate::run::state) fn start(tries: u32, compacted: bool, cx: &mut RunContext) -> Self {
        let call = cx.call();
        let most = cx.most_of_answer();
        cx.reserve(call, cx.next_call());
        cx.ask(Action::CallModel { call, model: cx.model, most });
        Self { call, tries, compacted }
    }

    pub(in crate::run::state) fn completed(&self, reply: Reply, cx: &mut RunContext) -> NextState {
        processing::process(self.call, reply, cx)
    }

    pub(in crate::run::state) fn interrupted(&self, cx: &mut RunContext) -> NextState {
        cx.charge_failure(self.call, Some(&Spent::default()));
        cx.emit(AgentEvent::TurnDiscarded { error: CUT_OFF.into() });
        NextState::TryModel { tries: self.tries, compacted: self.compacted }
    }

    /// Discards the turn. Depending on the fault, continues with compaction, another try, another
    /// model, or the end.
    pub(in crate::run::state) fn failed(&self, error: &ModelError, cx: &mut RunContext) -> NextState {
        cx.charge_failure(self.call, error.spent.as_deref());
        cx.emit(AgentEvent::TurnDiscarded { error: error.message.clone() });
        let wish = error.retry_after_ms;
        if error.fault == ModelErrorKind::ContextTooLong
            && !self.compacted
            && let Some(next) = shorter(cx)
        {
            return next;
        }
        if wish.is_some_and(|wish| wish > cx.spec.limits.max_wait_ms) && error.fault.is_retryable() {
            let seconds = wish.unwrap_or(0) / 1000;
            return another_model(cx).unwrap_or_else(|| {
                NextState::end(Reason::Blocked, format!("the provider asks to wait {seconds} s: {}", error.message))
            });
        }
        if error.fault.is_retryable() && self.tries < cx.spec.limits.tries {
            if let Some((reason, message)) = cx.exhausted() {
                return NextState::end(reason, message);
            }
            let wait = cx.pause(self.tries, wish);
            let origin = RetryOrigin::Model { compacted: self.compacted };
            return NextState::BackOff(BackingOff::start(origin, "model", self.tries, wait, &error.message, cx));
        }
        let reason = match error.fault {
            ModelErrorKind::Protocol => Reason::ModelProtocol,
            ModelErrorKind::Network
            | ModelErrorKind::Busy
            | ModelErrorKind::ContextTooLong
            | ModelErrorKind::Auth
            | ModelErrorKind::Quota
            | ModelErrorKind::NotFound
            | ModelErrorKind::BadRequest => Reason::ProviderFailed,
        };
        let tries = if self.tries > 1 { format!(" (after {} tries)", self.tries) } else { String::new() };
        another_model(cx).unwrap_or_else(|| NextState::end(reason, format!("{}{tries}", error.message)))
    }
}

/// Returns the event that watchers see for a piece of an answer.
pub(in crate::run::state) fn delta_event(delta: Delta) -> Option<AgentEvent> {
    Some(match delta {
        Delta::Text(text) => AgentEvent::Text(text),
        Delta::Thinking(text) => AgentEvent::Thinking(text),
        Delta::ToolCall(call) => AgentEvent::ToolCall { args: call.input.to_value(), name: call.name },
        Delta::Spent(_) => return None, // the error that may follow reports it
    })
}

/// Shortens the conversation if possible: clears older results, and summarises the older messages.
fn shorter(cx: &mut RunContext) -> Option<NextState> {
    let has_cleared = cx.clear_results();
    if cx.may_summarise() && cx.cut().is_some() {
        return Some(NextState::Compact { tries: 1 });
    }
    has_cleared.then_some(NextState::TryModel { tries: 1, compacted: true })
}

/// Switches to the next model of the task's list, if there is one.
fn another_model(cx: &mut RunContext) -> Option<NextState> {
    let name = cx.spec.models.get(cx.model + 1)?.clone();
    cx.model += 1;
    cx.warn(format!("falling back to {name}"));
    Some(NextState::CallModel)
}
