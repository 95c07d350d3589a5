//! The closing summary of a run, as lines for people. Pure.

use super::ending::number;
use super::proof::{held_back, proof_of, rests_on, unproven};
pub use crate::chat::money;
use crate::chat::{FileChange, FileChangeKind};
use crate::run::{ChangedFile, TaskResult};
use crate::verdict::{OutsidePath, OutsideTree, flags_open_folders, joined_flags, shown_path};

/// One line of the summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryFact {
    /// The topic of the line; empty if the line continues the previous topic.
    pub about: &'static str,
    /// The text.
    pub says: String,
}

/// The maximum number of files listed by name.
const FILES_NAMED: usize = 20;

/// The maximum number of entries listed of findings, of warnings and of the paths outside the tree.
const NAMED: usize = 20;

/// Builds the closing summary: the evidence for a pass and its gaps, findings, warnings, attempts,
/// files, tools, tokens, time and the run's id.
pub fn closing(result: &TaskResult) -> Vec<SummaryFact> {
    let mut facts = Vec::new();
    let mut say = |about, says: String| facts.push(SummaryFact { about, says });
    let judged = match result.attempts.len() {
        0 => "none reached the gate".to_owned(),
        number => number.to_string(),
    };
    if let Some(proof) = proof_of(result) {
        say("proof", rests_on(proof));
    }
    for (place, what) in proof_of(result).map(unproven).unwrap_or_default().into_iter().enumerate() {
        say(if place == 0 { "unproven" } else { "" }, what.to_owned());
    }
    let protected: Vec<String> = result.protected.iter().map(held_back).collect();
    let line = |list: &[OutsidePath]| list.iter().map(OutsidePath::line).collect();
    let OutsideTree { ignored, left_out } = &result.outside_tree;
    let before: Vec<String> =
        result.attempts.iter().filter_map(|attempt| attempt.verdict.failed_before_line()).collect();
    let warnings = result.warnings.iter().filter(|warning| !before.contains(*warning)).cloned().collect();
    let lists =
        [("findings", protected), ("warnings", warnings), ("ignored", line(ignored)), ("left out", line(left_out))];
    for (about, list) in lists {
        let more = list.len().saturating_sub(NAMED);
        let more = (more > 0).then(|| format!("and {more} more"));
        for (place, line) in list.into_iter().take(NAMED).chain(more).enumerate() {
            say(if place == 0 { about } else { "" }, line);
        }
    }
    let newest = result.attempts.last().and_then(|attempt| attempt.verdict.failed_before_line());
    if let Some(line) = newest.filter(|line| !result.message.contains(line)) {
        say("before", line);
    }
    say("attempts", format!("{judged}, {}", number(result.turns, "model turn")));
    for (place, says) in files(result).into_iter().enumerate() {
        say(if place == 0 { "files" } else { "" }, says);
    }
    if let Some(commit) = &result.commit {
        say("commit", committed(commit, result.branch.as_deref()));
    }
    if let Some(worktree) = &result.worktree {
        say("worktree", worktree.description());
    }
    if let Some(sandbox) = result.sandbox {
        let network = if result.network { ", with the network" } else { "" };
        say("sandbox", format!("{}{network}", sandbox.name()));
    }
    say("tools", tools(result));
    say("tokens", tokens(result));
    say("time", seconds(result.duration_ms));
    say("run", result.run.to_string());
    facts
}

/// Returns a line with the flags that let all held-back changes through, ready to paste. `None` if
/// no change was held back.
pub fn hint(result: &TaskResult) -> Option<SummaryFact> {
    let flags = joined_flags(&result.protected)?;
    let folders = if flags_open_folders(&result.protected) { "these flags, which open whole folders: " } else { "" };
    Some(SummaryFact {
        about: "hint",
        says: format!("to allow these findings, run the task again with {folders}{flags}"),
    })
}

/// Lists the files that differ from the base, with a total if there are several. If the difference
/// is unknown, lists the files that file tools changed.
fn files(result: &TaskResult) -> Vec<String> {
    let Some(difference) = &result.difference else { return by_tools(result) };
    let mut lines = Vec::new();
    match difference.files {
        0 => lines.push("none differs from the base".to_owned()),
        1 => {}
        files => {
            lines.push(format!("{} differ, +{} -{}", count(files), count(difference.added), count(difference.removed)))
        }
    }
    lines.extend(difference.changes.iter().take(FILES_NAMED).map(ChangedFile::line));
    lines.extend(more(difference.files, FILES_NAMED));
    lines
}

fn by_tools(result: &TaskResult) -> Vec<String> {
    let changes = &result.files_changed;
    let line = |file: &FileChange| {
        let what = match file.kind {
            FileChangeKind::Created => " (new)",
            FileChangeKind::Modified => "",
            FileChangeKind::Deleted => " (deleted)",
        };
        format!("{} +{} -{}{what}", shown_path(&file.path), file.added, file.removed)
    };
    let mut lines =
        vec![if changes.is_empty() { "none changed by file tools" } else { "changed by file tools:" }.to_owned()];
    lines.extend(changes.iter().take(FILES_NAMED).map(line));
    lines.extend(more(changes.len() as u64, FILES_NAMED));
    lines
}

/// Returns `and 3 more` if more entries exist than are listed.
fn more(all: u64, named: usize) -> Option<String> {
    let more = all.saturating_sub(named as u64);
    (more > 0).then(|| format!("and {} more", count(more)))
}

/// Describes a commit briefly: `1a2b3c4d5e6f on main`.
pub fn committed(commit: &str, branch: Option<&str>) -> String {
    let branch = branch.map_or("a detached head", |branch| branch.strip_prefix("refs/heads/").unwrap_or(branch));
    format!("{} on {branch}", commit.get(..12).unwrap_or(commit))
}

fn tools(result: &TaskResult) -> String {
    let one = |(name, tally): (&String, &crate::run::ToolTally)| {
        let mut text = format!("{name} {}", tally.called);
        let troubles: Vec<String> = [(tally.failed, "failed"), (tally.denied, "denied")]
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{number} {what}"))
            .collect();
        if !troubles.is_empty() {
            text.push_str(&format!(" ({})", troubles.join(", ")));
        }
        text
    };
    let all: Vec<String> = result.tools.iter().map(one).collect();
    if all.is_empty() { "none used".into() } else { all.join(", ") }
}

fn tokens(result: &TaskResult) -> String {
    let usage = &result.usage.total;
    let mut text = format!("{} in, {} out", count(usage.input_tokens), count(usage.output_tokens));
    if usage.cached_tokens > 0 {
        text.push_str(&format!(", {} of the input cached", count(usage.cached_tokens)));
    }
    if let Some(tokens) = result.limits.tokens {
        text.push_str(&format!(" of {}", count(tokens)));
    }
    match usage.estimated_tokens {
        0 => {}
        tokens if tokens == usage.total() => text.push_str(" (an estimate)"),
        tokens => text.push_str(&format!(" ({} an estimate)", count(tokens))),
    }
    if let Some(micros) = usage.cost_micros {
        let least = if result.usage.unpriced().is_empty() { "" } else { "at least " };
        text.push_str(&format!(", {least}{}", money(micros)));
    }
    if let Some(micros) = result.limits.usd_micros {
        text.push_str(&format!(" of {}", money(micros)));
    }
    text
}

/// Formats a number with thousands separators.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a time in milliseconds for people: `0.4s`, `12.3s`, `2m05s`, `1h02m`.
pub fn seconds(ms: u64) -> String {
    match ms / 1000 {
        0..60 => format!("{}.{}s", ms / 1000, ms % 1000 / 100),
        total @ 60..3600 => format!("{}m{:02}s", total / 60, total % 60),
        total => format!("{}h{:02}m", total / 3600, total % 3600 / 60),
    }
}

/// Formats the time since a moment, roughly.
pub fn ago(now_ms: i64, then_ms: i64) -> String {
    let seconds = now_ms.saturating_sub(then_ms) / 1000;
    match seconds {
        ..0 => "in the future".into(),
        0..60 => format!("{seconds}s ago"),
        60..3_600 => format!("{}m ago", seconds / 60),
        3_600..86_400 => format!("{}h ago", seconds / 3_600),
        _ => format!("{}d ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_thousands_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn times_are_short() {
        assert_eq!([49, 12_345, 125_000, 3_725_000].map(seconds), ["0.0s", "12.3s", "2m05s", "1h02m"]);
    }

    #[test]
    fn how_long_ago_is_said_roughly() {
        let ages = [-1_000, 0, 59_999, 60_000, 3_599_000, 7_200_000, 86_400_000 * 40].map(|ms| ago(ms, 0));
        assert_eq!(ages, ["in the future", "0s ago", "59s ago", "1m ago", "59m ago", "2h ago", "40d ago"]);
    }
}
