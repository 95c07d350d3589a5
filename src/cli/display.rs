//! The terminal output of a run, derived from its events.

mod call;
mod counting;
mod ending;
mod gate;
mod prose;

pub(super) use call::{gist_of_args, upshot, verb};
pub(super) use ending::{closing, fact};
pub(super) use gate::expected;

use super::live::{self, LiveView, StatusLine};
use super::paint::{self, Tone};
use super::signals::STOPPING;
use super::steps;
use crate::chat::Usage;
use crate::limits::Limits;
use crate::process::Stopwatch;
use crate::report::{self, number, seconds};
use crate::run::{AgentEvent, Phase, StateName};
use crate::verdict::TamperFinding;
use call::EndedCall;
use gate::GateView;
use prose::Prose;
use std::collections::BTreeMap;

/// Columns of a line if standard error is not a terminal.
const PIPE: usize = 160;

/// The maximum number of findings to print line by line.
const FINDINGS: usize = 20;
/// The longest piece of a line of a tool's output to show at once, in bytes.
const LONGEST: usize = 8 * 1024;
/// Lines to show of the reason why a gate did not pass although every step did.
const REASONS: usize = 8;

/// The state of the screen, as far as later lines depend on it.
#[derive(Debug)]
pub(super) struct RunDisplay {
    live: LiveView,
    /// The current activity, if it is not a step.
    doing: String,
    gate: GateView,
    /// The model's text on a terminal. Without a terminal, fledge writes each piece at once.
    prose: Prose,
    /// True if the screen ends with a piece of text without a line end.
    is_mid_line: bool,
    /// The line of a running tool's output that has not ended.
    tool_line: String,
    /// The status line of a terminal. Other lines use its counts too.
    status: StatusLine,
    /// True if the tool call that will be shown next succeeded.
    succeeded: bool,
    /// For each sub-agent by path, true if its tool call that will be shown next succeeded.
    nested: BTreeMap<String, bool>,
}

impl RunDisplay {
    /// Returns a display. `before_ms` is the time that the run has taken so far.
    pub(super) fn new(is_live: bool, before_ms: u64) -> Self {
        let (limits, usage, since) = (Limits::default(), Usage::default(), Stopwatch::start());
        Self {
            live: LiveView::new(is_live),
            doing: String::new(),
            gate: GateView::default(),
            prose: Prose::default(),
            is_mid_line: false,
            tool_line: String::new(),
            status: StatusLine { attempt: (0, 1), turn: 0, checks: None, usage, limits, since, before_ms },
            succeeded: true,
            nested: BTreeMap::new(),
        }
    }

    /// Sets the expected steps of the gate by `lane/step`, with their times in milliseconds.
    pub(super) fn expecting(self, steps: Vec<(String, u64)>) -> Self {
        Self { gate: GateView::expecting(steps), ..self }
    }

    /// Shows one event and the updated status.
    pub(super) fn show(&mut self, event: &AgentEvent) {
        self.show_above(event);
        if let AgentEvent::Finished { .. } = event {
            self.close();
        } else {
            self.live.status(self.status.clone());
        }
    }

    /// Removes the live lines, before the last lines are printed.
    pub(super) fn close(&mut self) {
        self.clear();
        self.live.finish();
    }

    /// Shows an event above the live lines.
    fn show_above(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Started { title, models, max_retries, verify, limits } => {
                self.status.attempt.1 = if *verify { max_retries + 1 } else { 1 };
                self.status.limits = limits.clone();
                let about = format!("  {}", models.join(", "));
                self.line(&[(Tone::Strong, title), (Tone::Faint, &about)]);
            }
            AgentEvent::Resumed { state, attempt, turn } => {
                (self.status.attempt.0, self.status.turn) = (*attempt, *turn);
                let state = self.words(*state);
                self.line(&[(Tone::Strong, "● "), (Tone::Plain, &format!("resumed: {state}"))]);
            }
            AgentEvent::Recalled { ids } => {
                self.line(&[(Tone::Faint, &format!("  memory: {}", number(ids.len() as u64, "note")))]);
            }
            AgentEvent::StateChanged(state) => self.state(*state),
            AgentEvent::PhaseChanged(phase) => self.phase(*phase),
            AgentEvent::Text(text) => self.text(text),
            AgentEvent::ToolCall { name, args } => {
                self.clear();
                self.tool_line.clear();
                self.start_activity(format!("{} {}", verb(name), gist_of_args(args)));
            }
            AgentEvent::ToolResult { success, .. } => self.succeeded = *success,
            AgentEvent::ToolDetail { name, args, denied, duration_ms, output, change, detail, .. } => {
                let (denied, duration_ms, change, succeeded) = (*denied, *duration_ms, change.as_ref(), self.succeeded);
                self.call(&EndedCall { name, args, denied, succeeded, duration_ms, output, change, detail });
            }
            AgentEvent::ToolOutput { text } => self.tool_output(text),
            AgentEvent::LaneStep(progress) => self.step(progress),
            AgentEvent::VerifyResult { unchanged_since: Some(attempt), .. } => self.unjudged(*attempt),
            AgentEvent::VerifyResult { success, failed_steps, duration_ms, feedback, .. } => {
                self.verdict(*success, failed_steps, feedback, *duration_ms);
            }
            AgentEvent::Tamper { findings } => self.tampered(findings),
            AgentEvent::Retry { what, tries, wait_ms, error } => {
                self.warn(&format!("{what} failed ({error}); try {} in {}", tries + 1, seconds(*wait_ms)));
            }
            AgentEvent::TurnDiscarded { error } if self.has_open_text() => {
                self.clear();
                self.warn(&format!("discarded the answer above: {error}"));
            }
            AgentEvent::Compaction { success: true, note } => self.warn(&format!("conversation shortened: {note}")),
            AgentEvent::Compaction { note, .. } => self.warn(&format!("conversation not shortened: {note}")),
            AgentEvent::Confirmation { name, approved: Some(approved), .. } => {
                self.warn(&format!("{name} was {}", if *approved { "approved" } else { "denied" }));
            }
            AgentEvent::Limit { reason } => self.warn(reason.row().meaning),
            AgentEvent::Warning(message) => self.warn(message),
            AgentEvent::Hook { note } => self.hook(note),
            AgentEvent::Committed { commit, branch } => self.committed(commit, branch.as_deref()),
            AgentEvent::Usage(usage) => self.status.usage = usage.clone(),
            AgentEvent::Thinking(_)
            | AgentEvent::TurnDiscarded { .. }
            | AgentEvent::Confirmation { .. }
            | AgentEvent::Subagent { .. }
            | AgentEvent::Checkpoint { .. }
            | AgentEvent::Proved { .. }
            | AgentEvent::Finished { .. } => {}
        }
    }

    fn call(&mut self, call: &EndedCall<'_>) {
        self.clear();
        call.lines(self.width()).iter().for_each(|line| paint::line(line));
    }

    /// Shows the newest lines of a running tool's output. The last one may not have ended.
    fn tool_output(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            self.tool_line.push_str(piece.trim_end_matches('\n'));
            self.live.note(&self.doing, self.tool_line.as_str());
            if piece.ends_with('\n') || self.tool_line.len() > LONGEST {
                self.tool_line.clear();
            }
        }
    }

    fn tampered(&mut self, findings: &[TamperFinding]) {
        let (shown, more) = findings.split_at(findings.len().min(FINDINGS));
        shown.iter().for_each(|finding| self.warn(&format!("protected: {}", report::found(finding))));
        if !more.is_empty() {
            self.warn(&format!("protected: and {} more; the report lists all", more.len()));
        }
    }

    fn committed(&mut self, commit: &str, branch: Option<&str>) {
        let said = report::committed(commit, branch);
        self.line(&[(Tone::Good, "✓ "), (Tone::Plain, &format!("committed {said}"))]);
        if branch.is_none() {
            let short = commit.get(..12).unwrap_or(commit);
            let keeps = format!("run `git branch NAME {short}` to keep it");
            self.warn(&format!("HEAD is detached, so this commit is on no branch: {keeps}"));
        }
    }

    /// Shows that a person wants to stop. Current activities continue for a moment and keep their
    /// live lines.
    pub(super) fn stopping(&mut self) {
        self.end_text();
        paint::line(&[(Tone::Warn, STOPPING)]);
    }

    fn state(&mut self, state: StateName) {
        if state != StateName::Verifying {
            self.base();
        }
        self.status.attempt.0 += u32::from(state == StateName::Executing);
        match state {
            StateName::Executing | StateName::Verifying => {
                let text = self.words(state);
                self.line(&[(Tone::Strong, "● "), (Tone::Plain, &text)]);
            }
            // Internal states; `-v` logs them.
            StateName::Idle | StateName::Planning | StateName::Reporting => self.clear(),
        }
    }

    /// Returns the line for the beginning of a state.
    fn words(&self, state: StateName) -> String {
        let (attempt, attempts) = self.status.attempt;
        match state {
            StateName::Idle => "finished".into(),
            StateName::Planning => "preparing".into(),
            StateName::Executing => format!("attempt {attempt} of {attempts}"),
            StateName::Verifying => "running the checks".into(),
            StateName::Reporting => "writing the report".into(),
        }
    }

    fn phase(&mut self, phase: Phase) {
        let what = match phase {
            Phase::CallingModel => {
                self.status.turn += 1;
                "waiting for the model"
            }
            Phase::BackingOff => "waiting before the next try",
            Phase::Confirming => {
                self.clear(); // the question goes below all text
                "waiting for an answer"
            }
            Phase::Dispatching => "a sub-agent is working",
            Phase::RunningHooks => "finishing the turn",
            Phase::AnsweringQuery => {
                self.clear(); // the next answer begins on a new line
                "recalling memories"
            }
            Phase::Compacting => "shortening the conversation",
            Phase::JudgingBase => {
                let what = "waiting for the checks on the base";
                if !self.live.is_wanted() {
                    self.line(&[(Tone::Faint, &format!("  {what}"))]);
                }
                what
            }
            Phase::RunningTools => return,
        };
        if !self.has_open_text() {
            self.start_activity(what.to_owned());
        }
    }

    /// Shows text of the model, each line behind a bar. The bar keeps readers from taking the text
    /// for output of fledge, and programs that read the log from taking it for commands. On a
    /// terminal, lines break between words.
    fn text(&mut self, text: &str) {
        self.live.clear();
        if self.live.is_wanted() {
            let lines = self.prose.push(text, self.width().saturating_sub(2));
            lines.iter().for_each(|line| quote(line));
            let rest = self.prose.unfinished().map(|rest| [(Tone::Faint, "│ "), (Tone::Plain, rest)]);
            return self.live.unfinished(rest.map(|line| paint::painted(&line)).unwrap_or_default());
        }
        for piece in text.split_inclusive('\n') {
            if !(self.is_mid_line && live::is_mid_line()) {
                paint::write(&[(Tone::Faint, "│ ")]);
            }
            paint::write(&[(Tone::Plain, piece)]);
            self.is_mid_line = !piece.ends_with('\n');
        }
    }

    /// Returns true if the newest line of the model's text has not ended.
    fn has_open_text(&self) -> bool {
        self.is_mid_line || self.prose.unfinished().is_some()
    }

    fn end_text(&mut self) {
        if let Some(line) = self.prose.end() {
            self.live.unfinished(String::new());
            quote(&line);
        }
        // Otherwise a line of the log has ended it.
        if std::mem::take(&mut self.is_mid_line) && live::is_mid_line() {
            paint::line::<&str>(&[]);
        }
    }

    /// Returns the columns of a line: those of the terminal, or [`PIPE`].
    fn width(&self) -> usize {
        if self.live.is_wanted() { live::width() } else { PIPE }
    }

    /// Shows the output of a hook. The warning before it has shown the first line of the note.
    fn hook(&mut self, note: &str) {
        self.clear();
        let printed = note.lines().skip(1).filter(|line| !line.trim().is_empty());
        printed.take(REASONS).for_each(|line| paint::line(&steps::output(line)));
    }

    fn warn(&mut self, message: &str) {
        if !self.live.is_wanted() {
            self.clear();
        }
        // On a terminal, the warning goes above the live lines and the model's open text.
        paint::line(&[(Tone::Warn, "! "), (Tone::Plain, &paint::one_line(message))]);
    }

    fn line(&mut self, pieces: &[(Tone, &str)]) {
        self.clear();
        paint::line(pieces);
    }

    /// Replaces the current activity.
    fn start_activity(&mut self, what: String) {
        self.live.clear();
        self.live.start(&what, "");
        self.doing = what;
    }

    /// Ends the model's text and removes the live lines.
    fn clear(&mut self) {
        self.end_text();
        self.live.clear();
    }
}

/// Shows a complete line of the model's text.
fn quote(line: &str) {
    paint::line(&[(Tone::Faint, "│ "), (Tone::Plain, line)]);
}
