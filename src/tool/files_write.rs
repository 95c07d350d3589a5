//! `files-write`: creates or replaces a whole file in one step.

use super::tool_context::{MAX_FILE, ToolContext};
use super::{Call, Run, Tool, ToolError, WRITES, text};
use crate::chat::ToolOutcome;
use crate::workspace::jail::FinalLink;
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) const TOOL: Tool = Tool {
    name: "files-write",
    description: "Create or replace a whole file; directories are made. Prefer files-edit for changes.",
    flags: WRITES,
    schema,
    run: Run::Files(run),
};

fn schema() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["path", "content"], "properties": {
        "path": {"type": "string"},
        "content": {"type": "string"}
    }})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    content: String,
}

fn run(context: &ToolContext, call: &Call) -> Result<ToolOutcome, ToolError> {
    let Arguments { path, content } = call.arguments()?;
    let place = context.writable(&path, FinalLink::Follow)?;
    let mut ledger = context.ledger();
    let before = match place.metadata()? {
        Some(_) => Some(place.read(MAX_FILE)?),
        None => None,
    };
    if let Some(bytes) = &before {
        ledger.check(call.id, place.real(), bytes)?;
    }
    let after = match before.as_deref().map(str::from_utf8) {
        Some(Ok(old)) => text::laid_out_like(old, &content),
        Some(Err(_)) | None => content,
    };
    let verb = if before.is_some() { "replaced" } else { "created" };
    let message = format!("{verb} `{}`: {} lines, {} bytes", place.real(), after.lines().count(), after.len());
    context.put(call.id, &mut ledger, &place, before.as_deref(), after.as_bytes(), message)
}
