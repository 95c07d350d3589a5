//! The tools that a model may call. One file a tool, one line in [`TOOLS`]; a [`ToolHost`] is the only way
//! to them, and plain data is all that goes through it.

mod arguments;
mod behind;
mod bench;
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
mod memory_recall;
mod memory_store;
mod nearest;
mod notes;
mod picture;
mod rules;
mod search_grep;
mod serve;
mod shelf;
mod shell_exec;
mod text;
mod walk;
mod wire;

pub use behind::TOOL_HOST;
pub use contract::{Effect, ToolFlags, ToolRequest};
pub use error::ToolError;
pub use host::{HostError, HostSettings, ToolHost};
pub use mask::{Late, Mask, in_url, parts, parts_of_header};
pub use notes::Notes;
pub use serve::serve;
pub use shelf::Shelf;

use crate::chat::{ToolOutcome, ToolSpec};
use crate::id::CallId;
use crate::task::Tier;
use bench::Bench;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// All tools, by name.
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

/// The tool that pages through what the gate's steps have printed.
pub const LANE_LOG: &str = lane_log::TOOL.name;

/// A tool: what the model is told of it, what it may do, and how it is done.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it does, for the model.
    pub description: &'static str,
    /// What it may do, for whoever decides which tools a task has.
    pub flags: ToolFlags,
    schema: fn() -> Value,
    run: Run,
}

/// How a tool is done.
#[derive(Debug, Clone, Copy)]
enum Run {
    /// In a thread that may block.
    Files(fn(&Bench, &Call) -> Result<ToolOutcome, ToolError>),
    /// By waiting for a process.
    Process(for<'a> fn(&'a Bench, &'a Call, Progress<'a>) -> BoxFuture<'a, Result<ToolOutcome, ToolError>>),
}

/// Where a tool says what it is doing: text for people, as it comes.
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
    /// The tool of that name.
    pub fn find(name: &str) -> Option<Self> {
        TOOLS.into_iter().find(|tool| tool.name == name)
    }

    /// Whether it is of use only in a run that has a memory.
    pub fn needs_memory(&self) -> bool {
        [memory_recall::TOOL.name, memory_store::TOOL.name].contains(&self.name)
    }

    /// Whether it is of use only in a run that has a gate.
    pub fn needs_gate(&self) -> bool {
        self.name == LANE_LOG
    }

    /// Whether the outcome of a call names all that it has changed in the workspace.
    pub fn names_its_changes(&self) -> bool {
        matches!(self.run, Run::Files(_)) || self.flags.effect == Effect::ReadOnly
    }

    /// Whether what it looks at is kept by the driver, so that it runs there and not behind the wall. It opens no path that is given.
    fn is_at_home(&self) -> bool {
        self.needs_memory() || self.needs_gate()
    }

    /// What the model is told of it.
    pub fn spec(&self) -> ToolSpec {
        ToolSpec { name: self.name.into(), description: self.description.into(), schema: (self.schema)() }
    }
}

impl Call {
    fn arguments<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        arguments::parse(self.tool.name, &(self.tool.schema)(), &self.input)
    }
}

/// The flags of a tool that only looks.
const LOOKS: ToolFlags = ToolFlags { effect: Effect::ReadOnly, dangerous: false, tier: Tier::Read };
/// The flags of a tool that changes files.
const WRITES: ToolFlags = ToolFlags { effect: Effect::Mutating, dangerous: false, tier: Tier::Tool };

#[cfg(test)]
mod tests;
