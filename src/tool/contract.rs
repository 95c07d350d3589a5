//! The data that a tool host receives, and the flags of tools. All of it is plain data, so that a
//! host can run in another process.

use crate::id::CallId;
use crate::task::Tier;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// The number of the call. The full text of a cut result is kept under this number.
    pub call: CallId,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model gave them.
    pub input: Value,
}

/// The effect and the risk of a tool, from which the tools of a task are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFlags {
    /// The effect of the tool on the workspace.
    pub effect: ToolEffect,
    /// True if the tool can do more than its arguments show.
    pub dangerous: bool,
    /// The lowest tier that includes the tool.
    pub tier: Tier,
}

/// The effect of a tool. Read-only calls can run in parallel and can be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    /// The tool changes nothing.
    ReadOnly,
    /// The tool may change files.
    Mutating,
}
