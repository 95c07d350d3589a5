//! What a run came to: the one value that the report, the exit code and the library's answer are made of.

use super::difference::Difference;
use super::ledger::{Attempt, ToolTally};
use super::state::Ended;
use super::workplace::Workplace;
use super::{Run, context::Context};
use crate::chat::{FileChange, ModelUsage};
use crate::id::{RunId, TreeId};
use crate::limits::Limits;
use crate::process::wall::WallKind;
use crate::verdict::{HeldBack, OutsideTree, Reason, Ruling, StopCause, Verification};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The result of a run. `files_changed` has only paths that successful file tools wrote, edited or deleted; `difference` has all that differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TaskResult {
    /// The run's name.
    pub run: RunId,
    /// The task's title.
    pub title: String,
    /// Why it ended.
    pub reason: Reason,
    /// The same in the words of agents' loops.
    pub done_reason: String,
    /// The exit code that goes with it.
    pub exit_code: u8,
    /// Whether the last verdict passed, or verification was skipped on purpose: `verification` says which.
    pub verified: bool,
    /// What became of the gate.
    pub verification: Verification,
    /// Whether it ended because somebody asked for it to stop.
    pub cancelled: bool,
    /// Who asked for that, also where the run was on its way to its report already and ended as it would have.
    pub stopped_by: Option<StopCause>,
    /// One line on why it ended.
    pub message: String,
    /// What the model said last.
    pub summary: String,
    /// The final answer, of a task that asks for one of a certain form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// Every attempt that reached the gate, with its verdict.
    pub attempts: Vec<Attempt>,
    /// Model calls that completed, those of sub-agents among them.
    pub turns: u64,
    /// What file tools changed, sorted by path.
    pub files_changed: Vec<FileChange>,
    /// What differs between the base and the tree that passed, or else the files as the run left them, whatever made it. `None` where
    /// that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Box<Difference>>,
    /// What it might spend.
    #[serde(default)]
    pub limits: Limits,
    /// Tokens and requests, in total and by model.
    pub usage: ModelUsage,
    /// Tool calls, by tool.
    pub tools: BTreeMap<String, ToolTally>,
    /// What was not as it should be; at most 100 lines.
    pub warnings: Vec<String>,
    /// What hooks told the model, with what they printed; at most 100 of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
    /// Changes of protected paths that were put back or refused, by path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<HeldBack>,
    /// What changed in the workspace during the run and is not in the tree: nobody has judged it, and it is not delivered.
    #[serde(default, skip_serializing_if = "OutsideTree::is_empty")]
    pub outside_tree: OutsideTree,
    /// The digest of the frozen gate; empty without one.
    pub gate_digest: String,
    /// The tree that was there before the agent; `None` where an older program planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<TreeId>,
    /// The tree that the gate has passed, when the newest verdict says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeId>,
    /// The commit that it became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The full name of the branch that this is on; `None` also for a detached head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The tree of the workspace's folder in that commit, where git stores another one than `tree`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_tree: Option<TreeId>,
    /// The worktree that it had for itself, and what is left of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Workplace>,
    /// The wall around the agent; `None` when none was needed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<WallKind>,
    /// Whether the agent could reach the network from behind it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// From start to the last event, in milliseconds.
    pub duration_ms: u64,
}

impl TaskResult {
    /// The paths that the run changed: those that differ from the base, or those that file tools changed where that is not known.
    pub fn changed_paths(&self) -> impl Iterator<Item = &str> {
        let differing =
            self.difference.iter().flat_map(|difference| &difference.changes).map(|file| file.path.as_str());
        let by_tools = self.files_changed.iter().filter(|_| self.difference.is_none()).map(|file| file.path.as_str());
        differing.chain(by_tools)
    }
}

impl Run {
    /// What the run came to. `None` while it has not ended.
    pub fn result(&self) -> Option<TaskResult> {
        let ended = self.state.ended()?;
        Some(of(ended, &self.context))
    }
}

fn of(ended: &Ended, cx: &Context) -> TaskResult {
    let said = Some(ended.said.clone()).filter(|said| !said.trim().is_empty());
    TaskResult {
        run: cx.charter.run.clone(),
        title: cx.charter.title.clone(),
        reason: ended.reason,
        done_reason: ended.reason.row().done_reason.into(),
        exit_code: ended.reason.exit_code(ended.stopped_by),
        verified: ended.is_verified(),
        verification: verification(ended.reason, cx),
        cancelled: ended.is_cancelled(),
        stopped_by: ended.stopped_by,
        message: ended.message.clone(),
        summary: said.or_else(|| cx.transcript.last_said()).unwrap_or_default(),
        answer: cx.answer.clone(),
        attempts: cx.ledger.attempts.clone(),
        turns: cx.ledger.turns.saturating_add(cx.ledger.child_turns),
        files_changed: cx.ledger.files.values().cloned().collect(),
        difference: cx.difference.clone(),
        limits: cx.charter.limits.clone(),
        usage: cx.ledger.usage.clone(),
        tools: cx.ledger.tools.clone(),
        warnings: warnings(cx),
        hooks: cx.ledger.hooks.clone(),
        protected: protected(cx),
        outside_tree: cx.outside_tree.clone(),
        gate_digest: cx.plan.gate_digest.clone(),
        base: cx.plan.base.clone().or_else(|| cx.proof().map(|proof| proof.base.clone())),
        tree: cx.proof().map(|proof| proof.tree.clone()),
        commit: cx.delivery.as_ref().map(|delivery| delivery.commit.clone()),
        branch: cx.delivery.as_ref().and_then(|delivery| delivery.branch.clone()),
        commit_tree: cx.delivery.as_ref().and_then(|delivery| delivery.tree.clone()),
        worktree: cx.plan.worktree.clone(),
        sandbox: cx.plan.sandbox,
        network: cx.plan.network,
        duration_ms: cx.now.0.saturating_sub(cx.started.0),
    }
}

/// What of the work was held back in any attempt, and calls of tools that were refused, once for each path.
fn protected(cx: &Context) -> Vec<HeldBack> {
    let found = cx.ledger.attempts.iter().flat_map(|attempt| attempt.verdict.findings.iter());
    let found = found.map(|finding| HeldBack::new(&finding.path, &finding.change, &finding.rule));
    let refused = cx.ledger.refused.iter().map(|(path, rule)| HeldBack::new(path, "refused", rule));
    let by_path: BTreeMap<String, HeldBack> = refused.chain(found).map(|held| (held.path.clone(), held)).collect();
    by_path.into_values().collect()
}

/// The warnings of the run; and that its cost is not all of it, where that is so.
fn warnings(cx: &Context) -> Vec<String> {
    let mut warnings = cx.ledger.warnings.clone();
    let unpriced = cx.ledger.usage.unpriced();
    if !unpriced.is_empty() && !cx.is_before(3) {
        warnings.push(format!("the cost leaves out what has no known price: {}", unpriced.join(", ")));
    }
    warnings
}

/// What became of the gate: by the reason where that says it, else by the last verdict.
fn verification(reason: Reason, cx: &Context) -> Verification {
    let last = cx.ledger.attempts.last().map(|attempt| attempt.verdict.ruling);
    match (reason, last) {
        (Reason::Verified | Reason::NotDelivered, _) => Verification::Passed,
        (Reason::Skipped, _) => Verification::Skipped,
        (Reason::GateErrored | Reason::NoSandbox, _) | (_, Some(Ruling::Errored)) => Verification::Errored,
        (Reason::GateTampered, _) | (_, Some(Ruling::Tampered)) => Verification::Tampered,
        (_, Some(Ruling::Failed)) => Verification::Failed,
        (_, Some(Ruling::Passed) | None) => Verification::NotReached,
    }
}
