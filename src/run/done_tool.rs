//! Completed tool calls of a turn, as its hooks see them.

use serde::{Deserialize, Serialize};

/// A tool call that ran to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoneTool {
    /// The tool's name.
    pub name: String,
    /// True if the tool did what the model asked for.
    pub success: bool,
    /// The paths that the tool changed. Only file tools report them; commands and sub-agents do
    /// not.
    pub changed: Vec<String>,
}
