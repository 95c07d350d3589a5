//! Watching the files of a project. fledge compares the files with their state at its previous
//! check. The kernel's notifications only say where to check, so a superfluous notification costs
//! one check and has no other effect.

mod debounce;
mod fs_events;
mod rules;
mod tree;

use crate::process::Stopwatch;
use debounce::Debouncer;
use fs_events::FsHints;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::{JoinError, spawn_blocking};
use tree::WatchedTree;

/// The shortest time between two checks without notifications.
const POLL: Duration = Duration::from_secs(2);
/// The time between two checks is at least this multiple of the duration of a check.
const POLL_SHARE: u32 = 20;

/// The changed paths, relative to the root, each with its kind of change.
pub type FileEvents = BTreeMap<PathBuf, FileEvent>;

/// The kind of change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileEvent {
    /// The content, mode or type of the file changed, the file is new or unknown, or the file is
    /// gone.
    Altered,
    /// The file was written, with the same content as before.
    Rewritten,
}

/// A watched project.
#[derive(Debug)]
pub struct ProjectWatch {
    tree: Arc<Mutex<WatchedTree>>,
    hints: Arc<FsHints>,
    /// The duration of the latest check.
    took: Duration,
    /// True if [`ProjectWatch::note`] has returned its note.
    has_said: bool,
}

/// An error that ends the watching of a project.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The folder does not exist, or no longer exists.
    #[error("the folder {} is gone or cannot be read", .0.display())]
    Gone(PathBuf),
    /// The task that checks the files failed.
    #[error("looking for changed files failed")]
    Broken(#[source] JoinError),
}

impl ProjectWatch {
    /// Starts to watch the files below `root`, an absolute path without symbolic links. Changes
    /// after this call are reported.
    ///
    /// Ignored are: files that its ignore files exclude, files of version control systems, and
    /// files below the folders `apart`.
    ///
    /// # Errors
    ///
    /// When `root` cannot be read. Missing notifications from the kernel are not an error: then
    /// fledge checks all files at intervals.
    pub async fn start(root: &Path, apart: Vec<PathBuf>) -> Result<Self, WatchError> {
        let hints = Arc::new(FsHints::default());
        let tree = WatchedTree::new(root.to_owned(), apart, Arc::clone(&hints));
        let mut watch = Self { tree: Arc::new(Mutex::new(tree)), hints, took: Duration::ZERO, has_said: false };
        watch.look().await?;
        Ok(watch)
    }

    /// Returns a note for users if the kernel sends no notifications. Later calls return `None`.
    pub fn note(&mut self) -> Option<String> {
        let why = self.tree().deaf_because()?.to_owned();
        let every = self.pause().as_secs();
        (!std::mem::replace(&mut self.has_said, true)).then(|| format!("{why}: looking every {every}s instead"))
    }

    /// Waits until files have changed and then nothing changes for a short time. Dropping the
    /// future loses no change.
    ///
    /// # Errors
    ///
    /// When the root is gone.
    pub async fn changed(&mut self) -> Result<FileEvents, WatchError> {
        loop {
            self.lull(false).await;
            let changes = self.look().await?;
            if !changes.is_empty() {
                return Ok(changes);
            }
        }
    }

    /// Waits until nothing changes for a short time, and returns all changes up to then. The wait
    /// ensures that notifications of very recent changes have arrived.
    ///
    /// # Errors
    ///
    /// When the root is gone.
    pub async fn wait_until_quiet(&mut self) -> Result<FileEvents, WatchError> {
        self.lull(true).await;
        self.look().await
    }

    /// Waits for the end of a burst of notifications. The burst has begun already, or begins with
    /// the first notification.
    async fn lull(&mut self, has_begun: bool) {
        let clock = Stopwatch::start();
        let is_deaf = self.tree().deaf_because().is_some();
        let is_late = self.tree().is_behind();
        let mut lull = (has_begun || is_late).then(Debouncer::default);
        loop {
            let rest = match &lull {
                Some(lull) => lull.over().saturating_sub(clock.read()),
                None if is_deaf => self.pause(),
                None => Duration::MAX,
            };
            tokio::select! {
                notice = self.hints.next() => if self.tree().add_notice(notice) {
                    let now = clock.read();
                    lull.get_or_insert_with(|| Debouncer::from(now)).heard(now);
                },
                () = tokio::time::sleep(rest) => return,
            }
        }
    }

    /// Returns the time between two checks without a notification.
    fn pause(&self) -> Duration {
        POLL.max(self.took * POLL_SHARE)
    }

    /// Checks the paths that notifications named, on a thread that may block.
    async fn look(&mut self) -> Result<FileEvents, WatchError> {
        let (tree, clock) = (Arc::clone(&self.tree), Stopwatch::start());
        let look = move || tree.lock().unwrap_or_else(PoisonError::into_inner).look();
        spawn_blocking(look).await.map_err(WatchError::Broken)??;
        self.took = clock.read();
        Ok(self.tree().take_changes())
    }

    fn tree(&self) -> MutexGuard<'_, WatchedTree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
