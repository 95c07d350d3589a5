//! Idle: the first and the last state of every run.

use super::NextState;
use super::reporting::EndedRun;
use crate::run::context::RunContext;
use crate::run::run_spec::RunSpec;
use crate::run::watch::AgentEvent;
use crate::verdict::Reason;
use serde::{Deserialize, Serialize};

/// No run is active. After a run, `ended` says how it ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Idle {
    pub(super) ended: Option<EndedRun>,
}

impl Idle {
    pub(super) fn rest(ended: EndedRun, cx: &mut RunContext) -> Self {
        let is_child = cx.spec.depth > 0;
        // A sub-agent never has a gate, so "skipped" in its message would be misleading.
        let is_done = is_child && ended.reason == Reason::Skipped;
        cx.emit(AgentEvent::Finished {
            reason: ended.reason,
            verified: (!is_child).then(|| ended.is_verified()),
            cancelled: ended.is_cancelled(),
            exit_code: ended.reason.exit_code(ended.stopped_by),
            message: if is_done { "done".into() } else { ended.message.clone() },
            usage: cx.ledger.usage.total.clone(),
        });
        Self { ended: Some(ended) }
    }

    pub(super) fn submitted(spec: RunSpec, cx: &mut RunContext) -> NextState {
        cx.renew(spec);
        cx.emit(AgentEvent::Started {
            title: cx.spec.title.clone(),
            models: cx.spec.models.clone(),
            max_retries: cx.spec.max_retries,
            verify: cx.spec.verify,
            limits: cx.spec.limits.clone(),
        });
        NextState::Plan
    }
}
