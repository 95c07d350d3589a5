//! What drives runs: wishes are written down before they are answered, taken up one after the other as there is room, and driven side by side
//! on a thread of their own, so that a busy run holds no request up. Whatever was under way when a server ended goes on with the next one:
//! nothing is lost, and nothing is done twice.
//!
//! ```text
//! wish     what is asked for, and who makes a task of it     desk     taken in, cancelled, answered
//! crew     the thread: which wish is next, and its lease      work     one run, from its wish to its end
//! live     a run under way, as others see it: log, asking     follow   what is told of a run, for who follows it
//! look     the list of all     glance   one of them     left     what it has left
//! orders   what the scheduler wants
//! ```

mod asking;
mod crew;
mod desk;
mod follow;
mod glance;
mod left;
mod live;
mod log;
mod look;
mod orders;
mod ring;
mod wish;
mod work;

pub use asking::Pending;
pub use desk::{Accepted, Cancelled, NotTaken};
pub use follow::{Follower, Message};
pub(in crate::serve) use left::LARGEST;
pub use log::{Cursor, NoCursor, Told};
pub use look::{Listing, Page, Which};
pub use wish::{Asked, Choices, Flaw, Overrides, ParamChoice, Refusal, Source, TaskChoice, TaskOf, Unfit, Wish};

use super::bell::Bell;
use crate::id::RunId;
use crate::queue::{NameFault, PoolName, QueueFault};
use crate::store::{SqliteQueue, Store, StoreError, project_dir};
use crew::Crew;
use live::Live;
use ring::Ring;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

/// The queue of a project, beside its database.
const QUEUE: &str = "queue.db";
/// Where the wishes of a server wait.
const POOL: &str = "serve";
/// How long what is over is remembered by the queue, and so for how long a key stands for one wish alone.
const AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Journals that are folded at once for who follows, and all that look into what is kept.
const READERS: usize = 2;
const LOOKS: usize = 6;
/// What ending takes beside the grace: the thread has to see that it is over.
const LAST: Duration = Duration::from_secs(5);

/// What an engine works with.
#[derive(Debug)]
pub struct Terms {
    /// Where fledge keeps its state.
    pub state_dir: PathBuf,
    /// Whose runs these are.
    pub project: PathBuf,
    /// Runs at once.
    pub most: usize,
    /// Who makes tasks of wishes.
    pub source: Arc<dyn Source>,
    /// Where its news are told.
    pub bell: Bell,
}

/// What was wrong.
#[derive(Debug, thiserror::Error)]
pub enum EngineFault {
    /// What is kept cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The queue cannot be read or written.
    #[error(transparent)]
    Queue(#[from] QueueFault),
    /// A name that no queue takes.
    #[error(transparent)]
    Name(#[from] NameFault),
    /// The journal of a run cannot be read.
    #[error(transparent)]
    Journal(#[from] crate::driver::ResumeFault),
    /// What a run has left of its files cannot be looked at.
    #[error("what the run has changed cannot be told")]
    Trees(#[source] crate::workspace::trees::TreesFault),
    /// What is written in the queue is not what this program wrote.
    #[error("the wish for run {run} cannot be read")]
    Unclear {
        /// Which one.
        run: RunId,
        /// Why.
        source: serde_json::Error,
    },
    /// The system gives no thread.
    #[error("cannot start the thread of runs")]
    NoThread(#[source] io::Error),
    /// Work of our own panicked.
    #[error("the engine failed inside")]
    Failed,
}

/// The runs of a server. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Engine {
    shop: Arc<Shop>,
}

/// What the thread of runs and all others share.
#[derive(Debug)]
struct Shop {
    state_dir: PathBuf,
    project: PathBuf,
    queue: SqliteQueue,
    pool: PoolName,
    source: Arc<dyn Source>,
    ring: Ring,
    live: Mutex<BTreeMap<RunId, Arc<Live>>>,
    /// Told when a run begins to be driven here.
    begun: watch::Sender<()>,
    /// Opened stores that nobody uses now.
    stores: Mutex<Vec<Store>>,
    readers: Arc<Semaphore>,
    looks: Arc<Semaphore>,
    /// Cancelled when no further run begins, and those under way are to rest.
    stopping: CancellationToken,
    grace: OnceLock<Duration>,
    /// Cancelled when the thread is over.
    gone: CancellationToken,
}

impl Engine {
    /// Opens the project's queue and starts the thread: what an earlier server has left goes on. Only one process may have the project so. It
    /// blocks, for a short time.
    ///
    /// # Errors
    /// When the queue cannot be opened, or there is no thread.
    pub fn start(terms: Terms) -> Result<Self, EngineFault> {
        let Terms { state_dir, project, most, source, bell } = terms;
        let queue = SqliteQueue::open(&project_dir(&state_dir, &project).join(QUEUE))?;
        let shop = Arc::new(Shop {
            state_dir,
            project,
            queue,
            pool: PoolName::parse(POOL)?,
            source,
            ring: Ring(bell),
            live: Mutex::default(),
            begun: watch::channel(()).0,
            stores: Mutex::default(),
            readers: Arc::new(Semaphore::new(READERS)),
            looks: Arc::new(Semaphore::new(LOOKS)),
            stopping: CancellationToken::new(),
            grace: OnceLock::new(),
            gone: CancellationToken::new(),
        });
        let crew = Crew::new(Arc::clone(&shop), most.max(1))?;
        let thread = std::thread::Builder::new().name("fledge-runs".into()).spawn(move || crew.work());
        drop(thread.map_err(EngineFault::NoThread)?); // it ends by itself: `stop` waits for that
        Ok(Self { shop })
    }

    /// Has no further run begin, and those under way come to rest within the grace: each is left where nothing is under way that cannot be
    /// done again. Those that do not get there are left as a kill would leave them. The next server goes on with all of them.
    pub async fn stop(&self, grace: Duration) {
        let _first = self.shop.grace.set(grace);
        self.shop.stopping.cancel();
        if tokio::time::timeout(grace.saturating_add(LAST), self.shop.gone.cancelled()).await.is_err() {
            tracing::warn!("the thread of runs did not end in time");
        }
    }

    /// Whether the thread of runs is at work.
    pub fn is_alive(&self) -> bool {
        !self.shop.gone.is_cancelled()
    }

    /// How many runs are driven here now.
    pub fn running(&self) -> usize {
        self.shop.live().len()
    }
}

impl Shop {
    fn live(&self) -> MutexGuard<'_, BTreeMap<RunId, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live_run(&self, run: &RunId) -> Option<Arc<Live>> {
        self.live().get(run).cloned()
    }

    /// Looks into what is kept, where that may block: so many at once, also where nobody waits for it any more.
    async fn stored<T: Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&Store) -> Result<T, EngineFault> + Send + 'static,
    ) -> Result<T, EngineFault> {
        let (shop, looks) = (Arc::clone(self), Arc::clone(&self.looks).acquire_owned().await); // it is never closed
        beside(move || {
            let _looks = looks;
            let idle = shop.stores.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let store = idle.map_or_else(|| Store::open(&shop.state_dir, &shop.project), Ok)?;
            let found = look(&store);
            shop.stores.lock().unwrap_or_else(PoisonError::into_inner).push(store);
            found
        })
        .await?
    }
}

/// Does what may block.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, EngineFault> {
    tokio::task::spawn_blocking(work).await.map_err(|_| EngineFault::Failed)
}

fn now_ms() -> i64 {
    super::clock::now().as_millisecond()
}
