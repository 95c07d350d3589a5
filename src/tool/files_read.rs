//! `files-read`: shows a page of a text file with line numbers, or a picture.

use super::tool_context::{MAX_FILE, OUTPUT, ToolContext};
use super::{Call, LOOKS, Run, Tool, ToolError, bound, picture, text};
use crate::chat::ToolOutcome;
use crate::id::CallId;
use serde::Deserialize;
use serde_json::{Value, json};
use std::num::NonZeroUsize;

/// The default number of lines of a page.
const PAGE: usize = 2000;
/// The maximum number of bytes shown of one line.
const MAX_LINE: usize = 2000;

pub(super) const TOOL: Tool = Tool {
    name: "files-read",
    description: "Read a text file, or a cut result (@output/N). Lines come numbered. A PNG, JPEG, GIF or WebP is shown.",
    flags: LOOKS,
    schema,
    run: Run::Files(run),
};

fn schema() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["path"], "properties": {
        "path": {"type": "string"},
        "offset": {"type": "integer", "minimum": 1, "description": "first line"},
        "limit": {"type": "integer", "minimum": 1, "description": "lines"}
    }})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    offset: Option<NonZeroUsize>,
    limit: Option<NonZeroUsize>,
}

fn run(context: &ToolContext, call: &Call) -> Result<ToolOutcome, ToolError> {
    let arguments: Arguments = call.arguments()?;
    let bytes = match arguments.path.strip_prefix(OUTPUT) {
        Some(number) => stored(context, &arguments.path, number)?,
        None => {
            let place = context.readable(&arguments.path)?;
            let bytes = place.read(MAX_FILE)?;
            if let Some(kind) = text::binary_kind(&bytes) {
                if let Some(shown) = picture::shown(place.real().as_str(), &bytes) {
                    context.ledger().saw(call.id, place.real(), &bytes);
                    return Ok(shown);
                }
                return Err(ToolError::NotText { path: place.real().to_string(), kind, bytes: bytes.len() });
            }
            context.ledger().saw(call.id, place.real(), &bytes);
            bytes
        }
    };
    page(&bytes, &arguments, context.max_result).map(ToolOutcome::ok)
}

fn stored(context: &ToolContext, path: &str, number: &str) -> Result<Vec<u8>, ToolError> {
    let missing = |_| ToolError::NoOutput { path: path.into() };
    let call = number.parse().map(CallId).map_err(|_| ToolError::NoOutput { path: path.into() })?;
    context.output(call)?.read(MAX_FILE).map_err(missing)
}

/// Formats as many lines from the offset as fit, and names the offset of the next page.
fn page(bytes: &[u8], arguments: &Arguments, max: usize) -> Result<String, ToolError> {
    let whole = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text::without_bom(&whole).lines().collect();
    let offset = arguments.offset.map_or(1, NonZeroUsize::get);
    if lines.is_empty() && offset == 1 {
        return Ok("(the file is empty)".into());
    }
    if offset > lines.len() {
        return Err(ToolError::PastEnd { path: arguments.path.clone(), lines: lines.len(), offset });
    }
    let limit = arguments.limit.map_or(PAGE, NonZeroUsize::get);
    let mut page = String::new();
    let mut next = offset;
    for line in lines.iter().skip(offset - 1).take(limit) {
        let line = format!("{next:>6}\t{}\n", bound::line(line, MAX_LINE.min(max / 2)));
        if page.len() + line.len() > max - bound::NOTE {
            break;
        }
        page.push_str(&line);
        next += 1;
    }
    if next <= lines.len() {
        page.push_str(&format!("[lines {offset}-{} of {}; continue with offset {next}]\n", next - 1, lines.len()));
    }
    if matches!(whole, std::borrow::Cow::Owned(_)) {
        page.push_str("[not UTF-8: invalid bytes are shown as \u{fffd}]\n");
    }
    Ok(page)
}
