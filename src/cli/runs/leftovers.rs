//! The trees of a run: its base and its result, and the current workspace to compare them with.

use super::super::failure::CliError;
use super::super::paint::{self, Tone};
use super::resume::workspace_of;
use super::{RunsContext, story};
use crate::config::EnvironmentLayer;
use crate::driver::{kept_as, terms, trees};
use crate::id::TreeId;
use crate::report::story::{RunStory, SceneKind};
use crate::run::TaskResult;
use crate::store::{RunRow, StoredRunState};
use crate::verdict::{Proof, Reason, Verification};
use crate::workspace::delivery::DeliveryError;
use crate::workspace::trees::{Trees, TreesError};
use anyhow::anyhow;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// The maximum number of paths named in a message.
const NAMED: usize = 10;

/// A run and its trees.
#[derive(Debug)]
pub(super) struct LeftRun {
    pub(super) row: RunRow,
    pub(super) story: RunStory,
    pub(super) trees: Trees,
    /// The user's environment.
    pub(super) env: Vec<(String, String)>,
    pub(super) base: TreeId,
    /// The tree that the gate passed, or else the newest stored state of the workspace.
    pub(super) candidate: Option<TreeId>,
    /// The worktree of the run, if it no longer exists. Then no current state can be compared.
    gone: Option<PathBuf>,
    pub(super) stop: CancellationToken,
}

/// The workspace to compare a run with. The choice matters for a run with its own worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkspaceView {
    /// The folder in which the run worked.
    WhereItWorked,
    /// The checkout from which the run was started.
    FromHome,
}

/// A run that passed its gate, according to its complete journal.
#[derive(Debug)]
pub(super) struct VerifiedRun {
    pub(super) result: TaskResult,
    pub(super) tree: TreeId,
    /// The proof of the pass.
    pub(super) proof: Proof,
}

impl LeftRun {
    /// Finds a run by its name, and its trees.
    pub(super) async fn find(
        shelf: &RunsContext,
        name: &str,
        seen: WorkspaceView,
        environment: &EnvironmentLayer,
        stop: CancellationToken,
    ) -> Result<Self, CliError> {
        let (store, row) = shelf.find(name)?;
        let (story, failure) = story(&store, &row);
        failure.map_or(Ok(()), Err)?;
        let worktree =
            terms(&store, &row.head.id).map_err(|fault| CliError::because(fault.reason(), fault))?.1.worktree;
        let gone = worktree.as_ref().map(|worktree| worktree.folder.clone()).filter(|folder| !folder.exists());
        let workspace = match worktree {
            Some(worktree) if gone.is_some() || seen == WorkspaceView::FromHome => worktree.project,
            Some(_) | None => workspace_of(shelf, &row)?,
        };
        let gone = gone.filter(|_| seen == WorkspaceView::WhereItWorked);
        let env: Vec<(String, String)> = environment.hand_env().into_iter().collect();
        let path = env.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path.as_str());
        let trees = trees(&shelf.state, &workspace, path, &stop).await.map_err(broken)?;
        let kept = async |what: &str| trees.kept(&kept_as(&row.head.id, what), &stop).await.map_err(broken);
        let result = story.run.result();
        let candidate = match result.and_then(|result| result.tree) {
            Some(tree) => Some(tree),
            None => kept("candidate").await?,
        };
        let base = match story.run.base().cloned() {
            Some(base) => Some(base),
            None => kept("base").await?,
        };
        let Some(base) = base else {
            let error = anyhow!("no files of run {} are kept", row.head.id);
            return Err(CliError::input(error).hint("the run ended before planning"));
        };
        trees.resume(&base, &stop).await.map_err(broken)?;
        Ok(Self { row, story, trees, env, base, candidate, gone, stop })
    }

    /// Fails if a process drives the run.
    pub(super) fn must_rest(&self) -> Result<(), CliError> {
        match &self.row.state {
            StoredRunState::Running { holder } => {
                let error = anyhow!("run {} is in progress: driven by {holder}", self.row.head.id);
                Err(CliError::because(Reason::Blocked, error))
            }
            StoredRunState::Interrupted | StoredRunState::Ended(_) => Ok(()),
        }
    }

    /// Fails unless the run passed its gate with a proof that names the stored trees.
    pub(super) async fn verified(&self) -> Result<VerifiedRun, CliError> {
        let run = &self.row.head.id;
        let no = |why: &str| refused(anyhow!("run {run} {why}"));
        let StoredRunState::Ended(_) = self.row.state else { return Err(no("has not ended")) };
        let result = self.story.run.result().ok_or_else(|| no("has not ended"))?;
        if !result.verified || result.verification != Verification::Passed {
            return Err(no(&format!("was not verified: it ended as `{}`", result.reason.label())));
        }
        let proof = result.attempts.last().and_then(|attempt| attempt.verdict.proof.as_deref());
        let proof = proof.ok_or_else(|| no("has no proof that names a tree"))?;
        let is_whole =
            Some(&proof.tree) == result.tree.as_ref() && proof.base == self.base && proof.lanes == result.gate_digest;
        if !is_whole {
            return Err(no("has a proof that names other trees or lanes than the run"));
        }
        for tree in [&proof.tree, &proof.base] {
            if !self.trees.has(tree, &self.stop).await.map_err(broken)? {
                return Err(no(&format!("has the tree {tree}, which no longer exists")));
            }
        }
        let (tree, proof) = (proof.tree.clone(), proof.clone());
        Ok(VerifiedRun { result, tree, proof })
    }

    /// Returns the tree after a turn.
    pub(super) async fn turn(&self, turn: u64) -> Result<TreeId, CliError> {
        let name = kept_as(&self.row.head.id, &format!("turn-{turn}"));
        let kept = self.trees.kept(&name, &self.stop).await.map_err(broken)?;
        let number = |what: &SceneKind| {
            if let SceneKind::Checkpoint { turn, .. } = what { Some(format!("turn-{turn}")) } else { None }
        };
        kept.ok_or_else(|| {
            let known: Vec<String> = self.story.scenes.iter().filter_map(|scene| number(&scene.what)).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let error = anyhow!("run {} has no checkpoint turn-{turn} (known: {known})", self.row.head.id);
            CliError::input(error).hint("only turns that changed files have a checkpoint")
        })
    }

    /// Takes the tree of the current workspace.
    pub(super) async fn now(&self) -> Result<TreeId, CliError> {
        if let Some(folder) = &self.gone {
            let run = &self.row.head.id;
            let error = anyhow!("run {run} worked in {}, which is gone: no checkout was changed", folder.display());
            return Err(
                CliError::input(error).hint(format!("use `fledge runs diff {run}` or `fledge apply {run}` instead"))
            );
        }
        Ok(self.trees.take(&self.stop).await.map_err(broken)?.tree)
    }

    /// Writes a tree into the workspace, and stores the state before. Returns the tree of that
    /// state.
    pub(super) async fn put(&self, tree: &TreeId) -> Result<TreeId, CliError> {
        // Stored before anything is written, so that nothing is lost in any case.
        let before = self.now().await?;
        let short = before.as_str().get(..12).unwrap_or_default();
        let name = kept_as(&self.row.head.id, &format!("before-{short}"));
        self.trees.keep(&name, &before, &self.stop).await.map_err(broken)?;
        // Printed before the write, because the user needs the command if the write is interrupted.
        let back = format!("fledge runs undo {} --to {before}", self.row.head.id);
        paint::line(&[(Tone::Faint, "  back: "), (Tone::Plain, back.as_str())]);
        self.trees.put_back(tree, None, &self.stop).await.map_err(broken)
    }

    /// Returns the first few differing paths, for people.
    pub(super) async fn differing(&self, from: &TreeId, to: &TreeId) -> Result<String, CliError> {
        let changes = self.trees.changes(from, to, &self.stop).await.map_err(broken)?;
        let named: Vec<&str> = changes.iter().take(NAMED).map(|change| change.path.as_str()).collect();
        let more = changes.len().saturating_sub(NAMED);
        Ok(if more == 0 { named.join(", ") } else { format!("{} and {more} more", named.join(", ")) })
    }
}

/// Returns a refusal because of the state of the run or the checkout, with exit code 1.
pub(super) fn refused(error: anyhow::Error) -> CliError {
    CliError::because(Reason::GateFailed, error)
}

/// Returns the failure for an error of git or the disk.
pub(super) fn broken(fault: TreesError) -> CliError {
    CliError::own(fault)
}

/// Returns the failure for an error of delivery. Most of these errors come from the state of the
/// user's repository, and are refusals.
pub(super) fn not_delivered(fault: DeliveryError) -> CliError {
    match fault {
        DeliveryError::Trees(fault) => broken(fault),
        DeliveryError::NoBranch { .. } | DeliveryError::NoCommit { .. } => CliError::input(fault),
        DeliveryError::NoRepository
        | DeliveryError::Another { .. }
        | DeliveryError::Moved { .. }
        | DeliveryError::OtherWork { .. }
        | DeliveryError::CheckedOut { .. }
        | DeliveryError::Nothing
        | DeliveryError::Foreign { .. }
        | DeliveryError::Forged { .. }
        | DeliveryError::Hash
        | DeliveryError::Unfinished { .. } => refused(fault.into()),
    }
}
