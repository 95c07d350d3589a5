//! What came of a tool call: plain data that crosses from the tool host to the machine and the report.

use super::Image;
use serde::{Deserialize, Serialize};

/// The end of one tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutcome {
    /// What the model is told; bounded.
    pub content: String,
    /// Whether the call failed.
    pub is_error: bool,
    /// Whether it is a failure of input or output that may pass when tried again; only read-only tools say so.
    pub transient: bool,
    /// What it changed in the workspace, as far as a file tool did.
    pub change: Option<FileChange>,
    /// What people may want to see beside the text.
    pub detail: Detail,
    /// Pictures that the model is shown beside the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

impl ToolOutcome {
    /// A success without a change.
    pub fn ok(content: impl Into<String>) -> Self {
        let images = Vec::new();
        Self { content: content.into(), is_error: false, transient: false, change: None, detail: Detail::None, images }
    }

    /// A failure that the model hears of.
    pub fn error(content: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::ok(content) }
    }
}

/// What a successful file tool did to one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FileChange {
    /// The path, relative to the workspace, with `/` between its parts.
    pub path: String,
    /// What was done.
    pub kind: ChangeKind,
    /// Lines added, against the file as it was when the run first touched it.
    pub added: u64,
    /// Lines removed, against the same.
    pub removed: u64,
}

/// What was done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was not there before.
    Created,
    /// It was there and has another content.
    Modified,
    /// It is gone.
    Deleted,
}

/// What people may want to see of a call beside its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// Nothing.
    None,
    /// A unified diff; bounded.
    Diff(String),
    /// It would have changed a protected path, and was refused.
    Protected {
        /// The path, relative to the workspace.
        path: String,
        /// The reason of the rule that protects it.
        rule: String,
    },
    /// How a command ended.
    Output {
        /// Its exit code, when it exited.
        exit_code: Option<i32>,
        /// The signal that ended it, when one did.
        signal: Option<i32>,
        /// Whether it ran out of time.
        timed_out: bool,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
}
