//! The scenes of a story as lines. Quoted text follows a bar, a call and its result share a line,
//! and changes are marked with + and -.

use super::super::display::{gist_of_args, upshot, verb};
use super::super::live::{cells, fit};
use super::super::paint::{self, Tone};
use super::super::steps::{self, StyledLine};
use crate::chat::{FileChangeKind, OutcomeDetail, StopReason, Usage};
use crate::limits::Limits;
use crate::report::story::{Scene, SceneKind, ToolScene};
use crate::report::{committed, count, found, grounds, money, number, seconds};
use crate::verdict::{Reason, Ruling, StopCause, Verdict};

/// The maximum number of lines of a text, unless everything is shown.
const LINES: usize = 8;
/// The longest line in columns without a terminal, unless everything is shown.
const COLUMNS: usize = 160;

/// The extent of the output.
#[derive(Debug, Clone, Copy)]
pub(super) struct DetailLevel {
    /// True if everything is shown, uncut.
    pub(super) is_full: bool,
    /// The width of the terminal in columns, if there is one.
    pub(super) width: Option<usize>,
}

impl DetailLevel {
    /// Cuts a text to fit into a line after `behind` columns.
    pub(super) fn fit(&self, text: &str, behind: usize) -> String {
        let room = self.width.unwrap_or(COLUMNS).saturating_sub(behind).max(12);
        let text = paint::one_line(text);
        if self.is_full { text } else { fit(&text, room) }
    }
}

/// Returns the lines of a scene.
pub(super) fn scene_lines(scene: &Scene, scale: &DetailLevel) -> Vec<StyledLine> {
    if let Some(of) = &scene.of {
        return nested(of, scene, scale);
    }
    let at = scene.at_ms;
    match &scene.what {
        SceneKind::Began { prompt, verify, max_retries, limits, .. } => {
            began(prompt, *verify, *max_retries, limits, scale)
        }
        SceneKind::Planned { gate_digest, tools } => {
            let digest: String = gate_digest.chars().take(12).collect();
            let gate = if digest.is_empty() { "no gate".into() } else { format!("gate {digest}") };
            vec![heading(Tone::Plain, &format!("planned: {gate}, {} tools", tools.len()), at)]
        }
        SceneKind::Attempt { number } => vec![heading(Tone::Plain, &format!("attempt {number}"), at)],
        SceneKind::Turn { number, model, text, stop, usage, duration_ms } => {
            let mut lines = vec![turn(*number, model, *stop, usage.as_ref(), *duration_ms, at)];
            lines.extend(quoted(text.trim(), scale));
            lines
        }
        SceneKind::Discarded { error } => note(&format!("answer discarded: {error}"), scale),
        SceneKind::Tool(scene) => tool(scene, scale),
        SceneKind::Subagent { finished, note } => {
            let what = if *finished { "sub-agent ended" } else { "sub-agent started" };
            vec![vec![(Tone::Strong, format!("  {what} ")), (Tone::Plain, scale.fit(note, 18))]]
        }
        SceneKind::Answered { tool, approved } => {
            note(&format!("{tool} was {}", if *approved { "approved" } else { "denied" }), scale)
        }
        SceneKind::Hooks { notes } => notes.iter().flat_map(|said| note(&format!("hook: {said}"), scale)).collect(),
        SceneKind::Query { answer } => {
            let mut lines = vec![vec![(Tone::Faint, "  answered what it asked for in prose".to_owned())]];
            lines.extend(quoted(answer.trim(), scale));
            lines
        }
        SceneKind::Compaction { success, note: said } => {
            let what = if *success { "conversation shortened" } else { "conversation not shortened" };
            note(&format!("{what}: {said}"), scale)
        }
        SceneKind::Gate { attempt, verdict } => gate(*attempt, verdict, at, scale),
        SceneKind::Committed { commit, branch } => {
            vec![heading(Tone::Good, &format!("committed {}", committed(commit, branch.as_deref())), at)]
        }
        SceneKind::Checkpoint { turn, tree } => {
            let short = tree.as_str().get(..12).unwrap_or_default();
            vec![vec![(Tone::Faint, format!("  checkpoint turn-{turn} ({short})"))]]
        }
        SceneKind::Retry { what, tries, wait_ms, error } => {
            note(&format!("{what} failed ({error}); try {} in {}", tries + 1, seconds(*wait_ms)), scale)
        }
        SceneKind::Recalled { ids } => {
            vec![vec![(Tone::Faint, format!("  memory: {}", number(ids.len() as u64, "note")))]]
        }
        SceneKind::Limit { reason } => note(reason.row().meaning, scale),
        SceneKind::Stopped { cause, partial_text } => {
            let who = match cause {
                StopCause::Interrupt => "SIGINT",
                StopCause::Terminate => "SIGTERM",
                StopCause::Token => "its caller",
            };
            let mut lines = note(&format!("asked to stop by {who}"), scale);
            lines.extend(quoted(partial_text.trim(), scale));
            lines
        }
        SceneKind::Resumed => vec![heading(Tone::Plain, "resumed", at)],
        SceneKind::Warning { message } => note(message, scale),
        SceneKind::Used(_) | SceneKind::Ended { .. } => Vec::new(), // the result has the details
    }
}

fn began(prompt: &str, verify: bool, max_retries: u32, limits: &Limits, scale: &DetailLevel) -> Vec<StyledLine> {
    let Limits { turns, tokens, usd_micros, time_ms, .. } = limits;
    let retries = if verify {
        format!("{max_retries} {}", if max_retries == 1 { "retry" } else { "retries" })
    } else {
        "no verification".into()
    };
    let more = tokens.map(|tokens| format!(", {} tokens", count(tokens))).unwrap_or_default()
        + &usd_micros.map(|micros| format!(", {}", money(micros))).unwrap_or_default();
    let noun = if *turns == 1 { "turn" } else { "turns" };
    let bounds = format!("{turns} {noun}, {}{more}, {retries}", seconds(*time_ms));
    let mut lines = vec![vec![(Tone::Faint, "  limits   ".to_owned()), (Tone::Plain, bounds)]];
    lines.extend(quoted(prompt.trim(), scale));
    lines
}

fn turn(number: u64, model: &str, stop: StopReason, usage: Option<&Usage>, ms: u64, at: u64) -> StyledLine {
    let stop = match stop {
        StopReason::EndTurn | StopReason::ToolUse | StopReason::Pause => "",
        StopReason::OutputLimit => ", cut off at its output limit",
        StopReason::Refusal => ", refused",
    };
    let tokens = |usage: &Usage| format!(", {} in, {} out", count(usage.input_tokens), count(usage.output_tokens));
    let usage = usage.map(tokens).unwrap_or_default();
    let about = format!("  {}{usage}, {}{stop}{}", paint::one_line(model), seconds(ms), since(at));
    vec![(Tone::Strong, format!("  turn {number}")), (Tone::Faint, about)]
}

fn tool(scene: &ToolScene, scale: &DetailLevel) -> Vec<StyledLine> {
    let ToolScene { name, args, success, denied, duration_ms, output, change, detail } = scene;
    let (tone, result) = upshot(*denied, *success, change.is_some(), output, detail);
    let slow = if *duration_ms >= 1000 { format!(" ({})", seconds(*duration_ms)) } else { String::new() };
    let call = format!("  {} ", paint::one_line(verb(name)));
    let (taken, result) = (cells(&call) + cells(&slow), paint::one_line(result.trim()));
    let half = scale.width.unwrap_or(COLUMNS).saturating_sub(taken) / 2;
    let gist = scale.fit(&gist_of_args(args), taken + 2 + cells(&result).min(half)) + "  ";
    let result = scale.fit(&result, taken + cells(&gist));
    let mut lines = vec![vec![(Tone::Strong, call), (Tone::Plain, gist), (tone, result), (Tone::Faint, slow)]];
    if let Some(change) = change {
        let what = match change.kind {
            FileChangeKind::Created => " (new)",
            FileChangeKind::Modified => "",
            FileChangeKind::Deleted => " (deleted)",
        };
        let about = format!("    {} +{} -{}{what}", paint::one_line(&change.path), change.added, change.removed);
        lines.push(vec![(Tone::Faint, about)]);
    }
    lines.extend(shortened(diff(detail), scale));
    if scale.is_full && change.is_none() {
        lines.extend(output.trim_end().lines().map(steps::output));
    }
    lines
}

/// Returns the changes of a call line by line, without the file names above the first hunk, which
/// the line before already shows.
fn diff(detail: &OutcomeDetail) -> Vec<StyledLine> {
    let line = |line: &str| changed(line.chars().next(), line.get(1..).unwrap_or_default());
    match detail {
        OutcomeDetail::Diff(diff) => diff.lines().skip_while(|line| !line.starts_with("@@")).map(line).collect(),
        OutcomeDetail::None | OutcomeDetail::Output { .. } | OutcomeDetail::Protected { .. } => Vec::new(),
    }
}

fn changed(sign: Option<char>, text: &str) -> StyledLine {
    let (tone, mark) = match sign {
        Some('+') => (Tone::Good, "    + "),
        Some('-') => (Tone::Bad, "    - "),
        Some('@') => return vec![(Tone::Faint, format!("    @{}", paint::one_line(text)))],
        Some(_) | None => (Tone::Faint, "      "),
    };
    vec![(tone, format!("{mark}{}", paint::one_line(text)))]
}

fn gate(attempt: u32, verdict: &Verdict, at: u64, scale: &DetailLevel) -> Vec<StyledLine> {
    let (tone, word) = match verdict.ruling {
        Ruling::Passed => (Tone::Good, "passed"),
        Ruling::Failed => (Tone::Bad, "failed"),
        Ruling::Errored => (Tone::Bad, "could not run"),
        Ruling::Tampered => (Tone::Bad, "tampered with"),
    };
    let what = format!("gate, attempt {attempt}: {word} ({})", seconds(verdict.duration_ms));
    let mut lines = vec![heading(tone, &what, at)];
    for finding in &verdict.findings {
        lines.extend(note(&format!("protected: {}", found(finding)), scale));
    }
    lines.extend(
        grounds(verdict).iter().map(|line| vec![(Tone::Faint, "  ".into()), (Tone::Plain, scale.fit(line, 2))]),
    );
    if !verdict.passed() && !verdict.steps.iter().any(|step| step.status.is_failure()) {
        lines.extend(quoted(verdict.feedback.trim(), scale));
    }
    for step in &verdict.steps {
        lines.push(steps::result(step));
        if step.status.is_failure() {
            lines.extend(steps::explanation(step, true));
        }
    }
    lines
}

fn heading(tone: Tone, text: &str, at: u64) -> StyledLine {
    vec![(Tone::Strong, "● ".into()), (tone, text.to_owned()), (Tone::Faint, since(at))]
}

fn since(at: u64) -> String {
    format!("  +{}", seconds(at))
}

fn note(message: &str, scale: &DetailLevel) -> Vec<StyledLine> {
    vec![vec![(Tone::Warn, "  ! ".into()), (Tone::Plain, scale.fit(message, 4))]]
}

/// Formats foreign text with a bar before each line, so that it cannot be taken for fledge's own.
pub(super) fn quoted(text: &str, scale: &DetailLevel) -> Vec<StyledLine> {
    let line = |line: &str| vec![(Tone::Faint, "  │ ".to_owned()), (Tone::Plain, line.to_owned())];
    shortened(text.lines().map(line).collect(), scale)
}

/// Returns the first lines, cut to the width, and the number of the others. Cuts nothing if
/// everything is shown.
fn shortened(mut lines: Vec<StyledLine>, scale: &DetailLevel) -> Vec<StyledLine> {
    if scale.is_full {
        return lines;
    }
    let hidden = lines.len().saturating_sub(LINES);
    if hidden > 1 {
        lines.truncate(LINES);
        lines.push(vec![(Tone::Faint, format!("    … {hidden} more lines: --full"))]);
    }
    for line in &mut lines {
        let behind: usize = line.iter().rev().skip(1).map(|(_, text)| cells(text)).sum();
        if let Some((_, text)) = line.last_mut() {
            // Only the last piece is cut, because the pieces before it tell the kind of the line.
            *text = scale.fit(text, behind);
        }
    }
    lines
}

/// The width of the mark before each line without the path, in columns.
const MARK: usize = 5;

/// Returns the lines of a scene of a sub-agent; `of` is its path.
fn nested(of: &str, scene: &Scene, scale: &DetailLevel) -> Vec<StyledLine> {
    let mark = format!("  {of} ┆ ");
    let inside = DetailLevel { width: scale.width.map(|width| width.saturating_sub(of.len() + MARK)), ..*scale };
    let lines = match &scene.what {
        SceneKind::Began { title, .. } => vec![vec![(Tone::Strong, format!("started: {}", inside.fit(title, 8)))]],
        SceneKind::Ended { reason: Reason::Skipped, .. } => vec![vec![(Tone::Strong, "done".to_owned())]],
        SceneKind::Ended { message, .. } => vec![vec![(Tone::Strong, format!("ended: {}", inside.fit(message, 8)))]],
        SceneKind::Planned { .. } | SceneKind::Attempt { .. } => Vec::new(),
        _ => scene_lines(&Scene { of: None, ..scene.clone() }, &inside),
    };
    let marked = |line: StyledLine| [vec![(Tone::Faint, mark.clone())], line].concat();
    lines.into_iter().map(marked).collect()
}
