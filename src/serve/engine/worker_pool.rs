//! The thread of runs. It claims queued requests while there is room, drives the claimed runs
//! concurrently, and renews their leases.

use super::work::{EngineShared, RequestOutcome};
use super::{AGE, EngineError, EngineState};
use crate::id::RunId;
use crate::queue::{
    Completed, JobFilter, JobId, JobLease, Queue, QueueError, QueueState, Released, Renewed, ResultText, Retry, Worker,
    WorkerId,
};
use crate::store::{RunListFilter, RunProperty};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The term of a lease without renewal. It matters only to outside observers: a starting server
/// takes all leases back.
const TERM: Duration = Duration::from_secs(60);
/// The interval between renewals.
const BEAT: Duration = Duration::from_secs(5);
/// The longest wait of one claim for a request.
const WAIT: Duration = Duration::from_secs(30);
/// The pause after an error of the queue.
const PAUSE: Duration = Duration::from_secs(1);
/// The largest number of interrupted runs that are checked for a pending cancellation.
const LEFT: u32 = 10_000;

/// The state of the thread.
#[derive(Debug)]
pub(super) struct WorkerPool {
    engine_state: Arc<EngineState>,
    most: usize,
    worker: Worker,
    leases: Leases,
}

/// The leases of the requests under way.
#[derive(Debug, Clone, Default)]
struct Leases(Arc<Mutex<BTreeMap<JobId, JobLease>>>);

impl Leases {
    fn all(&self) -> MutexGuard<'_, BTreeMap<JobId, JobLease>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard that announces the end of the thread, however it ends.
struct Gone<'s>(&'s EngineState);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.live().values().for_each(|live| live.log.close());
        self.0.gone.cancel();
    }
}

impl WorkerPool {
    pub(super) fn new(engine_state: Arc<EngineState>, most: usize) -> Result<Self, EngineError> {
        let id = WorkerId::parse(format!("serve-{}", uuid::Uuid::now_v7()))?;
        let worker = Worker { id, term: TERM, batch: None };
        Ok(Self { engine_state, most, worker, leases: Leases::default() })
    }

    /// Works until the server stops.
    pub(super) fn work(self) {
        let engine_state = Arc::clone(&self.engine_state);
        let _gone = Gone(&engine_state);
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return tracing::error!(%error, "cannot start the runtime of the run thread"),
        };
        runtime.block_on(self.go_on());
        runtime.shutdown_background(); // does not wait for blocked reads of a dead network file system
    }

    async fn go_on(&self) {
        let part = Arc::new(EngineShared::default());
        let mut running: FuturesUnordered<LocalBoxFuture<'_, ()>> = FuturesUnordered::new();
        for run in self.taken_over().await {
            let (engine_state, part) = (Arc::clone(&self.engine_state), Arc::clone(&part));
            running.push(async move { drop(part.end(&engine_state, &run).await) }.boxed_local());
        }
        let mut leases = self.renew().boxed_local();
        let mut claim = self.claim().boxed_local();
        loop {
            tokio::select! {
                biased;
                () = self.engine_state.stopping.cancelled() => break,
                Some(()) = running.next() => {}
                () = &mut leases => {}
                claimed = &mut claim, if running.len() < self.most => {
                    claim = self.claim().boxed_local();
                    running.extend(claimed.and_then(|lease| self.taken(lease, &part)));
                }
            }
        }
        drop(claim);
        self.rest(running).await;
    }

    /// Lets all runs come to rest, and returns their requests to the queue.
    async fn rest(&self, mut running: FuturesUnordered<LocalBoxFuture<'_, ()>>) {
        self.engine_state.live().values().for_each(|live| live.stop.ask_for_rest());
        let grace = self.engine_state.grace.get().copied().unwrap_or_default();
        let all = async { while running.next().await.is_some() {} };
        if tokio::time::timeout(grace, all).await.is_err() {
            tracing::warn!(runs = running.len(), "some runs did not come to rest: the next server resumes them");
        }
        drop(running); // ends the processes of these runs
        let left: Vec<JobLease> = std::mem::take(&mut *self.leases.all()).into_values().collect();
        for lease in left {
            if let Err(fault) = self.engine_state.queue.release(&lease, &Retry::Unused).await {
                tracing::warn!(%fault, run = %lease.job, "cannot requeue a request: the next server takes the request");
            }
        }
    }

    /// Takes back the requests that an earlier server left. Returns the runs that were cancelled
    /// before that server could end them.
    async fn taken_over(&self) -> Vec<RunId> {
        let prepared = async {
            self.engine_state.queue.take_back(&self.engine_state.pool).await?;
            self.engine_state.queue.gc(AGE).await?;
            let filter =
                RunListFilter { limit: LEFT, only: Some(RunProperty::Interrupted), ..RunListFilter::default() };
            let left = self.engine_state.stored(move |store| Ok(store.runs(&filter)?)).await?;
            let cancelled = JobFilter { state: Some(QueueState::Cancelled), ..JobFilter::default() };
            let cancelled = if left.is_empty() { Vec::new() } else { self.engine_state.queue.jobs(&cancelled).await? };
            let is_cancelled = |run: &RunId| cancelled.iter().any(|job| job.id.as_str() == run.as_str());
            Ok::<_, EngineError>(left.into_iter().map(|row| row.head.id).filter(is_cancelled).collect())
        };
        prepared.await.unwrap_or_else(|fault| {
            tracing::error!(%fault, "cannot read what an earlier server left");
            Vec::new()
        })
    }

    async fn claim(&self) -> Option<JobLease> {
        let claimed =
            self.engine_state.queue.claim(&self.worker, std::slice::from_ref(&self.engine_state.pool), WAIT).await;
        match claimed {
            Ok(lease) => lease,
            Err(fault) => {
                tracing::error!(%fault, "cannot read the queue");
                tokio::time::sleep(PAUSE).await;
                None
            }
        }
    }

    /// Returns the future that works on a request; its job has the id of the run. Returns `None` if
    /// the run is already under way: the lease was lost, for example while the computer was
    /// suspended, and the run continues under the new lease.
    fn taken<'c>(&'c self, lease: JobLease, part: &Arc<EngineShared>) -> Option<LocalBoxFuture<'c, ()>> {
        let (job, run) = (lease.job.clone(), RunId::new(lease.job.as_str()));
        self.leases.all().insert(job, lease.clone());
        if self.engine_state.live_run(&run).is_some() {
            return None;
        }
        let (engine_state, part) = (Arc::clone(&self.engine_state), Arc::clone(part));
        let work = async move {
            let came = AssertUnwindSafe(part.run(&engine_state, &lease)).catch_unwind().await;
            let came = came.unwrap_or_else(|_| RequestOutcome::failed("internal error of fledge"));
            if let Err(fault) = self.finish(&lease.job, &came).await {
                tracing::error!(%fault, %run, "cannot store the outcome of a request");
            }
            engine_state.let_go(&run, &came);
        };
        Some(work.boxed_local())
    }

    /// Records the outcome of a request. If the request was claimed again meanwhile, the outcome is
    /// also recorded under the new lease.
    async fn finish(&self, job: &JobId, came: &RequestOutcome) -> Result<(), QueueError> {
        loop {
            let Some(lease) = self.leases.all().remove(job) else { return Ok(()) };
            self.written(&lease, came).await?;
        }
    }

    async fn written(&self, lease: &JobLease, came: &RequestOutcome) -> Result<(), QueueError> {
        let queue = &self.engine_state.queue;
        match came {
            RequestOutcome::Ended { manifest } => match queue.complete(lease, &ResultText(manifest.clone())).await? {
                // A request with a lost lease is claimed again, and its run is then found to have
                // ended.
                Completed::First | Completed::AlreadyDone | Completed::Lost => Ok(()),
            },
            RequestOutcome::Refused(refusal) => released(queue.bury(lease, &refused(refusal)).await?),
            RequestOutcome::Later { why, after } => {
                let retry = Retry::After { delay: *after, why: why.clone() };
                released(queue.release(lease, &retry).await?)
            }
            RequestOutcome::Rests => released(queue.release(lease, &Retry::Unused).await?),
        }
    }

    /// Renews the leases while the thread works.
    async fn renew(&self) {
        loop {
            tokio::time::sleep(BEAT).await;
            let leases: Vec<JobLease> = self.leases.all().values().cloned().collect();
            for lease in leases {
                match self.engine_state.queue.renew(&lease).await {
                    Ok(Renewed::Kept | Renewed::Lost) => {} // this server claims a lost request again
                    Ok(Renewed::Cancelled) => {
                        let live = self.engine_state.live_run(&RunId::new(lease.job.as_str()));
                        live.iter().for_each(|live| live.cancel());
                    }
                    Err(fault) => tracing::warn!(%fault, run = %lease.job, "cannot renew a lease"),
                }
            }
        }
    }
}

fn released(how: Released) -> Result<(), QueueError> {
    match how {
        Released::Queued | Released::Buried | Released::Cancelled | Released::Lost => Ok(()),
    }
}

/// Formats a refusal for the queue: the reason, then the message.
fn refused(refusal: &super::RunRefusal) -> String {
    format!("{}: {}", refusal.reason, refusal.message)
}
