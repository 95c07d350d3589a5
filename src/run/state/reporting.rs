//! Reporting: the report is written. Late answers of stopped effects still arrive and are booked.
//! Nothing new begins.

use super::NextState;
use super::executing::ToolTurn;
use super::next::RunEnding;
use crate::chat::{Spent, ToolOutcome};
use crate::id::CallId;
use crate::run::action::Action;
use crate::run::bill::RunBill;
use crate::run::context::RunContext;
use crate::run::event::{Event, SavedReport};
use crate::run::watch::{AgentEvent, StateName};
use crate::verdict::{Reason, StopCause};
use serde::{Deserialize, Serialize};

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::run) struct EndedRun {
    pub(in crate::run) reason: Reason,
    /// One line for people.
    pub(in crate::run) message: String,
    pub(in crate::run) stopped_by: Option<StopCause>,
    /// The model's text in an unfinished answer.
    pub(in crate::run) partial_text: String,
}

impl EndedRun {
    pub(in crate::run) fn is_verified(&self) -> bool {
        matches!(self.reason, Reason::Verified | Reason::Skipped | Reason::NotDelivered)
    }

    pub(in crate::run) fn is_cancelled(&self) -> bool {
        self.reason == Reason::Cancelled
    }
}

/// Waiting for the report to be written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Reporting {
    call: CallId,
    late: Vec<CallId>,
    turn: Option<ToolTurn>,
    pub(super) ended: EndedRun,
}

impl Reporting {
    pub(super) fn start(ending: RunEnding, cx: &mut RunContext) -> Self {
        let RunEnding { reason, message, stopped_by, partial_text, turn, late } = ending;
        let call = cx.call();
        if reason.row().exit_code == Reason::MaxTurns.row().exit_code {
            cx.emit(AgentEvent::Limit { reason });
        }
        if !late.is_empty() {
            cx.ask(Action::AbortInFlight);
        }
        cx.ask(Action::SaveReport { call });
        Self { call, late, turn, ended: EndedRun { reason, message, stopped_by, partial_text } }
    }

    pub(super) fn awaited(&self) -> Vec<CallId> {
        let mut calls = self.late.clone();
        calls.push(self.call);
        calls
    }

    pub(super) fn on(&mut self, event: Event, cx: &mut RunContext) -> Option<NextState> {
        match event {
            Event::ReportSaved { call, saved } if call == self.call => {
                let SavedReport { notes, worktree, outside_tree, difference } = *saved;
                (cx.outside_tree, cx.difference) = (outside_tree, difference);
                cx.plan.worktree = worktree.or(cx.plan.worktree.take());
                notes.into_iter().for_each(|note| cx.warn(note));
                Some(self.rest(cx))
            }
            Event::ReportFailed { call, message } if call == self.call => {
                self.ended.reason = Reason::IoError;
                self.ended.message = message;
                Some(self.rest(cx))
            }
            Event::ToolFinished { call, outcome } => {
                self.end_late_call(call, outcome, cx);
                None
            }
            Event::ChildFinished { call, outcome, usage, turns, requests, by_model, changes } => {
                cx.charge_child(call, &RunBill { usage, turns, requests, by_model, changes });
                self.end_late_call(call, outcome, cx);
                None
            }
            Event::ModelCompleted { call, reply } => {
                cx.charge_reply(call, &reply);
                self.forget_late(call);
                None
            }
            Event::CompactionFinished { call, usage, model, result, error } => {
                cx.charge_summary(call, (usage, &model), result.as_deref().ok(), error.as_ref());
                self.forget_late(call);
                None
            }
            Event::ModelFailed { call, error } => {
                cx.charge_failure(call, error.spent.as_deref());
                self.forget_late(call);
                None
            }
            Event::Interrupted { call } => {
                cx.charge_failure(call, Some(&Spent::default()));
                self.forget_late(call);
                None
            }
            Event::PlanReady { call, .. }
            | Event::PlanFailed { call, .. }
            | Event::ConfirmationAnswered { call, .. }
            | Event::HooksFinished { call, .. }
            | Event::QueryAnswered { call, .. }
            | Event::GateFinished { call, .. } => {
                self.forget_late(call);
                None
            }
            Event::ModelDelta { .. } | Event::ToolProgress { .. } | Event::GateProgress { .. } => None,
            Event::TaskSubmitted { .. }
            | Event::DeadlinePassed
            | Event::Delivered { .. }
            | Event::ReportSaved { .. }
            | Event::ReportFailed { .. }
            | Event::BaseJudged { .. }
            | Event::LimitReached { .. }
            | Event::CancelRequested { .. } => {
                cx.senseless(StateName::Reporting, event.name());
                None
            }
        }
    }

    fn end_late_call(&mut self, call: CallId, outcome: ToolOutcome, cx: &mut RunContext) {
        if let Some(turn) = &mut self.turn {
            turn.end(call, outcome, cx);
            turn.report(cx);
        }
        self.forget_late(call);
    }

    fn forget_late(&mut self, call: CallId) {
        self.late.retain(|late| *late != call);
    }

    /// Goes to Idle. First completes the conversation: a call without an outcome gets a result that
    /// says so.
    fn rest(&mut self, cx: &mut RunContext) -> NextState {
        if let Some(turn) = self.turn.take() {
            turn.seal(cx);
        }
        NextState::Rest(self.ended.clone())
    }
}
