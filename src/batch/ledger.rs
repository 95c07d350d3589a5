//! What is kept of a batch in a queue, so that another process can go on with it: which jobs somebody works on, and what those came to that
//! are over. What stays of them is said in [`super::Standing::stays`]; everything else is done again by whoever goes on.

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

/// How long a job stays with a process that says nothing more: so long waits who goes on after a crash, at most.
const TERM: Duration = Duration::from_secs(10);
/// How often the leases are renewed.
const BEAT: Duration = Duration::from_secs(1);
/// How long results are kept.
const AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Signs of a worker's name that make the name of its batch one of its own.
const TAIL: usize = 12;
/// Bytes of the longest name of a batch.
const LONGEST_NAME: usize = 64;
/// Where the jobs of batches wait.
const POOL: &str = "batch";

/// Why something cannot be kept, or a batch not be gone on with.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum LedgerFault {
    /// The queue says no.
    #[error("{}", chain(.0))]
    Queue(QueueFault),
    /// Which batch is the newest cannot be read or written.
    #[error(transparent)]
    Newest(#[from] StoreError),
    /// A name that no queue takes.
    #[error(transparent)]
    Name(#[from] NameFault),
    /// Another process works on it.
    #[error("another process works on `{job}`")]
    Held { job: String },
    /// There is no batch like this.
    #[error("there is no batch of these tasks to go on with")]
    None,
}

impl From<QueueFault> for LedgerFault {
    fn from(fault: QueueFault) -> Self {
        Self::Queue(fault)
    }
}

/// Which batch is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// One that begins.
    New,
    /// The newest one.
    Newest,
}

/// One batch in a queue.
#[derive(Debug)]
pub struct Ledger<Q> {
    queue: Q,
    batch: BatchId,
    jobs: Vec<(String, JobId)>,
    worker: Worker,
    pool: PoolName,
    /// The jobs that this process works on, or is going to.
    leases: Mutex<BTreeMap<JobId, Lease>>,
    /// Who claims has to have what was submitted just before.
    claiming: Turnstile<()>,
}

impl<Q: Queue> Ledger<Q> {
    /// The ledger of a batch: `identity` is the same for the same batch, and so are those of its jobs, which go by their names. In `folder` it is
    /// kept which one is the newest. No other process has the name `worker`.
    ///
    /// # Errors
    /// When the queue cannot be read, or there is no batch where one is wanted.
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

    /// The batch's name.
    pub fn batch(&self) -> &str {
        self.batch.as_str()
    }

    /// What jobs came to that are over, by their numbers.
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

    /// Makes a job this process's. One that a process has that died is there when its lease is over.
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

    /// Keeps what a job came to, where that stays. The lease is given back of one that is to be done again.
    ///
    /// # Errors
    /// When the queue cannot be written.
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

    /// Renews the leases, for as long as nobody else has one of these jobs.
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
            Renewed::Lost if !self.leases().contains_key(&lease.job) => return Ok(()), // it is over
            Renewed::Lost => {}
        }
        // This machine slept, or its disk did: the job is there again, unless somebody else has begun with it.
        let again = self.reclaimed(&lease).await?;
        let mut leases = self.leases();
        match again {
            Some(again) => drop(leases.insert(lease.job, again)),
            None if !leases.contains_key(&lease.job) => {} // it is over by now
            None => return Err(LedgerFault::Held { job: lease.payload }),
        }
        Ok(())
    }

    /// A lease on a job that had been this process's. Who claimed another one meanwhile may have got it too.
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

/// A digest as a name.
fn short(text: &str) -> String {
    let mut digest = sha256(text.as_bytes());
    digest.truncate(24);
    digest
}
