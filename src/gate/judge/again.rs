//! Verdicts for trees that have failed before. Such trees are not judged again, whether an attempt
//! changed nothing or went back to earlier work. Nor is the tree of a base that failed. Where they
//! must be judged again, in the workspace or in a resumed run, a pass does not count.

use super::early::EarlyEnd;
use super::{GateRun, JudgeRecord};
use crate::gate::candidate::Candidate;
use crate::id::TreeId;
use crate::verdict::{Ruling, StepReport, Verdict, as_judged};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

/// The file in the folder of a run with the trees that have failed, one on a line.
const FAILED_TREES: &str = "failed-trees";
/// The reason for failing a tree that passes after it has failed.
const FLAKY: &str = "the checks failed on the same files before, so this pass does not count: the code or the checks \
    are flaky. Change what makes the result differ from run to run.";

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
        let mut result = self.judge_candidate(candidate, record).await;
        if matches!(&result, Ok(verdict) if verdict.ruling == Ruling::Passed) && self.has_failed(&tree) {
            result = Err(self.fell_short(record, FLAKY));
        }
        self.keep_failure(tree, &result);
        result
    }

    /// Returns the verdict on a tree that has failed already, so that flaky checks are not repeated
    /// until they pass. Where a lane runs in the workspace, every tree is judged, because its
    /// failure may have changed.
    fn same_again(&self, tree: &TreeId) -> Option<Verdict> {
        let failed = self.gate.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let (attempt, verdict) = failed.get(tree).filter(|_| !self.is_base && self.gate.is_clean())?;
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

    /// Returns whether the checks failed on a tree in this run, in this process or an earlier one,
    /// or in a run that this one continues
    /// or competes with.
    fn has_failed(&self, tree: &TreeId) -> bool {
        let failed = self.gate.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.contains_key(tree) || self.kept_failures().contains(&tree.to_string())
    }

    /// Returns the trees that failed in this run, in runs that it continues, and in other runs of
    /// its task.
    fn kept_failures(&self) -> BTreeSet<String> {
        let files = [failed_trees(&self.site.logs)].into_iter().chain(self.site.failed_trees.clone());
        let texts = files.filter_map(|file| fs::read_to_string(file).ok());
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    /// Records a tree that has failed. The failure of a setup or an installation does not count: it
    /// may depend on the network.
    fn keep_failure(&self, tree: TreeId, result: &Result<Verdict, EarlyEnd>) {
        let Err(EarlyEnd::Ruled(verdict)) = result else { return };
        if verdict.ruling != Ruling::Failed || verdict.steps.is_empty() {
            return;
        }
        let mut kept = self.kept_failures();
        if kept.insert(tree.to_string()) {
            let lines: String = kept.iter().map(|tree| format!("{tree}\n")).collect();
            let path = failed_trees(&self.site.logs);
            let made = path.parent().map_or(Ok(()), fs::create_dir_all);
            let shared = || self.site.failed_trees.as_ref().map_or(Ok(()), |file| add_line(file, tree.as_str()));
            if let Err(error) = made.and_then(|()| fs::write(&path, lines)).and_then(|()| shared()) {
                tracing::warn!(%error, "cannot keep the trees that failed");
            }
        }
        let mut failed = self.gate.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.entry(tree).or_insert_with(|| (self.attempt, (**verdict).clone()));
    }
}

/// Gives a run the trees that failed in the run that it continues. Both are named by their logs.
///
/// # Errors
/// When the trees cannot be copied.
pub fn inherit_failed_trees(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (failed_trees(from), failed_trees(to));
    if from.exists() { fs::copy(from, to).map(drop) } else { Ok(()) }
}

/// Returns the file with failed trees of the run that has these logs.
fn failed_trees(logs: &Path) -> PathBuf {
    logs.with_file_name(FAILED_TREES)
}

/// Adds a line to a file that several runs write.
fn add_line(file: &Path, line: &str) -> io::Result<()> {
    file.parent().map_or(Ok(()), fs::create_dir_all)?;
    let mut file = fs::OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(format!("{line}\n").as_bytes())
}
