//! What earlier processes have left of a batch: which run of a job is gone on with, and what its runs have cost.

use super::super::runs::keyed;
use super::site::Works;
use crate::batch::{As, Ran, Refusal};
use crate::causes::chain;
use crate::driver::{is_for_now, spent, terms};
use crate::id::RunId;
use crate::run::TaskResult;
use crate::store::{self, Filter, RunRow, RunState, Store, StoreError};
use crate::task::Task;
use crate::verdict::Reason;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

/// The most bytes of a report that is read.
const LARGEST_REPORT: usize = 64 * 1024 * 1024;

/// As which run a job is done.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) run: As,
    /// What that run has cost already, in millionths of a US dollar.
    pub(super) paid: u64,
}

impl Works<'_> {
    /// As which run a job is done: one of its key that ended only for now, or not at all, goes on; a result of which only nobody has heard
    /// is given again, and anything else is done by a new run.
    ///
    /// # Errors
    /// When another process drives it, or nothing can be read.
    pub(super) fn taken(&self, job: usize, tries: u32, task: &Task) -> Result<Taken, Refusal> {
        let own = |error: &dyn Error| Refusal { reason: Reason::IoError, message: chain(error) };
        let store = self.sites.store(self.jobs[job].repository).map_err(|error| own(&error))?;
        let found = keyed(&store, &self.key(job)).map_err(|error| own(&error))?;
        let digest = store::sha256(task.prompt.as_bytes());
        let anew = Taken { run: As::New(Some(found.free)), paid: 0 };
        let Some(row) = found.newest.filter(|row| tries == 1 && row.head.task_digest == digest) else {
            return Ok(anew);
        };
        let run = &row.head.id;
        let goes_on = match &row.state {
            RunState::Interrupted => true,
            RunState::Running { .. } => {
                let message = format!("run {run} of this job is at work in another process");
                return Err(Refusal { reason: Reason::Blocked, message });
            }
            state @ RunState::Ended(outcome) => {
                let is_undelivered = outcome.reason == Reason::NotDelivered.to_string();
                (is_for_now(state) || is_undelivered) && has_its_place(&store, run)
            }
        };
        let paid = || spent(&store, &row).map_err(|error| own(&error));
        if goes_on {
            return Ok(Taken { run: As::Resumed(run.clone()), paid: paid()? });
        }
        // It ended, and its process before it could say so.
        match ended(&store, run).filter(|result| Ran::of(result).standing().stays()) {
            Some(result) => Ok(Taken { run: As::Over(Box::new(result)), paid: paid()? }),
            None => Ok(anew),
        }
    }

    /// What runs of earlier processes have cost, in millionths of a US dollar, by the jobs that they were for. What cannot be read is told.
    ///
    /// # Errors
    /// When a store cannot be read.
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
            for row in store.runs(&Filter { limit: u32::MAX, ..Filter::default() })? {
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

/// The name of the job that a run was for: its key without the batch before it, and the number behind it.
fn job_of<'r>(row: &'r RunRow, prefix: &str) -> Option<&'r str> {
    let rest = row.head.run_key.as_deref()?.strip_prefix(prefix)?;
    Some(rest.split('#').next().unwrap_or(rest))
}

/// Whether the worktree of a run is there, where it had one.
fn has_its_place(store: &Store, run: &RunId) -> bool {
    terms(store, run).is_ok_and(|(_, terms)| terms.worktree.is_none_or(|worktree| worktree.folder.exists()))
}

/// The result of a run that is over, from its report.
fn ended(store: &Store, run: &RunId) -> Option<TaskResult> {
    let text = store::read_text(&store.folder(run).report(), LARGEST_REPORT).ok()??;
    serde_json::from_str(&text).ok()
}
