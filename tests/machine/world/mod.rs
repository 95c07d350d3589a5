//! A simulated environment from one seed. It acts as provider, tools, sub-agents, people, hooks,
//! gate and report of a run, sends stray events, and keeps the time.

pub(crate) mod nature;

pub(crate) use crate::support::Dice;

use fledge::chat::Delta;
use fledge::elapsed::Elapsed;
use fledge::id::CallId;
use fledge::run::{Action, Event, Run, StateName};
use fledge::verdict::{Reason, StepProgress, StepStatus};
use nature::{TEMPERS, Temper};

/// Answers the actions of one run.
pub(crate) struct World {
    dice: Dice,
    temper: Temper,
    now: u64,
    /// Future events with their times.
    coming: Vec<(u64, Event)>,
    /// An answer that was already given once.
    stale: Option<Event>,
    tasks_left: u32,
    /// The rate of stray events, per thousand events.
    meddling: u64,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let temper = dice.pick(&TEMPERS);
        let tasks_left = if dice.chance(200) { 2 } else { 1 };
        let meddling = dice.pick(&[0, 0, 8, 60]);
        Self { dice, temper, now: 0, coming: Vec::new(), stale: None, tasks_left, meddling }
    }

    /// Returns the next event, or `None` if none exists.
    pub(crate) fn next(&mut self, run: &Run) -> Option<(Elapsed, Event)> {
        if self.dice.chance(self.meddling) {
            let event = self.meddle();
            return Some((Elapsed(self.now), event));
        }
        if run.state() == StateName::Idle && self.coming.is_empty() {
            self.tasks_left = self.tasks_left.checked_sub(1)?;
            let spec = Box::new(nature::spec(&mut self.dice));
            return Some((Elapsed(self.now), Event::TaskSubmitted { spec }));
        }
        let first = (0..self.coming.len()).min_by_key(|at| self.coming[*at].0);
        let due = run.deadline().map(|due| due.0);
        match first {
            Some(at) if due.is_none_or(|due| self.coming[at].0 < due) => {
                let (when, event) = self.coming.remove(at);
                self.now = self.now.max(when);
                if self.meddling > 0 {
                    self.stale = Some(event.clone());
                }
                Some((Elapsed(self.now), event))
            }
            Some(_) | None => {
                self.now = self.now.max(due?).saturating_add(self.dice.below(3));
                Some((Elapsed(self.now), Event::DeadlinePassed))
            }
        }
    }

    /// Records the actions of the run and schedules their answers.
    pub(crate) fn hear(&mut self, actions: &[Action]) {
        for action in actions {
            match action {
                Action::Emit { .. } => {}
                Action::AbortInFlight => self.abort(),
                Action::CallModel { call, .. } => self.answer_as_model(*call),
                Action::AskConfirmation { call, .. } if self.dice.chance(850) => {
                    let approved = self.dice.chance(600);
                    self.soon(Event::ConfirmationAnswered { call: *call, approved, note: "because".into() });
                }
                // No person answers, so the deadline passes.
                Action::AskConfirmation { .. } => {}
                Action::RunTool { call, .. } => self.answer_as_tool(*call),
                Action::Plan { call } => self.answer_as_planner(*call),
                Action::RunChild { call, .. } => {
                    let outcome = nature::outcome(self.temper, &mut self.dice);
                    let event = nature::reported(*call, outcome, self.temper, &mut self.dice);
                    self.soon(event);
                }
                Action::RunHooks { call } => {
                    let notes = if self.dice.chance(200) { vec!["a hook failed".into()] } else { Vec::new() };
                    let checkpoint = self.dice.pick(&[None, Some('1'), Some('2')]).map(nature::tree);
                    self.soon(Event::HooksFinished { call: *call, notes, reported: Vec::new(), checkpoint });
                }
                Action::AnswerQuery { call, .. } => {
                    self.soon(Event::QueryAnswered { call: *call, answer: "fn main() {}".into() });
                }
                Action::Compact { call, .. } if self.dice.chance(50) => self.soon(Event::Interrupted { call: *call }),
                Action::Compact { call, .. } => {
                    let event = nature::summarised(*call, self.temper, &mut self.dice);
                    self.soon(event);
                }
                Action::RunGate { call, .. } => self.answer_as_gate(*call),
                Action::Deliver { call, .. } => {
                    let fails = self.dice.chance(200);
                    let result = if fails { Err("it moved".into()) } else { Ok(nature::delivery()) };
                    self.soon(Event::Delivered { call: *call, result, ways: None });
                }
                Action::SaveReport { call } => {
                    let event = if self.dice.chance(50) {
                        Event::ReportFailed { call: *call, message: "disk full".into() }
                    } else {
                        Event::ReportSaved { call: *call, saved: Box::default() }
                    };
                    self.soon(event);
                }
            }
        }
    }

    fn answer_as_planner(&mut self, call: CallId) {
        let event = if self.dice.chance(60) {
            let reason =
                self.dice.pick(&[Reason::BadInput, Reason::PlanFailed, Reason::GateErrored, Reason::NoSandbox]);
            Event::PlanFailed { call, reason, message: "no plan".into() }
        } else {
            Event::PlanReady { call, plan: Box::new(nature::some_plan(&mut self.dice)) }
        };
        self.soon(event);
    }

    fn answer_as_model(&mut self, call: CallId) {
        if self.dice.chance(if self.temper == Temper::Flaky { 500 } else { 30 }) {
            let error = nature::failure(&mut self.dice);
            return self.soon(Event::ModelFailed { call, error });
        }
        if self.dice.chance(10) {
            return self.soon(Event::Interrupted { call });
        }
        let reply = nature::reply(self.temper, &mut self.dice);
        let end = self.now.saturating_add(self.moments());
        for _ in 0..self.dice.below(3) {
            let delta = nature::delta(&mut self.dice);
            self.coming.push((end, Event::ModelDelta { call, delta }));
        }
        for tool in reply.tool_calls() {
            self.coming.push((end, Event::ModelDelta { call, delta: Delta::ToolCall(tool.clone()) }));
        }
        self.coming.push((end, Event::ModelCompleted { call, reply: Box::new(reply) }));
    }

    fn answer_as_tool(&mut self, call: CallId) {
        if self.dice.chance(100) {
            self.coming.push((self.now, Event::ToolProgress { call, text: "…".into() }));
        }
        let outcome = nature::outcome(self.temper, &mut self.dice);
        self.soon(Event::ToolFinished { call, outcome });
    }

    fn answer_as_gate(&mut self, call: CallId) {
        if self.dice.chance(300) {
            let progress = StepProgress::Ended(nature::step("a", StepStatus::Passed));
            self.coming.push((self.now, Event::GateProgress { call, progress }));
        }
        let verdict = Box::new(nature::verdict(self.temper, &mut self.dice));
        self.soon(Event::GateFinished { call, verdict });
    }

    /// Stops the effects in flight. Some had already ended, and their answers still arrive, before
    /// the report or after it.
    fn abort(&mut self) {
        let now = self.now;
        let dice = &mut self.dice;
        self.coming.retain_mut(|(when, _)| {
            *when = now.saturating_add(dice.below(50));
            dice.chance(500)
        });
    }

    fn meddle(&mut self) -> Event {
        match self.dice.weigh(&[30, 20, 30, 20, 20]) {
            0 => Event::CancelRequested { cause: nature::any_cause(&mut self.dice), partial_text: "half a".into() },
            1 => Event::LimitReached { reason: nature::any_reason(&mut self.dice) },
            2 => nature::base_judged(&mut self.dice),
            3 => self.stale.clone().unwrap_or(Event::DeadlinePassed),
            _ => Event::DeadlinePassed,
        }
    }

    fn soon(&mut self, event: Event) {
        let when = self.now.saturating_add(self.moments());
        self.coming.push((when, event));
    }

    /// Returns a duration: usually short, sometimes practically endless.
    fn moments(&mut self) -> u64 {
        if self.dice.chance(8) { 900_000 } else { self.dice.below(400) }
    }
}
