//! Result of a run. The report, the exit code and the library's return value are all made from it.

use super::difference::TreeDifference;
use super::ledger::{Attempt, ToolTally};
use super::state::EndedRun;
use super::workplace::Workplace;
use super::{Run, context::RunContext};
use crate::chat::{FileChange, ModelUsage};
use crate::id::{RunId, TreeId};
use crate::limits::Limits;
use crate::sandbox_kind::SandboxKind;
use crate::verdict::{HeldBack, OutsideTree, Reason, Ruling, StopCause, Verification};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The result of a run. `files_changed` has only the paths that successful file tools wrote, edited
/// or deleted; `difference` has every change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TaskResult {
    /// The id of the run.
    pub run: RunId,
    /// The task's title.
    pub title: String,
    /// The reason why the run ended.
    pub reason: Reason,
    /// The reason in the terms common for agent loops.
    pub done_reason: String,
    /// The exit code for this reason.
    pub exit_code: u8,
    /// True if the last verdict passed, or verification was skipped on purpose. `verification` says
    /// which.
    pub verified: bool,
    /// The result of the gate.
    pub verification: Verification,
    /// True if the run ended because of a stop request.
    pub cancelled: bool,
    /// The source of a stop request. It is set even if the run was already on the way to its report
    /// and ended normally.
    pub stopped_by: Option<StopCause>,
    /// One line on why the run ended.
    pub message: String,
    /// The model's last text.
    pub summary: String,
    /// The final answer as JSON, if the task requires one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// Every attempt that reached the gate, with its verdict.
    pub attempts: Vec<Attempt>,
    /// Model calls that completed, including those of sub-agents.
    pub turns: u64,
    /// Files that file tools changed, sorted by path.
    pub files_changed: Vec<FileChange>,
    /// The difference between the base and the tree that passed, or else the files that the run
    /// left. It includes changes from every source. `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Box<TreeDifference>>,
    /// The limits of the run.
    pub limits: Limits,
    /// Tokens and requests, in total and by model.
    pub usage: ModelUsage,
    /// Tool calls by tool name.
    pub tools: BTreeMap<String, ToolTally>,
    /// Warnings; at most 100 of the run's own.
    pub warnings: Vec<String>,
    /// Notes of hooks to the model, with their output; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
    /// Changes of protected paths that were reverted or refused, by path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<HeldBack>,
    /// Changes in the workspace during the run that are not in the tree. They were not judged and
    /// are not delivered.
    #[serde(default, skip_serializing_if = "OutsideTree::is_empty")]
    pub outside_tree: OutsideTree,
    /// The digest of the frozen gate; empty without a gate.
    pub gate_digest: String,
    /// The tree before the agent's work. `None` if the run ended before planning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<TreeId>,
    /// The tree that passed the gate, if the newest verdict is a pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeId>,
    /// The commit of that tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The full name of the commit's branch; `None` also for a detached head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The tree of the workspace's folder in the commit, if it differs from `tree`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_tree: Option<TreeId>,
    /// The run's own worktree, and its state at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Workplace>,
    /// The sandbox around the agent. `None` if none was needed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxKind>,
    /// True if the agent could reach the network from the sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// Time from the start to the last event, in milliseconds.
    pub duration_ms: u64,
}

impl TaskResult {
    /// Returns the paths that the run changed: those that differ from the base. If the difference
    /// is unknown, the paths that file tools changed.
    pub fn changed_paths(&self) -> impl Iterator<Item = &str> {
        let differing =
            self.difference.iter().flat_map(|difference| &difference.changes).map(|file| file.path.as_str());
        let by_tools = self.files_changed.iter().filter(|_| self.difference.is_none()).map(|file| file.path.as_str());
        differing.chain(by_tools)
    }
}

impl Run {
    /// Returns the result of the run, or `None` while it has not ended.
    pub fn result(&self) -> Option<TaskResult> {
        let ended = self.state.ended()?;
        Some(task_result(ended, &self.context))
    }
}

fn task_result(ended: &EndedRun, cx: &RunContext) -> TaskResult {
    let partial_text = Some(ended.partial_text.clone()).filter(|partial_text| !partial_text.trim().is_empty());
    TaskResult {
        run: cx.spec.run.clone(),
        title: cx.spec.title.clone(),
        reason: ended.reason,
        done_reason: ended.reason.row().done_reason.into(),
        exit_code: ended.reason.exit_code(ended.stopped_by),
        verified: ended.is_verified(),
        verification: verification(ended.reason, cx),
        cancelled: ended.is_cancelled(),
        stopped_by: ended.stopped_by,
        message: ended.message.clone(),
        summary: partial_text.or_else(|| cx.transcript.last_said()).unwrap_or_default(),
        answer: cx.answer.clone(),
        attempts: cx.ledger.attempts.clone(),
        turns: cx.ledger.turns.saturating_add(cx.ledger.child_turns),
        files_changed: cx.ledger.files.values().cloned().collect(),
        difference: cx.difference.clone(),
        limits: cx.spec.limits.clone(),
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

/// Returns the protected paths that were reverted in any attempt or that tools refused to change,
/// once each.
fn protected(cx: &RunContext) -> Vec<HeldBack> {
    let found = cx.ledger.attempts.iter().flat_map(|attempt| attempt.verdict.findings.iter());
    let found = found.map(|finding| HeldBack::new(&finding.path, &finding.change, &finding.rule));
    let refused = cx.ledger.refused.iter().map(|(path, rule)| HeldBack::new(path, "refused", rule));
    let by_path: BTreeMap<String, HeldBack> = refused.chain(found).map(|held| (held.path.clone(), held)).collect();
    by_path.into_values().collect()
}

/// Returns the warnings of the run, with one more if the cost leaves out models without a price.
fn warnings(cx: &RunContext) -> Vec<String> {
    let mut warnings = cx.ledger.warnings.clone();
    let unpriced = cx.ledger.usage.unpriced();
    if !unpriced.is_empty() {
        warnings.push(format!("the cost leaves out models without a known price: {}", unpriced.join(", ")));
    }
    warnings
}

/// Returns the result of the gate: from the reason where it determines it, else from the last
/// verdict.
fn verification(reason: Reason, cx: &RunContext) -> Verification {
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
