//! A tool call of a turn that was run, for what follows the turn.

use serde::{Deserialize, Serialize};

/// A call that was run to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoneTool {
    /// The tool's name.
    pub name: String,
    /// True if the tool did what the model asked for.
    pub success: bool,
    /// The paths that it changed, as far as it says so: file tools do, commands and sub-agents do not.
    pub changed: Vec<String>,
}
