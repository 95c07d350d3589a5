//! Removes what is left of runs that nobody goes on with: worktrees, branches and commits of turns of beaten candidates, and worktrees of an
//! evaluation.

use crate::config::Environment;
use crate::driver::{Stop, kept_as, project_of, terms, trees};
use crate::id::RunId;
use crate::run::{Workplace, WorkplaceState};
use crate::store::Store;
use crate::workspace::delivery::Repository;
use crate::workspace::worktree::Record;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a removal goes on once the user wants all of it to stop.
const IN_HASTE: Duration = Duration::from_millis(100);

/// What a run has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leftover {
    pub(super) run: RunId,
    /// Its worktree, with work in it that is not committed.
    pub(super) folder: Option<PathBuf>,
    /// What it has committed, on a branch of its own.
    pub(super) commit: Option<String>,
}

/// Whose leavings these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// A candidate that was beaten: its worktree stays where the state of its files is not kept.
    Beaten,
    /// A run of an evaluation, which delivers nothing.
    Measured,
}

/// Where it is, and from where it is seen.
#[derive(Debug)]
pub(super) struct Clearing<'c> {
    pub(super) state_dir: &'c Path,
    pub(super) workspace: &'c Path,
    pub(super) environment: &'c Environment,
    pub(super) stop: &'c Stop,
}

impl Clearing<'_> {
    /// Removes it. What stays is found by `fledge worktrees` and `git branch`.
    pub(super) async fn clear(&self, left: &Leftover, of: Of) {
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

    async fn remove(&self, left: &Leftover, of: Of, stop: &CancellationToken) -> Result<(), Box<dyn Error>> {
        let env: Vec<(String, String)> = self.environment.hand_env().into_iter().collect();
        let scratch = tempfile::tempdir()?;
        // The record is beside the folder that the worktree is in.
        let outer = left.folder.as_deref().and_then(Path::parent);
        let record = outer.map(Record::read).transpose()?.flatten();
        if of == Of::Measured {
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
        if let Some(repository) = Repository::around(&trees, &env, stop).await? {
            repository.forget_turns(&left.run, stop).await?;
        }
        Ok(())
    }
}

/// What is left of a worktree now.
pub(super) fn as_it_is(worktree: Workplace) -> Workplace {
    let stays = matches!(worktree.state, WorkplaceState::Kept | WorkplaceState::Unclear);
    let is_gone = stays && !Path::new(&worktree.path).exists();
    if is_gone { worktree.removed(false) } else { worktree }
}
