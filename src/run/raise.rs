//! New limits for a run that another process takes up, and the way on for a run that a limit ended.

use super::context::RunContext;
use super::state::{NextState, RunState, retry};
use super::{Action, Run, StateName};
use crate::chat::Role;
use crate::limits::NewLimits;
use crate::verdict::Reason;

impl Run {
    /// Sets new limits. What the run has used so far counts towards them.
    pub fn set_limits(&mut self, new: NewLimits) {
        let spec = &mut self.context.spec;
        new.apply(&mut spec.max_retries, &mut spec.limits);
    }

    /// Returns the limits of the run; `None` means no limit.
    pub fn limits(&self) -> NewLimits {
        let spec = &self.context.spec;
        NewLimits {
            max_retries: Some(spec.max_retries),
            turns: Some(spec.limits.turns),
            tokens: spec.limits.tokens,
            usd_micros: spec.limits.usd_micros,
            time_ms: Some(spec.limits.time_ms),
        }
    }

    /// Returns what the run has used so far, in the units of its limits.
    pub fn used(&self) -> NewLimits {
        let RunContext { ledger, now, started, attempt, .. } = &self.context;
        let total = &ledger.usage.total;
        NewLimits {
            max_retries: Some(attempt.saturating_sub(1)),
            turns: Some(ledger.turns.saturating_add(ledger.child_turns)),
            tokens: Some(total.input_tokens.saturating_add(total.output_tokens)),
            usd_micros: total.cost_micros,
            time_ms: Some(u64::try_from(now.since(*started).as_millis()).unwrap_or(u64::MAX)),
        }
    }

    /// Returns the limit that ended the run, if a higher one lets the run go on.
    pub fn ended_by_limit(&self) -> Option<Reason> {
        let ended = self.state.ended().filter(|_| self.state() == StateName::Idle)?;
        // A run whose time ended while it planned has nothing to continue with.
        (ended.reason.limit().is_some() && !self.conversation().is_empty()).then_some(ended.reason)
    }

    /// Returns the limit because of which a run that a limit ended still cannot go on.
    pub fn still_limited(&self) -> Option<Reason> {
        let reason = self.ended_by_limit()?;
        let has_retries = self.context.spec.max_retries >= self.context.attempt;
        if reason == Reason::GateFailed && !has_retries {
            return Some(reason);
        }
        self.context.exhausted().map(|(reason, _)| reason)
    }

    /// Lets a run go on that a limit ended, with the limits that it has now. Returns the actions to
    /// carry out; none if the run cannot go on.
    pub fn go_on(&mut self) -> Vec<Action> {
        let Some(reason) = self.ended_by_limit().filter(|_| self.still_limited().is_none()) else { return Vec::new() };
        let cx = &mut self.context;
        let is_answered = cx.transcript.messages().last().is_some_and(|last| last.role == Role::Assistant);
        let next = match reason {
            Reason::GateFailed => retry(cx),
            _ if is_answered && cx.spec.verify => NextState::Verify, // the time ended while the gate ran
            _ => NextState::CallModel,
        };
        self.state = RunState::enter(next, cx);
        self.context.take_actions()
    }
}
