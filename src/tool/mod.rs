//! The tools that a model may call. Each tool has its own file and a line in [`TOOLS`]. A
//! [`ToolHost`] is the only way to call them, and takes and returns plain data.

mod arguments;
mod bound;
mod contract;
mod error;
mod files_delete;
mod files_edit;
mod files_glob;
mod files_list;
mod files_read;
mod files_write;
mod foreign;
mod host;
mod lane_log;
mod ledger;
mod mask;
mod memory_access;
mod memory_recall;
mod memory_store;
mod nearest;
mod notes;
mod picture;
mod rules;
mod sandboxed_host;
mod search_grep;
mod serve;
mod shell_exec;
mod text;
mod tool_context;
mod walk;
mod wire;

pub use contract::{ToolEffect, ToolFlags, ToolRequest};
pub use error::ToolError;
pub use host::{HostError, HostSettings, ToolHost};
pub use mask::{LateSecrets, SecretMask, in_url, parts, parts_of_header};
pub use memory_access::MemoryAccess;
pub use notes::Notes;
pub use sandboxed_host::TOOL_HOST;
pub use serve::serve;

use crate::chat::{ToolOutcome, ToolSpec};
use crate::id::CallId;
use crate::task::Tier;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tool_context::ToolContext;

/// All tools, sorted by name.
pub const TOOLS: [Tool; 11] = [
    files_delete::TOOL,
    files_edit::TOOL,
    files_glob::TOOL,
    files_list::TOOL,
    files_read::TOOL,
    files_write::TOOL,
    lane_log::TOOL,
    memory_recall::TOOL,
    memory_store::TOOL,
    search_grep::TOOL,
    shell_exec::TOOL,
];

/// The name of the tool that pages through the output of the gate's steps.
pub const LANE_LOG: &str = lane_log::TOOL.name;

/// A tool: its description for the model, its flags and its implementation.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// The name.
    pub name: &'static str,
    /// The description for the model.
    pub description: &'static str,
    /// The effect and the risk, from which the tools of a task are chosen.
    pub flags: ToolFlags,
    schema: fn() -> Value,
    run: Run,
}

/// The implementation of a tool.
#[derive(Debug, Clone, Copy)]
enum Run {
    /// A function that runs in a thread that may block.
    Files(fn(&ToolContext, &Call) -> Result<ToolOutcome, ToolError>),
    /// An asynchronous function that waits for a process.
    Process(for<'a> fn(&'a ToolContext, &'a Call, Progress<'a>) -> BoxFuture<'a, Result<ToolOutcome, ToolError>>),
}

/// A callback that receives a tool's progress as text for people.
type Progress<'a> = &'a (dyn Fn(String) + Send + Sync);

/// One call of a tool.
#[derive(Debug)]
struct Call {
    tool: Tool,
    id: CallId,
    input: Value,
    stop: CancellationToken,
}

impl Tool {
    /// Finds the tool with this name.
    pub fn find(name: &str) -> Option<Self> {
        TOOLS.into_iter().find(|tool| tool.name == name)
    }

    /// Returns whether the tool is useful only in a run with a memory.
    pub fn needs_memory(&self) -> bool {
        [memory_recall::TOOL.name, memory_store::TOOL.name].contains(&self.name)
    }

    /// Returns whether the tool is useful only in a run with a gate.
    pub fn needs_gate(&self) -> bool {
        self.name == LANE_LOG
    }

    /// Returns whether the outcome of a call names every change that the call made in the
    /// workspace.
    pub fn names_its_changes(&self) -> bool {
        matches!(self.run, Run::Files(_)) || self.flags.effect == ToolEffect::ReadOnly
    }

    /// Returns whether the tool runs in the driver's process and not in the sandbox. Its data is
    /// kept there, and it opens no path from its arguments.
    fn is_at_home(&self) -> bool {
        self.needs_memory() || self.needs_gate()
    }

    /// Returns the description of the tool for the model.
    pub fn spec(&self) -> ToolSpec {
        ToolSpec { name: self.name.into(), description: self.description.into(), schema: (self.schema)() }
    }
}

impl Call {
    fn arguments<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        arguments::parse(self.tool.name, &(self.tool.schema)(), &self.input)
    }
}

/// The flags of a tool that changes nothing.
const LOOKS: ToolFlags = ToolFlags { effect: ToolEffect::ReadOnly, dangerous: false, tier: Tier::Read };
/// The flags of a tool that changes files.
const WRITES: ToolFlags = ToolFlags { effect: ToolEffect::Mutating, dangerous: false, tier: Tier::Tool };

#[cfg(test)]
mod tests;
