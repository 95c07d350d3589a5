//! `files-delete`: deletes one file, or a link itself.

use super::tool_context::{MAX_FILE, ToolContext};
use super::{Call, Run, Tool, ToolError, WRITES, ledger};
use crate::chat::OutcomeDetail;
use crate::chat::ToolOutcome;
use crate::workspace::jail::{FinalLink, JailEntryKind};
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) const TOOL: Tool =
    Tool { name: "files-delete", description: "Delete one file.", flags: WRITES, schema, run: Run::Files(run) };

fn schema() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["path"], "properties": {
        "path": {"type": "string"}
    }})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
}

fn run(context: &ToolContext, call: &Call) -> Result<ToolOutcome, ToolError> {
    let Arguments { path } = call.arguments()?;
    let place = context.writable(&path, FinalLink::Keep)?;
    let mut ledger = context.ledger();
    // A file that is too large to read is deleted too, but its lines are not counted.
    let is_file = place.metadata()?.is_some_and(|there| there.kind == JailEntryKind::File && there.bytes <= MAX_FILE);
    let before = if is_file { place.read(MAX_FILE)? } else { Vec::new() };
    if is_file {
        ledger.check(call.id, place.real(), &before)?;
    }
    place.delete()?;
    let change = ledger.changed(call.id, place.real(), Some(&before), None);
    let detail = OutcomeDetail::Diff(ledger::diff(place.real(), &before, b""));
    Ok(ToolOutcome { change: Some(change), detail, ..ToolOutcome::ok(format!("deleted `{}`", place.real())) })
}
