//! `files-glob`: lists the files whose paths match a pattern.

use super::tool_context::ToolContext;
use super::walk::{FileWalk, unread_note};
use super::{Call, LOOKS, Run, Tool, ToolError};
use crate::chat::ToolOutcome;
use crate::pattern::{self, Patterns};
use serde::Deserialize;
use serde_json::{Value, json};
use std::ops::ControlFlow;

/// The maximum number of files that one call lists.
const MAX_FILES: usize = 1000;

pub(super) const TOOL: Tool = Tool {
    name: "files-glob",
    description: "Find files by glob (`*.rs`, `src/**/*.{c,h}`), below `path`. Ignored and hidden files are left out.",
    flags: LOOKS,
    schema,
    run: Run::Files(run),
};

fn schema() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["pattern"], "properties": {
        "pattern": {"type": "string"},
        "path": {"type": "string"}
    }})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
    path: Option<String>,
}

fn run(context: &ToolContext, call: &Call) -> Result<ToolOutcome, ToolError> {
    let Arguments { pattern, path } = call.arguments()?;
    let pattern = match context.jail.inside(&pattern) {
        Some(from_root) if path.is_none() => format!("/{from_root}"),
        Some(_) | None => pattern,
    };
    let patterns = Patterns::files(&pattern)?;
    let (folder, at) = context.jail.folder(&context.jail.path(path.as_deref().unwrap_or("."))?)?;
    let below = if at.as_str().is_empty() { 0 } else { at.as_str().len() + 1 };
    let (mut list, mut found) = (String::new(), 0);
    let walk = FileWalk { jail: &context.jail, hidden: pattern::names_hidden(&pattern), stop: &call.stop };
    let unread = walk.files(&folder, &at, &mut |path, _, _| {
        if !path.get(below..).is_some_and(|path| patterns.fit(path)) {
            return ControlFlow::Continue(());
        }
        found += 1;
        if found > MAX_FILES {
            list.push_str(&format!("[stopped at {MAX_FILES} files: narrow the pattern]\n"));
            return ControlFlow::Break(());
        }
        list.push_str(path);
        list.push('\n');
        ControlFlow::Continue(())
    })?;
    if found == 0 {
        list.push_str("no matching files\n");
    }
    Ok(ToolOutcome::ok(list + &unread_note(unread)))
}
