//! What outlives states: the terms, the plan, the conversation, the ledger, and the actions of the event in hand.

use super::action::Action;
use super::charter::{Charter, Plan, ToolAccess, ToolRule};
use super::difference::Difference;
use super::event::Delivery;
use super::ledger::Ledger;
use super::loops::LoopWatch;
use super::transcript::Transcript;
use super::watch::{AgentEvent, StateName};
use crate::id::{CallId, TreeId};
use crate::moment::Moment;
use crate::verdict::{Finding, OutsideTree, Proof};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// Shared by all states of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Context {
    pub(super) charter: Charter,
    pub(super) plan: Plan,
    pub(super) transcript: Transcript,
    pub(super) ledger: Ledger,
    pub(super) loops: LoopWatch,
    pub(super) streaks: Streaks,
    /// The attempt under way, from 1; 0 before the first.
    pub(super) attempt: u32,
    /// The place of the model in use in the charter's list.
    pub(super) model: usize,
    /// Whether answers may be as long as the model can make them, since one met the usual bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) raised: bool,
    /// What was found tampered with and told to the model.
    pub(super) told: Vec<Finding>,
    /// The newest final answer that fits the task's schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<Value>,
    /// Whether the base has been judged beside the agent's turns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_base_judged: bool,
    /// What became of the verified tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) delivery: Option<Delivery>,
    /// What changed in the workspace and is in no tree.
    #[serde(default, skip_serializing_if = "OutsideTree::is_empty")]
    pub(super) outside_tree: OutsideTree,
    /// What differs between the base and the work, once the report is saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) difference: Option<Box<Difference>>,
    /// The newest state of the files that is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) checkpoint: Option<TreeId>,
    /// The moment at which the task was handed over.
    pub(super) started: Moment,
    /// The moment of the event in hand.
    pub(super) now: Moment,
    next_call: u64,
    #[serde(skip)]
    actions: Vec<Action>,
}

/// How often something happened in a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Streaks {
    /// Answers cut off by the output limit.
    pub(super) continuations: u32,
    /// Answers with nothing in them.
    pub(super) empties: u32,
    /// Turns in which no call could be understood.
    pub(super) malformed: u32,
    /// Answers given to questions in prose.
    pub(super) queries: u32,
    /// Compactions that failed.
    pub(super) compactions: u32,
}

impl Context {
    pub(super) fn new(charter: Charter) -> Self {
        Self {
            charter,
            plan: Plan::default(),
            transcript: Transcript::default(),
            ledger: Ledger::default(),
            loops: LoopWatch::default(),
            streaks: Streaks::default(),
            attempt: 0,
            model: 0,
            raised: false,
            told: Vec::new(),
            answer: None,
            is_base_judged: false,
            delivery: None,
            outside_tree: OutsideTree::default(),
            difference: None,
            checkpoint: None,
            started: Moment::default(),
            now: Moment::default(),
            next_call: 1,
            actions: Vec::new(),
        }
    }

    /// A new task in the same place: nothing is left of the one before but the numbering of calls, so that answers to it
    /// stay strangers.
    pub(super) fn renew(&mut self, charter: Charter) {
        let (now, next_call, actions) = (self.now, self.next_call, self.take_actions());
        *self = Self { started: now, now, next_call, actions, ..Self::new(charter) };
    }

    /// A number for the next effect.
    pub(super) fn call(&mut self) -> CallId {
        let call = CallId(self.next_call);
        self.next_call += 1;
        call
    }

    /// Asks for something.
    pub(super) fn ask(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Whether the verdict on the base is still to come.
    pub(super) fn awaits_base(&self) -> bool {
        self.plan.judges_base && !self.is_base_judged
    }

    /// Tells whoever watches.
    pub(super) fn tell(&mut self, event: AgentEvent) {
        self.actions.push(Action::Emit { event });
    }

    /// Tells whoever watches that something is not as it should be, and keeps it for the report.
    pub(super) fn warn(&mut self, message: String) {
        self.ledger.warn(&message);
        self.tell(AgentEvent::Warning(message));
    }

    /// An event that makes no sense here: nothing changes but this one warning.
    pub(super) fn senseless(&mut self, state: StateName, event: &str) {
        self.tell(AgentEvent::Warning(format!("{event} makes no sense while {state:?}: ignored")));
    }

    /// What was asked for since the last time this was called.
    pub(super) fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// The rule of a tool, by its name.
    pub(super) fn rule(&self, name: &str) -> Option<&ToolRule> {
        self.plan.rules.iter().find(|rule| rule.name == name && rule.access != ToolAccess::Denied)
    }

    /// What the pass of the newest attempt rests on.
    pub(super) fn proof(&self) -> Option<&Proof> {
        let newest = &self.ledger.attempts.last()?.verdict;
        newest.proof.as_deref().filter(|_| newest.passed())
    }

    /// The moment at which the run's time is up.
    pub(super) fn time_limit(&self) -> Moment {
        self.started.plus(Duration::from_millis(self.charter.limits.time_ms))
    }

    /// The pause before try number `tries + 1`: doubling, with jitter over its upper half, never shorter than the other side
    /// wishes.
    pub(super) fn pause(&self, tries: u32, wish_ms: Option<u64>) -> Duration {
        let doubled = self.charter.limits.backoff_ms.saturating_mul(1 << tries.saturating_sub(1).min(16));
        let longest = u64::try_from(crate::limits::MAX_BACKOFF.as_millis()).unwrap_or(u64::MAX);
        let full = doubled.min(longest);
        let jitter = scramble(self.charter.seed ^ self.next_call) % (full / 2 + 1);
        Duration::from_millis((full / 2 + jitter).max(wish_ms.unwrap_or(0)))
    }
}

/// One step of SplitMix64 (Steele, Lea and Flood, 2014): spreads a number over all 64 bits.
fn scramble(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
