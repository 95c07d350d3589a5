//! What goes through the door of the tool host, both ways: plain data, so that the host can live in another process.

use crate::id::CallId;
use crate::task::Tier;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// Its number; the full text of a cut result is kept under it.
    pub call: CallId,
    /// The tool's name.
    pub name: String,
    /// The arguments, as the model gave them.
    pub input: Value,
}

/// What a tool may do, for whoever decides which tools a task has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFlags {
    /// Whether it changes anything.
    pub effect: Effect,
    /// Whether it can do more than its arguments say.
    pub dangerous: bool,
    /// The lowest tier that has it.
    pub tier: Tier,
}

/// Whether a tool changes anything: calls that do not can run at the same time, and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It only looks.
    ReadOnly,
    /// It may change files.
    Mutating,
}
