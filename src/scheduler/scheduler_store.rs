//! Access to the store from async code. Each access runs on a blocking thread, one at a time.

use super::JobError;
use crate::store::{Store, StoreError};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The store of a project. Clones share it.
#[derive(Debug, Clone)]
pub struct SchedulerStore {
    store: Arc<Mutex<Store>>,
}

impl SchedulerStore {
    /// Opens the store. May block.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub fn open(state_dir: &Path, project: &Path) -> Result<Self, StoreError> {
        Ok(Self { store: Arc::new(Mutex::new(Store::open(state_dir, project)?)) })
    }

    /// Runs `work` on the store.
    ///
    /// # Errors
    /// [`JobError::Retryable`] with the error of the store.
    pub async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, JobError> {
        let store = Arc::clone(&self.store);
        let done = tokio::task::spawn_blocking(move || work(&store.lock().unwrap_or_else(PoisonError::into_inner)));
        done.await.map_err(|error| JobError::retryable(&error))?.map_err(|error| JobError::retryable(&error))
    }
}
