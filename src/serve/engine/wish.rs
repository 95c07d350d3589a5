//! What somebody wishes to have done, and who makes a task of it and says with what it is done.

use crate::driver::Settings;
use crate::id::RunId;
use crate::task::{Isolation, Task};
use crate::verdict::Reason;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The task.
    pub task: TaskOf,
    /// Values for its parameters.
    pub params: BTreeMap<String, String>,
    /// The same for the same wish, so that it can be said twice and is done once.
    pub key: Option<String>,
}

/// Where a task is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskOf {
    /// Its whole text.
    Text(String),
    /// A file of the workspace, by its path from there.
    Path(String),
}

/// A wish that was found to be sound, as it waits for its turn: all that a run is made of later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// The task's text, as it was when it was asked for.
    pub text: String,
    /// Where it is from: a whole path, or `-`.
    pub source: String,
    /// Values for its parameters.
    pub params: BTreeMap<String, String>,
    /// The name that was given to the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The task's title.
    pub title: String,
    /// The SHA-256 digest of what the model is asked, in hexadecimal.
    pub task_digest: String,
    /// When it was asked for, in milliseconds since 1970.
    pub at_ms: i64,
}

/// A task that cannot be run as it is written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unfit {
    /// In a few words.
    pub message: String,
    /// Each thing that is wrong with its text.
    pub flaws: Vec<Flaw>,
}

/// Something that is wrong with a task's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Flaw {
    /// Its line, from 1.
    pub line: usize,
    /// Its column, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

/// A run that cannot be begun, or not be gone on with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The reason whose exit code says it.
    pub reason: Reason,
    /// Why, in one line.
    pub message: String,
}

/// Who makes tasks of wishes. Each of these may block, and is called where that harms nobody.
pub trait Source: fmt::Debug + Send + Sync {
    /// Looks whether what is asked for can be done; nothing is begun.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    fn check(&self, asked: &Asked, now_ms: i64) -> Result<Wish, Unfit>;

    /// The task of a wish, and with what it is done, but for who is asked.
    ///
    /// # Errors
    /// When it cannot be begun.
    fn begin(&self, wish: &Wish) -> Result<(Task, Settings), Refusal>;

    /// The search path in which git is found.
    fn search_path(&self) -> String;

    /// Where a run works, and with what it is gone on with, but for who is asked.
    ///
    /// # Errors
    /// When that cannot be done.
    fn resume(&self, run: &RunId) -> Result<(Isolation, Settings), Refusal>;
}
