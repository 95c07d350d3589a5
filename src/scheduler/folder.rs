//! The folder of tasks, watched: a task that is due at once would pass without a word if it were only looked for once a minute.

use super::tasks::FOLDER;
#[cfg(feature = "cli")]
use crate::watch::Watch;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::sleep;

/// The time between two looks for a folder that is not there yet.
const POLL: Duration = Duration::from_secs(2);

/// The library alone watches no folder. It looks for tasks once a minute.
#[cfg(not(feature = "cli"))]
#[derive(Debug)]
enum Watch {}

#[cfg(not(feature = "cli"))]
impl Watch {
    async fn start(_: &Path, _: Vec<PathBuf>) -> Result<Self, ()> {
        Err(())
    }

    async fn changed(&mut self) -> Result<(), ()> {
        pending().await
    }
}

/// The folder of tasks of a workspace, which may be there or not.
#[derive(Debug)]
pub(super) struct TasksFolder {
    path: PathBuf,
    watch: Option<Watch>,
}

impl TasksFolder {
    pub(super) fn new(workspace: &Path) -> Self {
        Self { path: workspace.join(FOLDER), watch: None }
    }

    /// Hears of changes from now on, where it does not yet and the folder is there.
    pub(super) async fn listen(&mut self) {
        if self.watch.is_none()
            && let Ok(path) = self.path.canonicalize()
        {
            self.watch = Watch::start(&path, Vec::new()).await.ok();
        }
    }
}

/// Waits until something has changed in the folder, or it has come or gone.
pub(super) async fn changed(folder: Option<&mut TasksFolder>) {
    let Some(TasksFolder { path, watch }) = folder else { return pending().await };
    match watch {
        Some(it) => {
            if it.changed().await.is_err() {
                *watch = None; // it is gone
            }
        }
        None if path.is_dir() => pending().await, // it cannot be watched
        None => {
            while !path.is_dir() {
                sleep(POLL).await;
            }
        }
    }
}
