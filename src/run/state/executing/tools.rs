//! Tools of a turn in progress.

use super::super::NextState;
use super::backing_off::{BackingOff, RetryOrigin};
use super::turn::ToolTurn;
use crate::chat::ToolOutcome;
use crate::id::CallId;
use crate::run::context::RunContext;
use serde::{Deserialize, Serialize};

/// Waiting for tools of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct RunningTools {
    pub(in crate::run::state) turn: ToolTurn,
}

impl RunningTools {
    pub(in crate::run::state) fn finished(
        &mut self,
        call: CallId,
        outcome: ToolOutcome,
        cx: &mut RunContext,
    ) -> NextState {
        let mut turn = std::mem::take(&mut self.turn);
        if let Some(tries) = turn.may_retry(call, &outcome, cx.spec.limits.tries) {
            let wait = cx.pause(tries, None);
            let tool = turn.requeue(call);
            return NextState::BackOff(BackingOff::start(
                RetryOrigin::Tool { turn },
                &tool,
                tries,
                wait,
                &outcome.content,
                cx,
            ));
        }
        turn.end(call, outcome, cx);
        NextState::UseTools(turn)
    }
}
