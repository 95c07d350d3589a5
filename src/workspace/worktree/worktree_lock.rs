//! The lock for making and removing worktrees. Git fails on half-made and half-removed worktrees of
//! other processes in the same repository. So each process locks the repository's git directory
//! first.

use super::WorktreeError;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

use crate::workspace::trees::TreesError;

/// The wait between two tries: about the time it takes to make a worktree.
const PAUSE: Duration = Duration::from_millis(8);
/// The longest wait for all other processes: hundreds of them take seconds.
const PATIENCE: Duration = Duration::from_secs(600);

/// The lock of a repository, held until this value is dropped. The system releases it when the
/// process dies.
#[derive(Debug)]
pub(super) struct WorktreeLock {
    _folder: Option<File>,
}

impl WorktreeLock {
    /// Waits for the lock. `git_dir` is the git directory that all worktrees of the repository
    /// share.
    pub(super) async fn open(git_dir: &Path, stop: &CancellationToken) -> Result<Self, WorktreeError> {
        let folder = File::open(git_dir).map_err(WorktreeError::io("open", git_dir))?;
        let wait = async {
            loop {
                match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                    Ok(()) => return true,
                    Err(Errno::WOULDBLOCK | Errno::INTR) => tokio::time::sleep(PAUSE).await,
                    Err(_) => return false, // this file system has no locks: git's own must suffice
                }
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => Err(TreesError::Stopped.into()),
            held = tokio::time::timeout(PATIENCE, wait) => match held {
                Ok(is_held) => Ok(Self { _folder: is_held.then_some(folder) }),
                Err(_) => Err(WorktreeError::Busy { git_dir: git_dir.to_owned() }),
            },
        }
    }
}
