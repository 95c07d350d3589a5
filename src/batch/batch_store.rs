//! State of a batch in a queue, so that another process can resume it: the jobs in progress and the
//! outcomes of ended jobs. [`super::Standing::stays`] says which outcomes are final; a resume
//! repeats all other jobs.

use super::outcome::FinishedJob;
use crate::error_chain::chain;
use crate::queue::{
    BatchId, Completed, JobFilter, JobId, JobLease, JobSpec, NameError, PoolName, Priority, Queue, QueueError,
    QueuedJob, Released, Renewed, ResultText, Retry, Worker, WorkerId,
};
use crate::store::{StoreError, make_private, read_text, sha256, write_whole};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex as Turnstile;

/// The term of a lease that is not renewed. After a crash, the next process waits at most this
/// long.
const TERM: Duration = Duration::from_secs(10);
/// The interval at which the leases are renewed.
const BEAT: Duration = Duration::from_secs(1);
/// The time for which results are kept.
const AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Characters of the worker's name that make the name of its batch unique.
const TAIL: usize = 12;
/// The longest name of a batch, in bytes.
const LONGEST_NAME: usize = 64;
/// The pool of batch jobs in the queue.
const POOL: &str = "batch";

/// An error of the ledger: it cannot be read or written, or the batch cannot be resumed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum BatchStoreError {
    /// The queue failed.
    #[error("{}", chain(.0))]
    Queue(QueueError),
    /// The record of the newest batch cannot be read or written.
    #[error(transparent)]
    Newest(#[from] StoreError),
    /// The queue does not accept a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Another process works on this job.
    #[error("another process is working on `{job}`")]
    Held { job: String },
    /// No batch of these tasks exists.
    #[error("no unfinished batch of these tasks to resume")]
    None,
}

impl From<QueueError> for BatchStoreError {
    fn from(fault: QueueError) -> Self {
        Self::Queue(fault)
    }
}

/// The batch to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchSelector {
    /// A new batch.
    New,
    /// The newest batch.
    Newest,
}

/// The ledger of one batch in a queue.
#[derive(Debug)]
pub struct BatchStore<Q> {
    queue: Q,
    batch: BatchId,
    jobs: Vec<(String, JobId)>,
    worker: Worker,
    pool: PoolName,
    /// Leases on jobs that this process works on or is about to work on.
    leases: Mutex<BTreeMap<JobId, JobLease>>,
    /// Serialises claims, so that a claim gets the job submitted just before.
    claiming: Turnstile<()>,
}

impl<Q: Queue> BatchStore<Q> {
    /// Opens the ledger of a batch. `identity` is equal for equal batches. `jobs` pairs each job's
    /// name with its identity, by which a resume finds it again. `folder` records the newest batch.
    /// `worker` is unique to this process.
    ///
    /// # Errors
    /// When the queue or the record of the newest batch cannot be used, or there is no batch to
    /// resume.
    pub async fn open(
        queue: Q,
        folder: &Path,
        identity: &str,
        jobs: &[(String, String)],
        wanted: BatchSelector,
        worker: &str,
    ) -> Result<Self, BatchStoreError> {
        queue.gc(AGE).await?;
        let root = short(identity);
        let newest = folder.join(&root);
        let batch = match wanted {
            BatchSelector::New => {
                let tail = worker.get(worker.len().saturating_sub(TAIL)..).unwrap_or(worker);
                let batch = BatchId::parse(format!("{root}-{tail}"))?;
                make_private(folder)?;
                write_whole(&newest, batch.as_str().as_bytes())?;
                batch
            }
            BatchSelector::Newest => {
                let batch = BatchId::parse(read_text(&newest, LONGEST_NAME)?.ok_or(BatchStoreError::None)?)?;
                if queue
                    .jobs(&JobFilter { batch: Some(batch.clone()), most: 1, ..JobFilter::default() })
                    .await?
                    .is_empty()
                {
                    return Err(BatchStoreError::None);
                }
                batch
            }
        };
        let id = |(name, job): &(String, String)| {
            JobId::parse(short(&format!("{batch}\n{name}\n{job}"))).map(|id| (name.clone(), id))
        };
        let jobs = jobs.iter().map(id).collect::<Result<_, _>>()?;
        let worker = Worker { id: WorkerId::parse(worker)?, term: TERM, batch: Some(batch.clone()) };
        let (pool, leases) = (PoolName::parse(POOL)?, Mutex::default());
        Ok(Self { queue, batch, jobs, worker, pool, leases, claiming: Turnstile::default() })
    }

    /// Returns the name of the batch.
    pub fn batch(&self) -> &str {
        self.batch.as_str()
    }

    /// Returns the stored outcomes by job number.
    ///
    /// # Errors
    /// When the queue cannot be read.
    pub async fn before(&self) -> Result<BTreeMap<usize, FinishedJob>, BatchStoreError> {
        let rows = self.queue.jobs(&JobFilter { batch: Some(self.batch.clone()), ..JobFilter::default() }).await?;
        let kept = |row: &QueuedJob| {
            let job = self.jobs.iter().position(|(_, id)| *id == row.id)?;
            let outcome = serde_json::from_str(&row.result.as_ref()?.manifest.0).ok()?;
            Some((job, outcome))
        };
        Ok(rows.iter().filter_map(kept).collect())
    }

    /// Claims a job for this process. A job of a process that died becomes available when its lease
    /// expires.
    ///
    /// # Errors
    /// When another process has it, or the queue cannot be written.
    pub async fn claim(&self, job: usize) -> Result<(), BatchStoreError> {
        let Some((name, id)) = self.jobs.get(job) else { return Ok(()) };
        let _alone = self.claiming.lock().await;
        let spec = JobSpec {
            id: id.clone(),
            batch: self.batch.clone(),
            pool: self.pool.clone(),
            priority: Priority::Normal,
            payload: name.clone(),
            deliveries: NonZeroU32::MAX,
            delay: Duration::ZERO,
        };
        self.queue.submit(&[spec]).await?;
        while !self.leases().contains_key(id) {
            let claimed = self.queue.claim(&self.worker, std::slice::from_ref(&self.pool), TERM + BEAT).await?;
            let Some(lease) = claimed else { return Err(BatchStoreError::Held { job: name.clone() }) };
            self.leases().insert(lease.job.clone(), lease);
        }
        Ok(())
    }

    /// Stores the outcome of a job if it is final; otherwise releases the lease, so that the job
    /// can be repeated.
    ///
    /// # Errors
    /// When another process took the job, or the queue cannot be written.
    pub async fn keep(&self, job: usize, outcome: &FinishedJob) -> Result<(), BatchStoreError> {
        let Some((name, id)) = self.jobs.get(job) else { return Ok(()) };
        let Some(mut lease) = self.leases().remove(id) else { return Ok(()) };
        if !outcome.standing().stays() {
            return match self.queue.release(&lease, &Retry::Unused).await? {
                Released::Queued | Released::Buried | Released::Cancelled | Released::Lost => Ok(()),
            };
        }
        let manifest = ResultText(serde_json::to_string(outcome).unwrap_or_default());
        loop {
            match self.queue.complete(&lease, &manifest).await? {
                Completed::First | Completed::AlreadyDone => {
                    self.leases().remove(id);
                    return Ok(());
                }
                Completed::Lost => {
                    let again = self.reclaimed(&lease).await?;
                    lease = again.ok_or_else(|| BatchStoreError::Held { job: name.clone() })?;
                }
            }
        }
    }

    /// Renews the leases until that fails, and returns the error.
    pub async fn renew(&self) -> BatchStoreError {
        loop {
            tokio::time::sleep(BEAT).await;
            let leases: Vec<JobLease> = self.leases().values().cloned().collect();
            for lease in leases {
                match self.renew_one(lease).await {
                    Ok(()) => {}
                    Err(fault) => return fault,
                }
            }
        }
    }

    async fn renew_one(&self, lease: JobLease) -> Result<(), BatchStoreError> {
        match self.queue.renew(&lease).await? {
            Renewed::Kept | Renewed::Cancelled => return Ok(()),
            Renewed::Lost if !self.leases().contains_key(&lease.job) => return Ok(()), // the job has ended
            Renewed::Lost => {}
        }
        // The lease expired, for example while the machine slept. Claim the job again, unless
        // another process has.
        let again = self.reclaimed(&lease).await?;
        let mut leases = self.leases();
        match again {
            Some(again) => drop(leases.insert(lease.job, again)),
            None if !leases.contains_key(&lease.job) => {} // the job has ended by now
            None => return Err(BatchStoreError::Held { job: lease.payload }),
        }
        Ok(())
    }

    /// Claims a lost job again. A parallel claim of another job may already have received it.
    async fn reclaimed(&self, lost: &JobLease) -> Result<Option<JobLease>, BatchStoreError> {
        let _alone = self.claiming.lock().await;
        loop {
            let newer = self.leases().get(&lost.job).filter(|lease| lease.token != lost.token).cloned();
            if newer.is_some() {
                return Ok(newer);
            }
            match self.queue.claim(&self.worker, std::slice::from_ref(&self.pool), Duration::ZERO).await? {
                None => return Ok(None),
                Some(lease) => drop(self.leases().insert(lease.job.clone(), lease)),
            }
        }
    }

    fn leases(&self) -> MutexGuard<'_, BTreeMap<JobId, JobLease>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shortens a digest of the text to a name.
fn short(text: &str) -> String {
    let mut digest = sha256(text.as_bytes());
    digest.truncate(24);
    digest
}
