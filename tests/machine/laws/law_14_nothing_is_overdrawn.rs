//! 14. No call starts that a limit does not cover. At each call, the spent amounts and the reserves
//!     of all calls in flight are within the limits on turns, tokens and money. A run exceeds a
//!     limit at most by the error of an estimate. A sub-agent gets at most half of what is left,
//!     all sub-agents together get at most what is reserved, and no sub-agent has an unknown price
//!     under a limit in money.

use super::{Action, AgentEvent, CallId, Checked, Event, Law, Step, law};
use fledge::chat::Usage;
use fledge::limits::Limits;
use std::collections::BTreeMap;

#[derive(Default)]
pub(crate) struct Watch {
    limits: Limits,
    has_prices: bool,
    turns: u64,
    spent: Usage,
    children: BTreeMap<CallId, Limits>,
}

impl Law for Watch {
    fn see(&mut self, step: &Step<'_>) -> Checked {
        if let (Event::TaskSubmitted { spec }, "Idle") = (step.event, step.label) {
            let has_price = |place: usize| spec.terms.get(place).is_some_and(|terms| terms.price.is_some());
            *self = Self {
                limits: spec.limits.clone(),
                has_prices: (0..spec.models.len()).all(has_price),
                ..Self::default()
            };
        }
        let before = (self.turns, self.spent.clone());
        if step.is_answer() {
            match (step.event, step.label) {
                (Event::ModelCompleted { .. }, "CallingModel" | "Reporting") => {
                    self.turns = self.turns.saturating_add(1);
                }
                (Event::ChildFinished { call, turns, .. }, "Dispatching" | "Reporting") => {
                    self.turns = self.turns.saturating_add(*turns);
                    self.children.remove(call);
                }
                _ => {}
            }
        }
        for told in step.told() {
            if let AgentEvent::Usage(usage) = told {
                self.spent = usage.clone();
            }
        }
        for action in step.asked() {
            match action {
                Action::RunChild { call, limits, .. } => {
                    self.is_fair(limits)?;
                    self.children.insert(*call, limits.clone());
                    self.is_covered(step)?;
                }
                Action::CallModel { .. } => {
                    law(14, step.run.reserved().turns >= 1, || "nothing is set aside for a call".into())?;
                    self.is_covered(step)?;
                }
                Action::Compact { .. } => self.is_covered(step)?,
                _ => {}
            }
        }
        law(14, self.turns >= before.0 && self.spent.total() >= before.1.total(), || "the books fell".into())
    }
}

impl Watch {
    /// Checks that the spent and reserved amounts are within all limits.
    fn is_covered(&self, step: &Step<'_>) -> Checked {
        let (aside, spent) = (step.run.reserved(), &self.spent);
        let within = |limit: Option<u64>, spent: u64, aside: u64| {
            limit.is_none_or(|limit| u128::from(spent) + u128::from(aside) <= limit.into())
        };
        let money = spent.cost_micros.unwrap_or(0);
        let is_within = within(Some(self.limits.turns), self.turns, aside.turns)
            && within(self.limits.tokens, spent.total(), aside.tokens())
            && within(self.limits.usd_micros, money, aside.usd_micros);
        law(14, is_within, || {
            format!("{:?}: {} turns, {spent:?} spent, {aside:?} set aside", self.limits, self.turns)
        })?;
        let known = self.limits.usd_micros.is_none() || self.has_prices;
        law(14, known, || "a call without a price under a limit in money".into())?;
        let sum = |of: fn(&Limits) -> u64| self.children.values().map(|limits| u128::from(of(limits))).sum::<u128>();
        let is_aside = sum(|limits| limits.turns) <= aside.turns.into()
            && sum(|limits| limits.tokens.unwrap_or(0)) <= aside.tokens().into()
            && sum(|limits| limits.usd_micros.unwrap_or(0)) <= aside.usd_micros.into();
        law(14, is_aside, || format!("{:?} may be spent, {aside:?} is set aside", self.children))
    }

    /// Checks that a share is at most half of what is left, and has a limit where the run has one.
    fn is_fair(&self, share: &Limits) -> Checked {
        let half = |limit: Option<u64>, spent: u64, share: Option<u64>| match (limit, share) {
            (None, None) => true,
            (Some(limit), Some(share)) => (1..=limit.saturating_sub(spent) / 2).contains(&share),
            (Some(_), None) | (None, Some(_)) => false,
        };
        let is_fair = half(Some(self.limits.turns), self.turns, Some(share.turns))
            && half(self.limits.tokens, self.spent.total(), share.tokens)
            && half(self.limits.usd_micros, self.spent.cost_micros.unwrap_or(0), share.usd_micros)
            && share.time_ms <= self.limits.time_ms;
        law(14, is_fair, || format!("a share of {share:?} when {:?} of {:?} are spent", self.spent, self.limits))
    }
}
