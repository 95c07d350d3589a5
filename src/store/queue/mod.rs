//! A queue without a server: an SQLite database that any number of processes of one machine share.
//!
//! Every call is one short transaction on a thread that may block. A queue and its clones run one
//! transaction at a time.

mod clock;
mod jobs;
mod leases;
mod tables;

use super::{StoreError, files};
use crate::queue::{
    BatchId, CancelCount, CancelScope, Completed, JobFilter, JobId, JobLease, JobSpec, MOST_BYTES, PoolName, Queue,
    QueueError, QueueState, QueueStatus, QueuedJob, Released, Renewed, ResultText, Retry, Revived, Submitted, Worker,
};
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tables::QueueTables;
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// The interval at which a waiting claim looks for jobs that other processes have added.
const POLL: Duration = Duration::from_millis(100);

/// A queue in a file. It is cheap to clone; clones share a connection and learn of each other's
/// changes at once.
#[derive(Debug, Clone)]
pub struct SqliteQueue {
    tables: Arc<AsyncMutex<QueueTables>>,
    /// Leases of claims whose caller stopped waiting.
    left: Left,
    /// Notified when there may be something to claim.
    changed: Arc<Notify>,
}

type Left = Arc<Mutex<Vec<JobLease>>>;

impl SqliteQueue {
    /// Opens the queue in this file, and creates a missing one.
    /// Blocks for a short time.
    ///
    /// # Errors
    /// When the file cannot be read or written, is not a queue, or belongs to a newer fledge.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            files::make_safely(folder)?;
        }
        let tables = Arc::new(AsyncMutex::new(QueueTables::open(path)?));
        Ok(Self { tables, left: Left::default(), changed: Arc::default() })
    }

    /// Returns a job of the queue in this file, without an asynchronous runtime. Blocks for a short
    /// time.
    ///
    /// # Errors
    /// When the file cannot be read, is not a queue, or belongs to a newer fledge.
    pub fn look_up(path: &Path, job: &JobId) -> Result<Option<QueuedJob>, StoreError> {
        QueueTables::open(path)?.job(job)
    }

    /// Runs `work` on the tables, on a thread that may block. Before that, releases the leases in
    /// `left`.
    async fn with<T: Send + 'static>(
        &self,
        verb: &'static str,
        work: impl FnOnce(&QueueTables) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, QueueError> {
        let (tables, left) = (Arc::clone(&self.tables).lock_owned().await, Arc::clone(&self.left));
        let done = spawn_blocking(move || {
            let unused = std::mem::take(&mut *left.lock().unwrap_or_else(PoisonError::into_inner));
            unused.iter().try_for_each(|lease| tables.release(lease, &Retry::Unused).map(drop))?;
            work(&tables)
        });
        match done.await {
            Ok(done) => done.map_err(|source| QueueError::Failed { verb, source: Box::new(source) }),
            Err(source) => Err(QueueError::Failed { verb, source: Box::new(source) }),
        }
    }

    /// Runs `work` like [`Self::with`], and wakes waiting claims, since there may be something to
    /// claim now.
    async fn change<T: Send + 'static>(
        &self,
        verb: &'static str,
        work: impl FnOnce(&QueueTables) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, QueueError> {
        let done = self.with(verb, work).await;
        self.changed.notify_waiters();
        done
    }

    /// Ends the leases of a pool as if their time were over. The caller must know that none of
    /// their holders is alive.
    ///
    /// # Errors
    /// When the queue cannot be written.
    pub async fn take_back(&self, pool: &PoolName) -> Result<(), QueueError> {
        let pool = pool.clone();
        self.change("reclaim jobs", move |tables| tables.take_back(&pool)).await
    }

    /// Submits a job. If its id belongs to a job that is over, that job waits again with the new
    /// payload and without its result.
    ///
    /// # Errors
    /// When the payload is too large, or the queue cannot be written.
    pub async fn submit_again(&self, job: &JobSpec) -> Result<Submitted, QueueError> {
        fits("payload", &job.id, &job.payload)?;
        let job = job.clone();
        self.change("submit jobs", move |ledger| ledger.submit_again(&job)).await
    }

    /// Returns the jobs of a pool in these states before a position, newest first, each with its
    /// payload.
    ///
    /// # Errors
    /// When the queue cannot be read.
    pub async fn newest(
        &self,
        pool: &PoolName,
        states: &[QueueState],
        before: Option<u64>,
        most: u32,
    ) -> Result<Vec<(QueuedJob, String)>, QueueError> {
        let (pool, states) = (pool.clone(), states.to_vec());
        self.with("read the queue", move |tables| tables.newest(&pool, &states, before, most)).await
    }

    /// Returns one job with its payload, or `None` if the queue does not know it.
    ///
    /// # Errors
    /// When the queue cannot be read.
    pub async fn job_and_payload(&self, job: &JobId) -> Result<Option<(QueuedJob, String)>, QueueError> {
        let job = job.clone();
        self.with("read the queue", move |tables| tables.job_and_payload(&job)).await
    }

    async fn try_claim(&self, worker: &Worker, pools: &[PoolName]) -> Result<Option<JobLease>, QueueError> {
        let (worker, pools, left) = (worker.clone(), pools.to_vec(), Arc::clone(&self.left));
        let claim = move |tables: &QueueTables| Ok(Handed { lease: tables.claim(&worker, &pools)?, left });
        Ok(self.with("claim a job", claim).await?.lease.take())
    }
}

/// A lease on its way to the caller of a claim. If the caller no longer waits, the lease goes to
/// `left` and is released later.
#[derive(Debug)]
struct Handed {
    lease: Option<JobLease>,
    left: Left,
}

impl Drop for Handed {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            self.left.lock().unwrap_or_else(PoisonError::into_inner).push(lease);
        }
    }
}

impl Queue for SqliteQueue {
    async fn submit(&self, jobs: &[JobSpec]) -> Result<Vec<Submitted>, QueueError> {
        jobs.iter().try_for_each(|job| fits("payload", &job.id, &job.payload))?;
        let jobs = jobs.to_vec();
        self.change("submit jobs", move |tables| tables.submit(&jobs)).await
    }

    async fn claim(&self, worker: &Worker, pools: &[PoolName], wait: Duration) -> Result<Option<JobLease>, QueueError> {
        let mut end = pin!(sleep(wait));
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable(); // from here on, changes are noticed
            if let Some(lease) = self.try_claim(worker, pools).await? {
                return Ok(Some(lease));
            }
            tokio::select! {
                biased;
                () = &mut end => return Ok(None),
                () = changed => {}
                () = sleep(POLL) => {}
            }
        }
    }

    async fn renew(&self, lease: &JobLease) -> Result<Renewed, QueueError> {
        let lease = lease.clone();
        self.with("renew a lease", move |tables| tables.renew(&lease)).await
    }

    async fn complete(&self, lease: &JobLease, manifest: &ResultText) -> Result<Completed, QueueError> {
        fits("manifest", &lease.job, &manifest.0)?;
        let (lease, manifest) = (lease.clone(), manifest.clone());
        self.change("complete a job", move |tables| tables.complete(&lease, &manifest)).await
    }

    async fn release(&self, lease: &JobLease, retry: &Retry) -> Result<Released, QueueError> {
        let (lease, retry) = (lease.clone(), retry.clone());
        self.change("release a job", move |tables| tables.release(&lease, &retry)).await
    }

    async fn bury(&self, lease: &JobLease, why: &str) -> Result<Released, QueueError> {
        let (lease, why) = (lease.clone(), why.to_owned());
        self.change("give up a job", move |tables| tables.bury(&lease, &why)).await
    }

    async fn cancel(&self, scope: &CancelScope) -> Result<CancelCount, QueueError> {
        let scope = scope.clone();
        self.with("cancel jobs", move |tables| tables.cancel(&scope)).await
    }

    async fn revive(&self, job: &JobId) -> Result<Revived, QueueError> {
        let job = job.clone();
        self.change("revive a job", move |tables| tables.revive(&job)).await
    }

    async fn pause(&self, pool: &PoolName, time: Duration) -> Result<(), QueueError> {
        let pool = pool.clone();
        self.with("pause a pool", move |tables| tables.pause(&pool, time)).await
    }

    async fn resume(&self, pool: &PoolName) -> Result<(), QueueError> {
        let pool = pool.clone();
        self.change("resume a pool", move |tables| tables.resume(&pool)).await
    }

    async fn limit(&self, pool: &PoolName, most: Option<u32>) -> Result<(), QueueError> {
        let pool = pool.clone();
        self.change("limit a pool", move |tables| tables.limit(&pool, most)).await
    }

    async fn status(&self, batch: Option<&BatchId>) -> Result<QueueStatus, QueueError> {
        let batch = batch.cloned();
        self.with("read the queue", move |tables| tables.status(batch.as_ref())).await
    }

    async fn jobs(&self, which: &JobFilter) -> Result<Vec<QueuedJob>, QueueError> {
        let which = which.clone();
        self.with("read the queue", move |tables| tables.jobs(&which)).await
    }

    async fn job(&self, job: &JobId) -> Result<Option<QueuedJob>, QueueError> {
        let job = job.clone();
        self.with("read the queue", move |tables| tables.job(&job)).await
    }

    async fn gc(&self, age: Duration) -> Result<u64, QueueError> {
        self.with("delete old jobs", move |tables| tables.gc(age)).await
    }
}

fn fits(what: &'static str, job: &JobId, text: &str) -> Result<(), QueueError> {
    let fault = || QueueError::TooLarge { what, job: job.clone(), bytes: text.len(), most: MOST_BYTES };
    if text.len() <= MOST_BYTES { Ok(()) } else { Err(fault()) }
}

#[cfg(test)]
mod tests;
