//! The state shared by all parts of the server: the project, its store, the authentication, the
//! news.

use super::broadcast::{Broadcaster, Topic};
use super::engine::Engine;
use super::entrance::LoginGuard;
use super::http::{HttpProblem, ServerMetrics};
use crate::scheduler::{DELIVERIES, HealthChange, Scheduler, SchedulerUpdate};
use crate::store::{Store, StoreError};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The limit of concurrent requests that access the store or files.
const DESKS: usize = 4;
/// The limit of large files that are sent concurrently.
const LARGE_AT_ONCE: usize = 4;

/// The parts of the shared state.
#[derive(Debug)]
pub struct AppParts {
    /// The directory of fledge's state.
    pub state_dir: PathBuf,
    /// The served folder, as a canonical path.
    pub workspace: PathBuf,
    /// The project that owns the runs. It differs from the served folder if that is the worktree of
    /// a run.
    pub project: PathBuf,
    /// The authentication.
    pub entrance: LoginGuard,
    /// The time limit for the head of a request, and again for its body. It is also the limit of an
    /// idle connection.
    pub request_within: Duration,
    /// The sender of news.
    pub broadcaster: Broadcaster,
    /// The engine that drives runs.
    pub engine: Engine,
}

/// The state shared by all requests.
#[derive(Debug)]
pub struct AppState {
    pub(in crate::serve) state_dir: PathBuf,
    /// The served folder, as a canonical path.
    pub(in crate::serve) workspace: PathBuf,
    pub(in crate::serve) project: PathBuf,
    pub(in crate::serve) entrance: LoginGuard,
    pub(in crate::serve) request_within: Duration,
    pub(in crate::serve) broadcaster: Broadcaster,
    pub(in crate::serve) engine: Engine,
    pub(in crate::serve) figures: Arc<ServerMetrics>,
    /// Cancelled when the server stops; it ends all streams.
    pub(in crate::serve) stopping: CancellationToken,
    scheduler: OnceLock<Scheduler>,
    desks: Arc<Semaphore>,
    /// One permit for each large file that is being sent.
    pub(in crate::serve) large: Arc<Semaphore>,
    /// Open stores that are not in use.
    stores: Mutex<Vec<Store>>,
    /// The last reported change of each monitor.
    reported: Mutex<BTreeMap<String, HealthChange>>,
}

impl AppState {
    /// Creates the shared state; it starts no activity.
    pub fn new(parts: AppParts) -> Arc<Self> {
        let AppParts { state_dir, workspace, project, entrance, request_within, broadcaster, engine } = parts;
        Arc::new(Self {
            state_dir,
            workspace,
            project,
            entrance,
            request_within,
            broadcaster,
            engine,
            figures: Arc::default(),
            stopping: CancellationToken::new(),
            scheduler: OnceLock::new(),
            desks: Arc::new(Semaphore::new(DESKS)),
            large: Arc::new(Semaphore::new(LARGE_AT_ONCE)),
            stores: Mutex::default(),
            reported: Mutex::default(),
        })
    }

    /// Returns the name of the project, which is the name of its folder.
    pub(in crate::serve) fn name(&self) -> String {
        let folder = self.workspace.file_name().unwrap_or(self.workspace.as_os_str());
        folder.to_string_lossy().into_owned()
    }

    /// Returns the authentication.
    pub fn entrance(&self) -> &LoginGuard {
        &self.entrance
    }

    /// Sets the scheduler of the project's jobs. Only the first call has an effect.
    pub fn employ(&self, scheduler: Scheduler) {
        let _the_first_one_stays = self.scheduler.set(scheduler);
    }

    /// Returns the scheduler of the project's jobs.
    ///
    /// # Errors
    /// If the server has no scheduler.
    pub(in crate::serve) fn scheduler(&self) -> Result<&Scheduler, HttpProblem> {
        self.scheduler.get().ok_or_else(|| HttpProblem::unavailable("this server has no scheduler"))
    }

    /// Sends news about a job or a monitor to all listeners.
    pub fn publish(&self, tidings: SchedulerUpdate) {
        match tidings {
            SchedulerUpdate::Job { name, state } => {
                self.broadcaster.ring(Topic::Job, json!({ "name": name, "state": state }))
            }
            SchedulerUpdate::Monitor(change) => {
                {
                    let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
                    if reported.insert(change.monitor.clone(), change.clone()).as_ref() == Some(&change) {
                        return; // this change was already reported
                    }
                }
                self.broadcaster.ring(Topic::Monitor, json!(change));
                // Deliveries start at once and do not wait for the next minute.
                let _is_told_later = self.scheduler.get().map(|scheduler| scheduler.ask(DELIVERIES));
            }
        }
    }

    /// Reads or changes the store on a blocking thread.
    ///
    /// # Errors
    /// The store's error, as a problem.
    pub(in crate::serve) async fn stored<T: Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&mut Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, HttpProblem> {
        let app_state = Arc::clone(self);
        let looked = self.beside(move || {
            let idle = app_state.stores.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut store = idle.map_or_else(|| Store::open(&app_state.state_dir, &app_state.project), Ok)?;
            let found = look(&mut store);
            app_state.stores.lock().unwrap_or_else(PoisonError::into_inner).push(store);
            found
        });
        Ok(looked.await??)
    }

    /// Runs work that may block on another thread. The number of concurrent calls is limited, and
    /// abandoned work counts until it ends.
    ///
    /// # Errors
    /// If the work panicked.
    pub(in crate::serve) async fn beside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, HttpProblem> {
        let desk = Arc::clone(&self.desks).acquire_owned().await; // never closed
        let work = move || {
            let _desk = desk;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(|error| HttpProblem::internal(error.to_string()))
    }
}
