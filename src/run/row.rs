//! The row of a run in a list of runs, as plain data. The store keeps these rows.

use crate::duration::milliseconds;
use crate::id::RunId;
use crate::limits::SILENCE;
use serde::{Deserialize, Serialize};

/// The properties of a run when it begins. The hash chain of its journal begins with them, so a
/// field that is added later must be left out of the JSON if it is empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunHead {
    /// The run's id.
    pub id: RunId,
    /// A name that was given to the run from outside. It is unique in the project.
    pub run_key: Option<String>,
    /// The run that this one continues.
    pub parent: Option<RunId>,
    /// The task's title.
    pub title: String,
    /// The origin of the task's text: a path, or `-`.
    pub source: String,
    /// The SHA-256 digest of the task's text, in hexadecimal.
    pub task_digest: String,
    /// The workspace.
    pub workspace: String,
    /// The models, in order of preference.
    pub models: Vec<String>,
    /// The version of fledge.
    pub fledge: String,
    /// The version of the format of the journal's records.
    pub journal_version: u32,
    /// The start of the run, in milliseconds since 1970.
    pub started_at_ms: i64,
}

/// The outcome of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunOutcome {
    /// The end of the run, in milliseconds since 1970.
    pub ended_at_ms: i64,
    /// The name of the reason.
    pub reason: String,
    /// The exit code.
    pub exit_code: u8,
    /// True if the work counts as verified.
    pub verified: bool,
    /// True if a stop was requested.
    pub cancelled: bool,
    /// The number of times that the run reached the gate.
    pub attempts: u64,
    /// The number of completed model calls.
    pub turns: u64,
    /// Tokens read by models, cached ones included.
    pub tokens_in: u64,
    /// Tokens written by models.
    pub tokens_out: u64,
    /// Tokens that came from a provider's cache.
    pub tokens_cached: u64,
    /// The price in millionths of a US dollar, if known.
    pub cost_micros: Option<u64>,
    /// A summary of the work, in one line.
    pub summary: String,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// The properties of the run from its beginning.
    pub head: RunHead,
    /// The state of the run.
    pub state: StoredRunState,
    /// The other machine that drives the run; `None` for a run of this machine.
    pub machine: Option<String>,
    /// The branch of the run's worktree, if it has one.
    pub branch: Option<String>,
    /// The time at which that machine last reported this run, in milliseconds since 1970.
    pub heard_at_ms: Option<i64>,
    /// True if that machine has been silent for so long that the run may be over. Only
    /// [`RunRow::seen_at`] sets this.
    pub is_lost: bool,
}

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredRunState {
    /// The run is being driven.
    Running {
        /// A description of the process or machine that drives it.
        holder: String,
    },
    /// The run did not end, and no process drives it.
    Interrupted,
    /// The run has ended.
    Ended(RunOutcome),
}

impl RunRow {
    /// Returns the row with `is_lost` as of this time, in milliseconds since 1970.
    #[must_use]
    pub fn seen_at(self, now_ms: i64) -> Self {
        let is_open = matches!(self.state, StoredRunState::Running { .. });
        let silent_ms = self.heard_at_ms.map_or(0, |received| now_ms.saturating_sub(received));
        Self { is_lost: is_open && u64::try_from(silent_ms).unwrap_or(0) > milliseconds(SILENCE), ..self }
    }
}
