//! The timeline of a run, built from its journal. [`RunStory`] replays the events through a run
//! machine. It collects the entries ([`RunStory::scenes`]) in order, and the time spent on each
//! activity. The module does no I/O. The run may have ended, be in progress, or be interrupted.

pub use super::course::{TimePart, TimeSpan};
use crate::chat::{FileChange, OutcomeDetail, StopReason, Usage};
use crate::elapsed::Elapsed;
use crate::id::TreeId;
use crate::limits::{Limits, NewLimits};
use crate::run::{Action, AgentEvent, Event, Run, StateName};
use crate::verdict::{Reason, StopCause, Verdict};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The version of the format of a timeline.
pub const STORY_SCHEMA_VERSION: u32 = 1;

/// The timeline of the events so far.
#[derive(Debug, Default)]
pub struct RunStory {
    /// The entries, in order.
    pub scenes: Vec<Scene>,
    /// The time spans of the activities, in order. Neighbours have different activities.
    pub course: Vec<TimeSpan>,
    /// The machine after the events so far.
    pub run: Run,
    /// The timelines of sub-agents, by path.
    children: BTreeMap<String, RunStory>,
    at: Elapsed,
    attempts: u32,
    gates: u32,
    succeeded: bool,
    /// The run before its report could not be written, if that is the newest event. A process that
    /// takes up the run goes back to this state.
    unreported: Option<Box<Run>>,
    /// The run before its gate passed, until a report is saved or the delivery begins. A process
    /// that takes up the run may go back to this state.
    unproven: Option<Box<Run>>,
    /// The run before its delivery failed. A process that takes up the run may go back to this
    /// state.
    undelivered: Option<Box<Run>>,
    refused: Option<Box<Run>>,
    /// The run before it was terminated from outside. A process that takes up the run may go back
    /// to this state.
    stopped: Option<Box<Run>>,
}

/// The changes when another process takes up a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Takeover {
    /// True if the gate judges the newest attempt again.
    pub gate_again: bool,
    /// True if a failed delivery is tried again.
    pub delivery_again: bool,
    /// True if a model that blocked the run is asked again.
    pub request_again: bool,
    /// True if the work that was interrupted from outside continues.
    pub stop_again: bool,
    /// True if the run goes on after the limit that ended it.
    pub limit_again: bool,
    /// The new limits.
    pub limits: NewLimits,
}

/// An entry of a story.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scene {
    /// The path of the sub-agent that the scene belongs to. `None` for the run itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The time since the run began, in milliseconds.
    pub at_ms: u64,
    /// The content.
    #[serde(flatten)]
    pub what: SceneKind,
}

/// The content of a scene. In JSON: `{"type": …, "data": …}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum SceneKind {
    /// The run received its task.
    Began { title: String, prompt: String, models: Vec<String>, verify: bool, max_retries: u32, limits: Limits },
    /// The gate is frozen and the first message is ready.
    Planned { gate_digest: String, tools: Vec<String> },
    /// An attempt began: the model may work.
    Attempt { number: u32 },
    /// A turn of the model ended normally.
    Turn { number: u64, model: String, text: String, stop: StopReason, usage: Option<Usage>, duration_ms: u64 },
    /// A turn of the model failed and was discarded.
    Discarded { error: String },
    /// The usage of the run or the sub-agent so far.
    Used(Usage),
    /// A tool call ended.
    Tool(Box<ToolScene>),
    /// A sub-agent began or ended.
    Subagent { finished: bool, note: String },
    /// A person answered.
    Answered { tool: String, approved: bool },
    /// Hooks had notes for the model.
    Hooks { notes: Vec<String> },
    /// The model got an answer to a query that it had asked in prose.
    Query { answer: String },
    /// The conversation was shortened, or could not be.
    Compaction { success: bool, note: String },
    /// The gate has judged.
    Gate { attempt: u32, verdict: Box<Verdict> },
    /// The verified tree was committed.
    Committed { commit: String, branch: Option<String> },
    /// The files at the end of a turn were kept.
    Checkpoint { turn: u64, tree: TreeId },
    /// An operation is tried again after a pause.
    Retry { what: String, tries: u32, wait_ms: u64, error: String },
    /// A limit ended the run.
    Limit { reason: Reason },
    /// The run was asked to stop. `partial_text` is the unfinished answer of the model.
    Stopped { cause: StopCause, partial_text: String },
    /// Memories of earlier runs went into the first message.
    Recalled { ids: Vec<String> },
    /// Another process took up the run.
    Resumed,
    /// A warning.
    Warning { message: String },
    /// The run is over.
    Ended { reason: Reason, verified: Option<bool>, exit_code: u8, message: String },
}

/// A tool call that ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolScene {
    /// The tool's name.
    pub name: String,
    /// The arguments, as far as they could be read.
    pub args: Value,
    /// True if the call succeeded.
    pub success: bool,
    /// True if the call was denied and did not run.
    pub denied: bool,
    /// The duration, in milliseconds.
    pub duration_ms: u64,
    /// The text that the model received.
    pub output: String,
    /// The change that the call made.
    pub change: Option<FileChange>,
    /// Details for display.
    pub detail: OutcomeDetail,
}

impl RunStory {
    /// Adds the next event of the journal.
    pub fn push(&mut self, at: Elapsed, event: Event) {
        let ms = at.0.saturating_sub(self.at.0);
        self.spend(TimePart::from_run(&self.run), ms);
        self.at = at.max(self.at);
        if event.call().is_none_or(|call| self.run.awaited().contains(&call)) {
            self.happened(&event, ms);
        }
        self.keep(&event);
        for action in self.run.handle(at, event) {
            if let Action::Emit { event } = action {
                self.was_told(event);
            } else if let Action::Deliver { .. } = action {
                self.unproven = None; // a process that takes up the run delivers the tree that passed
            }
        }
    }

    /// Adds the next event of the sub-agent with this path.
    pub fn take_of(&mut self, path: &str, at: Elapsed, event: Event) {
        let child = self.children.entry(path.to_owned()).or_default();
        child.push(at, event);
        let scenes = std::mem::take(&mut child.scenes).into_iter();
        self.scenes.extend(scenes.map(|scene| Scene { of: Some(path.to_owned()), ..scene }));
    }

    fn keep(&mut self, event: &Event) {
        let before = || Some(Box::new(self.run.clone()));
        if self.run.state() == StateName::Executing {
            self.refused = if let Event::ModelFailed { .. } = event { before() } else { None };
        }
        self.unreported = if let Event::ReportFailed { .. } = event { before() } else { None };
        if let Event::GateFinished { call, verdict } = event {
            self.unproven = if verdict.passed() && self.run.awaited().contains(call) { before() } else { None };
        } else if let Event::ReportSaved { .. } = event {
            self.unproven = None;
        } else if let Event::Delivered { result, .. } = event {
            self.undelivered = if result.is_err() { before() } else { None };
        } else if let Event::CancelRequested { cause: StopCause::Terminate, .. } = event
            && self.run.state() != StateName::Reporting
        {
            self.stopped = before();
        }
    }

    /// Records that another process took up the run, with the changes.
    pub fn resumed(&mut self, at: Elapsed, taken_up: Takeover) {
        let Takeover { gate_again, delivery_again, request_again, stop_again, limit_again, limits } = taken_up;
        self.at = at.max(self.at);
        if let Some(run) = self.unreported.take() {
            self.run = *run;
            self.scenes.retain(|scene| scene.of.is_some() || !matches!(scene.what, SceneKind::Ended { .. }));
        }
        if let Some(run) = self.unproven.take_if(|_| gate_again) {
            self.run = *run;
            self.gates -= 1;
        }
        let undelivered = self.undelivered.take_if(|_| delivery_again);
        let refused = || self.refused.take_if(|_| request_again);
        if let Some(run) = undelivered.or_else(refused).or_else(|| self.stopped.take_if(|_| stop_again)) {
            self.run = *run;
            self.scenes.retain(|scene| scene.of.is_some() || !matches!(scene.what, SceneKind::Ended { .. }));
        }
        self.run.set_limits(limits);
        if limit_again {
            self.run.go_on();
            self.scenes.retain(|scene| scene.of.is_some() || !matches!(scene.what, SceneKind::Ended { .. }));
        }
        self.add_scene(SceneKind::Resumed);
    }

    /// Returns the total time, in milliseconds.
    pub fn total_ms(&self) -> u64 {
        self.course.iter().map(|span| span.ms).sum()
    }

    /// Returns the time spent on one activity, in milliseconds.
    pub fn spent_ms(&self, part: TimePart) -> u64 {
        self.course.iter().filter(|span| span.part == part).map(|span| span.ms).sum()
    }

    /// Divides the run's time into `slots` equal intervals. Returns for each interval the activity
    /// that took the most time; on a tie, the first in [`TimePart::ALL`]. Returns an empty list if
    /// no time has passed.
    pub fn main_activities(&self, slots: u64) -> Vec<TimePart> {
        let total = self.total_ms();
        let main_activity = |slot: u64| {
            // All times are multiplied by the number of slots, so that the bounds are whole
            // numbers.
            let (from, to) = (slot * total, (slot + 1) * total);
            let (mut shares, mut begin) = ([0_u64; TimePart::ALL.len()], 0);
            for span in &self.course {
                let end = begin + span.ms * slots;
                shares[span.part as usize] += to.min(end).saturating_sub(from.max(begin));
                begin = end;
            }
            TimePart::ALL.into_iter().rev().max_by_key(|part| shares[*part as usize]).unwrap_or(TimePart::Other)
        };
        if total == 0 { Vec::new() } else { (0..slots).map(main_activity).collect() }
    }

    /// Adds the scenes that the event itself describes.
    fn happened(&mut self, event: &Event, ms: u64) {
        let what = match event {
            Event::TaskSubmitted { spec } => SceneKind::Began {
                title: spec.title.clone(),
                prompt: spec.prompt.clone(),
                models: spec.models.clone(),
                verify: spec.verify,
                max_retries: spec.max_retries,
                limits: spec.limits.clone(),
            },
            Event::PlanReady { plan, .. } => SceneKind::Planned {
                gate_digest: plan.gate_digest.clone(),
                tools: plan.tools.iter().map(|tool| tool.name.clone()).collect(),
            },
            Event::ModelCompleted { reply, .. } => SceneKind::Turn {
                number: self.run.next_turn(),
                model: reply.model.clone(),
                text: reply.text(),
                stop: reply.stop,
                usage: reply.usage.clone(),
                duration_ms: ms,
            },
            Event::HooksFinished { notes, .. } if !notes.is_empty() => SceneKind::Hooks { notes: notes.clone() },
            Event::QueryAnswered { answer, .. } => SceneKind::Query { answer: answer.clone() },
            Event::GateFinished { verdict, .. } => {
                self.gates += 1;
                SceneKind::Gate { attempt: self.gates, verdict: verdict.clone() }
            }
            Event::CancelRequested { cause, partial_text } => {
                SceneKind::Stopped { cause: *cause, partial_text: partial_text.clone() }
            }
            Event::PlanFailed { .. }
            | Event::ModelDelta { .. }
            | Event::ModelFailed { .. }
            | Event::Interrupted { .. }
            | Event::DeadlinePassed
            | Event::ConfirmationAnswered { .. }
            | Event::ToolProgress { .. }
            | Event::ToolFinished { .. }
            | Event::ChildFinished { .. }
            | Event::HooksFinished { .. }
            | Event::CompactionFinished { .. }
            | Event::GateProgress { .. }
            | Event::Delivered { .. }
            | Event::ReportSaved { .. }
            | Event::ReportFailed { .. }
            | Event::BaseJudged { .. }
            | Event::LimitReached { .. } => return,
        };
        self.add_scene(what);
        if let Event::PlanReady { plan, .. } = event
            && let Some(verdict) = &plan.base_verdict
        {
            self.gates += 1;
            self.add_scene(SceneKind::Gate { attempt: self.gates, verdict: verdict.clone() });
        }
    }

    /// Adds the scene for an event that the machine emitted.
    fn was_told(&mut self, event: AgentEvent) {
        let what = match event {
            AgentEvent::StateChanged(StateName::Executing) => {
                self.attempts += 1;
                SceneKind::Attempt { number: self.attempts }
            }
            AgentEvent::ToolResult { success, .. } => {
                self.succeeded = success;
                return;
            }
            AgentEvent::ToolDetail { name, args, denied, duration_ms, output, change, detail, .. } => {
                let success = self.succeeded;
                SceneKind::Tool(Box::new(ToolScene { name, args, success, denied, duration_ms, output, change, detail }))
            }
            AgentEvent::Recalled { ids } => SceneKind::Recalled { ids },
            AgentEvent::Retry { what, tries, wait_ms, error } => SceneKind::Retry { what, tries, wait_ms, error },
            AgentEvent::TurnDiscarded { error } => SceneKind::Discarded { error },
            AgentEvent::Usage(usage) => SceneKind::Used(usage),
            AgentEvent::Compaction { success, note } => SceneKind::Compaction { success, note },
            AgentEvent::Confirmation { name, approved: Some(approved), .. } => SceneKind::Answered { tool: name, approved },
            AgentEvent::Subagent { finished, note } => SceneKind::Subagent { finished, note },
            AgentEvent::Committed { commit, branch } => SceneKind::Committed { commit, branch },
            AgentEvent::Checkpoint { turn, tree } => SceneKind::Checkpoint { turn, tree },
            AgentEvent::Limit { reason } => SceneKind::Limit { reason },
            AgentEvent::Warning(message) => SceneKind::Warning { message },
            AgentEvent::Finished { reason, verified, exit_code, message, .. } => {
                SceneKind::Ended { reason, verified, exit_code, message }
            }
            AgentEvent::Started { .. }
            | AgentEvent::Resumed { .. }
            | AgentEvent::StateChanged(_)
            | AgentEvent::PhaseChanged(_)
            | AgentEvent::Text(_)
            | AgentEvent::Thinking(_)
            | AgentEvent::ToolCall { .. }
            | AgentEvent::ToolOutput { .. }
            | AgentEvent::VerifyResult { .. }
            | AgentEvent::LaneStep(_)
            | AgentEvent::Confirmation { .. }
            | AgentEvent::Hook { .. } // the event that caused it already has a scene
            | AgentEvent::Proved { .. }
            | AgentEvent::Tamper { .. } => return,
        };
        self.add_scene(what);
    }

    fn add_scene(&mut self, what: SceneKind) {
        self.scenes.push(Scene { of: None, at_ms: self.at.0, what });
    }

    fn spend(&mut self, part: TimePart, ms: u64) {
        match self.course.last_mut() {
            _ if ms == 0 => {}
            Some(last) if last.part == part => last.ms += ms,
            Some(_) | None => self.course.push(TimeSpan { part, ms }),
        }
    }
}

#[cfg(test)]
#[path = "story_tests.rs"]
mod tests;
