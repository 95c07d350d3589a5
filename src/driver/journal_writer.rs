//! The journal of a run as its agents write to it: the run itself and its sub-agents, with records
//! in the order in which they arrive.

use super::lineage::kind_of;
use super::record::{RESTED, RestedRecord};
use crate::id::CallId;
use crate::store::{Journal, RunOutcome, StoreError};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Writes the journal for one agent.
#[derive(Debug, Clone)]
pub(super) struct JournalWriter {
    journal: Arc<Mutex<Journal>>,
    /// The path of the sub-agent that writes. `None` for the run itself.
    of: Option<String>,
}

impl From<Journal> for JournalWriter {
    /// Creates the writer of the run itself.
    fn from(journal: Journal) -> Self {
        Self { journal: Arc::new(Mutex::new(journal)), of: None }
    }
}

impl JournalWriter {
    /// Returns the writer of the sub-agent with this path.
    pub(super) fn for_agent(&self, path: String) -> Self {
        Self { journal: Arc::clone(&self.journal), of: Some(path) }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// [`StoreError`] if the record cannot be written, or an earlier record of any agent could not
    /// be.
    pub(super) fn append(&self, at_ms: u64, kind: &str, data: &str) -> Result<(), StoreError> {
        match &self.of {
            None => self.journal().append(at_ms, kind, data),
            Some(path) => self.journal().append(at_ms, &kind_of(path, kind), data),
        }
    }

    /// Records that the run rests, with the calls that were not sent. Writes nothing if there are
    /// none.
    ///
    /// # Errors
    /// As for [`JournalWriter::append`].
    pub(super) fn rest(&self, at_ms: u64, unsent: &BTreeSet<CallId>) -> Result<(), StoreError> {
        if unsent.is_empty() {
            return Ok(());
        }
        self.append(at_ms, RESTED, &serde_json::to_string(&RestedRecord::new(unsent)).unwrap_or_default())?;
        self.sync()
    }

    /// Syncs all records so far, of all agents.
    ///
    /// # Errors
    /// As for [`JournalWriter::append`].
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        self.journal().sync()
    }

    /// Records how the run ended.
    ///
    /// # Errors
    /// As for [`JournalWriter::append`].
    pub(super) fn finish(&self, outcome: &RunOutcome) -> Result<(), StoreError> {
        self.journal().finish(outcome)
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
