//! Numbers of the agents of a run: the run itself, its sub-agents 1, 2, …, and their sub-agents
//! 1.1, 1.2, …
//!
//! The machine asks for sub-agents in an order, and numbers follow that order. So each fold of the
//! journal gives the same numbers.

use crate::id::CallId;
use crate::run::RunPlan;
use crate::task::Tier;
use std::sync::{Arc, Mutex, PoisonError};

/// The separator between a sub-agent's path and the kind of event in a record of the journal:
/// `1.2:ModelCompleted`.
const MARK: char = ':';

/// Splits the kind of a journal record into the path of the sub-agent and the kind of event. A
/// record of the run itself has no path.
pub fn whose(kind: &str) -> (Option<&str>, &str) {
    kind.split_once(MARK).map_or((None, kind), |(path, kind)| (Some(path), kind))
}

/// Returns the kind of a sub-agent's record.
pub(in crate::driver) fn kind_of(path: &str, kind: &str) -> String {
    format!("{path}{MARK}{kind}")
}

/// Splits a path into the number of its first sub-agent and the rest.
pub(in crate::driver) fn first(path: &str) -> (u64, Option<&str>) {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    (first.parse().unwrap_or(0), rest)
}

/// The sub-agents of one agent, in the order in which the machine asked for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::driver) struct AgentRoster(Vec<CallId>);

impl AgentRoster {
    /// Returns the number of the sub-agent that this call asks for, from 1. An unknown call gets a
    /// new number.
    pub(in crate::driver) fn number(&mut self, call: CallId) -> u64 {
        let place = self.0.iter().position(|known| *known == call).unwrap_or_else(|| {
            self.0.push(call);
            self.0.len() - 1
        });
        place as u64 + 1
    }
}

/// One agent of a run.
#[derive(Debug, Clone, Default)]
pub(in crate::driver) struct AgentLineage {
    /// The numbers from the run down to this agent. Empty for the run itself.
    numbers: Vec<u64>,
    /// The plan that a sub-agent begins with.
    plan: Option<Arc<RunPlan>>,
    /// The tier of a sub-agent's tools. `None`: the tier of the task.
    tier: Option<Tier>,
    children: Arc<Mutex<AgentRoster>>,
}

impl AgentLineage {
    /// Creates a sub-agent of this agent with this plan and tools of this tier.
    pub(in crate::driver) fn child(&self, number: u64, plan: RunPlan, tier: Tier) -> Self {
        let numbers = self.numbers.iter().copied().chain([number]).collect();
        Self { numbers, plan: Some(Arc::new(plan)), tier: Some(tier), children: Arc::default() }
    }

    /// Returns the number of agents above this one.
    pub(in crate::driver) fn depth(&self) -> u32 {
        u32::try_from(self.numbers.len()).unwrap_or(u32::MAX)
    }

    /// Returns true if this is a sub-agent.
    pub(in crate::driver) fn is_child(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// Returns the plan that a sub-agent begins with.
    pub(in crate::driver) fn plan(&self) -> Option<&RunPlan> {
        self.plan.as_deref()
    }

    /// Returns the tier of a sub-agent's tools. `None`: the tier of the task.
    pub(in crate::driver) fn tier(&self) -> Option<Tier> {
        self.tier
    }

    /// Returns the path, such as `1.2`. `None` for the run itself.
    pub(in crate::driver) fn path(&self) -> Option<String> {
        let numbers: Vec<String> = self.numbers.iter().map(u64::to_string).collect();
        self.is_child().then(|| numbers.join("."))
    }

    /// Returns the number of the sub-agent that a call of this agent asks for.
    pub(in crate::driver) fn number(&self, call: CallId) -> u64 {
        self.children.lock().unwrap_or_else(PoisonError::into_inner).number(call)
    }

    /// Returns the calls of this agent that asked for sub-agents, in order.
    pub(in crate::driver) fn asked_for(&self) -> Vec<CallId> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// Takes over the sub-agents of an earlier process.
    pub(in crate::driver) fn recall(&self, roster: AgentRoster) {
        *self.children.lock().unwrap_or_else(PoisonError::into_inner) = roster;
    }

    /// Returns a number for a call of this agent that no other agent of the run uses: all agents
    /// share a tool host.
    pub(in crate::driver) fn outside(&self, call: CallId) -> CallId {
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
        let run = AgentLineage::default();
        assert_eq!([5, 9, 5].map(|call| run.number(CallId(call))), [1, 2, 1]);
        let second = run.child(2, RunPlan::default(), Tier::Code);
        let deeper = second.child(1, RunPlan::default(), Tier::Read);
        assert_eq!([&run, &second, &deeper].map(AgentLineage::path), [None, Some("2".into()), Some("2.1".into())]);
        assert_eq!([&run, &second, &deeper].map(AgentLineage::depth), [0, 1, 2]);
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
