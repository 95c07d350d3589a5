//! What all that serves shares: the project, what is kept of it, who gets in, the bell.

use super::bell::{Bell, Topic};
use super::engine::Engine;
use super::entrance::Entrance;
use super::http::{Figures, Problem};
use crate::scheduler::{Change, DELIVERIES, Scheduler, Tidings};
use crate::store::{Store, StoreError};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Requests that look into what is kept, or into files, at once.
const DESKS: usize = 4;
/// Large files that are given out at once.
const LARGE_AT_ONCE: usize = 4;

/// What a house is made of.
#[derive(Debug)]
pub struct Parts {
    /// Where fledge keeps its state.
    pub state_dir: PathBuf,
    /// The folder that is served, a canonical path.
    pub workspace: PathBuf,
    /// Whose runs these are: another folder where that one is in the worktree of a run.
    pub project: PathBuf,
    /// Who gets in.
    pub entrance: Entrance,
    /// How long the head of a request may take, and then its body; an idle connection waits no longer either.
    pub request_within: Duration,
    /// Where news are told.
    pub bell: Bell,
    /// What drives runs.
    pub engine: Engine,
}

/// All that requests share.
#[derive(Debug)]
pub struct House {
    pub(in crate::serve) state_dir: PathBuf,
    /// The folder that is served, a canonical path.
    pub(in crate::serve) workspace: PathBuf,
    pub(in crate::serve) project: PathBuf,
    pub(in crate::serve) entrance: Entrance,
    pub(in crate::serve) request_within: Duration,
    pub(in crate::serve) bell: Bell,
    pub(in crate::serve) engine: Engine,
    pub(in crate::serve) figures: Arc<Figures>,
    /// Cancelled when the server stops: streams end then.
    pub(in crate::serve) stopping: CancellationToken,
    scheduler: OnceLock<Scheduler>,
    desks: Arc<Semaphore>,
    /// A place for each large file that is given out.
    pub(in crate::serve) large: Arc<Semaphore>,
    /// Opened ones that nobody uses now.
    stores: Mutex<Vec<Store>>,
    /// What was told last of each monitor.
    told: Mutex<BTreeMap<String, Change>>,
}

impl House {
    /// One of these parts, in which nothing happens yet.
    pub fn new(parts: Parts) -> Arc<Self> {
        let Parts { state_dir, workspace, project, entrance, request_within, bell, engine } = parts;
        Arc::new(Self {
            state_dir,
            workspace,
            project,
            entrance,
            request_within,
            bell,
            engine,
            figures: Arc::default(),
            stopping: CancellationToken::new(),
            scheduler: OnceLock::new(),
            desks: Arc::new(Semaphore::new(DESKS)),
            large: Arc::new(Semaphore::new(LARGE_AT_ONCE)),
            stores: Mutex::default(),
            told: Mutex::default(),
        })
    }

    /// The name of the project: that of its folder.
    pub(in crate::serve) fn name(&self) -> String {
        let folder = self.workspace.file_name().unwrap_or(self.workspace.as_os_str());
        folder.to_string_lossy().into_owned()
    }

    /// Who gets in.
    pub fn entrance(&self) -> &Entrance {
        &self.entrance
    }

    /// Has this scheduler tend the project's jobs: the first one that is given.
    pub fn employ(&self, scheduler: Scheduler) {
        let _the_first_one_stays = self.scheduler.set(scheduler);
    }

    /// Who tends the project's jobs.
    ///
    /// # Errors
    /// When nobody does.
    pub(in crate::serve) fn scheduler(&self) -> Result<&Scheduler, Problem> {
        self.scheduler.get().ok_or_else(|| Problem::unavailable("no jobs are tended here"))
    }

    /// Tells all who listen what a job or a monitor has come to.
    pub fn tell(&self, tidings: Tidings) {
        match tidings {
            Tidings::Job { name, state } => self.bell.ring(Topic::Job, json!({ "name": name, "state": state })),
            Tidings::Monitor(change) => {
                {
                    let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
                    if told.insert(change.monitor.clone(), change.clone()).as_ref() == Some(&change) {
                        return; // by who heard it first
                    }
                }
                self.bell.ring(Topic::Monitor, json!(change));
                // Whoever else is to hear of it need not wait for the minute.
                let _is_told_later = self.scheduler.get().map(|scheduler| scheduler.ask(DELIVERIES));
            }
        }
    }

    /// Looks into what is kept, or changes it, beside the requests of others.
    ///
    /// # Errors
    /// What the store says, as a problem.
    pub(in crate::serve) async fn stored<T: Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&mut Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Problem> {
        let house = Arc::clone(self);
        let looked = self.beside(move || {
            let idle = house.stores.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut store = idle.map_or_else(|| Store::open(&house.state_dir, &house.project), Ok)?;
            let found = look(&mut store);
            house.stores.lock().unwrap_or_else(PoisonError::into_inner).push(store);
            found
        });
        Ok(looked.await??)
    }

    /// Does what may block beside the requests of others, a few at once: also where nobody waits for it any more.
    ///
    /// # Errors
    /// When it panicked.
    pub(in crate::serve) async fn beside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let desk = Arc::clone(&self.desks).acquire_owned().await; // it is never closed
        let work = move || {
            let _desk = desk;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(|error| Problem::internal(error.to_string()))
    }
}
