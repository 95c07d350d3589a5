//! Watcher of the task folder. Without it, a new task that is due soon could miss its time, since
//! scans run only once a minute.

use super::tasks::FOLDER;
#[cfg(feature = "cli")]
use crate::file_watch::ProjectWatch;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::sleep;

/// The time between two checks for a folder that does not exist yet.
const POLL: Duration = Duration::from_secs(2);

/// Stands in for the watcher in builds without the `cli` feature. These scan for tasks once a
/// minute.
#[cfg(not(feature = "cli"))]
#[derive(Debug)]
enum ProjectWatch {}

#[cfg(not(feature = "cli"))]
impl ProjectWatch {
    async fn start(_: &Path, _: Vec<PathBuf>) -> Result<Self, ()> {
        Err(())
    }

    async fn changed(&mut self) -> Result<(), ()> {
        pending().await
    }
}

/// The task folder of a workspace, which may not exist.
#[derive(Debug)]
pub(super) struct TasksFolder {
    path: PathBuf,
    watch: Option<ProjectWatch>,
}

impl TasksFolder {
    pub(super) fn new(workspace: &Path) -> Self {
        Self { path: workspace.join(FOLDER), watch: None }
    }

    /// Starts watching, unless it already does or the folder does not exist.
    pub(super) async fn listen(&mut self) {
        if self.watch.is_none()
            && let Ok(path) = self.path.canonicalize()
        {
            self.watch = ProjectWatch::start(&path, Vec::new()).await.ok();
        }
    }
}

/// Waits until the folder changes, appears or disappears.
pub(super) async fn changed(folder: Option<&mut TasksFolder>) {
    let Some(TasksFolder { path, watch }) = folder else { return pending().await };
    match watch {
        Some(it) => {
            if it.changed().await.is_err() {
                *watch = None; // the folder is gone
            }
        }
        None if path.is_dir() => pending().await, // cannot be watched
        None => {
            while !path.is_dir() {
                sleep(POLL).await;
            }
        }
    }
}
