//! Planning: the driver freezes the gate and builds the first message. It makes no model call.

use super::NextState;
use crate::id::CallId;
use crate::limits::MAX_DEPTH;
use crate::run::action::Action;
use crate::run::context::RunContext;
use crate::run::event;
use crate::run::run_spec::{RunPlan, ToolRole};
use crate::run::transcript::Transcript;
use crate::run::watch::AgentEvent;
use crate::verdict::Reason;
use serde::{Deserialize, Serialize};

/// Waiting for the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Planning {
    pub(super) call: CallId,
}

impl Planning {
    pub(super) fn start(cx: &mut RunContext) -> Self {
        let call = cx.call();
        cx.ask(Action::Plan { call });
        Self { call }
    }

    pub(super) fn ready(plan: RunPlan, cx: &mut RunContext) -> NextState {
        cx.plan = plan;
        if cx.spec.depth >= MAX_DEPTH {
            cx.plan.forbid(ToolRole::Child);
        }
        cx.transcript = Transcript::start(std::mem::take(&mut cx.plan.messages));
        cx.attempt = 1;
        for note in std::mem::take(&mut cx.plan.notes) {
            cx.warn(note);
        }
        let ids = std::mem::take(&mut cx.plan.recalled);
        if !ids.is_empty() {
            cx.emit(AgentEvent::Recalled { ids });
        }
        match cx.plan.base_verdict.take().filter(|_| cx.spec.is_fix) {
            Some(verdict) => NextState::Accept(verdict),
            None => NextState::Begin,
        }
    }

    pub(super) fn failed(reason: Reason, message: String) -> NextState {
        NextState::end(if event::may_be_given(reason) { reason } else { Reason::PlanFailed }, message)
    }
}
