//! Storage outside the workspace: for each project a folder with a database, and in it a folder for
//! each run. The store takes serialized data and does not know its meaning. Only this module
//! contains SQL.

mod chain;
mod durations;
mod error;
mod events;
mod files;
mod folder;
mod jobs;
mod journal;
mod lock;
mod memory;
mod monitors;
mod prune;
mod queue;
mod received;
mod runs;
mod schema;
mod unsent;
mod words;

pub use crate::run::{RunHead, RunOutcome, RunRow, StoredRunState};
pub use durations::Durations;
pub use error::StoreError;
pub use events::{JournalEvents, JournalRecord};
pub use files::{NotUtf8, clear, is_inside, make_private, read_text, sha256, write_new, write_shared, write_whole};
pub use folder::{LaneDir, RunDir, forget_lane_logs, project_dir};
pub use jobs::{StoredJob, StoredJobEnd, StoredJobRun};
pub use journal::Journal;
pub use lock::RunHold;
pub use memory::{ForgetSelector, StoredMemory};
pub use monitors::{CheckInRow, MonitorChange, MonitorRow, MonitorView, MonitorWrite, NewsRow};
pub use prune::{Pruned, Retention};
pub use queue::SqliteQueue;
pub use received::{SyncDelivery, Untaken};
pub use runs::{RunListFilter, RunProperty, TaskCopy};
pub use unsent::{Unsent, WhichUnsent};

use crate::id::RunId;
use rusqlite::Connection;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The store of one project. Any number of stores may be open at once, in any number of processes.
#[derive(Debug)]
pub struct Store {
    db: Connection,
    project: PathBuf,
}

impl Store {
    /// Opens the store of the project at `workspace`, which must be a canonical path. Creates a
    /// missing store.
    ///
    /// # Errors
    /// When the store cannot be read or written, or its database belongs to another program or a
    /// newer fledge.
    pub fn open(state: &Path, workspace: &Path) -> Result<Self, StoreError> {
        let project = project_dir(state, workspace);
        files::make_safely(&project.join("runs"))?;
        Ok(Self { db: schema::open(&project.join(schema::FILE))?, project })
    }

    /// Opens a store like [`Store::open`], but only if it exists. Otherwise returns `Ok(None)` and
    /// creates nothing.
    ///
    /// # Errors
    /// The errors of [`Store::open`].
    pub fn existing(state: &Path, workspace: &Path) -> Result<Option<Self>, StoreError> {
        Self::of(project_dir(state, workspace))
    }

    /// Opens the stores of all projects, sorted by the names of their folders. Returns each store,
    /// or the error of opening it.
    ///
    /// # Errors
    /// When the state folder cannot be read.
    pub fn all(state: &Path) -> Result<Vec<Result<Self, StoreError>>, StoreError> {
        let fail = |source| StoreError::new("read the folder", state, source);
        let entries = match std::fs::read_dir(state) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(fail)?,
        };
        let mut folders =
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().map_err(fail)?;
        folders.sort();
        Ok(folders.into_iter().filter_map(|folder| Self::of(folder).transpose()).collect())
    }

    fn of(project: PathBuf) -> Result<Option<Self>, StoreError> {
        let path = project.join(schema::FILE);
        if !path.exists() {
            return Ok(None);
        }
        Ok(Some(Self { db: schema::open(&path)?, project }))
    }

    /// Returns the folder of a run, which may not exist.
    pub fn folder(&self, run: &RunId) -> RunDir {
        RunDir::new(&self.project, run)
    }

    fn path(&self) -> PathBuf {
        self.project.join(schema::FILE)
    }

    fn fault(&self, verb: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
        let path = self.path();
        move |error| StoreError::database(verb, &path, error)
    }
}

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod prune_tests;
#[cfg(test)]
mod received_tests;
#[cfg(test)]
mod tests;
