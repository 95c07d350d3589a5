//! The right to work on a job for a time, and what is said with it.

use super::{BatchId, JobId, PoolName, WorkerId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest time between two renewals: so soon a running job hears that it is cancelled.
const BEAT: Duration = Duration::from_secs(1);

/// Who claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// Its name.
    pub id: WorkerId,
    /// How long its leases hold without being renewed: so late a job of a dead worker begins anew.
    pub term: Duration,
    /// Claims only jobs of this batch; `None`: of all.
    pub batch: Option<BatchId>,
}

/// The right to work on a job, as long as it is renewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The job.
    pub job: JobId,
    /// What it was submitted with.
    pub batch: BatchId,
    /// Its pool.
    pub pool: PoolName,
    /// What the worker is told.
    pub payload: String,
    /// Which delivery it is since the job was submitted or revived, from 1.
    pub attempt: u32,
    /// Whether no other delivery follows if this one comes to nothing.
    pub is_last: bool,
    /// The number of this lease: larger than that of every lease before it in this queue.
    pub token: u64,
    /// Who has it.
    pub worker: WorkerId,
    /// How long it holds from each renewal on.
    pub term: Duration,
}

impl Lease {
    /// How often it is renewed: three times in its term, and at least every second.
    pub fn beat(&self) -> Duration {
        (self.term / 3).min(BEAT)
    }

    /// How long after the start of the last renewal that was answered the holder stops the work by itself, by a clock of its own: there is
    /// time left to end it before anybody else has the job.
    pub fn fence(&self) -> Duration {
        self.term * 5 / 6
    }
}

/// What became of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Renewed {
    /// The lease holds for [`Lease::fence`] from now on, at least, and mostly for its whole term.
    Kept,
    /// The job is no longer this worker's: stop the work, and say nothing more.
    Lost,
    /// The job is to end: stop the work, then [`super::Queue::release`] it. The lease holds meanwhile.
    Cancelled,
}

/// A result: a text that the queue does not look into, of up to [`super::MOST_BYTES`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest(pub String);

/// The result that counts, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptResult {
    /// As it was handed in.
    pub manifest: Manifest,
    /// The number of the lease that it was handed in with.
    pub token: u64,
    /// Which delivery it was.
    pub attempt: u32,
    /// Who handed it in.
    pub worker: WorkerId,
}

/// What became of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Completed {
    /// It is the one that counts; also for who hands the same in again, not knowing what became of it.
    First,
    /// Another one counts. This one is forgotten.
    AlreadyDone,
    /// The job is no longer this worker's, and has no result. This one is forgotten.
    Lost,
}

/// How a job is given back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Retry {
    /// This delivery came to nothing, for a reason that may be gone later: not before this time.
    #[expect(missing_docs, reason = "the fields say it")]
    After { delay: Duration, why: String },
    /// The work was not begun: this delivery does not count.
    Unused,
}

/// What became of a job that was given back or given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Released {
    /// It waits for another delivery.
    Queued,
    /// It is dead.
    Buried,
    /// It had been cancelled, and has ended now.
    Cancelled,
    /// It was no longer this worker's. Nothing has changed.
    Lost,
}

/// Why a delivery came to nothing; of a dead job, why it is dead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BuryReason {
    /// The worker said nothing more: it died, or lost touch.
    Vanished,
    /// The worker gave it back, for this reason.
    Failed(String),
    /// The worker gave it up, for this reason.
    Refused(String),
}
