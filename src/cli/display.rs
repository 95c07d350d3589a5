//! The terminal, as a watcher of events: what people see is a fold over them.

mod call;
mod counting;
mod ending;
mod expected;
mod gate;
mod nested;
mod prose;

pub(super) use call::{gist_of_args, upshot, verb};
pub(super) use ending::{closing, fact};
pub(super) use expected::expected;

use super::live::{self, Live, Status};
use super::paint::{self, Tone};
use super::signals::STOPPING;
use super::steps;
use crate::chat::Usage;
use crate::limits::Limits;
use crate::process::Stopwatch;
use crate::report::{self, number, seconds};
use crate::run::{AgentEvent, Phase, StateName};
use crate::verdict::Finding;
use call::Ended;
use gate::GateView;
use prose::Prose;
use std::collections::BTreeMap;

/// Columns of a line where no terminal says how many there are.
const PIPE: usize = 160;

/// The most findings that are told line by line.
const FINDINGS: usize = 20;
/// Lines that are shown of why a gate did not pass although every step did.
const REASONS: usize = 8;

/// What is on the screen, as far as the next line depends on it.
#[derive(Debug)]
pub(super) struct Display {
    live: Live,
    /// The one thing that goes on, when it is not a step.
    doing: String,
    gate: GateView,
    /// The model's text on a terminal. Elsewhere it is written as it comes.
    prose: Prose,
    /// Whether a piece of text stands at the end of the screen without a line end.
    is_mid_line: bool,
    /// The line at the bottom of a terminal, and with it how far the run is.
    status: Status,
    /// Whether the tool call that is about to be shown succeeded.
    succeeded: bool,
    /// The same of sub-agents, by their paths.
    nested: BTreeMap<String, bool>,
}

impl Display {
    /// `before_ms` is how long the run has taken so far.
    pub(super) fn new(is_live: bool, before_ms: u64) -> Self {
        let (limits, usage, since) = (Limits::default(), Usage::default(), Stopwatch::start());
        Self {
            live: Live::new(is_live),
            doing: String::new(),
            gate: GateView::default(),
            prose: Prose::default(),
            is_mid_line: false,
            status: Status { attempt: (0, 1), turn: 0, checks: None, usage, limits, since, before_ms },
            succeeded: true,
            nested: BTreeMap::new(),
        }
    }

    /// Knows from earlier runs how many milliseconds each step of the gate takes, by `lane/step`.
    pub(super) fn expecting(self, steps: BTreeMap<String, u64>) -> Self {
        Self { gate: GateView::expecting(steps), ..self }
    }

    /// Shows one event, and the status after it.
    pub(super) fn show(&mut self, event: &AgentEvent) {
        self.show_above(event);
        if let AgentEvent::Finished { .. } = event {
            self.close();
        } else {
            self.live.status(self.status.clone());
        }
    }

    /// Takes the live lines away, for the last words.
    pub(super) fn close(&mut self) {
        self.clear();
        self.live.finish();
    }

    /// Shows what an event says above the live lines.
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
                self.line(&[(Tone::Strong, "● "), (Tone::Plain, &format!("taken up again: {state}"))]);
            }
            AgentEvent::Recalled { ids } => {
                self.line(&[(Tone::Faint, &format!("  memory: {}", number(ids.len() as u64, "note")))]);
            }
            AgentEvent::StateChanged(state) => self.state(*state),
            AgentEvent::PhaseChanged(phase) => self.phase(*phase),
            AgentEvent::Text(text) => self.text(text),
            AgentEvent::ToolCall { name, args } => {
                self.clear();
                self.begin(format!("{} {}", verb(name), gist_of_args(args)));
            }
            AgentEvent::ToolResult { success, .. } => self.succeeded = *success,
            AgentEvent::ToolDetail { name, args, denied, duration_ms, output, change, detail, .. } => {
                let (denied, duration_ms, change, succeeded) = (*denied, *duration_ms, change.as_ref(), self.succeeded);
                self.call(&Ended { name, args, denied, succeeded, duration_ms, output, change, detail });
            }
            AgentEvent::ToolOutput { text } => text.lines().for_each(|line| self.live.note(&self.doing, line)),
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
                self.warn(&format!("the answer above is void: {error}"));
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

    fn call(&mut self, call: &Ended<'_>) {
        self.clear();
        call.lines(self.width()).iter().for_each(|line| paint::line(line));
    }

    fn tampered(&mut self, findings: &[Finding]) {
        let (shown, more) = findings.split_at(findings.len().min(FINDINGS));
        shown.iter().for_each(|finding| self.warn(&format!("protected: {}", report::found(finding))));
        if !more.is_empty() {
            self.warn(&format!("protected: and {} more, which the report names", more.len()));
        }
    }

    fn committed(&mut self, commit: &str, branch: Option<&str>) {
        let said = report::committed(commit, branch);
        self.line(&[(Tone::Good, "✓ "), (Tone::Plain, &format!("committed {said}"))]);
        if branch.is_none() {
            let short = commit.get(..12).unwrap_or(commit);
            let keeps = format!("`git branch NAME {short}` keeps it");
            self.warn(&format!("HEAD is detached, so no branch has this commit: {keeps}"));
        }
    }

    /// A person wants to stop. What goes on does so for a moment, and keeps its live line.
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
            // States of the machine alone; `-v` logs them.
            StateName::Idle | StateName::Planning | StateName::Reporting => self.clear(),
        }
    }

    /// Shows the beginning of a state.
    fn words(&self, state: StateName) -> String {
        let (attempt, attempts) = self.status.attempt;
        match state {
            StateName::Idle => "over".into(),
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
            Phase::BackingOff => "waiting before another try",
            Phase::Confirming => {
                self.clear(); // the question stands below all text
                "waiting for an answer"
            }
            Phase::Dispatching => "a sub-agent works",
            Phase::RunningHooks => "finishing the turn",
            Phase::AnsweringQuery => {
                self.clear(); // the next answer begins a line of its own
                "looking something up"
            }
            Phase::Compacting => "shortening the conversation",
            Phase::JudgingBase => {
                let what = "waiting for the checks of the base";
                if !self.live.is_wanted() {
                    self.line(&[(Tone::Faint, &format!("  {what}"))]);
                }
                what
            }
            Phase::RunningTools => return,
        };
        if !self.has_open_text() {
            self.begin(what.to_owned());
        }
    }

    /// What the model says, each line behind a bar: it cannot be taken for a line of ours, nor for a command to whoever reads the log.
    /// On a terminal words are kept whole.
    fn text(&mut self, text: &str) {
        self.live.clear();
        if self.live.is_wanted() {
            let lines = self.prose.take(text, self.width().saturating_sub(2));
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
        // A line of the log has ended it otherwise.
        if std::mem::take(&mut self.is_mid_line) && live::is_mid_line() {
            paint::line::<&str>(&[]);
        }
    }

    /// Columns of a line: of the terminal, else as many as are easily read.
    fn width(&self) -> usize {
        if self.live.is_wanted() { live::width() } else { PIPE }
    }

    /// Shows what a hook has printed. The warning before it has shown the first line of the note.
    fn hook(&mut self, note: &str) {
        self.clear();
        let printed = note.lines().skip(1).filter(|line| !line.trim().is_empty());
        printed.take(REASONS).for_each(|line| paint::line(&steps::output(line)));
    }

    fn warn(&mut self, message: &str) {
        if !self.live.is_wanted() {
            self.clear();
        }
        // On a terminal it stands above what goes on and what the model is saying.
        paint::line(&[(Tone::Warn, "! "), (Tone::Plain, &paint::one_line(message))]);
    }

    fn line(&mut self, pieces: &[(Tone, &str)]) {
        self.clear();
        paint::line(pieces);
    }

    /// This goes on now, and nothing else.
    fn begin(&mut self, what: String) {
        self.live.clear();
        self.live.begin(&what, "");
        self.doing = what;
    }

    /// Ends the text of the model, and takes away what goes on.
    fn clear(&mut self) {
        self.end_text();
        self.live.clear();
    }
}

/// Shows a whole line of the model's text.
fn quote(line: &str) {
    paint::line(&[(Tone::Faint, "│ "), (Tone::Plain, line)]);
}
