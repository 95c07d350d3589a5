//! What is kept outside the workspace: for each project a folder with a database, and in it a folder for each run. Takes what it
//! stores already serialised, and knows nothing of its meaning. SQL is named nowhere else.

mod chain;
mod durations;
mod events;
mod fault;
mod files;
mod folder;
mod journal;
mod lane_dir;
mod lock;
mod prune;
mod runs;
mod schema;

pub use durations::Durations;
pub use events::{Events, Record};
pub use fault::StoreError;
pub use files::{is_inside, make_private, read_text, sha256, write_new, write_shared, write_whole};
pub use folder::{RunDir, durations, project_dir};
pub use journal::Journal;
pub use lane_dir::LaneDir;
pub use prune::{Pruned, Retention};
pub use runs::{Filter, Outcome, RunHead, RunRow, RunState, TaskCopy};

use crate::id::RunId;
use rusqlite::Connection;
use std::path::{Path, PathBuf};

/// What is kept of one project. Any number of these may be open at once, in any number of processes.
#[derive(Debug)]
pub struct Store {
    db: Connection,
    project: PathBuf,
}

impl Store {
    /// Opens what is kept of the project at `workspace`, which must be a canonical path. Makes it where there is nothing yet, and
    /// brings a database of an older fledge up to date.
    ///
    /// # Errors
    /// When it cannot be read or written, is the database of something else, or that of a newer fledge.
    pub fn open(state: &Path, workspace: &Path) -> Result<Self, StoreError> {
        let project = project_dir(state, workspace);
        make_private(&project.join("runs"))?;
        Ok(Self { db: schema::open(&project.join(schema::FILE))?, project })
    }

    /// The folder of a run, which may not be there.
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
mod tests;
