//! `fledge memory list`, `show` and `export`: memories as lines, in full, or as JSON. Their text
//! cannot move the cursor.

use super::super::failure::CliError;
use super::super::live::fit;
use super::super::output::{no_output, print_data, print_json};
use super::super::paint::{self, Tone};
use super::super::steps::StyledLine;
use super::{MEMORY_SCHEMA_VERSION, MemoryContext, data, with_version};
use crate::duration::show_duration;
use crate::report::ago;
use crate::report::runs::rfc3339;
use crate::store::StoredMemory;
use serde_json::json;
use std::time::Duration;

/// The longest text of a memory in a list, in columns.
const COLUMNS: usize = 90;

/// Lists all memories.
pub(super) fn list(place: &MemoryContext) -> Result<(), CliError> {
    let all = place.all()?;
    if place.json {
        let rows: Vec<_> = all.iter().map(|(short, memory)| data(memory, short)).collect();
        let list = json!({ "schema_version": MEMORY_SCHEMA_VERSION, "memories": rows });
        return print_json(&list.to_string()).map_err(no_output);
    }
    if all.is_empty() {
        paint::line(&[(Tone::Plain, format!("no memories of {}", place.workspace.display()))]);
        return Ok(());
    }
    let lines: Vec<StyledLine> = all.iter().map(|(short, memory)| line(short, memory, place.now_ms)).collect();
    print_data(&paint::page(&lines)).map_err(no_output)
}

fn line(short: &str, memory: &StoredMemory, now_ms: i64) -> StyledLine {
    let about = format!("  {:>8}  {:<9}  ", ago(now_ms, memory.created_at_ms), memory.kind());
    let text = fit(&paint::one_line(&memory.text), COLUMNS);
    vec![(Tone::Strong, short.to_owned()), (Tone::Faint, about), (Tone::Plain, text)]
}

/// Shows a memory.
pub(super) fn show(place: &MemoryContext, id: &str) -> Result<(), CliError> {
    let (store, memory) = place.find(id)?;
    let short = store.short_memory(&memory.id).map_err(CliError::own)?;
    if place.json {
        return print_json(&with_version(data(&memory, &short)).to_string()).map_err(no_output);
    }
    let left = |expiry: i64| u64::try_from(expiry.saturating_sub(place.now_ms)).unwrap_or(0) / 1000;
    let ends = match memory.expires_at_ms {
        None => String::new(),
        Some(_) if memory.is_expired(place.now_ms) => ", expired".into(),
        Some(expiry) => format!(", forgotten in {}", show_duration(Duration::from_secs(left(expiry)))),
    };
    let run = memory.run.as_ref().map(|run| format!(", of run {run}")).unwrap_or_default();
    let kept = format!("{}{ends}{run}", memory.kind());
    let when = format!("{}, {}", rfc3339(memory.created_at_ms), ago(place.now_ms, memory.created_at_ms));
    let fact = |about: &str, says: String| vec![(Tone::Faint, format!("{about:<6}")), (Tone::Plain, says)];
    let mut lines = vec![fact("id", memory.id.clone()), fact("kind", kept), fact("kept", when)];
    lines.extend(memory.text.lines().map(|line| vec![(Tone::Faint, "│ ".to_owned()), (Tone::Plain, line.to_owned())]));
    print_data(&paint::page(&lines)).map_err(no_output)
}

/// Prints all memories as JSON lines.
pub(super) fn export(place: &MemoryContext) -> Result<(), CliError> {
    for (short, memory) in place.all()? {
        print_json(&with_version(data(&memory, &short)).to_string()).map_err(no_output)?;
    }
    Ok(())
}
