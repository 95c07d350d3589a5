//! Removal of what finished runs left behind: worktrees, branches and turn commits of beaten
//! candidates, and worktrees of an evaluation.

use crate::config::EnvironmentLayer;
use crate::driver::{StopToken, kept_as, project_of, terms, trees};
use crate::id::RunId;
use crate::run::{Workplace, WorkplaceState};
use crate::store::Store;
use crate::workspace::delivery::UserRepository;
use crate::workspace::worktree::WorktreeRecord;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The time that a removal may still take after the user asked to stop.
const IN_HASTE: Duration = Duration::from_millis(100);

/// The remains of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leftover {
    pub(super) run: RunId,
    /// The worktree, if it holds uncommitted work.
    pub(super) folder: Option<PathBuf>,
    /// The commit on the run's own branch.
    pub(super) commit: Option<String>,
}

/// The kind of run that the remains belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeftoverOwner {
    /// A beaten candidate. Its worktree stays if the state of its files is not stored.
    Beaten,
    /// A run of an evaluation, which delivers nothing.
    Measured,
}

/// The context of a removal.
#[derive(Debug)]
pub(super) struct Cleanup<'c> {
    pub(super) state_dir: &'c Path,
    pub(super) workspace: &'c Path,
    pub(super) environment: &'c EnvironmentLayer,
    pub(super) stop: &'c StopToken,
}

impl Cleanup<'_> {
    /// Removes the remains. `fledge worktrees` and `git branch` still find what could not be
    /// removed.
    pub(super) async fn clear(&self, left: &Leftover, of: LeftoverOwner) {
        let own = CancellationToken::new();
        let late = async {
            self.stop.token().cancelled().await;
            tokio::time::sleep(IN_HASTE).await;
            own.cancel();
        };
        let removed = tokio::select! {
            biased;
            removed = self.remove(left, of, &own) => removed,
            () = late => Ok(()),
        };
        if let Err(error) = removed {
            tracing::warn!(%error, run = %left.run, "something of a run stays");
        }
    }

    async fn remove(&self, left: &Leftover, of: LeftoverOwner, stop: &CancellationToken) -> Result<(), Box<dyn Error>> {
        let env: Vec<(String, String)> = self.environment.hand_env().into_iter().collect();
        let scratch = tempfile::tempdir()?;
        // The record is next to the folder that contains the worktree.
        let outer = left.folder.as_deref().and_then(Path::parent);
        let record = outer.map(WorktreeRecord::read).transpose()?.flatten();
        if of == LeftoverOwner::Measured {
            if let Some(record) = record {
                record.remove(true, &env, scratch.path(), stop).await?;
            }
            return Ok(());
        }
        let path = env.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path.as_str());
        let trees = trees(self.state_dir, self.workspace, path, stop).await?;
        if let Some(record) = record {
            if trees.kept(&kept_as(&left.run, "candidate"), stop).await?.is_none() {
                return Ok(());
            }
            record.remove(true, &env, scratch.path(), stop).await?;
        }
        let store = Store::open(self.state_dir, &project_of(self.state_dir, self.workspace))?;
        let worktree = terms(&store, &left.run)?.1.worktree;
        if let (Some(worktree), Some(commit)) = (worktree, &left.commit) {
            worktree.forget_branch(commit, &env, scratch.path(), stop).await?;
        }
        if let Some(repository) = UserRepository::around(&trees, &env, stop).await? {
            repository.forget_turns(&left.run, stop).await?;
        }
        Ok(())
    }
}

/// Marks a worktree as removed if its folder no longer exists.
pub(super) fn as_it_is(worktree: Workplace) -> Workplace {
    let stays = matches!(worktree.state, WorkplaceState::Kept | WorkplaceState::Unclear);
    let is_gone = stays && !Path::new(&worktree.path).exists();
    if is_gone { worktree.removed(false) } else { worktree }
}
