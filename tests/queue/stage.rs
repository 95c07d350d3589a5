//! A separate queue for each test, and its jobs.

use crate::support::{PATIENCE, record_time};
use fledge::queue::{
    BatchId, JobFilter, JobId, JobLease, JobSpec, PoolName, Priority, Queue, QueuedJob, Worker, WorkerId,
};
use fledge::store::SqliteQueue;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// A duration longer than any test.
pub(crate) const LONG: Duration = Duration::from_secs(3600);
/// A kind of queue.
pub(crate) trait Stage: Sized + Sync {
    type Queue: Queue + Clone + 'static;
    /// The name in this queue's `conformance!` line in `mod.rs`.
    const NAME: &'static str;
    /// The shortest term of a lease.
    const SHORTEST: Duration;

    /// Creates an empty queue. Dropping the stage removes it.
    fn new() -> Self;
    /// Returns the stage of another process by its address.
    fn at(address: &str) -> Self;
    fn address(&self) -> String;
    /// Opens a separate connection.
    fn open(&self) -> impl Future<Output = Self::Queue>;
}

/// A queue in a SQLite file.
pub(crate) struct Sqlite {
    _home: Option<TempDir>,
    path: PathBuf,
}

impl Stage for Sqlite {
    type Queue = SqliteQueue;
    const NAME: &'static str = "sqlite";
    const SHORTEST: Duration = Duration::ZERO;

    fn new() -> Self {
        let home = crate::support::temp_dir();
        let path = home.path().join("queue.db");
        Self { _home: Some(home), path }
    }

    fn at(address: &str) -> Self {
        Self { _home: None, path: address.into() }
    }

    fn address(&self) -> String {
        self.path.to_str().unwrap().into()
    }

    async fn open(&self) -> SqliteQueue {
        SqliteQueue::open(&self.path).unwrap()
    }
}

/// Runs the work on one thread, as a batch does.
pub(crate) fn calmly<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Runs the work with an empty queue.
pub(crate) fn with<S: Stage, T>(work: impl AsyncFnOnce(&S, S::Queue) -> T) -> T {
    record_time();
    let stage = S::new();
    calmly(async { work(&stage, stage.open().await).await })
}

pub(crate) fn id(name: &str) -> JobId {
    JobId::parse(name).unwrap()
}

pub(crate) fn batch(name: &str) -> BatchId {
    BatchId::parse(name).unwrap()
}

pub(crate) fn pool(name: &str) -> PoolName {
    PoolName::parse(name).unwrap()
}

/// Returns a job of the batch `b` in the pool `p` with at most three deliveries.
pub(crate) fn job(name: &str) -> JobSpec {
    JobSpec {
        id: id(name),
        batch: batch("b"),
        pool: pool("p"),
        priority: Priority::Normal,
        payload: format!("do {name}"),
        deliveries: NonZeroU32::new(3).unwrap(),
        delay: Duration::ZERO,
    }
}

pub(crate) fn jobs(names: &[&str]) -> Vec<JobSpec> {
    names.iter().map(|name| job(name)).collect()
}

/// Returns a worker with leases longer than any test.
pub(crate) fn worker(name: &str) -> Worker {
    Worker { id: WorkerId::parse(name).unwrap(), term: LONG, batch: None }
}

/// Claims a job of pool `p` for worker `w` without waiting.
pub(crate) async fn take(queue: &impl Queue) -> Option<JobLease> {
    queue.claim(&worker("w"), &[pool("p")], Duration::ZERO).await.unwrap()
}

/// Claims a job in the same way and returns its name, or an empty string.
pub(crate) async fn taken(queue: &impl Queue) -> String {
    take(queue).await.map_or_else(String::new, |lease| lease.job.to_string())
}

/// Returns a lease whose term has passed, after the queue has taken the job back.
pub(crate) async fn outlived<S: Stage>(queue: &impl Queue) -> Option<JobLease> {
    let brief = Worker { term: S::SHORTEST, ..worker("brief") };
    let lease = queue.claim(&brief, &[pool("p")], Duration::ZERO).await.unwrap()?;
    until(async || row(queue, lease.job.as_str()).await.state != fledge::queue::QueueState::Running).await;
    Some(lease)
}

pub(crate) async fn row(queue: &impl Queue, name: &str) -> QueuedJob {
    queue.job(&id(name)).await.unwrap().unwrap()
}

pub(crate) async fn rows(queue: &impl Queue) -> Vec<QueuedJob> {
    queue.jobs(&JobFilter::default()).await.unwrap()
}

/// Waits until the condition holds.
pub(crate) async fn until(is_so: impl AsyncFn() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("it never was so");
}
