//! What somebody wishes to have done, and who makes a task of it and says with what it is done.

use crate::driver::Settings;
use crate::id::RunId;
use crate::task::{GateChoice, Isolation, Task};
use crate::verdict::Reason;
use schemars::JsonSchema;
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
    /// The settings that replace those of the task.
    pub overrides: Overrides,
    /// The same for the same wish, so that it can be said twice and is done once.
    pub key: Option<String>,
}

/// Settings of a request that replace those of the task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overrides {
    /// The models, in order of preference; empty: those of the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// The lanes of the gate; empty: those of the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<String>,
    /// The most that the run may cost, in millionths of a US dollar; the smaller bound holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_micros: Option<u64>,
}

impl Overrides {
    /// Returns true if nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Sets them in a task.
    pub fn set_in(&self, task: &mut Task) {
        if !self.models.is_empty() {
            task.models.clone_from(&self.models);
        }
        if !self.lanes.is_empty() {
            task.gate = GateChoice::Lanes(self.lanes.clone());
        }
        task.budget.usd_micros = self.usd_micros.into_iter().chain(task.budget.usd_micros).min();
    }
}

/// Where a task is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskOf {
    /// Its whole text.
    Text(String),
    /// A file of the workspace, by its path from there.
    Path(String),
    /// The task of an earlier run, as that run had it.
    Again(RunId),
    /// A text that goes on from the conversation of a run that is over.
    After(RunId, String),
}

/// A wish that was found to be sound, as it waits for its turn: all that a run is made of later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wish {
    /// The task's text, as it was when it was asked for.
    pub text: String,
    /// Where it is from: a whole path, or `-`.
    pub source: String,
    /// Values for its parameters.
    pub params: BTreeMap<String, String>,
    /// The settings that replace those of the task.
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    pub overrides: Overrides,
    /// The task of an earlier run, in place of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Box<Task>>,
    /// The run that is over and whose conversation this one goes on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<RunId>,
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
    /// The field of the request with the fault, unless it is in the text: `path`, `params.NAME`, `models`, `lanes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

impl Unfit {
    /// A part of a request that is wrong as a whole.
    pub fn of_field(field: &str, message: String) -> Self {
        let flaw = Flaw { line: 1, column: 1, message: message.clone(), hint: None, field: Some(field.into()) };
        Self { message, flaws: vec![flaw] }
    }
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

/// The choices for a new run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Choices {
    /// The models of the configuration, and the one that is used where a task names none.
    pub models: Vec<String>,
    /// The model that is used where a task names none.
    pub default_model: Option<String>,
    /// The lanes.
    pub lanes: Vec<String>,
    /// The tasks in the folder `tasks`, by their paths.
    pub tasks: Vec<TaskChoice>,
}

/// A task of the workspace that can be chosen.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TaskChoice {
    /// Its file, from the workspace.
    pub path: String,
    /// Its title.
    pub title: String,
    /// The parameters that it declares.
    pub params: Vec<ParamChoice>,
    /// The fault of a task that cannot be run.
    pub fault: Option<String>,
}

/// A parameter that a task declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ParamChoice {
    /// Its name.
    pub name: String,
    /// Whether a value must be given.
    pub required: bool,
    /// The value where none is given.
    pub default: Option<String>,
    /// The only values; empty: any.
    pub choices: Vec<String>,
    /// Its purpose.
    pub description: Option<String>,
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

    /// The choices for a new run.
    fn choices(&self) -> Choices;

    /// The search path in which git is found.
    fn search_path(&self) -> String;

    /// Where a run works, and with what it is gone on with, but for who is asked.
    ///
    /// # Errors
    /// When that cannot be done.
    fn resume(&self, run: &RunId) -> Result<(Isolation, Settings), Refusal>;
}
