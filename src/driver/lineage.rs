//! Who is who among the agents of a run: the run itself, its sub-agents 1, 2, …, and those of a sub-agent 1.1, 1.2, … Numbers are given in
//! the order in which the machine asks for them, so they are the same whenever its journal is folded.

use crate::id::CallId;
use crate::run::Plan;
use crate::task::Tier;
use std::sync::{Arc, Mutex, PoisonError};

/// What stands between a sub-agent's path and the kind of event in a record of the journal: `1.2:ModelCompleted`.
const MARK: char = ':';

/// Whose record of a journal it is, by its kind, and the kind of event: no path is the run's own.
pub fn whose(kind: &str) -> (Option<&str>, &str) {
    kind.split_once(MARK).map_or((None, kind), |(path, kind)| (Some(path), kind))
}

/// The kind of a record of a sub-agent.
pub(super) fn kind_of(path: &str, kind: &str) -> String {
    format!("{path}{MARK}{kind}")
}

/// The number of the first sub-agent on a path, and the path from there on.
pub(super) fn first(path: &str) -> (u64, Option<&str>) {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    (first.parse().unwrap_or(0), rest)
}

/// The sub-agents of one agent, in the order in which they were asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Roster(Vec<CallId>);

impl Roster {
    /// The number of the sub-agent that this call asks for, from 1; a new one where none is known.
    pub(super) fn number(&mut self, call: CallId) -> u64 {
        let place = self.0.iter().position(|known| *known == call).unwrap_or_else(|| {
            self.0.push(call);
            self.0.len() - 1
        });
        place as u64 + 1
    }
}

/// One agent of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Lineage {
    /// The numbers from the run down to it; empty for the run itself.
    numbers: Vec<u64>,
    /// What a sub-agent begins with.
    plan: Option<Arc<Plan>>,
    /// The tier of its tools, where that is not its task's.
    tier: Option<Tier>,
    children: Arc<Mutex<Roster>>,
}

impl Lineage {
    /// A sub-agent of this agent, which begins with this plan and has tools of this tier.
    pub(super) fn child(&self, number: u64, plan: Plan, tier: Tier) -> Self {
        let numbers = self.numbers.iter().copied().chain([number]).collect();
        Self { numbers, plan: Some(Arc::new(plan)), tier: Some(tier), children: Arc::default() }
    }

    /// How many agents stand above it.
    pub(super) fn depth(&self) -> u32 {
        u32::try_from(self.numbers.len()).unwrap_or(u32::MAX)
    }

    /// Whether it is a sub-agent.
    pub(super) fn is_child(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// What a sub-agent begins with.
    pub(super) fn plan(&self) -> Option<&Plan> {
        self.plan.as_deref()
    }

    /// The tier of its tools, where that is not its task's.
    pub(super) fn tier(&self) -> Option<Tier> {
        self.tier
    }

    /// Its path, `1.2`; none for the run itself.
    pub(super) fn path(&self) -> Option<String> {
        let numbers: Vec<String> = self.numbers.iter().map(u64::to_string).collect();
        self.is_child().then(|| numbers.join("."))
    }

    /// The number of the sub-agent that a call of it asks for.
    pub(super) fn number(&self, call: CallId) -> u64 {
        self.children.lock().unwrap_or_else(PoisonError::into_inner).number(call)
    }

    /// The calls of it that asked for sub-agents, in their order.
    pub(super) fn asked_for(&self) -> Vec<CallId> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// Takes over which sub-agents an earlier process had.
    pub(super) fn recall(&self, roster: Roster) {
        *self.children.lock().unwrap_or_else(PoisonError::into_inner) = roster;
    }

    /// A call of it by a number that no call of another agent of the run has: they share the host of their tools.
    pub(super) fn outside(&self, call: CallId) -> CallId {
        let above = |place: usize| self.numbers.get(place).copied().unwrap_or(0);
        let agent = above(0).saturating_mul(10_000).saturating_add(above(1));
        CallId(agent.saturating_mul(CallId::OF_ONE_AGENT).saturating_add(call.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_numbered_from_the_run_down_and_share_no_number_of_a_call() {
        let run = Lineage::default();
        assert_eq!([5, 9, 5].map(|call| run.number(CallId(call))), [1, 2, 1]);
        let second = run.child(2, Plan::default(), Tier::Code);
        let deeper = second.child(1, Plan::default(), Tier::Read);
        assert_eq!([&run, &second, &deeper].map(Lineage::path), [None, Some("2".into()), Some("2.1".into())]);
        assert_eq!([&run, &second, &deeper].map(Lineage::depth), [0, 1, 2]);
        let calls = [&run, &second, &deeper].map(|agent| agent.outside(CallId(7)).0);
        assert_eq!(calls, [7, 2_000_000_000_007, 2_000_100_000_007]);
    }

    #[test]
    fn a_record_says_whose_it_is() {
        assert_eq!(whose("ToolFinished"), (None, "ToolFinished"));
        assert_eq!(whose(&kind_of("1.2", "ToolFinished")), (Some("1.2"), "ToolFinished"));
        assert_eq!((first("12"), first("1.2")), ((12, None), (1, Some("2"))));
    }
}
