//! The journal of a run as its agents write to it: the run itself and its sub-agents, each record in the order in which it came.

use super::lineage::kind_of;
use super::record::{RESTED, Rested};
use crate::id::CallId;
use crate::store::{Journal, Outcome, StoreError};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The hand of one agent at the journal.
#[derive(Debug, Clone)]
pub(super) struct Pen {
    journal: Arc<Mutex<Journal>>,
    /// The path of the sub-agent whose hand it is.
    of: Option<String>,
}

impl From<Journal> for Pen {
    /// The run's own.
    fn from(journal: Journal) -> Self {
        Self { journal: Arc::new(Mutex::new(journal)), of: None }
    }
}

impl Pen {
    /// That of the sub-agent of this path.
    pub(super) fn of(&self, path: String) -> Self {
        Self { journal: Arc::clone(&self.journal), of: Some(path) }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// When it cannot be written, or an earlier record of anybody could not be.
    pub(super) fn append(&self, at_ms: u64, kind: &str, data: &str) -> Result<(), StoreError> {
        match &self.of {
            None => self.journal().append(at_ms, kind, data),
            Some(path) => self.journal().append(at_ms, &kind_of(path, kind), data),
        }
    }

    /// Says that the run rests, and which calls were never sent, where there are any.
    ///
    /// # Errors
    /// As those of [`Pen::append`].
    pub(super) fn rest(&self, at_ms: u64, unsent: &BTreeSet<CallId>) -> Result<(), StoreError> {
        if unsent.is_empty() {
            return Ok(());
        }
        self.append(at_ms, RESTED, &serde_json::to_string(&Rested::new(unsent)).unwrap_or_default())?;
        self.sync()
    }

    /// Makes everything that was added so far safe, whoever did.
    ///
    /// # Errors
    /// As those of [`Pen::append`].
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        self.journal().sync()
    }

    /// Writes down how the run ended.
    ///
    /// # Errors
    /// As those of [`Pen::append`].
    pub(super) fn finish(&self, outcome: &Outcome) -> Result<(), StoreError> {
        self.journal().finish(outcome)
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
