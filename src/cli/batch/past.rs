//! Runs of earlier processes in a resumed batch: the run to resume for a job, and the cost of
//! earlier runs.

use super::super::resume::{LARGEST_REPORT, keyed};
use super::site::JobFactory;
use crate::batch::{JobRefusal, RunIdentity, RunSummary};
use crate::driver::{DriverModel, is_for_now, spent, terms};
use crate::error_chain::chain;
use crate::id::RunId;
use crate::run::TaskResult;
use crate::store::{self, RunListFilter, RunRow, Store, StoreError, StoredRunState};
use crate::task::Task;
use crate::verdict::Reason;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

/// The run in which a job is done.
#[derive(Debug)]
pub(super) struct RunChoice {
    pub(super) run: RunIdentity,
    /// The cost of that run so far, in millionths of a US dollar.
    pub(super) paid: u64,
}

impl JobFactory<'_> {
    /// Chooses the run for a job by the job's key:
    ///
    /// - An interrupted run, one that ended only for now, or one whose work was not delivered is
    ///   resumed, if it has the same models.
    /// - A final result that no process recorded is taken over.
    /// - Otherwise a new run starts.
    ///
    /// # Errors
    /// When another process works on the run, or the store cannot be read.
    pub(super) fn taken(
        &self,
        job: usize,
        tries: u32,
        task: &Task,
        models: &[DriverModel],
    ) -> Result<RunChoice, JobRefusal> {
        let own = |error: &dyn Error| JobRefusal { reason: Reason::IoError, message: chain(error) };
        let store = self.sites.store(self.jobs[job].repository).map_err(|error| own(&error))?;
        let found = keyed(&store, &self.key(job)).map_err(|error| own(&error))?;
        let digest = store::sha256(task.prompt.as_bytes());
        let anew = RunChoice { run: RunIdentity::New(Some(found.free)), paid: 0 };
        let Some(row) = found.newest.filter(|row| tries == 1 && row.head.task_digest == digest) else {
            return Ok(anew);
        };
        let run = &row.head.id;
        let has_its_models = models.iter().map(|model| model.provider.name()).eq(row.head.models.iter().cloned());
        let goes_on = match &row.state {
            StoredRunState::Interrupted => true,
            StoredRunState::Running { .. } => {
                let message = format!("another process is running run {run} of this job");
                return Err(JobRefusal { reason: Reason::Blocked, message });
            }
            state @ StoredRunState::Ended(outcome) => {
                let is_undelivered = outcome.reason == Reason::NotDelivered.to_string();
                (is_for_now(state) || is_undelivered) && has_its_place(&store, run)
            }
        };
        let paid = || spent(&store, &row).map_err(|error| own(&error));
        if goes_on && has_its_models {
            return Ok(RunChoice { run: RunIdentity::Resumed(run.clone()), paid: paid()? });
        }
        // The run ended, but its process stopped before it recorded the result in the batch.
        match ended(&store, &row).filter(|result| RunSummary::from_result(result).standing().stays()) {
            Some(result) => Ok(RunChoice { run: RunIdentity::Over(Box::new(result)), paid: paid()? }),
            None => Ok(anew),
        }
    }

    /// Returns the cost of runs of earlier processes for each job, in millionths of a US dollar.
    /// Logs a warning for a run whose cost cannot be read.
    pub(super) fn paid(&self) -> Result<BTreeMap<usize, u64>, StoreError> {
        let jobs: BTreeMap<(usize, &str), usize> = self
            .jobs
            .iter()
            .enumerate()
            .map(|(job, planned)| ((planned.repository, planned.name.as_str()), job))
            .collect();
        let (mut all, prefix) = (BTreeMap::new(), format!("{}/", self.ledger.batch()));
        for site in self.jobs.iter().map(|job| job.repository).collect::<BTreeSet<_>>() {
            let store = self.sites.store(site)?;
            for row in store.runs(&RunListFilter { limit: u32::MAX, ..RunListFilter::default() })? {
                let Some(job) = job_of(&row, &prefix).and_then(|name| jobs.get(&(site, name))) else { continue };
                match spent(&store, &row) {
                    Ok(cost) => *all.entry(*job).or_insert(0_u64) += cost,
                    Err(error) => {
                        tracing::warn!(why = %chain(&error), run = %row.head.id, "what a run has cost is not known")
                    }
                }
            }
        }
        Ok(all)
    }
}

/// Returns the name of the job that a run belongs to: its key without the batch before it and the
/// number after it.
fn job_of<'r>(row: &'r RunRow, prefix: &str) -> Option<&'r str> {
    let rest = row.head.run_key.as_deref()?.strip_prefix(prefix)?;
    Some(rest.split('#').next().unwrap_or(rest))
}

/// Returns true if the run had no worktree, or its worktree still exists.
fn has_its_place(store: &Store, run: &RunId) -> bool {
    terms(store, run).is_ok_and(|(_, terms)| terms.worktree.is_none_or(|worktree| worktree.folder.exists()))
}

/// Reads the result of an ended run from its report.
fn ended(store: &Store, row: &RunRow) -> Option<TaskResult> {
    let StoredRunState::Ended(_) = row.state else { return None };
    let text = store::read_text(&store.folder(&row.head.id).report(), LARGEST_REPORT).ok()??;
    serde_json::from_str(&text).ok()
}
