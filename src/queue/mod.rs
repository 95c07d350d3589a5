//! The interface of job queues, which hand out work to workers that may die. A job is submitted,
//! claimed for a time, and completed once. [`crate::store::SqliteQueue`] is the queue that needs no
//! server.
//!
//! A queue delivers a job at least once and accepts at most one result. A worker that claims a job
//! gets a lease, which holds for a time and as long as the worker renews it. Each lease has a
//! unique number, larger than all earlier ones. Calls with a number that no longer holds change
//! nothing. So a worker that was cut off, stopped or presumed dead can do no harm here. Its effects
//! elsewhere must be repeatable, or guarded by the lease number.
//!
//! All times are durations by the queue's own clock, never a worker's. A queue does not know the
//! content of a job, and orders jobs only by priority and age. The submitter knows which job
//! depends on which, and submits a job once it may run.

mod job;
mod lease;
mod name;

pub use job::{
    CancelCount, CancelScope, JobFilter, JobSpec, PoolStatus, Priority, QueueState, QueueStatus, QueuedJob, Revived,
    Submitted,
};
pub use lease::{BuryReason, Completed, JobLease, KeptResult, Released, Renewed, ResultText, Retry, Worker};
pub use name::{BatchId, JobId, NameError, PoolName, WorkerId};

use std::error::Error;
use std::time::Duration;

/// The maximum number of bytes of a payload or a manifest. Larger data is kept elsewhere and named
/// by its digest.
pub const MOST_BYTES: usize = 256 * 1024;

/// A job queue. Any number of values may refer to the same queue, in any number of processes.
///
/// Once a call has returned, every later call of any process sees its effect. A call that failed
/// may or may not have taken effect, and can be repeated. Repeating a call changes nothing more,
/// with two exceptions. After a failed `claim`, an unknown lease may exist, which ends with its
/// term. After a failed `release`, the second call may find the lease gone.
///
/// A dropped future counts as a failed call.
pub trait Queue: Send + Sync {
    /// Adds jobs: all of them, or none after an error. A known id, in any state, is not added
    /// again, no matter how often it is submitted. An acknowledged submission survives a power
    /// failure.
    ///
    /// # Errors
    /// When a payload is too large, or the queue cannot be written.
    fn submit(&self, jobs: &[JobSpec]) -> impl Future<Output = Result<Vec<Submitted>, QueueError>> + Send;

    /// Claims the next job of these pools that may start, and waits for one up to `wait`. Over all
    /// pools, higher priority comes first, then earlier submission. A pool that is paused, or has
    /// as many leases as its limit, gives no job.
    ///
    /// # Errors
    /// When the queue cannot be read or written.
    fn claim(
        &self,
        worker: &Worker,
        pools: &[PoolName],
        wait: Duration,
    ) -> impl Future<Output = Result<Option<JobLease>, QueueError>> + Send;

    /// Renews a lease whose holder is at work. A running job learns from [`Renewed::Cancelled`]
    /// that it is cancelled, so the holder calls this at least every [`JobLease::beat`].
    ///
    /// A lease past its term can be renewed until the queue takes the job back. The queue takes
    /// such jobs back before it reports or hands out any job.
    ///
    /// # Errors
    /// When the queue cannot be read or written. A holder that gets only errors for
    /// [`JobLease::fence`] must stop the work.
    fn renew(&self, lease: &JobLease) -> impl Future<Output = Result<Renewed, QueueError>> + Send;

    /// Submits the result. Of all results submitted for a job, the queue accepts one: the first
    /// under a lease that holds. A job that was cancelled while it ran still gets its result if the
    /// result arrives before the lease ends. An acknowledged result survives a power failure.
    ///
    /// # Errors
    /// When the manifest is too large, or the queue cannot be written.
    fn complete(
        &self,
        lease: &JobLease,
        manifest: &ResultText,
    ) -> impl Future<Output = Result<Completed, QueueError>> + Send;

    /// Gives the job back. The job keeps its position within its priority. After its last allowed
    /// delivery, the job is dead.
    ///
    /// # Errors
    /// When the queue cannot be written.
    fn release(&self, lease: &JobLease, retry: &Retry) -> impl Future<Output = Result<Released, QueueError>> + Send;

    /// Gives the job up for all workers. The job is dead, for this reason, until it is revived.
    ///
    /// # Errors
    /// When the queue cannot be written.
    fn bury(&self, lease: &JobLease, why: &str) -> impl Future<Output = Result<Released, QueueError>> + Send;

    /// Cancels the jobs that the queue knows now. Waiting jobs never start; running jobs learn of
    /// it when they renew. Jobs that are submitted or revived later are not cancelled. An
    /// acknowledged cancellation survives a power failure.
    ///
    /// # Errors
    /// When the queue cannot be written.
    fn cancel(&self, scope: &CancelScope) -> impl Future<Output = Result<CancelCount, QueueError>> + Send;

    /// Makes a dead or cancelled job wait again, as if it had never been delivered. Its earlier
    /// leases stay invalid.
    ///
    /// # Errors
    /// When the queue cannot be written.
    fn revive(&self, job: &JobId) -> impl Future<Output = Result<Revived, QueueError>> + Send;

    /// Stops a pool from giving jobs for this time, or until an earlier pause ends if that is
    /// later. Running jobs continue.
    ///
    /// # Errors
    /// When the queue cannot be written.
    fn pause(&self, pool: &PoolName, time: Duration) -> impl Future<Output = Result<(), QueueError>> + Send;

    /// Ends the pause of a pool, if there is one.
    ///
    /// # Errors
    /// When the queue cannot be written.
    fn resume(&self, pool: &PoolName) -> impl Future<Output = Result<(), QueueError>> + Send;

    /// Sets the maximum number of leases of a pool at a time, over all workers and priorities;
    /// `None` means no limit. Claims never exceed the limit: the lease of a dead worker counts
    /// until it ends. A limit below the current number of leases takes none away.
    ///
    /// # Errors
    /// When the queue cannot be written.
    fn limit(&self, pool: &PoolName, most: Option<u32>) -> impl Future<Output = Result<(), QueueError>> + Send;

    /// Returns the number of jobs in each state, of one batch or of all, and the status of the
    /// pools.
    ///
    /// # Errors
    /// When the queue cannot be read.
    fn status(&self, batch: Option<&BatchId>) -> impl Future<Output = Result<QueueStatus, QueueError>> + Send;

    /// Returns the jobs that match, in the order of submission.
    ///
    /// # Errors
    /// When the queue cannot be read.
    fn jobs(&self, which: &JobFilter) -> impl Future<Output = Result<Vec<QueuedJob>, QueueError>> + Send;

    /// Returns one job, or `None` if the queue does not know it.
    ///
    /// # Errors
    /// When the queue cannot be read.
    fn job(&self, job: &JobId) -> impl Future<Output = Result<Option<QueuedJob>, QueueError>> + Send;

    /// Forgets jobs that have been done, dead or cancelled for longer than `age`, with their
    /// results, and returns their number. Their ids count as new afterwards.
    ///
    /// # Errors
    /// When the queue cannot be written.
    fn gc(&self, age: Duration) -> impl Future<Output = Result<u64, QueueError>> + Send;
}

/// A queue call failed. The call may have taken effect nevertheless.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum QueueError {
    /// The queue's storage returned an error; `verb` follows "cannot".
    #[error("cannot {verb}")]
    Failed { verb: &'static str, source: Box<dyn Error + Send + Sync> },
    /// A payload or a manifest is larger than [`MOST_BYTES`].
    #[error(
        "the {what} of job {job} has {bytes} bytes, more than the limit of {most}: \
         store large data elsewhere and refer to it by its digest"
    )]
    TooLarge { what: &'static str, job: JobId, bytes: usize, most: usize },
}

#[cfg(test)]
mod tests;
