//! `memory-store`: keeps a text for later runs. Changes no file.

use super::tool_context::ToolContext;
use super::{Call, Run, Tool, ToolError, WRITES};
use crate::chat::ToolOutcome;
use crate::limits::MAX_NOTE;
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) const TOOL: Tool = Tool {
    name: "memory-store",
    description: "Keep a fact about this project for later runs.",
    flags: WRITES,
    schema,
    run: Run::Files(run),
};

fn schema() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["text"], "properties": {
        "text": {"type": "string"},
        "kind": {"type": "string", "enum": ["fact", "ephemeral"]}
    }})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    text: String,
    #[serde(default)]
    kind: Kind,
}

/// The lifetime of a note.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    #[default]
    Fact,
    Ephemeral,
}

fn run(context: &ToolContext, call: &Call) -> Result<ToolOutcome, ToolError> {
    let Arguments { text, kind } = call.arguments()?;
    let memory = context.memory.as_ref().ok_or(ToolError::NoMemory)?;
    // Check the text in the form in which it is kept: masking changes its length, and invisible
    // characters are dropped.
    let fit = memory.fit(&text);
    if fit.is_empty() {
        return Err(ToolError::EmptyNote);
    }
    if fit.len() > MAX_NOTE {
        return Err(ToolError::LongNote { bytes: fit.len() });
    }
    let id = memory.keep(&fit, kind == Kind::Ephemeral)?;
    let masked =
        if fit.contains("***") && !text.contains("***") { "; text that looked like a secret was left out" } else { "" };
    Ok(ToolOutcome::ok(format!("kept as {id}{masked}")))
}
