//! A run as a pure, synchronous machine: events in, actions out. It never waits, reads no clock, draws no random number and
//! touches no file, so the same events give the same actions: a run can be replayed from its journal, and the whole loop
//! tested without a network, a process or a sleep.
//!
//! ```text
//! let actions = run.handle(moment, event);   // (state, moment, event) -> (state, actions)
//! let wake    = run.deadline();              // the earliest moment at which something is due
//! ```
//!
//! What stands above the states, once: answers that nobody waits for are dropped with a warning; a cancel or a limit ends the
//! run from wherever it is; the time budget is a deadline like any other. A [`Run`] serialises whole, the conversation
//! included, and goes on from there as if nothing had happened.

mod action;
mod answer;
mod asked;
mod bill;
mod budget;
mod charter;
mod compaction;
mod context;
mod difference;
mod done_tool;
mod event;
mod ledger;
mod loops;
mod prompt;
mod query;
mod result;
mod state;
mod transcript;
mod watch;
mod workplace;

pub use action::Action;
pub use answer::schema_fault;
pub use bill::Bill;
pub use budget::Reserve;
pub use charter::{Charter, EDITION, ModelTerms, Plan, ToolAccess, ToolRole, ToolRule};
pub use difference::{ChangedFile, ChangedLines, Difference};
pub use done_tool::DoneTool;
pub use event::{Delivery, Event, Saved};
pub use ledger::{Attempt, ToolTally};
pub use prompt::output_schema;
pub use query::Query;
pub use result::TaskResult;
pub use watch::{AgentEvent, Phase, StateName};
pub use workplace::{Workplace, WorkplaceState};

use crate::chat::{Message, ToolSpec};
use crate::id::{CallId, RunId, TreeId};
use crate::moment::Moment;
use crate::process::wall::WallKind;
use crate::verdict::{Reason, StepLog, StopCause};
use crate::workspace::delivery::Head;
use context::Context;
use serde::{Deserialize, Serialize};
use state::{Ended, Ending, Next, State};
use std::sync::Arc;

/// One run, whatever state it is in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    state: State,
    context: Context,
}

impl Default for Run {
    fn default() -> Self {
        Self::new()
    }
}

impl Run {
    /// A run that has not begun: Idle.
    pub fn new() -> Self {
        Self { state: State::new(), context: Context::new(Charter::new(RunId::new(""), "", "")) }
    }

    /// Takes an event and says what is to be done. Total: every pair of state and event has an answer, and one that makes no
    /// sense changes nothing but for a warning.
    pub fn handle(&mut self, moment: Moment, event: Event) -> Vec<Action> {
        if !event.is_transient() {
            self.context.now = moment.max(self.context.now);
        }
        if let Some(next) = self.decide(event) {
            self.state = State::enter(next, &mut self.context);
        }
        self.context.take_actions()
    }

    /// Gives it another bound of money, in millionths of a US dollar: all that it has cost counts.
    pub fn may_cost(&mut self, usd_micros: u64) {
        self.context.charter.limits.usd_micros = Some(usd_micros);
    }

    /// The earliest moment at which [`Event::DeadlinePassed`] has a meaning.
    pub fn deadline(&self) -> Option<Moment> {
        let budget = self.is_active().then(|| self.context.time_limit());
        [self.state.due(), budget].into_iter().flatten().min()
    }

    /// Which of the five states it is in.
    pub fn state(&self) -> StateName {
        self.state.name()
    }

    /// The state's name, or that of its part of Executing.
    pub fn label(&self) -> &'static str {
        self.state.label()
    }

    /// The calls whose answers are awaited.
    pub fn awaited(&self) -> Vec<CallId> {
        self.state.awaited()
    }

    /// The system prompt of this run.
    pub fn system(&self) -> &str {
        &self.context.plan.system
    }

    /// The tools that the model is offered.
    pub fn tools(&self) -> &Arc<[ToolSpec]> {
        &self.context.plan.tools
    }

    /// What the machine knows of each tool, offered or not.
    pub fn rules(&self) -> &[ToolRule] {
        &self.context.plan.rules
    }

    /// Commands of the shell that a person must agree to, as patterns.
    pub fn ask_commands(&self) -> &[String] {
        &self.context.plan.ask_commands
    }

    /// The moment of the newest event that was decided on.
    pub fn now(&self) -> Moment {
        self.context.now
    }

    /// The terms of the run.
    pub fn charter(&self) -> &Charter {
        &self.context.charter
    }

    /// The wall around the agent, once it is known, and whether it reaches the network from behind it.
    pub fn wall(&self) -> (Option<WallKind>, bool) {
        (self.context.plan.sandbox, self.context.plan.network)
    }

    /// The conversation: what the next model call sends.
    pub fn conversation(&self) -> &[Message] {
        self.context.transcript.messages()
    }

    /// The tree that was there before the agent, once the run was planned by a program that writes that down.
    pub fn base(&self) -> Option<&TreeId> {
        self.context.plan.base.as_ref()
    }

    /// The newest state of the files that is kept.
    pub fn checkpoint(&self) -> Option<&TreeId> {
        self.context.checkpoint.as_ref().or(self.base())
    }

    /// The calls of the turn whose hooks are running, in their order, without those that were not run; none at any other time.
    pub fn done_tools(&self) -> &[DoneTool] {
        if let State::RunningHooks(hooks) = &self.state { &hooks.tools } else { &[] }
    }

    /// Whether every call of a tool needs a person's yes.
    pub fn must_ask(&self, tool: &str) -> bool {
        self.context.rule(tool).is_some_and(|rule| rule.access == ToolAccess::Ask)
    }

    /// Where the user's repository stood when the run was planned, for one that commits.
    pub fn head(&self) -> Option<&Head> {
        self.context.plan.head.as_ref()
    }

    /// What is set aside for the calls in flight.
    pub fn reserved(&self) -> Reserve {
        self.context.reserved()
    }

    /// The place of the model in use in the task's list.
    pub fn model(&self) -> usize {
        self.context.model
    }

    /// What the task asks for.
    pub fn prompt(&self) -> &str {
        &self.context.charter.prompt
    }

    /// The number of the model's turn that comes next, from 1.
    pub fn next_turn(&self) -> u64 {
        self.context.ledger.turns + 1
    }

    /// The number of the attempt under way, from 1; 0 before the first.
    pub fn attempt(&self) -> u32 {
        self.context.attempt
    }

    /// Where the whole output of the gate's steps is, from before any change on.
    pub fn step_logs(&self) -> Vec<StepLog> {
        let judged = self.context.ledger.attempts.iter().flat_map(|attempt| attempt.verdict.logs(attempt.number));
        self.context.plan.base_logs.iter().cloned().chain(judged).collect()
    }

    /// The number of the model's turn under way, or else of the last one; 0 before the first.
    pub fn turn(&self) -> u64 {
        self.context.ledger.turns + u64::from(matches!(self.state, State::CallingModel(_)))
    }

    /// Whether the gate is to judge the base beside the agent's turns and has not yet done so.
    pub fn awaits_base(&self) -> bool {
        matches!(self.state.name(), StateName::Executing | StateName::Verifying) && self.context.awaits_base()
    }

    /// Whether it has begun and not yet come to its report.
    fn is_active(&self) -> bool {
        match self.state.name() {
            StateName::Idle | StateName::Reporting => false,
            StateName::Planning | StateName::Executing | StateName::Verifying => true,
        }
    }

    /// What stands above the states; everything else is theirs.
    fn decide(&mut self, event: Event) -> Option<Next> {
        if let Some(call) = event.call()
            && !self.state.awaited().contains(&call)
        {
            self.context.senseless(self.state.name(), event.name());
            return None;
        }
        match event {
            Event::CancelRequested { cause, said } => self.cancel(cause, said),
            Event::BaseJudged { result } if self.state.name() != StateName::Idle => self.learn_base(result),
            Event::LimitReached { reason } if self.is_active() && event::may_be_given(reason) => {
                Some(self.abort(reason, reason.row().meaning.into(), None, String::new()))
            }
            Event::DeadlinePassed if self.is_active() && self.context.now >= self.context.time_limit() => {
                let reason = Reason::BudgetTime;
                Some(self.abort(reason, reason.row().meaning.into(), None, String::new()))
            }
            event => self.state.on(event, &mut self.context),
        }
    }

    /// Tells what failed before any change. Checks that cannot run on the base end the run: no work could ever pass them.
    fn learn_base(&mut self, result: Result<Vec<String>, String>) -> Option<Next> {
        if !self.is_active() {
            return None;
        }
        self.context.is_base_judged = true;
        match result {
            Err(why) => Some(self.abort(Reason::GateErrored, why, None, String::new())),
            Ok(failing) => {
                if !failing.is_empty() {
                    // Those that the work does not mend are a warning later; the others need none.
                    let failing = format!("failed before any change: {}", failing.join(", "));
                    self.context.tell(AgentEvent::Warning(failing));
                }
                None
            }
        }
    }

    /// From anywhere to the report; before the start, to the end; on the way to the report nothing changes, but that it was heard.
    fn cancel(&mut self, cause: StopCause, said: String) -> Option<Next> {
        let message = Reason::Cancelled.row().meaning.to_owned();
        match self.state.name() {
            StateName::Reporting => {
                if let Some(ended) = self.state.ended_mut() {
                    ended.stopped_by.get_or_insert(cause);
                }
                None
            }
            StateName::Idle => {
                let ended = Ended { reason: Reason::Cancelled, message, stopped_by: Some(cause), said };
                self.state = State::rest(ended, &mut self.context);
                None
            }
            StateName::Planning | StateName::Executing | StateName::Verifying => {
                Some(self.abort(Reason::Cancelled, message, Some(cause), said))
            }
        }
    }

    /// The way out of the middle: what is in flight is stopped, and what was done is kept.
    fn abort(&mut self, reason: Reason, message: String, stopped_by: Option<StopCause>, said: String) -> Next {
        let state = std::mem::replace(&mut self.state, State::new());
        if matches!(state, State::CallingModel(_)) {
            self.context.tell(AgentEvent::TurnDiscarded { error: message.clone() });
        }
        let late = state.awaited();
        Next::End(Ending { reason, message, stopped_by, said, turn: state.into_turn(), late })
    }
}
