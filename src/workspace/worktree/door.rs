//! One at a time: git makes and removes worktrees of one repository with files that others read meanwhile, and trips over those that are
//! half there. Whoever does either holds the repository's own git directory, across all processes.

use super::WorktreeFault;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

use crate::workspace::trees::TreesFault;

/// How long one waits between two tries: as long as it takes to make one.
const PAUSE: Duration = Duration::from_millis(8);
/// The longest that one waits for all others: hundreds take seconds.
const PATIENCE: Duration = Duration::from_secs(600);

/// The right to make and remove worktrees of a repository, until it is dropped; the system lets go of it when this process is gone.
#[derive(Debug)]
pub(super) struct Door {
    _folder: Option<File>,
}

impl Door {
    /// Waits for it. `git_dir` is the repository's own, which its worktrees have in common.
    pub(super) async fn open(git_dir: &Path, stop: &CancellationToken) -> Result<Self, WorktreeFault> {
        let folder = File::open(git_dir).map_err(WorktreeFault::io("open", git_dir))?;
        let wait = async {
            loop {
                match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                    Ok(()) => return true,
                    Err(Errno::WOULDBLOCK | Errno::INTR) => tokio::time::sleep(PAUSE).await,
                    Err(_) => return false, // this file system knows no locks: git's own have to do
                }
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => Err(TreesFault::Stopped.into()),
            held = tokio::time::timeout(PATIENCE, wait) => match held {
                Ok(is_held) => Ok(Self { _folder: is_held.then_some(folder) }),
                Err(_) => Err(WorktreeFault::Busy { git_dir: git_dir.to_owned() }),
            },
        }
    }
}
