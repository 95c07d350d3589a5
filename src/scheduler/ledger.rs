//! What is kept, for who must not wait: each look is made on a thread that may block, one after the other.

use super::JobError;
use crate::store::{Store, StoreError};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// What is kept of a project. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Ledger {
    store: Arc<Mutex<Store>>,
}

impl Ledger {
    /// Opens it. May block.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn open(state_dir: &Path, project: &Path) -> Result<Self, StoreError> {
        Ok(Self { store: Arc::new(Mutex::new(Store::open(state_dir, project)?)) })
    }

    /// Looks into it, or changes it.
    ///
    /// # Errors
    /// What the store says; that may be another one soon.
    pub async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, JobError> {
        let store = Arc::clone(&self.store);
        let done = tokio::task::spawn_blocking(move || work(&store.lock().unwrap_or_else(PoisonError::into_inner)));
        done.await.map_err(|error| JobError::retryable(&error))?.map_err(|error| JobError::retryable(&error))
    }
}
