//! A tree that has failed is not judged again, whether an attempt has changed nothing or goes back to earlier work.

use super::early::Early;
use super::{Record, Sitting};
use crate::gate::candidate::Candidate;
use crate::id::TreeId;
use crate::verdict::{Ruling, StepStatus, Verdict};
use std::sync::PoisonError;

impl Sitting<'_> {
    /// Judges a candidate, unless its tree has failed already.
    pub(super) async fn sit_once(&self, candidate: Candidate, record: &mut Record) -> Result<Verdict, Early> {
        if let Some(verdict) = self.same_again(&candidate.tree) {
            return Ok(verdict);
        }
        let tree = candidate.tree.clone();
        let seated = self.sit(candidate, record).await;
        self.keep_failure(tree, &seated);
        seated
    }

    /// The verdict on a tree that has failed already: checks that pass now and then are not asked until they pass. What a lane in the workspace
    /// says does not go by the tree alone.
    fn same_again(&self, tree: &TreeId) -> Option<Verdict> {
        let failed = self.gate.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let (attempt, verdict) = failed.get(tree).filter(|_| !self.is_base)?;
        let feedback = format!(
            "all files are as in attempt {attempt}, so the checks were not run again. They said:\n{}",
            verdict.feedback
        );
        let (now, before) = (self.attempt, attempt);
        let notes =
            vec![format!("all files of attempt {now} are as in attempt {before}, so the checks were not run again")];
        let duration_ms = self.verdict(Ruling::Failed, &Record::default()).duration_ms;
        Some(Verdict { feedback, notes, duration_ms, unchanged_since: Some(*attempt), ..verdict.clone() })
    }

    /// Takes down that a tree has failed.
    fn keep_failure(&self, tree: TreeId, seated: &Result<Verdict, Early>) {
        if let Err(Early::Said(verdict)) = seated
            && verdict.ruling == Ruling::Failed
            && verdict.steps.iter().any(|step| step.status == StepStatus::Failed)
            && self.gate.is_clean()
        {
            let mut failed = self.gate.failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.entry(tree).or_insert_with(|| (self.attempt, (**verdict).clone()));
        }
    }
}
