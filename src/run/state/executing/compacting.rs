//! Summary of the older messages of a conversation.

use super::super::NextState;
use super::backing_off::{BackingOff, RetryOrigin};
use crate::chat::{ModelError, Spent, Usage};
use crate::id::CallId;
use crate::run::action::Action;
use crate::run::context::RunContext;
use crate::run::prompt;
use crate::run::watch::AgentEvent;
use crate::verdict::Reason;
use serde::{Deserialize, Serialize};

/// Waiting for a summary of the first `upto` messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Compacting {
    pub(in crate::run::state) call: CallId,
    upto: usize,
    /// The try of this summary, from 1.
    tries: u32,
}

impl Compacting {
    /// Returns the number of messages to summarise, or the limit that forbids a summary. `None` if
    /// there are too few messages.
    pub(in crate::run::state) fn due(cx: &RunContext) -> Option<Result<usize, (Reason, String)>> {
        let upto = cx.cut()?;
        Some(cx.overdrawn_by(cx.next_summary(upto)).map_or(Ok(upto), Err))
    }

    pub(in crate::run::state) fn start(upto: usize, tries: u32, cx: &mut RunContext) -> Self {
        let call = cx.call();
        let most = cx.most_of_summary(upto); // before its cost is reserved
        cx.reserve(call, cx.next_summary(upto));
        cx.ask(Action::Compact { call, upto, most });
        Self { call, upto, tries }
    }

    pub(in crate::run::state) fn interrupted(&self, cx: &mut RunContext) -> NextState {
        cx.charge_failure(self.call, Some(&Spent::default()));
        NextState::Compact { tries: self.tries }
    }

    /// Books the summary and puts it in place of the messages.
    pub(in crate::run::state) fn finished(
        &self,
        result: Result<String, String>,
        usage: (Usage, &str),
        error: Option<&ModelError>,
        cx: &mut RunContext,
    ) -> NextState {
        cx.charge_summary(self.call, usage, result.as_deref().ok(), error);
        if let Some(next) = error.and_then(|error| self.again(error, cx)) {
            return next;
        }
        let result = result.and_then(|summary| self.replace(summary.trim(), cx));
        let success = result.is_ok();
        cx.streaks.compactions = if success { 0 } else { cx.streaks.compactions + 1 };
        let note = result.unwrap_or_else(|error| error);
        if !success && !cx.may_summarise() {
            cx.warn(format!("stopped summarising the conversation after repeated failures: {note}"));
        }
        cx.emit(AgentEvent::Compaction { success, note });
        match cx.exhausted() {
            Some((reason, message)) => NextState::end(reason, message),
            None => NextState::TryModel { tries: 1, compacted: true },
        }
    }

    /// Tries again after an error that may be temporary.
    fn again(&self, error: &ModelError, cx: &mut RunContext) -> Option<NextState> {
        let is_patient = error.retry_after_ms.is_none_or(|wish| wish <= cx.spec.limits.max_wait_ms);
        if !error.fault.is_retryable() || !is_patient || self.tries >= cx.spec.limits.tries {
            return None;
        }
        let wait = cx.pause(self.tries, error.retry_after_ms);
        Some(NextState::BackOff(BackingOff::start(
            RetryOrigin::Summary,
            "summary",
            self.tries,
            wait,
            &error.message,
            cx,
        )))
    }

    /// Replaces the first `upto` messages with the summary. Rejects a summary that is not shorter
    /// than those messages.
    fn replace(&self, summary: &str, cx: &mut RunContext) -> Result<String, String> {
        if summary.is_empty() {
            return Err("the summary is empty: the conversation stays unchanged".into());
        }
        let text = prompt::summary(cx, summary, self.upto);
        if text.len() >= cx.transcript.bytes_upto(self.upto) {
            return Err("the summary is not shorter than the messages: the conversation stays unchanged".into());
        }
        cx.transcript.summarise(self.upto, text);
        cx.ledger.context_tokens = 0; // the count was of the longer conversation
        cx.ledger.shortened_to = Some(cx.context_tokens());
        Ok(format!("{} messages were replaced by a summary", self.upto))
    }
}
