//! Jobs: what is submitted, and what a queue reports about them.

use super::{BatchId, BuryReason, JobId, KeptResult, PoolName, WorkerId};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use std::time::Duration;

/// A job to submit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// The job's id. Equal work must have equal ids.
    pub id: JobId,
    /// The batch that the job belongs to.
    pub batch: BatchId,
    /// The pool from which workers claim the job, and whose limit applies to it.
    pub pool: PoolName,
    /// The job's priority.
    pub priority: Priority,
    /// The worker's input, up to [`super::MOST_BYTES`]. The queue does not interpret it.
    pub payload: String,
    /// The number of deliveries after which the job is dead, if none succeeds.
    pub deliveries: NonZeroU32,
    /// The time after submission during which the job does not start.
    pub delay: Duration,
}

/// The order in which jobs are claimed, from first to last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the variants say it")]
pub enum Priority {
    High,
    #[default]
    Normal,
    Low,
}

/// The result of submitting a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Submitted {
    /// The job is new and waits.
    Queued,
    /// The queue already knew the job, in any state. Nothing has changed.
    Duplicate,
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueState {
    /// The job waits, perhaps until its delay has passed.
    Queued,
    /// A worker has a lease on the job.
    Running,
    /// The job has a result.
    Done,
    /// The job has been given up and can be revived.
    Dead,
    /// The job was cancelled.
    Cancelled,
}

/// The jobs to cancel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the variants say it")]
pub enum CancelScope {
    Job(JobId),
    Batch(BatchId),
}

/// The numbers of jobs that a cancellation affects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelCount {
    /// Waiting jobs, which never start.
    pub ended: u64,
    /// Running jobs, whose workers learn of the cancellation at the next renewal.
    pub running: u64,
}

/// The result of reviving a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Revived {
    /// The job waits again.
    Queued,
    /// The job is neither dead nor cancelled. Nothing has changed.
    Is(QueueState),
    /// The queue does not know the job.
    Unknown,
}

/// A queue's information about a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedJob {
    /// The job's position in the order of submission, for [`JobFilter::after`].
    pub place: u64,
    /// The job's id.
    pub id: JobId,
    /// The batch that the job belongs to.
    pub batch: BatchId,
    /// The job's pool.
    pub pool: PoolName,
    /// The job's priority.
    pub priority: Priority,
    /// The job's state.
    pub state: QueueState,
    /// The time since the job entered this state.
    pub since: Duration,
    /// The number of deliveries since the job was submitted or revived.
    pub attempt: u32,
    /// The maximum number of deliveries that the job may have.
    pub deliveries: u32,
    /// The worker of the latest delivery.
    pub worker: Option<WorkerId>,
    /// The time until a waiting job may start; otherwise zero.
    pub delay: Duration,
    /// True if the job is running and has been cancelled.
    pub is_cancelling: bool,
    /// The reason why the job is dead, or why its latest delivery failed.
    pub why: Option<BuryReason>,
    /// The accepted result.
    pub result: Option<KeptResult>,
}

/// A filter for jobs. A job must match every part that is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFilter {
    /// Only jobs of this batch.
    pub batch: Option<BatchId>,
    /// Only jobs in this state.
    pub state: Option<QueueState>,
    /// Only jobs after this position; see [`QueuedJob::place`].
    pub after: u64,
    /// The maximum number of jobs to return.
    pub most: u32,
}

impl Default for JobFilter {
    fn default() -> Self {
        Self { batch: None, state: None, after: 0, most: u32::MAX }
    }
}

/// The number of jobs in each state, and the status of the pools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the counts are named after the states")]
pub struct QueueStatus {
    pub queued: u64,
    pub running: u64,
    pub done: u64,
    pub dead: u64,
    pub cancelled: u64,
    /// The jobs in `running` that have been cancelled.
    pub cancelling: u64,
    /// Every pool that has jobs, a limit or a pause, sorted by name. Covers all batches.
    pub pools: Vec<PoolStatus>,
}

impl QueueStatus {
    /// Returns the number of jobs that are queued or running.
    pub fn open(&self) -> u64 {
        self.queued + self.running
    }
}

/// The status of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolStatus {
    /// The pool's name.
    pub name: PoolName,
    /// The maximum number of leases at a time; `None` means no limit.
    pub limit: Option<u32>,
    /// The remaining time of the pool's pause; zero if the pool is not paused.
    pub paused: Duration,
    /// The number of waiting jobs.
    pub queued: u64,
    /// The number of leases.
    pub running: u64,
}
