//! Lines for tool calls: the action and its object, the result, and the first changed lines.

use super::RunDisplay;
use crate::chat::{FileChange, FileChangeKind, OutcomeDetail};
use crate::cli::live::{cells, fit};
use crate::cli::paint::{self, Tone};
use crate::cli::steps::StyledLine;
use crate::report::{number, seconds};
use crate::run::AgentEvent;
use crate::verdict::Reason;
use serde_json::Value;

/// Characters to show of a call's argument, or of its result's first line.
pub(super) const GIST: usize = 90;
/// Changed lines of a file to show.
const CHANGED: usize = 3;

/// A tool call that has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedCall<'e> {
    pub(super) name: &'e str,
    pub(super) args: &'e Value,
    pub(super) denied: bool,
    pub(super) succeeded: bool,
    pub(super) duration_ms: u64,
    pub(super) output: &'e str,
    pub(super) change: Option<&'e FileChange>,
    pub(super) detail: &'e OutcomeDetail,
}

/// Returns the verb for a tool: `read` for `files-read`. Tools of MCP servers keep their names.
pub(in crate::cli) fn verb(tool: &str) -> &str {
    match tool {
        "files-read" => "read",
        "files-write" => "write",
        "files-edit" => "edit",
        "files-delete" => "delete",
        "files-list" => "list",
        "files-glob" => "find",
        "search-grep" => "search",
        "shell-exec" => "shell",
        "memory-recall" => "recall",
        "memory-store" => "remember",
        tool => tool,
    }
}

impl EndedCall<'_> {
    /// Returns the lines of the call: one of at most `width` columns, then the first changed lines.
    pub(super) fn lines(&self, width: usize) -> Vec<StyledLine> {
        let (tone, result) = self.result();
        let verb = format!("  {} ", paint::one_line(verb(self.name)));
        let (result, time) = (paint::one_line(result.trim()), self.time());
        let room = width.saturating_sub(cells(&verb) + cells(&time) + 1).max(8);
        let gist = fit(&paint::one_line(&gist_of_args(self.args)), room.saturating_sub(cells(&result).min(room / 2)));
        let result = fit(&result, room.saturating_sub(cells(&gist)));
        let space = if result.is_empty() { "" } else { " " };
        let first = [(Tone::Strong, verb), (Tone::Plain, gist + space), (tone, result), (Tone::Faint, time)];
        [first.to_vec()].into_iter().chain(self.changed(width)).collect()
    }

    fn result(&self) -> (Tone, String) {
        let is_fine = self.succeeded && !self.denied;
        match (self.change, self.name) {
            (Some(change), _) if is_fine => (Tone::Good, counts(change)),
            (_, "files-read" | "files-list" | "files-glob" | "search-grep" | "memory-recall") if is_fine => {
                (Tone::Faint, format!("({})", number(self.output.lines().count() as u64, "line")))
            }
            (change, _) => upshot(self.denied, self.succeeded, change.is_some(), self.output, self.detail),
        }
    }

    /// Returns the time of the call: for commands always, for others if it was long.
    fn time(&self) -> String {
        let is_command = matches!(self.detail, OutcomeDetail::Output { .. });
        if is_command || self.duration_ms >= 1000 { format!(" ({})", seconds(self.duration_ms)) } else { String::new() }
    }

    fn changed(&self, width: usize) -> Vec<StyledLine> {
        let OutcomeDetail::Diff(diff) = self.detail else { return Vec::new() };
        let is_changed = |line: &&str| line.starts_with(['+', '-']);
        let all: Vec<&str> = diff.lines().skip_while(|line| !line.starts_with("@@")).filter(is_changed).collect();
        let line = |line: &&str| {
            let tone = if line.starts_with('+') { Tone::Good } else { Tone::Bad };
            vec![(tone, fit(&paint::one_line(&format!("    {} {}", &line[..1], &line[1..])), width))]
        };
        let more = all.len().saturating_sub(CHANGED);
        let more = (more > 0).then(|| vec![(Tone::Faint, format!("    … {}", number(more as u64, "more line")))]);
        all.iter().take(CHANGED).map(line).chain(more).collect()
    }
}

/// Returns the counts of added and removed lines: `+1 -0 (new)`.
fn counts(change: &FileChange) -> String {
    let what = match change.kind {
        FileChangeKind::Created => " (new)",
        FileChangeKind::Modified => "",
        FileChangeKind::Deleted => " (deleted)",
    };
    format!("+{} -{}{what}", change.added, change.removed)
}

/// Returns the result of a tool call in a few words.
pub(in crate::cli) fn upshot(
    denied: bool,
    succeeded: bool,
    changed: bool,
    output: &str,
    detail: &OutcomeDetail,
) -> (Tone, String) {
    let first = cut(output.lines().next().unwrap_or_default(), GIST);
    match detail {
        _ if denied => (Tone::Warn, format!("refused: {first}")),
        OutcomeDetail::Output { timed_out: true, .. } => (Tone::Bad, "timed out".into()),
        OutcomeDetail::Output { exit_code: Some(0), .. } => (Tone::Good, "exit 0".into()),
        OutcomeDetail::Output { exit_code: Some(code), .. } => (Tone::Bad, format!("exit {code}")),
        OutcomeDetail::Output { signal: Some(signal), .. } => (Tone::Bad, format!("signal {signal}")),
        _ if !succeeded => (Tone::Bad, format!("failed: {first}")),
        OutcomeDetail::Output { .. }
        | OutcomeDetail::None
        | OutcomeDetail::Diff(_)
        | OutcomeDetail::Protected { .. }
            if changed =>
        {
            (Tone::Good, "done".into())
        }
        OutcomeDetail::Output { .. }
        | OutcomeDetail::None
        | OutcomeDetail::Diff(_)
        | OutcomeDetail::Protected { .. } => (Tone::Faint, first),
    }
}

/// Returns the maximum number of telling argument of a call: its path, command or pattern, else the
/// first text.
pub(in crate::cli) fn gist_of_args(args: &Value) -> String {
    let named = ["path", "command", "pattern"].iter().find_map(|key| args.get(key)?.as_str());
    let first = || args.as_object()?.values().find_map(Value::as_str);
    let gist = named.or_else(first).unwrap_or_default();
    cut(gist.lines().next().unwrap_or_default(), GIST)
}

pub(super) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

impl RunDisplay {
    /// Shows one event of the sub-agent with this path. Several sub-agents may work at once, so
    /// their text is not streamed.
    pub(in crate::cli) fn show_of(&mut self, path: &str, event: &AgentEvent) {
        let mark = format!("  {path} ┆ ");
        let plain = |tone: Tone, text: String| vec![(Tone::Faint, mark.clone()), (tone, paint::one_line(&text))];
        let line = match event {
            AgentEvent::Started { title, .. } => plain(Tone::Strong, format!("started: {title}")),
            AgentEvent::Finished { reason: Reason::Skipped, .. } => plain(Tone::Strong, "done".into()),
            AgentEvent::Finished { message, .. } => plain(Tone::Bad, format!("ended: {message}")),
            AgentEvent::ToolResult { success, .. } => {
                self.nested.insert(path.to_owned(), *success);
                return;
            }
            AgentEvent::ToolDetail { name, args, denied, duration_ms, output, change, detail, .. } => {
                let succeeded = self.nested.get(path).copied().unwrap_or(true);
                let (tone, result) = upshot(*denied, succeeded, change.is_some(), output, detail);
                let slow = if *duration_ms >= 1000 { format!(" ({})", seconds(*duration_ms)) } else { String::new() };
                let mut line = plain(Tone::Plain, format!("{} {}", verb(name), cut(&gist_of_args(args), GIST)));
                line.extend([(tone, format!("  {}", paint::one_line(&result))), (Tone::Faint, slow)]);
                line
            }
            AgentEvent::Retry { what, tries, wait_ms, error } => {
                plain(Tone::Warn, format!("{what} failed ({error}); try {} in {}", tries + 1, seconds(*wait_ms)))
            }
            AgentEvent::Confirmation { name, approved: Some(approved), .. } => {
                plain(Tone::Warn, format!("{name} was {}", if *approved { "approved" } else { "denied" }))
            }
            AgentEvent::Limit { reason } => plain(Tone::Warn, reason.row().meaning.to_owned()),
            AgentEvent::Warning(message) => plain(Tone::Warn, message.clone()),
            _ => return,
        };
        self.clear();
        paint::line(&line);
        let doing = std::mem::take(&mut self.doing);
        self.start_activity(doing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(lines: &[StyledLine]) -> String {
        lines.iter().map(|line| line.iter().map(|(_, text)| text.as_str()).collect::<String>() + "\n").collect()
    }

    #[test]
    fn calls_are_shown_as_what_they_do() {
        let args = json!({ "path": "src/lib.rs" });
        let read = EndedCall {
            name: "files-read",
            args: &args,
            denied: false,
            succeeded: true,
            duration_ms: 3,
            output: "1 a\n2 b\n",
            change: None,
            detail: &OutcomeDetail::None,
        };
        let change = FileChange { path: "src/lib.rs".into(), kind: FileChangeKind::Modified, added: 3, removed: 1 };
        let diff = OutcomeDetail::Diff("--- a\n+++ b\n@@ -1 +1,3 @@\n-one\n+two\n+three\n+four\n".into());
        let edit = EndedCall { name: "files-edit", change: Some(&change), detail: &diff, ..read };
        let output = OutcomeDetail::Output { exit_code: Some(101), signal: None, timed_out: false, duration_ms: 3200 };
        let command = json!({ "command": "cargo test" });
        let shell = EndedCall { name: "shell-exec", args: &command, duration_ms: 3200, detail: &output, ..read };
        let failed = EndedCall { succeeded: false, output: "there is no file src/lib.rs", ..read };
        let all = [read, edit, shell, failed].map(|call| text(&call.lines(80))).concat();
        insta::assert_snapshot!(all, @"
          read src/lib.rs (2 lines)
          edit src/lib.rs +3 -1
            - one
            + two
            + three
            … 1 more line
          shell cargo test exit 101 (3.2s)
          read src/lib.rs failed: there is no file src/lib.rs
        ");
    }

    #[test]
    fn a_call_fits_the_width_of_the_terminal() {
        let args = json!({ "command": "🦀".repeat(80) });
        let output = OutcomeDetail::Output { exit_code: Some(0), signal: None, timed_out: false, duration_ms: 0 };
        for width in [30, 40, 80] {
            let call = EndedCall {
                name: "shell-exec",
                args: &args,
                denied: false,
                succeeded: true,
                duration_ms: 0,
                output: "",
                change: None,
                detail: &output,
            };
            let lines = text(&call.lines(width));
            assert!(cells(lines.trim_end()) <= width && lines.contains("exit 0"), "{lines}");
        }
    }
}
