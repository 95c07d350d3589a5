//! `lane-log`: shows a page of the whole output of a gate step. The output of hold-out checks is
//! not available to this tool.

use super::search_grep::matcher;
use super::tool_context::ToolContext;
use super::{Call, LOOKS, Run, Tool, ToolError, ToolFlags, bound};
use crate::chat::ToolOutcome;
use crate::process::{clean, each_line, visible};
use crate::task::Tier;
use crate::verdict::StepLog;
use crate::yaml::meant;
use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The default and the maximum number of lines of a page.
const PAGE: (usize, usize) = (200, 2000);
/// The maximum number of bytes shown of one line.
const MAX_LINE: usize = 2000;

pub(super) const TOOL: Tool = Tool {
    name: "lane-log",
    description: "Show the output of one step of the project's checks, by default from their newest run. \
        Shows the end of the log, the lines from `offset`, or the lines that match `pattern`. \
        Without `step`: shows the only failed step, or lists the logs.",
    flags: ToolFlags { tier: Tier::Tool, ..LOOKS },
    schema,
    run: Run::Files(run),
};

fn schema() -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": {
        "step": {"type": "string"},
        "lane": {"type": "string"},
        "attempt": {"type": "integer", "minimum": 0, "description": "0: before any change"},
        "pattern": {"type": "string", "description": "regex: only lines that match"},
        "offset": {"type": "integer", "minimum": 1, "description": "first line"},
        "limit": {"type": "integer", "minimum": 1, "description": "lines"}
    }})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    step: Option<String>,
    lane: Option<String>,
    attempt: Option<u32>,
    pattern: Option<String>,
    offset: Option<NonZeroUsize>,
    limit: Option<NonZeroUsize>,
}

fn run(context: &ToolContext, call: &Call) -> Result<ToolOutcome, ToolError> {
    let arguments: Arguments = call.arguments()?;
    let logs = context.logs();
    match chosen(&logs, &arguments)?.as_slice() {
        [log] => Page::of(log, &arguments, context.max_result, &call.stop).map(ToolOutcome::ok),
        several => Ok(ToolOutcome::ok(list(several))),
    }
}

/// Selects the log that the call means, from the newest attempt that matches. Without a step, this
/// is the log of the only step that failed. Returns all matching logs if the choice is ambiguous.
fn chosen<'l>(logs: &'l [StepLog], arguments: &Arguments) -> Result<Vec<&'l StepLog>, ToolError> {
    let Arguments { step, lane, attempt, .. } = arguments;
    let is_meant = |log: &&StepLog| {
        step.as_ref().is_none_or(|step| *step == log.step)
            && lane.as_ref().is_none_or(|lane| *lane == log.lane)
            && attempt.is_none_or(|attempt| attempt == log.attempt)
    };
    let newest = logs.iter().filter(is_meant).map(|log| log.attempt).max();
    let Some(newest) = newest else { return Err(ToolError::NoLog { problem: none(logs, arguments) }) };
    let meant: Vec<&StepLog> = logs.iter().filter(|log| is_meant(log) && log.attempt == newest).collect();
    let failed: Vec<&StepLog> = meant.iter().copied().filter(|log| log.status.is_failure()).collect();
    Ok(if step.is_none() && failed.len() == 1 { failed } else { meant })
}

/// Explains why no log matches.
fn none(logs: &[StepLog], arguments: &Arguments) -> String {
    if logs.is_empty() {
        return "no log: the project's checks have not been run on your work yet".into();
    }
    let step = arguments.step.as_deref().unwrap_or_default();
    let near = meant(step, logs.iter().map(|log| log.step.as_str())).filter(|_| !step.is_empty());
    let near = near.map(|near| format!(" ({near})")).unwrap_or_default();
    format!("no such log{near}; known logs:\n{}", list(&logs.iter().collect::<Vec<_>>()))
}

/// Lists the logs, one per line.
fn list(logs: &[&StepLog]) -> String {
    logs.iter().map(|log| format!("{}\n", name(log))).collect()
}

/// Describes the step of a log.
fn name(StepLog { attempt, lane, step, status, .. }: &StepLog) -> String {
    let attempt = if *attempt == 0 { "before any change".into() } else { format!("attempt {attempt}") };
    format!("step `{step}` of lane `{lane}`, {attempt}: {}", status.as_str().replace('_', " "))
}

/// A line of a log: its number, its beginning, and the number of bytes left out after that.
type Line = (usize, Vec<u8>, usize);

/// A page of a log.
#[derive(Default)]
struct Page {
    lines: VecDeque<Line>,
    /// The number of lines in the log.
    all: usize,
    /// The number of lines that qualify for the page, ignoring its limit.
    wanted: usize,
}

impl Page {
    /// Reads a page of a log and formats it in at most `max` bytes.
    fn of(log: &StepLog, arguments: &Arguments, max: usize, stop: &CancellationToken) -> Result<String, ToolError> {
        let filter = arguments.pattern.as_deref().map(|pattern| matcher(pattern, false)).transpose()?;
        let limit = arguments.limit.map_or(PAGE.0, |limit| limit.get().min(PAGE.1));
        // Failures are mostly reported at the end of a log, so show its end. A search starts at the
        // beginning.
        let from = arguments.offset.map(NonZeroUsize::get).or_else(|| filter.as_ref().map(|_| 1));
        let mut page = Self::default();
        let read = each_line(Path::new(&log.path), |line, rest| {
            page.all += 1;
            if page.all >= from.unwrap_or(1) && filter.as_ref().is_none_or(|filter| fits(filter, line)) {
                page.take((page.all, line.to_vec(), rest), limit, from.is_none());
            }
            if stop.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match read {
            Ok(()) if stop.is_cancelled() => return Err(ToolError::Stopped),
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(ToolError::NoLog { problem: format!("cannot read the log of {}: {error}", name(log)) });
            }
            Ok(()) | Err(_) if page.all == 0 => return Ok(format!("{}\n[no output]\n", name(log))),
            Ok(()) | Err(_) => {}
        }
        let lines = if page.all == 1 { "line" } else { "lines" };
        let head = format!("{}, {} {lines}\n", name(log), page.all);
        match arguments.offset {
            Some(offset) if offset.get() > page.all => Err(ToolError::PastEnd {
                path: format!("the log of {}", log.step),
                lines: page.all,
                offset: offset.get(),
            }),
            _ => Ok(page.show(head, max, from.is_none())),
        }
    }

    fn take(&mut self, line: Line, limit: usize, is_end: bool) {
        self.wanted += 1;
        if is_end && self.lines.len() == limit {
            self.lines.pop_front();
        }
        if self.lines.len() < limit {
            self.lines.push_back(line);
        }
    }

    fn show(mut self, head: String, max: usize, is_end: bool) -> String {
        let (mut shown, mut room) = (VecDeque::new(), max.saturating_sub(head.len() + bound::NOTE));
        while let Some(line) = if is_end { self.lines.pop_back() } else { self.lines.pop_front() } {
            let text = shown_line(&line, MAX_LINE.min(max / 2));
            let Some(left) = room.checked_sub(text.len()) else { break };
            room = left;
            if is_end { shown.push_front((line.0, text)) } else { shown.push_back((line.0, text)) }
        }
        let note = match (shown.front(), shown.back()) {
            (Some((first, _)), Some((last, _))) if shown.len() < self.wanted && is_end => {
                format!("[lines {first}-{last}; use `offset` for earlier lines]\n")
            }
            (Some(_), Some((last, _))) if shown.len() < self.wanted => format!("[continue with offset {}]\n", last + 1),
            (Some(_), Some(_)) => String::new(),
            (None, _) | (_, None) => "[no line matches]\n".into(),
        };
        let text: String = shown.into_iter().map(|(_, text)| text).collect();
        head + &text + &note
    }
}

fn fits(filter: &RegexMatcher, line: &[u8]) -> bool {
    filter.is_match(clean(line).as_bytes()).unwrap_or_default()
}

fn shown_line((number, line, rest): &Line, limit: usize) -> String {
    let text = visible(&String::from_utf8_lossy(line));
    let start = bound::head(&text, limit);
    let more = text.len() - start.len() + rest;
    let more = if more > 0 { format!(" [… {more} bytes more]") } else { String::new() };
    format!("{number:>6}\t{start}{more}\n")
}
