//! What a run may recall from earlier ones, and what it leaves for later ones: cleaned and masked on the way in, in a block on the way
//! out. One door to the memory of a project for tools, planning and reporting.

use super::mask::Mask;
use super::notes::{self, Notes};
use crate::id::RunId;
use crate::process::visible;
use crate::store::{Memory, Store, StoreError};
use std::path::PathBuf;

/// A search shows this many times the bytes that a first message has for memories.
const SEARCHED: usize = 2;

/// The memory of one project.
#[derive(Debug, Clone)]
pub struct Shelf {
    /// Where states are kept.
    pub state_dir: PathBuf,
    /// The project, as a canonical path.
    pub workspace: PathBuf,
    /// The run that comes here, if it is one.
    pub run: Option<RunId>,
    /// How long an ephemeral memory lives, in milliseconds.
    pub ephemeral_ttl_ms: u64,
    /// Bytes of memories in a first message.
    pub recall_limit: usize,
    /// What nothing that is kept has in it.
    pub mask: Mask,
    /// Tells the time of day, in milliseconds since 1970.
    pub now_ms: fn() -> i64,
}

impl Shelf {
    /// What a first message says about a text. Makes nothing.
    ///
    /// # Errors
    /// When what is kept cannot be read.
    pub fn recall(&self, about: &str) -> Result<Option<Notes>, StoreError> {
        self.recall_within(about, self.recall_limit)
    }

    /// Answers a search of the model, which has more room than a first message.
    ///
    /// # Errors
    /// When what is kept cannot be read.
    pub fn search(&self, about: &str) -> Result<Option<Notes>, StoreError> {
        self.recall_within(about, self.recall_limit.saturating_mul(SEARCHED))
    }

    fn recall_within(&self, about: &str, limit: usize) -> Result<Option<Notes>, StoreError> {
        let Some(store) = Store::existing(&self.state_dir, &self.workspace)? else { return Ok(None) };
        Ok(notes::block(store.recall(about, (self.now_ms)())?, limit))
    }

    /// A text as it would be kept.
    pub fn fit(&self, text: &str) -> String {
        // Before and after: what is made visible may be a secret only then, or no longer.
        self.mask.masked(visible(&self.mask.masked(text)).trim())
    }

    /// Keeps a text, and gives the start of its id.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, text: &str, is_ephemeral: bool) -> Result<String, StoreError> {
        let memory = Memory::fact(self.fit(text), self.run.clone(), (self.now_ms)());
        self.put(if is_ephemeral { memory.ephemeral(self.ephemeral_ttl_ms) } else { memory })
    }

    /// Keeps a note of how a run of a task ended, for a while. Replaces the older note of this task with the same outcome, and of this run.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_of_task(&self, task: &str, outcome: &str, run: &RunId, text: &str) -> Result<String, StoreError> {
        let memory = Memory::of_task(task, outcome, run.clone(), self.fit(text), (self.now_ms)());
        self.put(memory.ephemeral(self.ephemeral_ttl_ms))
    }

    fn put(&self, memory: Memory) -> Result<String, StoreError> {
        let store = Store::open(&self.state_dir, &self.workspace)?;
        store.remember(&memory)?;
        store.short_memory(&memory.id)
    }
}
