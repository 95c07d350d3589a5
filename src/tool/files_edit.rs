//! `files-edit`: replaces a text that occurs once in a file, or each occurrence.

use super::nearest::nearest;
use super::tool_context::{MAX_FILE, ToolContext};
use super::{Call, Run, Tool, ToolError, WRITES, text};
use crate::chat::ToolOutcome;
use crate::workspace::jail::{FinalLink, RelPath};
use serde::Deserialize;
use serde_json::{Value, json};

/// The maximum number of lines that the error names if a text occurs several times.
const NAMED: usize = 8;

pub(super) const TOOL: Tool = Tool {
    name: "files-edit",
    description: "Replace the exact text `old`, found once in the file, by `new`. Leave out line numbers.",
    flags: WRITES,
    schema,
    run: Run::Files(run),
};

fn schema() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["path", "old", "new"], "properties": {
        "path": {"type": "string"},
        "old": {"type": "string"},
        "new": {"type": "string"},
        "replace_all": {"type": "boolean", "description": "every match"}
    }})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    old: String,
    new: String,
    #[serde(default)]
    replace_all: bool,
}

fn run(context: &ToolContext, call: &Call) -> Result<ToolOutcome, ToolError> {
    let arguments: Arguments = call.arguments()?;
    if arguments.old.is_empty() {
        return Err(ToolError::EmptyOld);
    }
    if arguments.old == arguments.new {
        return Err(ToolError::SameText);
    }
    let place = context.writable(&arguments.path, FinalLink::Follow)?;
    let mut ledger = context.ledger();
    let before = place.read(MAX_FILE)?;
    ledger.check(call.id, place.real(), &before)?;
    let text = str::from_utf8(&before).map_err(|_| ToolError::NotUtf8 { path: place.real().clone() })?;
    let (after, count) = replace(place.real(), text, &arguments)?;
    let message = match count {
        1 => format!("edited `{}`", place.real()),
        count => format!("edited `{}`: {count} replacements", place.real()),
    };
    context.put(call.id, &mut ledger, &place, Some(&before), after.as_bytes(), message)
}

/// Returns the text after the edit and the number of replacements.
fn replace(path: &RelPath, text: &str, arguments: &Arguments) -> Result<(String, usize), ToolError> {
    for (old, new) in text::readings(text, &arguments.old, &arguments.new) {
        match text.matches(old.as_str()).count() {
            0 => {}
            1 => return Ok((text.replacen(&old, &new, 1), 1)),
            count if arguments.replace_all => return Ok((text.replace(&old, &new), count)),
            count => {
                return Err(ToolError::ManyMatches { path: path.clone(), count, lines: lines_of(text, &old, count) });
            }
        }
    }
    Err(ToolError::NoMatch { path: path.clone(), nearest: nearest(text, &arguments.old) })
}

/// Lists the line numbers of the first matches.
fn lines_of(text: &str, old: &str, count: usize) -> String {
    let line = |start: usize| text[..start].matches('\n').count() + 1;
    let mut lines: Vec<String> =
        text.match_indices(old).take(NAMED).map(|(start, _)| line(start).to_string()).collect();
    if count > NAMED {
        lines.push("…".into());
    }
    lines.join(", ")
}
