//! Leases, and the results of calls under a lease.

use super::{BatchId, JobId, PoolName, WorkerId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest time between two renewals. A running job learns within this time that it is
/// cancelled.
const BEAT: Duration = Duration::from_secs(1);

/// A worker that claims jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// The worker's id.
    pub id: WorkerId,
    /// The time for which a lease holds without renewal. The job of a dead worker can start again
    /// after this time.
    pub term: Duration,
    /// The batch whose jobs the worker claims; `None` means all batches.
    pub batch: Option<BatchId>,
}

/// A lease on a job: the right to work on it, as long as the lease is renewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLease {
    /// The job.
    pub job: JobId,
    /// The batch that the job belongs to.
    pub batch: BatchId,
    /// The job's pool.
    pub pool: PoolName,
    /// The worker's input.
    pub payload: String,
    /// The number of this delivery since the job was submitted or revived, from 1.
    pub attempt: u32,
    /// True if no other delivery follows when this one fails.
    pub is_last: bool,
    /// The number of this lease. It is larger than that of every earlier lease in this queue.
    pub token: u64,
    /// The worker that holds the lease.
    pub worker: WorkerId,
    /// The time for which the lease holds after each renewal.
    pub term: Duration,
}

impl JobLease {
    /// Returns the time between two renewals: a third of the term, and at most one second.
    pub fn beat(&self) -> Duration {
        (self.term / 3).min(BEAT)
    }

    /// Returns the time after which a holder without a successful renewal must stop its work.
    ///
    /// The holder measures this time by its own clock, from the start of the last renewal that was
    /// answered. The rest of the term is left to end the work before another worker gets the job.
    pub fn fence(&self) -> Duration {
        self.term * 5 / 6
    }
}

/// The result of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Renewed {
    /// The lease holds for at least [`JobLease::fence`] from now on, and usually for its whole
    /// term.
    Kept,
    /// The job no longer belongs to this worker. Stop the work, and make no more calls with this
    /// lease.
    Lost,
    /// The job is cancelled. Stop the work, then call [`super::Queue::release`]. The lease holds
    /// meanwhile.
    Cancelled,
}

/// A result: a text of up to [`super::MOST_BYTES`] that the queue does not interpret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultText(pub String);

/// The accepted result of a job, and its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptResult {
    /// The result as submitted.
    pub manifest: ResultText,
    /// The number of the lease under which it was submitted.
    pub token: u64,
    /// The number of the delivery.
    pub attempt: u32,
    /// The worker that submitted it.
    pub worker: WorkerId,
}

/// The outcome of submitting a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Completed {
    /// The result is accepted. Submitting the same result again under the same lease also returns
    /// this.
    First,
    /// Another result was accepted. This one is discarded.
    AlreadyDone,
    /// The job no longer belongs to this worker and has no result. This one is discarded.
    Lost,
}

/// The reason for releasing a job, which determines its next delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Retry {
    /// The delivery failed, for a reason that may pass. The next delivery waits for `delay`.
    #[expect(missing_docs, reason = "the fields say it")]
    After { delay: Duration, why: String },
    /// The work did not begin, so this delivery does not count.
    Unused,
}

/// The result of releasing or burying a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Released {
    /// The job waits for another delivery.
    Queued,
    /// The job is dead.
    Buried,
    /// The job had been cancelled and has now ended.
    Cancelled,
    /// The job no longer belonged to this worker. Nothing has changed.
    Lost,
}

/// The reason why a delivery failed. For a dead job, the reason why it is dead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BuryReason {
    /// The lease ended without a call of the worker: it died, or lost its connection.
    Vanished,
    /// The worker released the job, for this reason.
    Failed(String),
    /// The worker buried the job, for this reason.
    Refused(String),
}
