//! Tells when files of a project change: not what a notification says, but what differs between two looks at the files. The
//! kernel's notifications only say where to look, so one too many costs a look and nothing more.

mod authors;
mod ears;
mod lull;
mod rules;
mod tree;

pub use authors::{Authors, Blame, RunEnd, Urgency};

use crate::process::Stopwatch;
use ears::Hints;
use lull::Lull;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::{JoinError, spawn_blocking};
use tree::Tree;

/// The shortest time between two looks where the kernel tells nothing.
const POLL: Duration = Duration::from_secs(2);
/// How much longer than a look itself that time is, at least.
const POLL_SHARE: u32 = 20;

/// The paths that changed, relative to the root, and how.
pub type Changes = BTreeMap<PathBuf, Change>;

/// How a file changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Its content, mode or kind is another than before or was not known before, or it is gone.
    Altered,
    /// It is new. The nearest folder around it that was there before is this one, relative to the root.
    Came(PathBuf),
    /// It was written, and has the content that it was known to have.
    Rewritten,
}

/// A project that is watched.
#[derive(Debug)]
pub struct Watch {
    tree: Arc<Mutex<Tree>>,
    hints: Arc<Hints>,
    /// What the latest look took.
    took: Duration,
    /// Whether [`Watch::note`] has said what there is to say.
    has_said: bool,
}

/// Why a project cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchFault {
    /// There is no such folder, or no more.
    #[error("the folder {} is gone or cannot be read", .0.display())]
    Gone(PathBuf),
    /// A look ended before its end.
    #[error("looking for changed files failed")]
    Broken(#[source] JoinError),
}

impl Watch {
    /// Begins to watch the files below `root`, an absolute path without links, but for those that its ignore files name, those
    /// of version control systems and those below the folders `apart`. What changes from now on is told.
    ///
    /// # Errors
    /// When `root` cannot be read. Where the kernel gives no notifications, files are looked at from time to time instead.
    pub async fn start(root: &Path, apart: Vec<PathBuf>) -> Result<Self, WatchFault> {
        let hints = Arc::new(Hints::default());
        let tree = Tree::new(root.to_owned(), apart, Arc::clone(&hints));
        let mut watch = Self { tree: Arc::new(Mutex::new(tree)), hints, took: Duration::ZERO, has_said: false };
        watch.look().await?;
        Ok(watch)
    }

    /// What people should know about how it is watched, once.
    pub fn note(&mut self) -> Option<String> {
        let why = self.tree().deaf_because()?.to_owned();
        let every = self.pause().as_secs();
        (!std::mem::replace(&mut self.has_said, true)).then(|| format!("{why}: looking every {every}s instead"))
    }

    /// Waits until something has changed and then nothing for a moment. When it is dropped before, nothing is lost.
    ///
    /// # Errors
    /// When the root is gone.
    pub async fn changed(&mut self) -> Result<Changes, WatchFault> {
        loop {
            self.lull(false).await;
            let changes = self.look().await?;
            if !changes.is_empty() {
                return Ok(changes);
            }
        }
    }

    /// Waits until nothing has changed for a moment, and tells what changed up to then: what ended just now has been heard of.
    ///
    /// # Errors
    /// When the root is gone.
    pub async fn settled(&mut self) -> Result<Changes, WatchFault> {
        self.lull(true).await;
        self.look().await
    }

    /// Waits for the end of a time in which nothing is heard; that time has begun, or begins with the first thing heard.
    async fn lull(&mut self, has_begun: bool) {
        let clock = Stopwatch::start();
        let is_deaf = self.tree().deaf_because().is_some();
        let is_late = self.tree().is_behind();
        let mut lull = (has_begun || is_late).then(Lull::default);
        loop {
            let rest = match &lull {
                Some(lull) => lull.over().saturating_sub(clock.read()),
                None if is_deaf => self.pause(),
                None => Duration::MAX,
            };
            tokio::select! {
                heard = self.hints.next() => if self.tree().hear(heard) {
                    let now = clock.read();
                    lull.get_or_insert_with(|| Lull::from(now)).heard(now);
                },
                () = tokio::time::sleep(rest) => return,
            }
        }
    }

    /// How long to wait between looks that nothing asked for.
    fn pause(&self) -> Duration {
        POLL.max(self.took * POLL_SHARE)
    }

    /// Looks where something was heard, on a thread that may block.
    async fn look(&mut self) -> Result<Changes, WatchFault> {
        let (tree, clock) = (Arc::clone(&self.tree), Stopwatch::start());
        let look = move || tree.lock().unwrap_or_else(PoisonError::into_inner).look();
        spawn_blocking(look).await.map_err(WatchFault::Broken)??;
        self.took = clock.read();
        Ok(self.tree().take_changes())
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
