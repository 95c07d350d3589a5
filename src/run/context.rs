//! Data that outlives a state: run spec, plan, conversation, ledger, and the actions for the
//! current event.

use super::action::Action;
use super::difference::TreeDifference;
use super::event::Delivery;
use super::ledger::RunLedger;
use super::loops::LoopWatch;
use super::run_spec::{RunPlan, RunSpec, ToolAccess, ToolRule};
use super::transcript::Transcript;
use super::watch::{AgentEvent, StateName};
use crate::elapsed::Elapsed;
use crate::id::{CallId, TreeId};
use crate::verdict::{OutsideTree, Proof, TamperFinding};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// Data shared by all states of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RunContext {
    pub(super) spec: RunSpec,
    pub(super) plan: RunPlan,
    pub(super) transcript: Transcript,
    pub(super) ledger: RunLedger,
    pub(super) loops: LoopWatch,
    pub(super) streaks: Streaks,
    /// The current attempt, from 1; 0 before the first.
    pub(super) attempt: u32,
    /// The index of the current model in the run spec's list.
    pub(super) model: usize,
    /// True if answers may use the model's largest output, because an earlier answer met the usual
    /// limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) raised: bool,
    /// Tamper findings that the model already knows.
    pub(super) known_findings: Vec<TamperFinding>,
    /// The newest final answer that fits the task's schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<Value>,
    /// True if the gate has judged the base in parallel with the agent's turns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_base_judged: bool,
    /// The delivery of the verified tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) delivery: Option<Delivery>,
    /// Changes in the workspace that are in no tree.
    #[serde(default, skip_serializing_if = "OutsideTree::is_empty")]
    pub(super) outside_tree: OutsideTree,
    /// The difference between the base and the work, once the report is saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) difference: Option<Box<TreeDifference>>,
    /// The newest saved state of the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) checkpoint: Option<TreeId>,
    /// The time at which the task was submitted.
    pub(super) started: Elapsed,
    /// The time of the current event.
    pub(super) now: Elapsed,
    next_call: u64,
    #[serde(skip)]
    actions: Vec<Action>,
}

/// Counts of events that happened several times in a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Streaks {
    /// Answers cut off by the output limit.
    pub(super) continuations: u32,
    /// Empty answers.
    pub(super) empties: u32,
    /// Turns in which every call was malformed.
    pub(super) malformed: u32,
    /// Answers to questions in prose.
    pub(super) queries: u32,
    /// Failed compactions.
    pub(super) compactions: u32,
}

impl RunContext {
    pub(super) fn new(spec: RunSpec) -> Self {
        Self {
            spec,
            plan: RunPlan::default(),
            transcript: Transcript::default(),
            ledger: RunLedger::default(),
            loops: LoopWatch::default(),
            streaks: Streaks::default(),
            attempt: 0,
            model: 0,
            raised: false,
            known_findings: Vec::new(),
            answer: None,
            is_base_judged: false,
            delivery: None,
            outside_tree: OutsideTree::default(),
            difference: None,
            checkpoint: None,
            started: Elapsed::default(),
            now: Elapsed::default(),
            next_call: 1,
            actions: Vec::new(),
        }
    }

    /// Resets everything for a new task. Call numbers continue, so that late answers to the earlier
    /// task match no new call.
    pub(super) fn renew(&mut self, spec: RunSpec) {
        let (now, next_call, actions) = (self.now, self.next_call, self.take_actions());
        *self = Self { started: now, now, next_call, actions, ..Self::new(spec) };
    }

    /// Returns the number for the next call.
    pub(super) fn call(&mut self) -> CallId {
        let call = CallId(self.next_call);
        self.next_call += 1;
        call
    }

    /// Adds an action to those of the current event.
    pub(super) fn ask(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Returns true if the verdict on the base is still pending.
    pub(super) fn awaits_base(&self) -> bool {
        self.plan.judges_base && !self.is_base_judged
    }

    /// Sends an event to the watchers of the run.
    pub(super) fn emit(&mut self, event: AgentEvent) {
        self.actions.push(Action::Emit { event });
    }

    /// Sends a warning to the watchers, and keeps it for the report.
    pub(super) fn warn(&mut self, message: String) {
        self.ledger.warn(&message);
        self.emit(AgentEvent::Warning(message));
    }

    /// Warns unless the run has this warning already.
    pub(super) fn warn_once(&mut self, message: String) {
        if !self.ledger.warnings.contains(&message) {
            self.warn(message);
        }
    }

    /// Ignores an event that the state does not expect, with a warning.
    pub(super) fn senseless(&mut self, state: StateName, event: &str) {
        self.emit(AgentEvent::Warning(format!("unexpected event {event} in state {state:?}: ignored")));
    }

    /// Takes the actions collected since the last call of this method.
    pub(super) fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Returns the rule of a tool by name, unless the tool is denied.
    pub(super) fn rule(&self, name: &str) -> Option<&ToolRule> {
        self.plan.rules.iter().find(|rule| rule.name == name && rule.access != ToolAccess::Denied)
    }

    /// Returns the proof of the newest attempt, if that attempt passed.
    pub(super) fn proof(&self) -> Option<&Proof> {
        let newest = &self.ledger.attempts.last()?.verdict;
        newest.proof.as_deref().filter(|_| newest.passed())
    }

    /// Returns the time at which the run's time budget ends.
    pub(super) fn time_limit(&self) -> Elapsed {
        self.started.plus(Duration::from_millis(self.spec.limits.time_ms))
    }

    /// Returns the pause before try number `tries + 1`. It doubles with each try and has jitter
    /// over its upper half. It is never shorter than the provider's own request, `wish_ms`.
    pub(super) fn pause(&self, tries: u32, wish_ms: Option<u64>) -> Duration {
        let doubled = self.spec.limits.backoff_ms.saturating_mul(1 << tries.saturating_sub(1).min(16));
        let longest = u64::try_from(crate::limits::MAX_BACKOFF.as_millis()).unwrap_or(u64::MAX);
        let full = doubled.min(longest);
        let jitter = scramble(self.spec.seed ^ self.next_call) % (full / 2 + 1);
        Duration::from_millis((full / 2 + jitter).max(wish_ms.unwrap_or(0)))
    }
}

/// Runs one step of SplitMix64 (Steele, Lea and Flood, 2014), which spreads a number over all 64
/// bits.
fn scramble(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
