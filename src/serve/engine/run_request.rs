//! The request for a run, and the source that turns it into a task with settings.

use crate::driver::DriverSettings;
use crate::id::RunId;
use crate::limits::NewLimits;
use crate::task::{GateChoice, Isolation, Task};
use crate::verdict::Reason;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A request, as it arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRequestBody {
    /// The task.
    pub task: TaskOrigin,
    /// Values for its parameters.
    pub params: BTreeMap<String, String>,
    /// The settings that replace those of the task.
    pub overrides: Overrides,
    /// A key for repeated requests: equal requests with the same key create one run.
    pub key: Option<String>,
}

/// Settings of a request that replace those of the task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overrides {
    /// The models, in order of preference; if empty, those of the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// The lanes of the gate; if empty, those of the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<String>,
    /// The cost limit of the run, in millionths of a US dollar. The lower limit of request and task
    /// applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_micros: Option<u64>,
    /// The limits of a run that continues an earlier one, in place of those of the earlier run.
    #[serde(default, skip_serializing_if = "NewLimits::is_empty")]
    pub limits: NewLimits,
}

impl Overrides {
    /// Returns true if nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Applies the settings to a task.
    pub fn set_in(&self, task: &mut Task) {
        if !self.models.is_empty() {
            task.models.clone_from(&self.models);
        }
        if !self.lanes.is_empty() {
            task.gate = GateChoice::Lanes(self.lanes.clone());
        }
        task.budget.usd_micros = self.usd_micros.into_iter().chain(task.budget.usd_micros).min();
        task.set_limits(self.limits);
    }
}

/// The origin of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskOrigin {
    /// The complete text of the task.
    Text(String),
    /// A file of the workspace, by its relative path.
    Path(String),
    /// The task of an earlier run, with the settings of that run.
    Again(RunId),
    /// A text that continues the conversation of an ended run.
    After(RunId, String),
}

/// A checked request that waits in the queue. It contains everything that the run needs later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRequest {
    /// The task's text at the time of the request.
    pub text: String,
    /// The origin of the text: an absolute path, or `-`.
    pub source: String,
    /// Values for its parameters.
    pub params: BTreeMap<String, String>,
    /// The settings that replace those of the task.
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    pub overrides: Overrides,
    /// The task of an earlier run, which replaces the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Box<Task>>,
    /// The ended run whose conversation this run continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<RunId>,
    /// The new limits, if the request resumes its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<NewLimits>,
    /// The key of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The task's title.
    pub title: String,
    /// The SHA-256 digest of the prompt, in hexadecimal.
    pub task_digest: String,
    /// The time of the request, in milliseconds since 1970.
    pub at_ms: i64,
}

/// The reason why a task cannot be run as written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnfitTask {
    /// A short description.
    pub message: String,
    /// The faults in the task's text.
    pub flaws: Vec<TaskFlaw>,
}

/// A fault in a task's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaskFlaw {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The problem.
    pub message: String,
    /// The fix.
    pub hint: Option<String>,
    /// The field of the request with the fault, unless it is in the text: `path`, `params.NAME`,
    /// `models`, `lanes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

impl UnfitTask {
    /// Creates the error of a request field that is wrong as a whole.
    pub fn of_field(field: &str, message: String) -> Self {
        let flaw = TaskFlaw { line: 1, column: 1, message: message.clone(), hint: None, field: Some(field.into()) };
        Self { message, flaws: vec![flaw] }
    }
}

/// The reason why a run cannot begin or resume.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RunRefusal {
    /// The reason that determines the exit code.
    pub reason: Reason,
    /// The cause, in one line.
    pub message: String,
}

/// The choices for a new run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct RunChoices {
    /// The models of the configuration, and the default model.
    pub models: Vec<String>,
    /// The model for tasks that name none.
    pub default_model: Option<String>,
    /// The lanes.
    pub lanes: Vec<String>,
    /// The tasks in the folder `tasks`, by path.
    pub tasks: Vec<TaskChoice>,
}

/// A task of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct TaskChoice {
    /// The path of its file, relative to the workspace.
    pub path: String,
    /// The title.
    pub title: String,
    /// The start of its text.
    pub text: String,
    /// The declared parameters.
    pub params: Vec<ParamChoice>,
    /// The models of the task; if empty, the default model.
    pub models: Vec<String>,
    /// The lanes of its gate.
    pub lanes: Vec<String>,
    /// The cost limit of the task, in millionths of a US dollar.
    pub usd_micros: Option<u64>,
    /// The reason why the task cannot be run, if any.
    pub fault: Option<String>,
}

/// A parameter that a task declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ParamChoice {
    /// The name.
    pub name: String,
    /// True if a value must be given.
    pub required: bool,
    /// The default value.
    pub default: Option<String>,
    /// The allowed values; if empty, any value.
    pub choices: Vec<String>,
    /// The purpose.
    pub description: Option<String>,
}

/// The source of tasks for requests. Its methods may block, and are called on a thread where they
/// may.
pub trait TaskSource: fmt::Debug + Send + Sync {
    /// Checks a request without starting it.
    ///
    /// # Errors
    /// All problems of the request.
    fn check(&self, asked: &RunRequestBody, now_ms: i64) -> Result<RunRequest, UnfitTask>;

    /// Returns the task of a request and its settings, without the callback for questions.
    ///
    /// # Errors
    /// If the run cannot begin.
    fn begin(&self, request: &RunRequest) -> Result<(Task, DriverSettings), RunRefusal>;

    /// Returns the choices for a new run.
    fn choices(&self) -> RunChoices;

    /// Returns the search path for git.
    fn search_path(&self) -> String;

    /// Returns the place in which a run works and its settings for a resume, without the callback
    /// for questions.
    ///
    /// # Errors
    /// If the run cannot resume.
    fn resume(&self, run: &RunId) -> Result<(Isolation, DriverSettings), RunRefusal>;
}
