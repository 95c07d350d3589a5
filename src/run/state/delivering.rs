//! Delivering: the verified tree is delivered before the report is written. Nothing else is in
//! flight.

use super::NextState;
use super::next::RunEnding;
use super::reporting::EndedRun;
use crate::id::{CallId, TreeId};
use crate::run::action::Action;
use crate::run::context::RunContext;
use crate::run::event::Delivery;
use crate::run::watch::AgentEvent;
use crate::verdict::Reason;
use serde::{Deserialize, Serialize};

/// Waiting for the delivery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Delivering {
    pub(super) call: CallId,
    pub(super) ended: EndedRun,
}

impl Delivering {
    /// Returns the tree to deliver and its base, if a run with this ending has to deliver.
    pub(super) fn due(ending: &RunEnding, cx: &RunContext) -> Option<(TreeId, TreeId)> {
        let proof = cx.proof().filter(|_| cx.spec.commits && ending.reason == Reason::Verified)?;
        (proof.tree != proof.base).then(|| (proof.tree.clone(), proof.base.clone()))
    }

    pub(super) fn start(ending: RunEnding, (tree, base): (TreeId, TreeId), cx: &mut RunContext) -> Self {
        let RunEnding { reason, message, stopped_by, partial_text, turn: _, late: _ } = ending; // a verified run has none
        let call = cx.call();
        cx.ask(Action::Deliver { call, tree, base });
        Self { call, ended: EndedRun { reason, message, stopped_by, partial_text } }
    }

    /// Ends the delivery. The work stays verified even if the delivery failed; only the reason of
    /// the run changes.
    pub(super) fn end(&self, result: Result<Delivery, String>, ways: Option<String>, cx: &mut RunContext) -> NextState {
        let EndedRun { mut reason, mut message, stopped_by, partial_text } = self.ended.clone();
        match result {
            Ok(delivery) => {
                let Delivery { commit, branch, tree: _, notes } = delivery.clone();
                cx.emit(AgentEvent::Committed { commit, branch });
                notes.into_iter().for_each(|note| cx.warn(note));
                cx.delivery = Some(delivery);
            }
            Err(why) => {
                reason = Reason::NotDelivered;
                let run = &cx.spec.run;
                let ways = ways.unwrap_or_else(|| {
                    format!(
                        "try again with `fledge runs resume {run}`, \
                         or put the work on a branch with `fledge apply {run} --branch NAME`"
                    )
                });
                message = format!("{}: {why}; {ways}", reason.row().meaning);
            }
        }
        NextState::Report(RunEnding { reason, message, stopped_by, partial_text, turn: None, late: Vec::new() })
    }
}
