//! All that a project says about lanes: its files as they were read, and the lanes that are made of them.

use super::compile::compile;
use super::draft::{Draft, Task};
use super::{Lane, file};
use crate::yaml::Problems;
use std::collections::BTreeMap;
use std::fmt;

/// Everything that is wrong with a lane; shown with one problem a line, each with its file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaneFault {
    /// What is wrong, by the file as it was named by the caller.
    pub files: BTreeMap<String, Problems>,
}

impl fmt::Display for LaneFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<String> = self.files.iter().map(|(path, problems)| problems.within(path).to_string()).collect();
        f.write_str(&files.join("\n"))
    }
}

impl std::error::Error for LaneFault {}

/// A project's lanes and tasks. A file that is wrong is only a problem for the lanes that need it.
#[derive(Debug, Clone, Default)]
pub struct Book {
    pub(super) lanes: BTreeMap<String, Chapter>,
    /// Tasks for all lanes, each with its file.
    pub(super) tasks: BTreeMap<String, (String, Task)>,
    broken: BTreeMap<String, Problems>,
}

/// One file with a lane.
#[derive(Debug, Clone)]
pub(super) struct Chapter {
    pub(super) path: String,
    pub(super) draft: Result<Draft, Problems>,
}

impl Book {
    /// Adds the file of a lane. A later one of the same name takes its place.
    pub fn add_lane(&mut self, name: &str, path: &str, text: &str) {
        let chapter = Chapter { path: path.to_owned(), draft: file::draft(text) };
        self.lanes.insert(name.to_owned(), chapter);
    }

    /// Adds the `tasks:` of a file that has other things too.
    pub fn add_tasks(&mut self, path: &str, text: &str) {
        match file::tasks(text) {
            Ok(tasks) => {
                let tasks = tasks.unwrap_or_default().into_iter();
                self.tasks.extend(tasks.map(|(name, task)| (name, (path.to_owned(), task))));
            }
            Err(problems) => drop(self.broken.insert(path.to_owned(), problems)),
        }
    }

    /// The names of the lanes, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.lanes.keys().map(String::as_str)
    }

    /// Whether there is a lane of this name.
    pub fn has(&self, name: &str) -> bool {
        self.lanes.contains_key(name)
    }

    /// Makes a lane of what is written, with tasks and included lanes in their place. Not for a name that is not there.
    ///
    /// # Errors
    /// Every problem of every file that the lane needs.
    pub fn lane(&self, name: &str) -> Result<Lane, LaneFault> {
        if !self.broken.is_empty() {
            return Err(LaneFault { files: self.broken.clone() });
        }
        compile(self, name)
    }
}
