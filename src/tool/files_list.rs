//! `files-list`: lists one directory, including hidden names.

use super::tool_context::ToolContext;
use super::{Call, LOOKS, Run, Tool, ToolError};
use crate::chat::ToolOutcome;
use crate::workspace::jail::{FolderEntry, JailEntryKind, JailError, OpenFolder, shown};
use serde::Deserialize;
use serde_json::{Value, json};

/// The maximum number of names shown for one directory.
const MAX_NAMES: usize = 1000;

pub(super) const TOOL: Tool = Tool {
    name: "files-list",
    description: "List one directory: `name/` for directories, sizes in bytes for files.",
    flags: LOOKS,
    schema,
    run: Run::Files(run),
};

fn schema() -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": {
        "path": {"type": "string"}
    }})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: Option<String>,
}

fn run(context: &ToolContext, call: &Call) -> Result<ToolOutcome, ToolError> {
    let Arguments { path } = call.arguments()?;
    let path = context.jail.path(path.as_deref().unwrap_or("."))?;
    let (folder, real) = context.jail.folder(&path)?;
    let entries = folder.entries().map_err(|source| JailError::Io { path: real, source })?;
    if entries.is_empty() {
        return Ok(ToolOutcome::ok("(the directory is empty)"));
    }
    let mut list: String = entries.iter().take(MAX_NAMES).map(|entry| line(&folder, entry) + "\n").collect();
    if let Some(more @ 1..) = entries.len().checked_sub(MAX_NAMES) {
        list.push_str(&format!("[{more} more: use files-glob]\n"));
    }
    Ok(ToolOutcome::ok(list))
}

fn line(folder: &OpenFolder, entry: &FolderEntry) -> String {
    let name = shown(&entry.name);
    match entry.kind {
        JailEntryKind::Folder => format!("{name}/"),
        JailEntryKind::Link => match folder.link(&entry.name) {
            Ok(target) => format!("{name} -> {}", shown(&target)),
            Err(_) => name,
        },
        JailEntryKind::File => match folder.metadata(&entry.name) {
            Ok(Some(metadata)) => format!("{name}  {}", metadata.bytes),
            Ok(None) | Err(_) => name,
        },
        JailEntryKind::Special => format!("{name}  ({})", JailEntryKind::Special.described()),
    }
}
