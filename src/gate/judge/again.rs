//! Verdicts for trees that have failed before. Such trees are not judged again, whether an attempt
//! changed nothing or went back to earlier work. Nor is the tree of a base that failed.

use super::early::EarlyEnd;
use super::{GateRun, JudgeRecord};
use crate::gate::candidate::Candidate;
use crate::id::TreeId;
use crate::verdict::{Ruling, StepReport, StepStatus, Verdict, as_judged};
use std::fs;
use std::path::Path;
use std::sync::PoisonError;

impl GateRun<'_> {
    /// Judges a candidate, unless its tree has failed already.
    pub(super) async fn judge_unless_failed(
        &self,
        candidate: Candidate,
        record: &mut JudgeRecord,
    ) -> Result<Verdict, EarlyEnd> {
        let repeated = match self.same_again(&candidate.tree) {
            None => self.same_as_base(&candidate.tree).await?,
            again => again,
        };
        if let Some(mut verdict) = repeated {
            verdict.notes.extend(candidate.notes);
            return Ok(verdict);
        }
        let tree = candidate.tree.clone();
        let result = self.judge_candidate(candidate, record).await;
        self.keep_failure(tree, &result);
        result
    }

    /// Returns the verdict on a tree that has failed already, so that flaky checks are not repeated
    /// until they pass. Where a lane runs in the workspace, every tree is judged, because the
    /// result depends on more than the tree.
    fn same_again(&self, tree: &TreeId) -> Option<Verdict> {
        let failed = self.gate.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let (attempt, verdict) = failed.get(tree).filter(|_| !self.is_base)?;
        Some(self.repeat(*attempt, verdict))
    }

    /// Returns the verdict on work that equals a base whose checks failed. A pass would only show
    /// that the checks are flaky.
    async fn same_as_base(&self, tree: &TreeId) -> Result<Option<Verdict>, EarlyEnd> {
        let base = self.gate.judged.get().filter(|base| self.is_red_base(base, tree));
        let Some(base) = base else { return Ok(None) };
        let mut record = JudgeRecord { steps: base.steps.clone(), ..JudgeRecord::default() };
        for step in &mut record.steps {
            step.log = self.copy_log(step);
        }
        match self.failed(&record).await {
            EarlyEnd::Ruled(failure) => {
                let mut verdict = self.repeat(0, &failure);
                verdict.notes.extend(failure.notes);
                Ok(Some(verdict))
            }
            broken => Err(broken),
        }
    }

    /// Copies the log of a step that ran on the base to the logs of this attempt. Returns `None` if
    /// the log was removed with its run.
    fn copy_log(&self, step: &StepReport) -> Option<String> {
        let from = Path::new(step.log.as_ref()?);
        let folder = self.logs(&step.lane);
        let to = folder.join(from.file_name()?);
        fs::create_dir_all(&folder).and_then(|()| fs::copy(from, &to)).ok()?;
        to.to_str().map(ToOwned::to_owned)
    }

    /// Returns the verdict of an earlier attempt for one with the same files.
    fn repeat(&self, attempt: u32, verdict: &Verdict) -> Verdict {
        let alike = as_judged(attempt);
        let feedback = format!("{alike}, so the checks were not run again. Their result:\n{}", verdict.feedback);
        let notes = vec![format!("attempt {}: {alike}, so the checks were not run again", self.attempt)];
        let duration_ms = self.verdict(Ruling::Failed, &JudgeRecord::default()).duration_ms;
        Verdict { feedback, notes, duration_ms, unchanged_since: Some(attempt), ..verdict.clone() }
    }

    /// Records a tree that has failed, unless a lane runs in the workspace.
    fn keep_failure(&self, tree: TreeId, result: &Result<Verdict, EarlyEnd>) {
        if let Err(EarlyEnd::Ruled(verdict)) = result
            && verdict.ruling == Ruling::Failed
            && verdict.steps.iter().any(|step| step.status == StepStatus::Failed)
            && self.gate.is_clean()
        {
            let mut failed = self.gate.failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.entry(tree).or_insert_with(|| (self.attempt, (**verdict).clone()));
        }
    }
}
