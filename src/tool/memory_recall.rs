//! `memory-recall`: searches the notes of earlier runs.

use super::tool_context::ToolContext;
use super::{Call, LOOKS, Run, Tool, ToolError};
use crate::chat::ToolOutcome;
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) const TOOL: Tool = Tool {
    name: "memory-recall",
    description: "Search the notes of earlier runs.",
    flags: LOOKS,
    schema,
    run: Run::Files(run),
};

fn schema() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["query"], "properties": {
        "query": {"type": "string"}
    }})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    query: String,
}

fn run(context: &ToolContext, call: &Call) -> Result<ToolOutcome, ToolError> {
    let Arguments { query } = call.arguments()?;
    let notes = context.memory.as_ref().ok_or(ToolError::NoMemory)?.search(&query)?;
    Ok(ToolOutcome::ok(notes.map_or_else(|| "no note has any of these words".into(), |notes| notes.text)))
}
