//! State machine of a run: pure and synchronous, with events as input and actions as output.
//!
//! The machine never waits, reads no clock, draws no random number and touches no file. So the same
//! events always give the same actions: a run can be replayed from its journal, and tests need no
//! network, process or sleep.
//!
//! ```text
//! let actions = run.handle(moment, event);   // (state, moment, event) -> (state, actions)
//! let wake    = run.deadline();              // the earliest moment at which something is due
//! ```
//!
//! These rules hold in every state: an answer to an unknown call is dropped with a warning, and a
//! cancel or a limit ends the run. The time budget is a deadline like any other. A [`Run`]
//! serialises completely, including the conversation, and continues from there after it is read
//! back.

mod action;
mod answer;
mod asked;
mod bill;
mod budget;
mod compaction;
mod context;
mod difference;
mod event;
mod ledger;
mod loops;
mod prompt;
mod query;
mod raise;
mod result;
mod row;
mod run_spec;
mod state;
mod transcript;
mod watch;
mod workplace;

pub use action::Action;
pub use answer::schema_fault;
pub use bill::RunBill;
pub use budget::Reserve;
pub use difference::{ChangedFile, ChangedLines, TreeDifference};
pub use event::{Delivery, DoneTool, Event, SavedReport};
pub use ledger::{Attempt, ToolTally};
pub use prompt::output_schema;
pub use query::ModelQuery;
pub use result::TaskResult;
pub use row::{RunHead, RunOutcome, RunRow, StoredRunState};
pub use run_spec::{ModelTerms, RepositoryHead, RunPlan, RunSpec, ToolAccess, ToolRole, ToolRule};
pub use watch::{AgentEvent, Phase, StateName};
pub use workplace::{Workplace, WorkplaceState};

use crate::chat::{Message, ToolSpec};
use crate::elapsed::Elapsed;
use crate::id::{CallId, RunId, TreeId};
use crate::sandbox_kind::SandboxKind;
use crate::verdict::{Reason, StepLog, StopCause};
use context::RunContext;
use serde::{Deserialize, Serialize};
use state::{EndedRun, NextState, RunEnding, RunState};
use std::sync::Arc;

/// One run, in any state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    state: RunState,
    context: RunContext,
}

impl Default for Run {
    fn default() -> Self {
        Self::new()
    }
}

impl Run {
    /// Creates a run in the state Idle.
    pub fn new() -> Self {
        Self { state: RunState::new(), context: RunContext::new(RunSpec::new(RunId::new(""), "", "")) }
    }

    /// Handles an event and returns the actions to carry out. It accepts every event in every
    /// state: an unexpected event changes nothing and causes a warning.
    pub fn handle(&mut self, moment: Elapsed, event: Event) -> Vec<Action> {
        if !event.is_transient() {
            self.context.now = moment.max(self.context.now);
        }
        if let Some(next) = self.decide(event) {
            self.state = RunState::enter(next, &mut self.context);
        }
        self.context.take_actions()
    }

    /// Returns the earliest time at which [`Event::DeadlinePassed`] has an effect.
    pub fn deadline(&self) -> Option<Elapsed> {
        let budget = self.is_active().then(|| self.context.time_limit());
        [self.state.due(), budget].into_iter().flatten().min()
    }

    /// Returns the current state, one of five.
    pub fn state(&self) -> StateName {
        self.state.name()
    }

    /// Returns the name of the state, or of the part of Executing.
    pub fn label(&self) -> &'static str {
        self.state.label()
    }

    /// Returns the calls whose answers the run waits for.
    pub fn awaited(&self) -> Vec<CallId> {
        self.state.awaited()
    }

    /// Returns the system prompt.
    pub fn system(&self) -> &str {
        &self.context.plan.system
    }

    /// Returns the tools offered to the model.
    pub fn tools(&self) -> &Arc<[ToolSpec]> {
        &self.context.plan.tools
    }

    /// Returns the rules for each tool, offered or not.
    pub fn rules(&self) -> &[ToolRule] {
        &self.context.plan.rules
    }

    /// Returns the patterns of shell commands that need a person's approval.
    pub fn ask_commands(&self) -> &[String] {
        &self.context.plan.ask_commands
    }

    /// Returns the time of the newest event that the machine decided on.
    pub fn now(&self) -> Elapsed {
        self.context.now
    }

    /// Returns the spec of the run.
    pub fn spec(&self) -> &RunSpec {
        &self.context.spec
    }

    /// Returns the sandbox around the agent, once known, and true if the agent can reach the
    /// network from it.
    pub fn sandbox(&self) -> (Option<SandboxKind>, bool) {
        (self.context.plan.sandbox, self.context.plan.network)
    }

    /// Returns the conversation, which the next model call sends.
    pub fn conversation(&self) -> &[Message] {
        self.context.transcript.messages()
    }

    /// Returns the tree before the agent's work. `None` before planning.
    pub fn base(&self) -> Option<&TreeId> {
        self.context.plan.base.as_ref()
    }

    /// Returns the newest saved state of the files.
    pub fn checkpoint(&self) -> Option<&TreeId> {
        self.context.checkpoint.as_ref().or(self.base())
    }

    /// Returns the completed calls of the turn whose hooks are running, in order. Empty at any
    /// other time.
    pub fn done_tools(&self) -> &[DoneTool] {
        if let RunState::RunningHooks(hooks) = &self.state { &hooks.tools } else { &[] }
    }

    /// Returns true if every call of the tool needs a person's approval.
    pub fn must_ask(&self, tool: &str) -> bool {
        self.context.rule(tool).is_some_and(|rule| rule.access == ToolAccess::Ask)
    }

    /// Returns the head of the user's repository at planning time, for a run that commits.
    pub fn head(&self) -> Option<&RepositoryHead> {
        self.context.plan.head.as_ref()
    }

    /// Returns the sum reserved for calls in flight.
    pub fn reserved(&self) -> Reserve {
        self.context.reserved()
    }

    /// Returns the index of the current model in the task's list.
    pub fn model(&self) -> usize {
        self.context.model
    }

    /// Returns the task's text.
    pub fn prompt(&self) -> &str {
        &self.context.spec.prompt
    }

    /// Returns the number of the next model turn, from 1.
    pub fn next_turn(&self) -> u64 {
        self.context.ledger.turns + 1
    }

    /// Returns the number of the current attempt, from 1; 0 before the first.
    pub fn attempt(&self) -> u32 {
        self.context.attempt
    }

    /// Returns the logs of the gate's steps, beginning with those on the base.
    pub fn step_logs(&self) -> Vec<StepLog> {
        let judged = self.context.ledger.attempts.iter().flat_map(|attempt| attempt.verdict.logs(attempt.number));
        self.context.plan.base_logs.iter().cloned().chain(judged).collect()
    }

    /// Returns the number of the current model turn, or of the last one; 0 before the first.
    pub fn turn(&self) -> u64 {
        self.context.ledger.turns + u64::from(matches!(self.state, RunState::CallingModel(_)))
    }

    /// Returns true if the gate must still judge the base in parallel with the agent's turns.
    pub fn awaits_base(&self) -> bool {
        matches!(self.state.name(), StateName::Executing | StateName::Verifying) && self.context.awaits_base()
    }

    /// Returns true while the run plans, works or is verified. Returns false while it is idle,
    /// delivers or reports.
    fn is_active(&self) -> bool {
        match self.state.name() {
            StateName::Idle | StateName::Reporting => false,
            StateName::Planning | StateName::Executing | StateName::Verifying => true,
        }
    }

    /// Applies the rules that hold in every state. The state decides everything else.
    fn decide(&mut self, event: Event) -> Option<NextState> {
        if let Some(call) = event.call()
            && !self.state.awaited().contains(&call)
        {
            self.context.senseless(self.state.name(), event.name());
            return None;
        }
        match event {
            Event::CancelRequested { cause, partial_text } => self.cancel(cause, partial_text),
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

    /// Reports the failures on the base. The run ends if the checks cannot run there, since no work
    /// could ever pass them.
    fn learn_base(&mut self, result: Result<Vec<String>, String>) -> Option<NextState> {
        if !self.is_active() {
            return None;
        }
        self.context.is_base_judged = true;
        match result {
            Err(why) => Some(self.abort(Reason::GateErrored, why, None, String::new())),
            Ok(failing) => {
                if !failing.is_empty() {
                    // If the work does not fix one of these failures, a later warning says so.
                    let failing = format!("failed before any change: {}", failing.join(", "));
                    self.context.emit(AgentEvent::Warning(failing));
                }
                None
            }
        }
    }

    /// Handles a cancel. An active run goes to its report, and an idle run ends at once. A run on
    /// the way to its report only records the cause.
    fn cancel(&mut self, cause: StopCause, partial_text: String) -> Option<NextState> {
        let message = Reason::Cancelled.row().meaning.to_owned();
        match self.state.name() {
            StateName::Reporting => {
                if let Some(ended) = self.state.ended_mut() {
                    ended.stopped_by.get_or_insert(cause);
                }
                None
            }
            StateName::Idle => {
                let ended = EndedRun { reason: Reason::Cancelled, message, stopped_by: Some(cause), partial_text };
                self.state = RunState::rest(ended, &mut self.context);
                None
            }
            StateName::Planning | StateName::Executing | StateName::Verifying => {
                Some(self.abort(Reason::Cancelled, message, Some(cause), partial_text))
            }
        }
    }

    /// Ends an active run: stops the effects in flight and keeps the completed work.
    fn abort(
        &mut self,
        reason: Reason,
        message: String,
        stopped_by: Option<StopCause>,
        partial_text: String,
    ) -> NextState {
        let state = std::mem::replace(&mut self.state, RunState::new());
        if matches!(state, RunState::CallingModel(_)) {
            self.context.emit(AgentEvent::TurnDiscarded { error: message.clone() });
        }
        let late = state.awaited();
        NextState::End(RunEnding { reason, message, stopped_by, partial_text, turn: state.into_turn(), late })
    }
}
