//! Access to the memory of a project, for tools, planning and reporting. Texts are cleaned and
//! masked before they are stored, and shown only in a block.

use super::mask::SecretMask;
use super::notes::{self, Notes};
use crate::id::RunId;
use crate::process::visible;
use crate::store::{Store, StoreError, StoredMemory};
use std::path::PathBuf;

/// The limit of a search, as a multiple of the limit for memories in a first message.
const SEARCHED: usize = 2;

/// The memory of one project.
#[derive(Debug, Clone)]
pub struct MemoryAccess {
    /// The state directory.
    pub state_dir: PathBuf,
    /// The project, as a canonical path.
    pub workspace: PathBuf,
    /// The run that uses the memory, if it is a run.
    pub run: Option<RunId>,
    /// The lifetime of an ephemeral memory, in milliseconds.
    pub ephemeral_ttl_ms: u64,
    /// The maximum size of memories in a first message, in bytes.
    pub recall_limit: usize,
    /// The secrets that are removed from every stored text.
    pub mask: SecretMask,
    /// Returns the time of day, in milliseconds since 1970.
    pub now_ms: fn() -> i64,
}

impl MemoryAccess {
    /// Returns the memories about a text for a first message. Creates no store.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn recall(&self, about: &str) -> Result<Option<Notes>, StoreError> {
        self.recall_within(about, self.recall_limit)
    }

    /// Answers a search by the model, with a higher limit than a first message.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn search(&self, about: &str) -> Result<Option<Notes>, StoreError> {
        self.recall_within(about, self.recall_limit.saturating_mul(SEARCHED))
    }

    fn recall_within(&self, about: &str, limit: usize) -> Result<Option<Notes>, StoreError> {
        let Some(store) = Store::existing(&self.state_dir, &self.workspace)? else { return Ok(None) };
        Ok(notes::block(store.recall(about, (self.now_ms)())?, limit))
    }

    /// Returns a text in the form in which it would be kept.
    pub fn fit(&self, text: &str) -> String {
        // Mask before and after: making characters visible can create a secret or break one.
        self.mask.masked(visible(&self.mask.masked(text)).trim())
    }

    /// Keeps a text and returns the short form of its id.
    ///
    /// # Errors
    /// [`StoreError`] if the text cannot be written.
    pub fn keep(&self, text: &str, is_ephemeral: bool) -> Result<String, StoreError> {
        let memory = StoredMemory::fact(self.fit(text), self.run.clone(), (self.now_ms)());
        self.put(if is_ephemeral { memory.ephemeral(self.ephemeral_ttl_ms) } else { memory })
    }

    /// Keeps a temporary note about how a run of a task ended. It replaces an older note of this
    /// task with the same outcome, and any note of this run.
    ///
    /// # Errors
    /// [`StoreError`] if the note cannot be written.
    pub fn keep_of_task(&self, task: &str, outcome: &str, run: &RunId, text: &str) -> Result<String, StoreError> {
        let memory = StoredMemory::of_task(task, outcome, run.clone(), self.fit(text), (self.now_ms)());
        self.put(memory.ephemeral(self.ephemeral_ttl_ms))
    }

    fn put(&self, memory: StoredMemory) -> Result<String, StoreError> {
        let store = Store::open(&self.state_dir, &self.workspace)?;
        store.remember(&memory)?;
        store.short_memory(&memory.id)
    }
}
