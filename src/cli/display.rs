//! The terminal, as a watcher of events: what people see is a fold over them.

mod nested;

use super::live::{self, Live};
use super::paint::{self, Tone};
use super::signals::STOPPING;
use super::steps::{self, Line, Story, Told};
use crate::chat::Detail;
use crate::report::{self, Fact, seconds};
use crate::run::{AgentEvent, Phase, StateName, TaskResult};
use crate::verdict::{Reason, StepProgress, as_judged};
use serde_json::Value;
use std::collections::BTreeMap;

/// Characters of a tool call's argument, or of its result's first line, that are shown.
const GIST: usize = 90;

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
    /// The steps of the gate that runs.
    story: Story,
    /// Is true once a line says that the base is judged, before the agent starts.
    has_told_base: bool,
    /// Whether a piece of text stands at the end of the screen without a line end.
    is_mid_line: bool,
    attempt: u32,
    attempts: u32,
    turn: u64,
    /// Whether the tool call that is about to be shown succeeded.
    succeeded: bool,
    /// The same of sub-agents, by their paths.
    nested: BTreeMap<String, bool>,
}

impl Display {
    pub(super) fn new(is_live: bool) -> Self {
        let (live, doing, story) = (Live::new(is_live), String::new(), Story::default());
        Self {
            live,
            doing,
            story,
            has_told_base: false,
            is_mid_line: false,
            attempt: 0,
            attempts: 1,
            turn: 0,
            succeeded: true,
            nested: BTreeMap::new(),
        }
    }

    /// Shows one event.
    pub(super) fn show(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Started { title, models, max_retries, verify, .. } => {
                self.attempts = if *verify { max_retries + 1 } else { 1 };
                let about = format!("  {}", models.join(", "));
                self.line(&[(Tone::Strong, title), (Tone::Faint, &about)]);
            }
            AgentEvent::Resumed { state, attempt, turn } => {
                (self.attempt, self.turn) = (*attempt, *turn);
                let state = self.words(*state);
                self.line(&[(Tone::Strong, "● "), (Tone::Plain, &format!("taken up again: {state}"))]);
            }
            AgentEvent::Recalled { ids } => {
                let ids: Vec<&str> = ids.iter().map(|id| id.get(..8).unwrap_or(id)).collect();
                self.line(&[(Tone::Faint, &format!("  recalled from earlier runs: {}", ids.join(", ")))]);
            }
            AgentEvent::StateChanged(state) => self.state(*state),
            AgentEvent::PhaseChanged(phase) => self.phase(*phase),
            AgentEvent::Text(text) => self.text(text),
            AgentEvent::ToolCall { name, args } => {
                self.clear();
                self.begin(format!("{name} {}", gist_of_args(args)));
            }
            AgentEvent::ToolResult { success, .. } => self.succeeded = *success,
            AgentEvent::ToolDetail { name, args, denied, duration_ms, output, change, detail, .. } => {
                self.tool(name, args, *denied, *duration_ms, output, change.is_some(), detail);
                if let Some(change) = change {
                    self.line(&[(Tone::Faint, &format!("    {} +{} -{}", change.path, change.added, change.removed))]);
                }
            }
            AgentEvent::ToolOutput { text } => self.live.note(&self.doing, text.lines().last().unwrap_or_default()),
            AgentEvent::LaneStep(progress) => self.step(progress),
            AgentEvent::VerifyResult { unchanged_since: Some(attempt), .. } => self.unjudged(*attempt),
            AgentEvent::VerifyResult { success, failed_steps, duration_ms, feedback, .. } => {
                self.verdict(*success, failed_steps, feedback, *duration_ms);
            }
            AgentEvent::Tamper { findings } => {
                let (shown, more) = findings.split_at(findings.len().min(FINDINGS));
                shown.iter().for_each(|finding| self.warn(&format!("protected: {}", report::found(finding))));
                if !more.is_empty() {
                    self.warn(&format!("protected: and {} more, which the report names", more.len()));
                }
            }
            AgentEvent::Retry { what, tries, wait_ms, error } => {
                self.warn(&format!("{what} failed ({error}); try {} in {}", tries + 1, seconds(*wait_ms)));
            }
            AgentEvent::TurnDiscarded { error } if self.is_mid_line => {
                self.warn(&format!("the answer above is void: {error}"))
            }
            AgentEvent::Compaction { success: true, note } => self.warn(&format!("conversation shortened: {note}")),
            AgentEvent::Compaction { note, .. } => self.warn(&format!("conversation not shortened: {note}")),
            AgentEvent::Confirmation { name, approved: Some(approved), .. } => {
                self.warn(&format!("{name} was {}", if *approved { "approved" } else { "denied" }));
            }
            AgentEvent::Limit { reason } => self.warn(reason.row().meaning),
            AgentEvent::Warning(message) => self.warn(message),
            AgentEvent::Hook { note } => self.hook(note),
            AgentEvent::Committed { commit, branch } => {
                let said = report::committed(commit, branch.as_deref());
                self.line(&[(Tone::Good, "✓ "), (Tone::Plain, &format!("committed {said}"))]);
            }
            AgentEvent::Finished { .. } => self.clear(),
            AgentEvent::Thinking(_)
            | AgentEvent::TurnDiscarded { .. }
            | AgentEvent::Confirmation { .. }
            | AgentEvent::Subagent { .. }
            | AgentEvent::Checkpoint { .. }
            | AgentEvent::Proved { .. }
            | AgentEvent::Usage(_) => {}
        }
    }

    /// A person wants to stop. What goes on does so for a moment, and keeps its live line.
    pub(super) fn stopping(&mut self) {
        if std::mem::take(&mut self.is_mid_line) && live::is_mid_line() {
            paint::line::<&str>(&[]);
        }
        paint::line(&[(Tone::Warn, STOPPING)]);
    }

    fn state(&mut self, state: StateName) {
        if state == StateName::Idle {
            return self.clear();
        }
        if state != StateName::Verifying {
            self.base();
        }
        self.attempt += u32::from(state == StateName::Executing);
        let text = self.words(state);
        self.line(&[(Tone::Strong, "● "), (Tone::Plain, &text)]);
    }

    /// What the gate said of the base, when it was asked while the run was planned.
    fn base(&mut self) {
        let story = std::mem::take(&mut self.story);
        if story.is_empty() {
            return;
        }
        self.clear();
        let causes = story.causes();
        if causes.is_empty() {
            return self.line(&[(Tone::Good, "✓ the gate passes on the base")]);
        }
        story.closing(true).iter().for_each(|line| paint::line(line));
        let names = format!(": {}", steps::named(&causes));
        self.line(&[(Tone::Warn, "✗ the gate fails on the base"), (Tone::Plain, &names)]);
    }

    /// A state, with the attempt that is under way.
    fn words(&self, state: StateName) -> String {
        match state {
            StateName::Idle => "idle".into(),
            StateName::Planning => "planning".into(),
            StateName::Executing => format!("executing, attempt {} of {}", self.attempt, self.attempts),
            StateName::Verifying => "verifying".into(),
            StateName::Reporting => "reporting".into(),
        }
    }

    fn phase(&mut self, phase: Phase) {
        let what = match phase {
            Phase::CallingModel => {
                self.turn += 1;
                format!("waiting for the model, turn {}", self.turn)
            }
            Phase::BackingOff => "waiting before another try".into(),
            Phase::Confirming => "waiting for an answer".into(),
            Phase::Dispatching => "a sub-agent works".into(),
            Phase::RunningHooks => "finishing the turn".into(),
            Phase::AnsweringQuery => {
                self.clear(); // the next answer begins a line of its own
                "looking something up".into()
            }
            Phase::Compacting => "shortening the conversation".into(),
            Phase::JudgingBase => {
                let what = "waiting for the checks of the base";
                if !self.live.is_wanted() {
                    self.line(&[(Tone::Faint, &format!("  {what}"))]);
                }
                what.into()
            }
            Phase::RunningTools => return,
        };
        if !self.is_mid_line {
            self.begin(what);
        }
    }

    /// Returns true if the model's last line has not ended. A line of the log ends it.
    fn is_mid_line(&self) -> bool {
        self.is_mid_line && live::is_mid_line()
    }

    /// What the model says, each line behind a bar: it cannot be taken for a line of ours, nor for a command to whoever reads the log.
    fn text(&mut self, text: &str) {
        self.live.clear();
        for piece in text.split_inclusive('\n') {
            if !self.is_mid_line() {
                paint::write(&[(Tone::Faint, "│ ")]);
            }
            paint::write(&[(Tone::Plain, piece)]);
            self.is_mid_line = !piece.ends_with('\n');
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one line is made of these")]
    fn tool(&mut self, name: &str, args: &Value, denied: bool, ms: u64, output: &str, changed: bool, detail: &Detail) {
        let (tone, result) = upshot(denied, self.succeeded, changed, output, detail);
        let (call, time) = (format!("  {} ", paint::one_line(name)), format!("{}  ", cut(&gist_of_args(args), GIST)));
        let slow = if ms >= 1000 { format!(" ({})", seconds(ms)) } else { String::new() };
        self.line(&[(Tone::Strong, &call), (Tone::Plain, &time), (tone, &result), (Tone::Faint, &slow)]);
    }

    fn step(&mut self, progress: &StepProgress) {
        match progress {
            StepProgress::Started { lane, step, command } => {
                if self.attempt == 0 && !std::mem::replace(&mut self.has_told_base, true) {
                    self.line(&[(Tone::Faint, "  judging the base")]);
                }
                self.live.begin(&format!("{lane}/{step}"), command);
            }
            StepProgress::Output { lane, step, line } => self.live.note(&format!("{lane}/{step}"), line),
            StepProgress::Retried(report) => {
                self.live.end(&format!("{}/{}", report.lane, report.step));
                self.story.interrupted();
                paint::line(&steps::retried(report));
            }
            StepProgress::Ended(report) => {
                self.live.end(&format!("{}/{}", report.lane, report.step));
                paint::line(&steps::result(report));
                self.story.ended(report.clone(), Told::Result);
            }
        }
    }

    fn unjudged(&mut self, attempt: u32) {
        self.line(&[(Tone::Bad, &format!("✗ not judged again: {}", as_judged(attempt)))]);
    }

    /// Shows what a hook has printed. The warning before it has shown the first line of the note.
    fn hook(&mut self, note: &str) {
        self.clear();
        let printed = note.lines().skip(1).filter(|line| !line.trim().is_empty());
        printed.take(REASONS).for_each(|line| paint::line(&steps::output(line)));
    }

    /// The steps that failed, with what explains them, and the verdict.
    fn verdict(&mut self, success: bool, failed: &[String], feedback: &str, duration_ms: u64) {
        if self.attempt == 0 {
            return self.base(); // before any agent
        }
        let (story, time) = (std::mem::take(&mut self.story), format!(" ({})", seconds(duration_ms)));
        self.clear();
        if success {
            return self.line(&[(Tone::Good, "✓ the gate passed"), (Tone::Faint, &time)]);
        }
        story.closing(true).iter().for_each(|line| paint::line(line));
        if failed.is_empty() {
            feedback.lines().take(REASONS).for_each(|line| paint::line(&steps::output(line)));
        }
        let names = if failed.is_empty() { String::new() } else { format!(": {}", failed.join(", ")) };
        let counts = format!("; {}", story.counts(true));
        let verdict = (Tone::Bad, "✗ the gate did not pass");
        self.line(&[verdict, (Tone::Faint, &time), (Tone::Plain, &names), (Tone::Faint, &counts)]);
    }

    fn warn(&mut self, message: &str) {
        self.line(&[(Tone::Warn, "! "), (Tone::Plain, &paint::one_line(message))]);
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

    fn clear(&mut self) {
        self.live.clear();
        if std::mem::take(&mut self.is_mid_line) && live::is_mid_line() {
            paint::line::<&str>(&[]);
        }
    }
}

/// How the run ended, and unless only errors are wanted, the summary.
pub(super) fn closing(result: &TaskResult, only_errors: bool) -> Vec<Line> {
    let (tone, mark) = match result.reason {
        Reason::Verified if !result.protected.is_empty() => (Tone::Warn, "✓ verified, without the changes below"),
        Reason::Verified => (Tone::Good, "✓ verified"),
        Reason::Skipped => (Tone::Warn, "✓ done, not verified"),
        Reason::Cancelled => (Tone::Warn, "✗ cancelled"),
        reason => (Tone::Bad, reason.row().word),
    };
    let message = match report::proof_of(result) {
        Some(proof) if result.exit_code == 0 && result.turns == 0 => {
            format!(": {}; {}", result.message, report::rests_on(proof))
        }
        Some(proof) if result.exit_code == 0 => format!(": {}", report::rests_on(proof)),
        _ if result.cancelled || result.reason == Reason::Skipped => String::new(),
        _ => format!(": {}", result.message),
    };
    let mut lines = vec![vec![(tone, mark.to_owned()), (Tone::Plain, message.replace('\n', "\n  "))]];
    if !only_errors {
        lines.extend(report::closing(result).iter().map(fact));
    }
    lines
}

/// A line of a summary.
pub(super) fn fact(fact: &Fact) -> Line {
    vec![(Tone::Faint, format!("  {:<9}", fact.about)), (Tone::Plain, paint::one_line(&fact.says))]
}

/// What came of a tool call, in a few words.
pub(super) fn upshot(denied: bool, succeeded: bool, changed: bool, output: &str, detail: &Detail) -> (Tone, String) {
    let first = cut(output.lines().next().unwrap_or_default(), GIST);
    match detail {
        _ if denied => (Tone::Warn, format!("refused: {first}")),
        Detail::Output { timed_out: true, .. } => (Tone::Bad, "timed out".into()),
        Detail::Output { exit_code: Some(0), .. } => (Tone::Good, "exit 0".into()),
        Detail::Output { exit_code: Some(code), .. } => (Tone::Bad, format!("exit {code}")),
        Detail::Output { signal: Some(signal), .. } => (Tone::Bad, format!("signal {signal}")),
        _ if !succeeded => (Tone::Bad, format!("failed: {first}")),
        Detail::Output { .. } | Detail::None | Detail::Diff(_) | Detail::Protected { .. } if changed => {
            (Tone::Good, "done".into())
        }
        Detail::Output { .. } | Detail::None | Detail::Diff(_) | Detail::Protected { .. } => (Tone::Faint, first),
    }
}

/// The argument that tells most about a call: its path, command or pattern, else the first text.
pub(super) fn gist_of_args(args: &Value) -> String {
    let named = ["path", "command", "pattern"].iter().find_map(|key| args.get(key)?.as_str());
    let first = || args.as_object()?.values().find_map(Value::as_str);
    let gist = named.or_else(first).unwrap_or_default();
    cut(gist.lines().next().unwrap_or_default(), GIST)
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}
