//! Filters for lists of runs: by state and by text.

use super::{RunRow, StoredRunState};
use crate::id::RunId;

/// The columns in which text is searched.
const TEXTS: [&str; 7] = ["title", "source", "models", "id", "run_key", "reason", "branch"];

/// A filter for a list of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunListFilter {
    /// The maximum number of runs to return.
    pub limit: u32,
    /// Only runs that began before this one, to get the next page.
    pub before: Option<RunId>,
    /// Only runs with this property.
    pub only: Option<RunProperty>,
    /// Only runs with this text in their title, task, model, id, key, reason or branch, in either
    /// case of ASCII letters.
    pub text: Option<String>,
    /// The current time in milliseconds since 1970; 0 means that no run counts as lost.
    pub now_ms: i64,
}

/// A property by which runs are filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunProperty {
    /// The run ended with an exit code other than 0.
    Failed,
    /// The run ended, with any outcome.
    Ended,
    /// The run ended and its work counts as verified. Skipped runs are excluded.
    Verified,
    /// The run did not end, and no process drives it.
    Interrupted,
    /// The run is being driven.
    Running,
    /// Another machine drives the run and has been silent for a long time.
    Lost,
}

impl RunProperty {
    /// Returns the part of the condition that SQL can check.
    pub(super) fn condition(self) -> &'static str {
        match self {
            Self::Ended => "ended_at IS NOT NULL",
            Self::Failed => "ended_at IS NOT NULL AND exit_code <> 0",
            Self::Verified => "ended_at IS NOT NULL AND verified AND reason <> 'skipped'",
            Self::Interrupted | Self::Running | Self::Lost => "ended_at IS NULL",
        }
    }

    pub(super) fn is(self, row: &RunRow) -> bool {
        match self {
            Self::Ended | Self::Failed | Self::Verified => matches!(row.state, StoredRunState::Ended(_)),
            Self::Interrupted => row.state == StoredRunState::Interrupted,
            Self::Running => matches!(row.state, StoredRunState::Running { .. }) && !row.is_lost,
            Self::Lost => row.is_lost,
        }
    }
}

impl Default for RunListFilter {
    fn default() -> Self {
        Self { limit: 50, before: None, only: None, text: None, now_ms: 0 }
    }
}

impl RunListFilter {
    /// Returns the SQL condition that a row contains the text in the second parameter.
    pub(super) fn has_text() -> String {
        TEXTS.map(|text| format!("{text} LIKE '%' || ?2 || '%' ESCAPE '\\'")).join(" OR ")
    }
}
