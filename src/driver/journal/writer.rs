//! The journal of a run as its agents write to it: the run itself and its sub-agents, with records
//! in the order in which they arrive.

use super::lineage::kind_of;
use super::record::{NOT_SENT, NotSentRecord, SENT, SentRecord};
use crate::id::CallId;
use crate::store::{Journal, RunOutcome, StoreError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Writes the journal for one agent.
#[derive(Debug, Clone)]
pub(in crate::driver) struct JournalWriter {
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
    pub(in crate::driver) fn for_agent(&self, path: String) -> Self {
        Self { journal: Arc::clone(&self.journal), of: Some(path) }
    }

    /// Returns a writer that works only while this one or another full one exists.
    pub(in crate::driver) fn downgrade(&self) -> WeakJournalWriter {
        WeakJournalWriter { journal: Arc::downgrade(&self.journal), of: self.of.clone() }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// [`StoreError`] if the record cannot be written, or an earlier record of any agent could not
    /// be.
    pub(in crate::driver) fn append(&self, at_ms: u64, kind: &str, data: &str) -> Result<(), StoreError> {
        match &self.of {
            None => self.journal().append(at_ms, kind, data),
            Some(path) => self.journal().append(at_ms, &kind_of(path, kind), data),
        }
    }

    /// Records that the request of a model call goes out, and syncs the journal.
    ///
    /// # Errors
    /// As for [`JournalWriter::append`]. The request must not go out then.
    pub(in crate::driver) fn sent(&self, at_ms: u64, call: CallId) -> Result<(), StoreError> {
        self.append(at_ms, SENT, &serde_json::to_string(&SentRecord::new(call)).unwrap_or_default())?;
        self.sync()
    }

    /// Records that the recorded request of a model call does not go out. Needs no sync: if the
    /// machine loses the record, the call is charged.
    ///
    /// # Errors
    /// As for [`JournalWriter::append`].
    pub(in crate::driver) fn not_sent(&self, at_ms: u64, call: CallId) -> Result<(), StoreError> {
        self.append(at_ms, NOT_SENT, &serde_json::to_string(&NotSentRecord::new(call)).unwrap_or_default())
    }

    /// Syncs all records so far, of all agents.
    ///
    /// # Errors
    /// As for [`JournalWriter::append`].
    pub(in crate::driver) fn sync(&self) -> Result<(), StoreError> {
        self.journal().sync()
    }

    /// Records how the run ended.
    ///
    /// # Errors
    /// As for [`JournalWriter::append`].
    pub(in crate::driver) fn finish(&self, outcome: &RunOutcome) -> Result<(), StoreError> {
        self.journal().finish(outcome)
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the journal for the effect of an agent. It does not keep the journal open, so that
/// another process can resume the run once its drive is gone.
#[derive(Debug, Clone)]
pub(in crate::driver) struct WeakJournalWriter {
    journal: Weak<Mutex<Journal>>,
    of: Option<String>,
}

impl WeakJournalWriter {
    /// Returns the full writer, or `None` if the drive of the run is gone.
    pub(in crate::driver) fn upgrade(&self) -> Option<JournalWriter> {
        self.journal.upgrade().map(|journal| JournalWriter { journal, of: self.of.clone() })
    }
}
