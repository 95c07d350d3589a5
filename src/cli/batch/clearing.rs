//! Removes worktrees of runs that nobody goes on with: those of beaten candidates, and those of an evaluation.

use crate::config::Environment;
use crate::driver::{Stop, kept_as, trees};
use crate::id::RunId;
use crate::run::{Workplace, WorkplaceState};
use crate::workspace::worktree::Record;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a removal goes on once the user wants all of it to stop.
const IN_HASTE: Duration = Duration::from_millis(100);

/// The worktree that a run has left, with work in it that is not committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leftover {
    pub(super) run: RunId,
    pub(super) folder: PathBuf,
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
    /// Removes it with all that is in it; with `unless_lost` only where the state of its files is kept. What stays is found by
    /// `fledge worktrees`.
    pub(super) async fn clear(&self, left: &Leftover, unless_lost: bool) {
        let own = CancellationToken::new();
        let late = async {
            self.stop.token().cancelled().await;
            tokio::time::sleep(IN_HASTE).await;
            own.cancel();
        };
        let removed = tokio::select! {
            biased;
            removed = self.remove(left, unless_lost, &own) => removed,
            () = late => Ok(()),
        };
        if let Err(error) = removed {
            tracing::warn!(%error, folder = %left.folder.display(), "a worktree stays");
        }
    }

    async fn remove(&self, left: &Leftover, unless_lost: bool, stop: &CancellationToken) -> Result<(), Box<dyn Error>> {
        let Some(record) = Record::read(&left.folder)? else { return Ok(()) };
        let env: Vec<(String, String)> = self.environment.hand_env().into_iter().collect();
        if unless_lost {
            let path = env.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path.as_str());
            let trees = trees(self.state_dir, self.workspace, path, stop).await?;
            if trees.kept(&kept_as(&left.run, "candidate"), stop).await?.is_none() {
                return Ok(());
            }
        }
        let scratch = tempfile::tempdir()?;
        record.remove(true, &env, scratch.path(), stop).await?;
        Ok(())
    }
}

/// What is left of a worktree now.
pub(super) fn as_it_is(worktree: Workplace) -> Workplace {
    let stays = matches!(worktree.state, WorkplaceState::Kept | WorkplaceState::Unclear);
    let is_gone = stays && !Path::new(&worktree.path).exists();
    if is_gone { worktree.removed(false) } else { worktree }
}
