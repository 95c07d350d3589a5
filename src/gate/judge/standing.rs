//! The gate run on the base, before any agent. It is as strict as one on work, so that its pass is
//! worth the same.
//!
//! It reports as many failures as possible and restores nothing, because nothing has been changed
//! yet.

use super::{EarlyEnd, GateRun, JudgeRecord, written_meanwhile};
use crate::gate::base;
use crate::gate::candidate::{self, Candidate};
use crate::gate::feedback;
use crate::gate::seal::Seal;
use crate::lane::Lane;
use crate::verdict::{Ruling, StepStatus, Verdict};
use std::sync::Arc;

impl GateRun<'_> {
    /// Judges the base. The workspace must be in the state of the base.
    pub(in crate::gate) async fn judge_base(&self) -> Verdict {
        let mut record = JudgeRecord::default();
        let (manifests, also) = (self.manifests_here(), self.manifests_here());
        let before = match self.with_seal(move |seal| seal.stamps_with(&also)).await {
            Ok(before) => before,
            Err(why) => return self.errored(&record, why),
        };
        let result = match candidate::take_candidate(self.gate, self.site, self.stop).await {
            Ok(Candidate { tree, .. }) if tree != *self.gate.base() => {
                Err(EarlyEnd::Broken("the workspace changed during the gate: leave it alone and try again".into()))
            }
            Ok(candidate) => self.judge_candidate(candidate, &mut record).await,
            Err(fault) => Err(fault.into()),
        };
        let verdict = self.conclude(result, &record);
        let touched = self.with_seal(move |seal: &Seal| seal.touched(&before, &seal.stamps_with(&manifests))).await;
        let mut verdict = match touched {
            Ok(touched) => written_meanwhile(verdict, touched, Vec::new()),
            Err(why) => self.errored(&record, why),
        };
        if verdict.ruling == Ruling::Tampered {
            // No agent has run, so the steps of the gate wrote there.
            (verdict.ruling, verdict.feedback) = (Ruling::Errored, verdict.notes.join("; "));
        }
        if verdict.ruling == Ruling::Failed {
            self.remember(&verdict, record);
        }
        verdict
    }

    /// Keeps the failures as the result of the base. They are only labels for later failures, so an
    /// error here is ignored.
    fn remember(&self, verdict: &Verdict, record: JudgeRecord) {
        let has_canary = self.gate.lanes.iter().any(|lane| lane.canary.is_chosen());
        let is_whole = record.writers.is_empty() && !has_canary;
        if !is_whole || self.gate.judged.initialized() || base::kept(self.gate, self.site).is_some() {
            return;
        }
        if let Ok(base) = base::remember(self.gate, self.site, &record.steps, &verdict.feedback, record.evidence) {
            let _nobody_was_faster = self.gate.judged.set(Arc::new(base));
        }
    }

    /// Returns the lane as it runs here. On the base, all steps run after a failure too.
    pub(super) fn asked(&self, lane: &Lane) -> Lane {
        Lane { fail_fast: lane.fail_fast && !self.is_base, ..lane.clone() }
    }

    /// Merges the failures of several lanes into one verdict.
    pub(super) async fn all_of(&self, failed: Vec<Verdict>, record: &JudgeRecord) -> EarlyEnd {
        let is_failure = |status| matches!(status, StepStatus::Failed | StepStatus::TimedOut);
        let has_failed = record.steps.iter().any(|step| is_failure(step.status));
        let mut verdict = self.verdict(Ruling::Failed, record);
        if has_failed {
            let EarlyEnd::Ruled(failure) = self.failed(record).await else {
                return EarlyEnd::Broken("the gate was stopped".into());
            };
            (verdict.feedback, verdict.signature) = (failure.feedback, feedback::signature(&record.steps));
        }
        // These lanes failed although every step passed.
        for short in failed.into_iter().filter(|verdict| !verdict.steps.iter().any(|step| is_failure(step.status))) {
            verdict.feedback.push_str(&short.feedback);
            if verdict.signature.is_empty() {
                verdict.signature = short.signature;
            }
        }
        EarlyEnd::Ruled(Box::new(verdict))
    }
}
