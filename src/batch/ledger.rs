//! State of a batch in a queue, so that another process can resume it: the jobs in progress and the
//! outcomes of ended jobs. [`super::Standing::stays`] says which outcomes are final; a resume
//! repeats all other jobs.

use super::outcome::Outcome;
use crate::causes::chain;
use crate::queue::{
    BatchId, Completed, JobId, JobRow, JobSpec, Lease, Manifest, NameFault, PoolName, Priority, Queue, QueueFault,
    Released, Renewed, Retry, Which, Worker, WorkerId,
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
pub enum LedgerFault {
    /// The queue failed.
    #[error("{}", chain(.0))]
    Queue(QueueFault),
    /// The record of the newest batch cannot be read or written.
    #[error(transparent)]
    Newest(#[from] StoreError),
    /// The queue does not accept a name.
    #[error(transparent)]
    Name(#[from] NameFault),
    /// Another process works on this job.
    #[error("another process is working on `{job}`")]
    Held { job: String },
    /// There is no batch of these tasks.
    #[error("no unfinished batch of these tasks to resume")]
    None,
}

impl From<QueueFault> for LedgerFault {
    fn from(fault: QueueFault) -> Self {
        Self::Queue(fault)
    }
}

/// The batch to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A new batch.
    New,
    /// The newest batch.
    Newest,
}

/// The ledger of one batch in a queue.
#[derive(Debug)]
pub struct Ledger<Q> {
    queue: Q,
    batch: BatchId,
    jobs: Vec<(String, JobId)>,
    worker: Worker,
    pool: PoolName,
    /// Leases on jobs that this process works on or is about to work on.
    leases: Mutex<BTreeMap<JobId, Lease>>,
    /// Serialises claims, so that a claim gets the job submitted just before.
    claiming: Turnstile<()>,
}

impl<Q: Queue> Ledger<Q> {
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
        wanted: Wanted,
        worker: &str,
    ) -> Result<Self, LedgerFault> {
        queue.gc(AGE).await?;
        let root = short(identity);
        let newest = folder.join(&root);
        let batch = match wanted {
            Wanted::New => {
                let tail = worker.get(worker.len().saturating_sub(TAIL)..).unwrap_or(worker);
                let batch = BatchId::parse(format!("{root}-{tail}"))?;
                make_private(folder)?;
                write_whole(&newest, batch.as_str().as_bytes())?;
                batch
            }
            Wanted::Newest => {
                let batch = BatchId::parse(read_text(&newest, LONGEST_NAME)?.ok_or(LedgerFault::None)?)?;
                if queue.jobs(&Which { batch: Some(batch.clone()), most: 1, ..Which::default() }).await?.is_empty() {
                    return Err(LedgerFault::None);
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
    pub async fn before(&self) -> Result<BTreeMap<usize, Outcome>, LedgerFault> {
        let rows = self.queue.jobs(&Which { batch: Some(self.batch.clone()), ..Which::default() }).await?;
        let kept = |row: &JobRow| {
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
    pub async fn take(&self, job: usize) -> Result<(), LedgerFault> {
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
            let Some(lease) = claimed else { return Err(LedgerFault::Held { job: name.clone() }) };
            self.leases().insert(lease.job.clone(), lease);
        }
        Ok(())
    }

    /// Stores the outcome of a job if it is final; otherwise releases the lease, so that the job
    /// can be repeated.
    ///
    /// # Errors
    /// When another process took the job, or the queue cannot be written.
    pub async fn keep(&self, job: usize, outcome: &Outcome) -> Result<(), LedgerFault> {
        let Some((name, id)) = self.jobs.get(job) else { return Ok(()) };
        let Some(mut lease) = self.leases().remove(id) else { return Ok(()) };
        if !outcome.standing().stays() {
            return match self.queue.release(&lease, &Retry::Unused).await? {
                Released::Queued | Released::Buried | Released::Cancelled | Released::Lost => Ok(()),
            };
        }
        let manifest = Manifest(serde_json::to_string(outcome).unwrap_or_default());
        loop {
            match self.queue.complete(&lease, &manifest).await? {
                Completed::First | Completed::AlreadyDone => {
                    self.leases().remove(id);
                    return Ok(());
                }
                Completed::Lost => {
                    let again = self.reclaimed(&lease).await?;
                    lease = again.ok_or_else(|| LedgerFault::Held { job: name.clone() })?;
                }
            }
        }
    }

    /// Renews the leases until that fails, and returns the error.
    pub async fn renew(&self) -> LedgerFault {
        loop {
            tokio::time::sleep(BEAT).await;
            let leases: Vec<Lease> = self.leases().values().cloned().collect();
            for lease in leases {
                match self.renew_one(lease).await {
                    Ok(()) => {}
                    Err(fault) => return fault,
                }
            }
        }
    }

    async fn renew_one(&self, lease: Lease) -> Result<(), LedgerFault> {
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
            None => return Err(LedgerFault::Held { job: lease.payload }),
        }
        Ok(())
    }

    /// Claims a lost job again. A parallel claim of another job may already have received it.
    async fn reclaimed(&self, lost: &Lease) -> Result<Option<Lease>, LedgerFault> {
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

    fn leases(&self) -> MutexGuard<'_, BTreeMap<JobId, Lease>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shortens a digest of the text to a name.
fn short(text: &str) -> String {
    let mut digest = sha256(text.as_bytes());
    digest.truncate(24);
    digest
}
