//! Jobs as they are submitted, and as a queue tells of them.

use super::{BatchId, BuryReason, JobId, KeptResult, PoolName, WorkerId};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use std::time::Duration;

/// A job, as it is submitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// The same for the same work.
    pub id: JobId,
    /// What it was submitted with.
    pub batch: BatchId,
    /// Where workers find it, and whose limit it counts for.
    pub pool: PoolName,
    /// What goes first.
    pub priority: Priority,
    /// What the worker is told: a text that the queue does not look into, of up to [`super::MOST_BYTES`].
    pub payload: String,
    /// How often it is delivered before it is dead, if no delivery ends well.
    pub deliveries: NonZeroU32,
    /// It does not start before this time has passed.
    pub delay: Duration,
}

/// What goes first, from the first to the last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the variants say it")]
pub enum Priority {
    High,
    #[default]
    Normal,
    Low,
}

/// What became of a job that was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Submitted {
    /// It waits.
    Queued,
    /// The queue knew it, in whatever state, and nothing has changed.
    Duplicate,
}

/// Where a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It waits, perhaps for a time that has not come.
    Queued,
    /// Somebody has a lease on it.
    Running,
    /// It has a result.
    Done,
    /// It has been given up, and waits to be revived.
    Dead,
    /// It was cancelled.
    Cancelled,
}

/// What is cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the variants say it")]
pub enum Scope {
    Job(JobId),
    Batch(BatchId),
}

/// How many jobs a cancellation met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancelled {
    /// They waited, and never start.
    pub ended: u64,
    /// They run, and learn it when they renew.
    pub told: u64,
}

/// What became of a job that was to be revived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Revived {
    /// It waits again.
    Queued,
    /// It is neither dead nor cancelled, and nothing has changed.
    Is(State),
    /// The queue does not know it.
    Unknown,
}

/// What a queue tells of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRow {
    /// Its place in the order of submission, for [`Which::after`].
    pub place: u64,
    /// Its name.
    pub id: JobId,
    /// What it was submitted with.
    pub batch: BatchId,
    /// Its pool.
    pub pool: PoolName,
    /// Its priority.
    pub priority: Priority,
    /// Where it is.
    pub state: State,
    /// How long it has been there.
    pub since: Duration,
    /// Deliveries so far, since it was submitted or revived.
    pub attempt: u32,
    /// Those that it may have.
    pub deliveries: u32,
    /// Who had the latest delivery.
    pub worker: Option<WorkerId>,
    /// How long until it may start; zero for one that may.
    pub delay: Duration,
    /// Whether it runs and is to end.
    pub is_cancelling: bool,
    /// Why it is dead, or why its latest delivery came to nothing.
    pub why: Option<BuryReason>,
    /// The result that counts.
    pub result: Option<KeptResult>,
}

/// Which jobs are asked for: those that fit everything that is said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Which {
    /// Of one batch.
    pub batch: Option<BatchId>,
    /// In one state.
    pub state: Option<State>,
    /// Behind this place.
    pub after: u64,
    /// At most so many.
    pub most: u32,
}

impl Default for Which {
    fn default() -> Self {
        Self { batch: None, state: None, after: 0, most: u32::MAX }
    }
}

/// How many jobs there are in each state, and what is known of the pools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the counts are named after the states")]
pub struct Status {
    pub queued: u64,
    pub running: u64,
    pub done: u64,
    pub dead: u64,
    pub cancelled: u64,
    /// Those of `running` that are to end.
    pub cancelling: u64,
    /// Every pool that has jobs, a limit or a pause, by its name; over all batches.
    pub pools: Vec<PoolStatus>,
}

impl Status {
    /// Jobs that have not come to their end.
    pub fn open(&self) -> u64 {
        self.queued + self.running
    }
}

/// What is known of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolStatus {
    /// Its name.
    pub name: PoolName,
    /// The most leases at a time; `None`: any number.
    pub limit: Option<u32>,
    /// How much longer it gives no job; zero for one that does.
    pub paused: Duration,
    /// Jobs that wait.
    pub queued: u64,
    /// Leases.
    pub running: u64,
}
