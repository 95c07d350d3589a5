//! What hands out work to workers that may die: jobs are submitted, claimed for a time, and completed once. Here are its words and what it
//! promises; [`crate::store::SqliteQueue`] is the one that needs no server.
//!
//! A job is delivered at least once and has at most one result. Between the two stands the lease: whoever claims a job has it for a time,
//! and for as long as they go on renewing it; each lease has a number that no other one has, larger than all before, and what is said with
//! a number that no longer holds changes nothing. So a worker that was cut off, stopped or taken for dead can do no harm here. What
//! it does elsewhere it must be able to do twice, or do with the number in hand.
//!
//! All times are lengths by the queue's own clock, never a worker's. A queue knows nothing of what is in a job, and of no order but
//! priority and age: which job needs which other one is known to whoever submits them, who does so when their time has come.

mod fault;
mod job;
mod lease;
mod name;

pub use fault::QueueFault;
pub use job::{Cancelled, JobRow, JobSpec, PoolStatus, Priority, Revived, Scope, State, Status, Submitted, Which};
pub use lease::{BuryReason, Completed, KeptResult, Lease, Manifest, Released, Renewed, Retry, Worker};
pub use name::{BatchId, JobId, NameFault, PoolName, WorkerId};

use std::time::Duration;

/// The most bytes of a payload or a manifest. What is larger is named by its digest and kept elsewhere.
pub const MOST_BYTES: usize = 256 * 1024;

/// A queue. Any number of these may stand for the same one, in any number of processes.
///
/// Every call that returned is known to every later call of anybody. A call that failed may have been done or not, and can be repeated:
/// none does more when it is done twice, but for `claim`, whose lease nobody heard of ends with its time, and `release`, of which the
/// second one finds the lease gone.
///
/// A future that is dropped is a call that failed.
pub trait Queue: Send + Sync {
    /// Adds jobs: all of them, or with an error none. A name that the queue knows, in whatever state, is not added again, however often and
    /// by however many it is submitted. What was acknowledged survives a failure of the power.
    ///
    /// # Errors
    /// When a payload is too large, or the queue cannot be written.
    fn submit(&self, jobs: &[JobSpec]) -> impl Future<Output = Result<Vec<Submitted>, QueueFault>> + Send;

    /// Takes the next job of these pools that may start, and waits for one up to `wait`. Of those that may start, one of a higher priority
    /// goes before all of lower ones, over all of the pools, and of equal ones that which was submitted first. A pool that is paused or has
    /// as many leases as its limit gives none.
    ///
    /// # Errors
    /// When the queue cannot be read or written.
    fn claim(
        &self,
        worker: &Worker,
        pools: &[PoolName],
        wait: Duration,
    ) -> impl Future<Output = Result<Option<Lease>, QueueFault>> + Send;

    /// Says that the holder is at work, so that the lease goes on. [`Renewed::Cancelled`] is how a running job learns that it is to end,
    /// so this is called at least every [`Lease::beat`].
    ///
    /// A lease whose time is over is kept as long as the queue has not taken the job back. It has done so before it tells of any job, and before
    /// it gives one out.
    ///
    /// # Errors
    /// When the queue cannot be read or written. Who hears nothing else for [`Lease::fence`] has to stop the work.
    fn renew(&self, lease: &Lease) -> impl Future<Output = Result<Renewed, QueueFault>> + Send;

    /// Hands in the result. Of all that are ever handed in for a job one counts: the first by a lease that holds. A job that was cancelled
    /// while it ran has its result all the same if it comes before the end of the lease. What was acknowledged survives a failure of the
    /// power.
    ///
    /// # Errors
    /// When the manifest is too large, or the queue cannot be written.
    fn complete(
        &self,
        lease: &Lease,
        manifest: &Manifest,
    ) -> impl Future<Output = Result<Completed, QueueFault>> + Send;

    /// Gives the job back. It keeps its place among those of its priority. After the last delivery that it may have, it is dead.
    ///
    /// # Errors
    /// When the queue cannot be written.
    fn release(&self, lease: &Lease, retry: &Retry) -> impl Future<Output = Result<Released, QueueFault>> + Send;

    /// Gives up the job for all workers: it is dead, for this reason, until it is revived.
    ///
    /// # Errors
    /// When the queue cannot be written.
    fn bury(&self, lease: &Lease, why: &str) -> impl Future<Output = Result<Released, QueueFault>> + Send;

    /// Ends jobs that the queue knows now: those that wait never start, those that run learn it when they renew. What is submitted or
    /// revived later is not cancelled. What was acknowledged survives a failure of the power.
    ///
    /// # Errors
    /// When the queue cannot be written.
    fn cancel(&self, scope: &Scope) -> impl Future<Output = Result<Cancelled, QueueFault>> + Send;

    /// Has a dead or cancelled job wait again, as if it had never been delivered. Leases that it had before do not hold again.
    ///
    /// # Errors
    /// When the queue cannot be written.
    fn revive(&self, job: &JobId) -> impl Future<Output = Result<Revived, QueueFault>> + Send;

    /// Has a pool give no job for this time, or for longer if it was paused for longer. What runs goes on.
    ///
    /// # Errors
    /// When the queue cannot be written.
    fn pause(&self, pool: &PoolName, time: Duration) -> impl Future<Output = Result<(), QueueFault>> + Send;

    /// Ends the pause of a pool, if there is one.
    ///
    /// # Errors
    /// When the queue cannot be written.
    fn resume(&self, pool: &PoolName) -> impl Future<Output = Result<(), QueueFault>> + Send;

    /// The most leases of a pool at a time, over all workers and priorities; `None`: any number. It is never exceeded: the lease of a dead
    /// worker counts until its time is over. With fewer than there are, none is taken away.
    ///
    /// # Errors
    /// When the queue cannot be written.
    fn limit(&self, pool: &PoolName, most: Option<u32>) -> impl Future<Output = Result<(), QueueFault>> + Send;

    /// How many jobs there are in each state, of one batch or of all, and what is known of the pools.
    ///
    /// # Errors
    /// When the queue cannot be read.
    fn status(&self, batch: Option<&BatchId>) -> impl Future<Output = Result<Status, QueueFault>> + Send;

    /// The jobs that are asked for, in the order in which they were submitted.
    ///
    /// # Errors
    /// When the queue cannot be read.
    fn jobs(&self, which: &Which) -> impl Future<Output = Result<Vec<JobRow>, QueueFault>> + Send;

    /// One job; `None` when the queue does not know it.
    ///
    /// # Errors
    /// When the queue cannot be read.
    fn job(&self, job: &JobId) -> impl Future<Output = Result<Option<JobRow>, QueueFault>> + Send;

    /// Forgets the jobs that have been done, dead or cancelled for longer than `age`, with their results, and says how many. Their names are
    /// new ones afterwards.
    ///
    /// # Errors
    /// When the queue cannot be written.
    fn gc(&self, age: Duration) -> impl Future<Output = Result<u64, QueueFault>> + Send;
}

#[cfg(test)]
mod tests;
