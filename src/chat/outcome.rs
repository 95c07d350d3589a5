//! The outcome of a tool call: plain data that passes from the tool host to the machine and the
//! report.

use super::Image;
use serde::{Deserialize, Serialize};

/// The outcome of one tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutcome {
    /// The text for the model, bounded in size.
    pub content: String,
    /// True if the call failed.
    pub is_error: bool,
    /// True if the failure is an I/O error that may pass on a retry. Only read-only tools set it.
    pub transient: bool,
    /// The change in the workspace, if a file tool made one.
    pub change: Option<FileChange>,
    /// Additional information for people.
    pub detail: OutcomeDetail,
    /// Images for the model, beside the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

impl ToolOutcome {
    /// Creates a success without a change.
    pub fn ok(content: impl Into<String>) -> Self {
        let images = Vec::new();
        Self {
            content: content.into(),
            is_error: false,
            transient: false,
            change: None,
            detail: OutcomeDetail::None,
            images,
        }
    }

    /// Creates a failure with a text for the model.
    pub fn error(content: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::ok(content) }
    }
}

/// The change that a successful file tool made to one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FileChange {
    /// The path, relative to the workspace, with `/` between its parts.
    pub path: String,
    /// The kind of change.
    pub kind: FileChangeKind,
    /// Lines added, compared with the file when the run first touched it.
    pub added: u64,
    /// Lines removed, compared with the same state.
    pub removed: u64,
}

/// The kind of change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    /// The file did not exist before.
    Created,
    /// The file existed and its content changed.
    Modified,
    /// The file was deleted.
    Deleted,
}

/// Additional information about a call, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OutcomeDetail {
    /// No additional information.
    None,
    /// A unified diff, bounded in size.
    Diff(String),
    /// The call was refused because it would have changed a protected path.
    Protected {
        /// The path, relative to the workspace.
        path: String,
        /// The reason of the rule that protects it.
        rule: String,
    },
    /// The end of a command.
    Output {
        /// The exit code, if the command exited.
        exit_code: Option<i32>,
        /// The signal that ended the command, if one did.
        signal: Option<i32>,
        /// True if the command exceeded its time limit.
        timed_out: bool,
        /// The run time, in milliseconds.
        duration_ms: u64,
    },
}
