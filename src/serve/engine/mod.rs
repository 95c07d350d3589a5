//! The engine that drives the runs of a server.
//!
//! A request is stored before it is answered. The engine starts requests in order as there is room,
//! and drives their runs concurrently on a separate thread, so a busy run never delays an HTTP
//! request. When a server ends, the next server continues its runs: no run is lost, and no work is
//! done twice.
//!
//! ```text
//! run_request  the request for a run, and the task source
//! submission   accepts, cancels, answers
//! worker_pool  the thread: claims requests, renews leases
//! resume       resumes a run on request
//! work         one run, from request to end
//! live         a run under way: log, questions, stop
//! follow       the events of a run for a follower
//! listing      the list of all runs
//! glance       one run
//! leftovers    its generated artifacts
//! orders       the runs of the scheduler
//! ```

mod asking;
mod follow;
mod glance;
mod leftovers;
mod listing;
mod live;
mod log;
mod orders;
mod resume;
mod run_request;
mod submission;
mod work;
mod worker_pool;

pub use asking::PendingQuestion;
pub use follow::{FollowMessage, Follower};
pub(in crate::serve) use leftovers::LARGEST;
pub use listing::{RunFilter, RunListing, RunPage};
pub use log::{CursorError, EventCursor, FollowedRecord};
pub use resume::RejectedResume;
pub use run_request::{
    Overrides, ParamChoice, RunChoices, RunRefusal, RunRequest, RunRequestBody, TaskChoice, TaskFlaw, TaskOrigin,
    TaskSource, UnfitTask,
};
pub use submission::{AcceptedRun, CancelOutcome, RejectedRun};

use super::broadcast::{Broadcaster, Topic};
use super::queue_path;
use crate::id::RunId;
use crate::queue::{NameError, PoolName, QueueError};
use crate::store::{SqliteQueue, Store, StoreError};
use live::LiveRun;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use worker_pool::WorkerPool;

/// The queue's pool for the requests of a server.
const POOL: &str = "serve";
/// The time for which the queue remembers ended requests. A key identifies one request for that
/// long.
const AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The limits of concurrent journal reads for followers, and of all concurrent reads of the store.
const READERS: usize = 2;
const LOOKS: usize = 6;
/// The time that the thread gets to end, in addition to the grace period.
const LAST: Duration = Duration::from_secs(5);

/// The parts from which an engine is built.
#[derive(Debug)]
pub struct EngineSettings {
    /// The directory of fledge's state.
    pub state_dir: PathBuf,
    /// The project that owns the runs.
    pub project: PathBuf,
    /// The limit of concurrent runs.
    pub most: usize,
    /// The source of tasks for requests.
    pub source: Arc<dyn TaskSource>,
    /// The sender of news.
    pub broadcaster: Broadcaster,
}

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The queue cannot be read or written.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The queue does not accept a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The journal of a run cannot be read.
    #[error(transparent)]
    Journal(#[from] crate::driver::ResumeError),
    /// The file changes of a run cannot be read.
    #[error("cannot read the changes of the run")]
    Trees(#[source] crate::workspace::trees::TreesError),
    /// The stored request cannot be parsed.
    #[error("cannot read the request for run {run}")]
    Unclear {
        /// The run of the request.
        run: RunId,
        /// The cause.
        source: serde_json::Error,
    },
    /// The system cannot start a thread.
    #[error("cannot start the run thread")]
    NoThread(#[source] io::Error),
    /// An internal task panicked.
    #[error("internal error of the engine")]
    Failed,
}

/// The runs of a server. Clones share one engine.
#[derive(Debug, Clone)]
pub struct Engine {
    engine_state: Arc<EngineState>,
}

/// The state shared by the thread of runs and all other parts.
#[derive(Debug)]
struct EngineState {
    state_dir: PathBuf,
    project: PathBuf,
    queue: SqliteQueue,
    pool: PoolName,
    source: Arc<dyn TaskSource>,
    ring: EngineBroadcast,
    live: Mutex<BTreeMap<RunId, Arc<LiveRun>>>,
    /// Notified when this server begins to drive a run.
    begun: watch::Sender<()>,
    /// Open stores that are not in use.
    stores: Mutex<Vec<Store>>,
    readers: Arc<Semaphore>,
    looks: Arc<Semaphore>,
    /// Cancelled when no further run may begin and all live runs must come to rest.
    stopping: CancellationToken,
    grace: OnceLock<Duration>,
    /// Cancelled when the thread has ended.
    gone: CancellationToken,
}

impl Engine {
    /// Opens the project's queue and starts the thread, which continues the runs of an earlier
    /// server. Only one process may run an engine for a project. It blocks for a short time.
    ///
    /// # Errors
    /// If the queue cannot be opened, or the thread cannot be started.
    pub fn start(terms: EngineSettings) -> Result<Self, EngineError> {
        let EngineSettings { state_dir, project, most, source, broadcaster } = terms;
        let queue = SqliteQueue::open(&queue_path(&state_dir, &project))?;
        let engine_state = Arc::new(EngineState {
            state_dir,
            project,
            queue,
            pool: PoolName::parse(POOL)?,
            source,
            ring: EngineBroadcast(broadcaster),
            live: Mutex::default(),
            begun: watch::channel(()).0,
            stores: Mutex::default(),
            readers: Arc::new(Semaphore::new(READERS)),
            looks: Arc::new(Semaphore::new(LOOKS)),
            stopping: CancellationToken::new(),
            grace: OnceLock::new(),
            gone: CancellationToken::new(),
        });
        let workers = WorkerPool::new(Arc::clone(&engine_state), most.max(1))?;
        let thread = std::thread::Builder::new().name("fledge-runs".into()).spawn(move || workers.work());
        drop(thread.map_err(EngineError::NoThread)?); // not joined: `stop` waits for its end
        Ok(Self { engine_state })
    }

    /// Stops the engine. No further run begins, and live runs come to rest within the grace period.
    ///
    /// A resting run has nothing under way that cannot be repeated. Runs that do not come to rest
    /// in time are left as after a kill. The next server continues all of them.
    pub async fn stop(&self, grace: Duration) {
        let _first = self.engine_state.grace.set(grace);
        self.engine_state.stopping.cancel();
        if tokio::time::timeout(grace.saturating_add(LAST), self.engine_state.gone.cancelled()).await.is_err() {
            tracing::warn!("the run thread did not end in time");
        }
    }

    /// Returns true if the thread of runs is working.
    pub fn is_alive(&self) -> bool {
        !self.engine_state.gone.is_cancelled()
    }

    /// Returns the number of runs that this server drives now.
    pub fn running(&self) -> usize {
        self.engine_state.live().len()
    }
}

impl EngineState {
    fn live(&self) -> MutexGuard<'_, BTreeMap<RunId, Arc<LiveRun>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live_run(&self, run: &RunId) -> Option<Arc<LiveRun>> {
        self.live().get(run).cloned()
    }

    /// Reads the store on a blocking thread. The number of concurrent reads is limited, and an
    /// abandoned read counts until it ends.
    async fn stored<T: Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&Store) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, EngineError> {
        let (engine_state, looks) = (Arc::clone(self), Arc::clone(&self.looks).acquire_owned().await); // never closed
        beside(move || {
            let _looks = looks;
            let idle = engine_state.stores.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let store = idle.map_or_else(|| Store::open(&engine_state.state_dir, &engine_state.project), Ok)?;
            let found = look(&store);
            engine_state.stores.lock().unwrap_or_else(PoisonError::into_inner).push(store);
            found
        })
        .await?
    }
}

/// Runs work that may block.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, EngineError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| EngineError::Failed)
}

fn now_ms() -> i64 {
    super::clock::now().as_millisecond()
}

/// The sender of the engine's news.
#[derive(Debug, Clone)]
struct EngineBroadcast(Broadcaster);

impl EngineBroadcast {
    /// Sends news about a run.
    fn run(&self, data: Value) {
        self.0.ring(Topic::Run, data);
    }

    /// Sends news about a question.
    fn confirmation(&self, data: Value) {
        self.0.ring(Topic::Confirmation, data);
    }
}
