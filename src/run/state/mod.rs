//! States of a run and the transitions between them. State files do not know each other: they
//! return a transition ([`NextState`]) with the data that it needs. Only [`RunState::enter`]
//! creates a state from it.

mod delivering;
mod executing;
mod idle;
mod next;
mod planning;
mod reporting;
mod verifying;

pub(super) use reporting::EndedRun;
pub(super) use verifying::retry;

use super::bill::RunBill;
use super::context::RunContext;
use super::event::Event;
use super::watch::{AgentEvent, Phase, StateName};
use crate::elapsed::Elapsed;
use crate::id::CallId;
use crate::verdict::Reason;
use delivering::Delivering;
use executing::{
    AnsweringQuery, BackingOff, CallingModel, Compacting, Confirming, Dispatching, RunningHooks, RunningTools,
    delta_event,
};
use executing::{ToolTurn, TurnWait};
use idle::Idle;
pub(super) use next::{NextState, RunEnding};
use planning::Planning;
use reporting::Reporting;
use serde::{Deserialize, Serialize};
use verifying::Verifying;

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum RunState {
    Idle(Idle),
    Planning(Planning),
    CallingModel(CallingModel),
    BackingOff(BackingOff),
    Confirming(Confirming),
    RunningTools(RunningTools),
    Dispatching(Dispatching),
    RunningHooks(RunningHooks),
    AnsweringQuery(AnsweringQuery),
    Compacting(Compacting),
    Verifying(Verifying),
    Delivering(Delivering),
    Reporting(Reporting),
}

impl RunState {
    pub(super) fn new() -> Self {
        Self::Idle(Idle::default())
    }

    /// Passes an event to the state. `None`: the state does not change. An event that makes no
    /// sense in the state is ignored with a warning.
    pub(super) fn on(&mut self, event: Event, cx: &mut RunContext) -> Option<NextState> {
        Some(match (self, event) {
            (Self::Idle(_), Event::TaskSubmitted { spec }) => Idle::submitted(*spec, cx),
            (Self::Planning(_), Event::PlanReady { plan, .. }) => Planning::ready(*plan, cx),
            (Self::Planning(_), Event::PlanFailed { reason, message, .. }) => Planning::failed(reason, message),
            (Self::CallingModel(state), Event::ModelCompleted { reply, .. }) => state.completed(*reply, cx),
            (Self::CallingModel(state), Event::ModelFailed { error, .. }) => state.failed(&error, cx),
            (Self::CallingModel(state), Event::Interrupted { .. }) => state.interrupted(cx),
            (Self::BackingOff(state), Event::DeadlinePassed) if cx.now >= state.due => state.over(),
            (Self::Confirming(state), Event::ConfirmationAnswered { approved, note, .. }) => {
                state.answered(approved, &note, cx)
            }
            (Self::Confirming(state), Event::DeadlinePassed) if state.due.is_some_and(|due| cx.now >= due) => {
                state.answered(false, "no answer in time", cx)
            }
            (Self::RunningTools(state), Event::ToolFinished { call, outcome }) => state.finished(call, outcome, cx),
            (
                Self::Dispatching(state),
                Event::ChildFinished { call, outcome, usage, turns, requests, by_model, changes },
            ) => state.finished(call, outcome, &RunBill { usage, turns, requests, by_model, changes }, cx),
            (Self::RunningHooks(_), Event::HooksFinished { notes, reported, checkpoint, .. }) => {
                RunningHooks::finished(notes, reported, checkpoint, cx)
            }
            (Self::AnsweringQuery(_), Event::QueryAnswered { answer, .. }) => AnsweringQuery::answered(&answer, cx),
            (Self::Compacting(state), Event::Interrupted { .. }) => state.interrupted(cx),
            (Self::Compacting(state), Event::CompactionFinished { result, usage, model, error, .. }) => {
                state.finished(result, (usage, &model), error.as_ref(), cx)
            }
            (Self::Verifying(state), Event::GateFinished { verdict, .. }) => state.judge(*verdict, cx),
            (Self::Delivering(state), Event::Delivered { result, ways, .. }) => state.end(result, ways, cx),
            (Self::Reporting(state), event) => return state.on(event, cx),
            (state, event) => {
                state.show(event, cx);
                return None;
            }
        })
    }

    /// Shows the progress of an effect to watchers. Any other event makes no sense in the state.
    fn show(&self, event: Event, cx: &mut RunContext) {
        match (self, event) {
            (Self::CallingModel(_), Event::ModelDelta { delta, .. }) => {
                delta_event(delta).into_iter().for_each(|event| cx.emit(event));
            }
            (Self::RunningTools(_), Event::ToolProgress { text, .. }) => cx.emit(AgentEvent::ToolOutput { text }),
            (Self::Planning(_) | Self::Verifying(_), Event::GateProgress { progress, .. }) => {
                cx.emit(AgentEvent::LaneStep(progress));
            }
            (state, event) => cx.senseless(state.name(), event.name()),
        }
    }

    /// Makes a transition. A limit can turn a transition to a model call into the end of the run.
    pub(super) fn enter(next: NextState, cx: &mut RunContext) -> Self {
        match next {
            NextState::Plan => {
                cx.emit(AgentEvent::StateChanged(StateName::Planning));
                match cx.spec.refusal() {
                    Some(why) => Self::enter(NextState::end(Reason::BadInput, why), cx),
                    None => Self::Planning(Planning::start(cx)),
                }
            }
            NextState::Begin => {
                cx.emit(AgentEvent::StateChanged(StateName::Executing));
                Self::enter(NextState::CallModel, cx)
            }
            NextState::CallModel => match cx.exhausted() {
                Some((reason, message)) => Self::enter(NextState::end(reason, message), cx),
                None if cx.is_crowded() && !cx.clears_enough() && cx.may_summarise() => {
                    Self::enter(NextState::Compact { tries: 1 }, cx)
                }
                None => Self::enter(NextState::TryModel { tries: 1, compacted: false }, cx),
            },
            NextState::TryModel { tries, compacted } => match cx.exhausted() {
                Some((reason, message)) => Self::enter(NextState::end(reason, message), cx),
                None => {
                    phase(cx, Phase::CallingModel);
                    Self::CallingModel(CallingModel::start(tries, compacted, cx))
                }
            },
            NextState::BackOff(backing_off) => {
                phase(cx, Phase::BackingOff);
                Self::BackingOff(backing_off)
            }
            NextState::UseTools(turn) => Self::use_tools(turn, cx),
            NextState::RunHooks(tools) => {
                phase(cx, Phase::RunningHooks);
                Self::RunningHooks(RunningHooks::start(tools, cx))
            }
            NextState::Answer(query) => {
                phase(cx, Phase::AnsweringQuery);
                Self::AnsweringQuery(AnsweringQuery::start(query, cx))
            }
            NextState::Compact { tries } => match Compacting::due(cx) {
                None => Self::enter(NextState::TryModel { tries: 1, compacted: true }, cx),
                Some(Err((reason, message))) => Self::enter(NextState::end(reason, message), cx),
                Some(Ok(upto)) => {
                    phase(cx, Phase::Compacting);
                    Self::Compacting(Compacting::start(upto, tries, cx))
                }
            },
            NextState::Verify => {
                cx.emit(AgentEvent::StateChanged(StateName::Verifying));
                Self::Verifying(Verifying::start(cx))
            }
            NextState::Reject(why) => {
                cx.emit(AgentEvent::StateChanged(StateName::Verifying));
                Self::enter(verifying::reject(&why, cx), cx)
            }
            NextState::Accept(verdict) => Self::enter(verifying::accept(*verdict, cx), cx),
            NextState::End(ending) => {
                cx.emit(AgentEvent::StateChanged(StateName::Reporting));
                match Delivering::due(&ending, cx) {
                    Some(trees) => Self::Delivering(Delivering::start(ending, trees, cx)),
                    None => Self::enter(NextState::Report(ending), cx),
                }
            }
            NextState::Report(ending) => Self::Reporting(Reporting::start(ending, cx)),
            NextState::Rest(ended) => {
                cx.emit(AgentEvent::StateChanged(StateName::Idle));
                Self::rest(ended, cx)
            }
        }
    }

    /// Returns to Idle, with how the run ended.
    pub(super) fn rest(ended: EndedRun, cx: &mut RunContext) -> Self {
        Self::Idle(Idle::rest(ended, cx))
    }

    /// Continues with the tools of a turn. The first queued calls determine which part of Executing
    /// follows.
    fn use_tools(mut turn: ToolTurn, cx: &mut RunContext) -> Self {
        match turn.advance(cx) {
            TurnWait::Tools => {
                phase(cx, Phase::RunningTools);
                Self::RunningTools(RunningTools { turn })
            }
            TurnWait::Children => {
                phase(cx, Phase::Dispatching);
                Self::Dispatching(Dispatching { turn })
            }
            TurnWait::Confirmation(place) => {
                phase(cx, Phase::Confirming);
                Self::Confirming(Confirming::start(turn, place, cx))
            }
            TurnWait::Nothing => Self::enter(turn.finish(cx), cx),
        }
    }

    /// Returns the name of the state, one of five.
    pub(super) fn name(&self) -> StateName {
        match self {
            Self::Idle(_) => StateName::Idle,
            Self::Planning(_) => StateName::Planning,
            Self::CallingModel(_)
            | Self::BackingOff(_)
            | Self::Confirming(_)
            | Self::RunningTools(_)
            | Self::Dispatching(_)
            | Self::RunningHooks(_)
            | Self::AnsweringQuery(_)
            | Self::Compacting(_) => StateName::Executing,
            Self::Verifying(_) => StateName::Verifying,
            Self::Delivering(_) | Self::Reporting(_) => StateName::Reporting,
        }
    }

    /// Returns the name of the part of Executing, or of the state. The transition table prints it.
    pub(super) fn label(&self) -> &'static str {
        match self {
            Self::Idle(_) => "Idle",
            Self::Planning(_) => "Planning",
            Self::CallingModel(_) => "CallingModel",
            Self::BackingOff(_) => "BackingOff",
            Self::Confirming(_) => "Confirming",
            Self::RunningTools(_) => "RunningTools",
            Self::Dispatching(_) => "Dispatching",
            Self::RunningHooks(_) => "RunningHooks",
            Self::AnsweringQuery(_) => "AnsweringQuery",
            Self::Compacting(_) => "Compacting",
            Self::Verifying(_) => "Verifying",
            Self::Delivering(_) => "Delivering",
            Self::Reporting(_) => "Reporting",
        }
    }

    /// Returns the calls whose answers the state waits for.
    pub(super) fn awaited(&self) -> Vec<CallId> {
        match self {
            Self::Idle(_) | Self::BackingOff(_) => Vec::new(),
            Self::Planning(Planning { call })
            | Self::CallingModel(CallingModel { call, .. })
            | Self::Confirming(Confirming { call, .. })
            | Self::RunningHooks(RunningHooks { call, .. })
            | Self::AnsweringQuery(AnsweringQuery { call, .. })
            | Self::Compacting(Compacting { call, .. })
            | Self::Verifying(Verifying { call, .. })
            | Self::Delivering(Delivering { call, .. }) => vec![*call],
            Self::RunningTools(RunningTools { turn }) | Self::Dispatching(Dispatching { turn }) => turn.running(),
            Self::Reporting(state) => state.awaited(),
        }
    }

    /// Returns the time at which the state must be woken.
    pub(super) fn due(&self) -> Option<Elapsed> {
        match self {
            Self::BackingOff(state) => Some(state.due),
            Self::Confirming(state) => state.due,
            Self::Idle(_)
            | Self::Planning(_)
            | Self::CallingModel(_)
            | Self::RunningTools(_)
            | Self::Dispatching(_)
            | Self::RunningHooks(_)
            | Self::AnsweringQuery(_)
            | Self::Compacting(_)
            | Self::Verifying(_)
            | Self::Delivering(_)
            | Self::Reporting(_) => None,
        }
    }

    /// Returns the calls of the unfinished turn. A run that ends now keeps their results.
    pub(super) fn into_turn(self) -> Option<ToolTurn> {
        match self {
            Self::BackingOff(state) => state.into_turn(),
            Self::Confirming(Confirming { turn, .. })
            | Self::RunningTools(RunningTools { turn })
            | Self::Dispatching(Dispatching { turn }) => Some(turn),
            Self::Idle(_)
            | Self::Planning(_)
            | Self::CallingModel(_)
            | Self::RunningHooks(_)
            | Self::AnsweringQuery(_)
            | Self::Compacting(_)
            | Self::Verifying(_)
            | Self::Delivering(_)
            | Self::Reporting(_) => None,
        }
    }

    /// Returns how the run ended. `None` for a run that has not ended.
    pub(super) fn ended(&self) -> Option<&EndedRun> {
        match self {
            Self::Idle(state) => state.ended.as_ref(),
            Self::Delivering(state) => Some(&state.ended),
            Self::Reporting(state) => Some(&state.ended),
            Self::Planning(_)
            | Self::CallingModel(_)
            | Self::BackingOff(_)
            | Self::Confirming(_)
            | Self::RunningTools(_)
            | Self::Dispatching(_)
            | Self::RunningHooks(_)
            | Self::AnsweringQuery(_)
            | Self::Compacting(_)
            | Self::Verifying(_) => None,
        }
    }

    /// Returns how the run ended, to record a stop request on the way to the report.
    pub(super) fn ended_mut(&mut self) -> Option<&mut EndedRun> {
        match self {
            Self::Delivering(state) => Some(&mut state.ended),
            Self::Reporting(state) => Some(&mut state.ended),
            Self::Idle(_)
            | Self::Planning(_)
            | Self::CallingModel(_)
            | Self::BackingOff(_)
            | Self::Confirming(_)
            | Self::RunningTools(_)
            | Self::Dispatching(_)
            | Self::RunningHooks(_)
            | Self::AnsweringQuery(_)
            | Self::Compacting(_)
            | Self::Verifying(_) => None,
        }
    }
}

fn phase(cx: &mut RunContext, phase: Phase) {
    cx.emit(AgentEvent::PhaseChanged(phase));
}
