//! The state of a job's run while a batch runs, and the line about its end. The state is a fold
//! over the run's events.

use super::super::display::gist_of_args;
use super::super::paint::Tone;
use super::page::counted;
use crate::batch::{EXIT_CODES_ALONE, FinishedJob, JobEnding, JobStatus};
use crate::report::{money, seconds};
use crate::run::{AgentEvent, Phase, StateName};
use crate::verdict::StepProgress;

/// The state of a run.
#[derive(Debug)]
pub(super) struct JobLine {
    attempt: u32,
    attempts: u32,
    turn: u64,
    pub(super) usd_micros: u64,
    doing: String,
}

impl Default for JobLine {
    fn default() -> Self {
        Self { attempt: 0, attempts: 0, turn: 0, usd_micros: 0, doing: "waiting for its turn".into() }
    }
}

impl JobLine {
    /// Updates the state with an event. Returns true if the line must be drawn again.
    pub(super) fn update(&mut self, event: &AgentEvent) -> bool {
        match event {
            AgentEvent::Started { max_retries, verify, .. } => {
                self.attempts = if *verify { max_retries + 1 } else { 1 };
                "planning".clone_into(&mut self.doing);
            }
            AgentEvent::Resumed { attempt, turn, .. } => (self.attempt, self.turn) = (*attempt, *turn),
            AgentEvent::StateChanged(StateName::Executing) => self.attempt += 1,
            AgentEvent::StateChanged(StateName::Verifying) => "verifying".clone_into(&mut self.doing),
            AgentEvent::StateChanged(StateName::Reporting) => "reporting".clone_into(&mut self.doing),
            AgentEvent::PhaseChanged(phase) => match phase {
                Phase::CallingModel => {
                    self.turn += 1;
                    "thinking".clone_into(&mut self.doing);
                }
                Phase::BackingOff => "waiting for the next try".clone_into(&mut self.doing),
                Phase::Confirming => "waiting for an answer".clone_into(&mut self.doing),
                Phase::Dispatching => "a sub-agent is working".clone_into(&mut self.doing),
                Phase::RunningHooks => "finishing the turn".clone_into(&mut self.doing),
                Phase::Compacting => "shortening the conversation".clone_into(&mut self.doing),
                Phase::JudgingBase => "waiting for the checks on the base".clone_into(&mut self.doing),
                Phase::AnsweringQuery | Phase::RunningTools => return false,
            },
            AgentEvent::ToolCall { name, args } => self.doing = format!("{name} {}", gist_of_args(args)),
            AgentEvent::LaneStep(StepProgress::Started { step, .. }) => {
                let what = if self.attempt == 0 { "judging the base" } else { "verifying" };
                self.doing = format!("{what}: {step}");
            }
            AgentEvent::Usage(usage) => self.usd_micros = usage.cost_micros.unwrap_or(0),
            _ => return false,
        }
        true
    }

    pub(super) fn text(&self) -> String {
        let mut parts = Vec::new();
        if self.attempt > 0 {
            parts.push(format!("attempt {}/{}", self.attempt, self.attempts.max(self.attempt)));
        }
        parts.extend((self.turn > 0).then(|| format!("turn {}", self.turn)));
        parts.extend((self.usd_micros > 0).then(|| money(self.usd_micros)));
        parts.push(self.doing.clone());
        parts.join(" · ")
    }
}

/// Formats the end of a job in one line.
pub(super) fn ending(outcome: &FinishedJob) -> Vec<(Tone, String)> {
    let standing = outcome.standing();
    let (mark, tone) = match standing {
        JobStatus::Verified if outcome.is_by_exit_codes_alone() => ("✓", Tone::Warn),
        JobStatus::Verified => ("✓", Tone::Good),
        JobStatus::Failed | JobStatus::Errored => ("✗", Tone::Bad),
        JobStatus::Cancelled | JobStatus::Skipped | JobStatus::NotStarted => ("-", Tone::Warn),
    };
    let mut line = vec![(tone, format!("{mark} {}", standing.word()))];
    if standing != JobStatus::Verified {
        line.push((Tone::Plain, format!(": {}", outcome.says())));
    } else if outcome.is_by_exit_codes_alone() {
        line.push((Tone::Plain, format!(" {EXIT_CODES_ALONE}")));
    }
    if let JobEnding::Ran(ran) = &outcome.end {
        let cost = if outcome.usd_micros == 0 { String::new() } else { format!(", {}", money(outcome.usd_micros)) };
        let (attempts, turns) = (counted(ran.attempts, "attempt"), counted(ran.turns, "turn"));
        line.push((Tone::Faint, format!(" ({attempts}, {turns}{cost}, {})", seconds(ran.duration_ms))));
    }
    line
}
