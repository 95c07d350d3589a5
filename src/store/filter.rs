//! The choice of runs that are listed: by their ends, and by the texts of their rows.

use super::runs::{RunRow, RunState};
use crate::id::RunId;

/// The texts of a row that are searched.
const TEXTS: [&str; 7] = ["title", "source", "models", "id", "run_key", "reason", "branch"];

/// The choice of runs that are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// At most so many.
    pub limit: u32,
    /// Only those that began before this one: for the next page.
    pub before: Option<RunId>,
    /// Only those that are so.
    pub only: Option<Only>,
    /// Only those with this text in their title, task, model, id, key, reason or branch, in either case of ASCII letters.
    pub text: Option<String>,
    /// The time at which they are looked at, in milliseconds since 1970; 0: no run counts as lost.
    pub now_ms: i64,
}

/// Properties by which runs are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// They ended with another exit code than 0.
    Failed,
    /// They ended, in whatever way.
    Ended,
    /// They ended, and the work counts.
    Verified,
    /// They did not end, and nobody drives them.
    Interrupted,
    /// Somebody drives them.
    Running,
    /// Another machine drives them, and was not heard for a long time.
    Lost,
}

impl Only {
    /// As far as the database can say it.
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
            Self::Ended | Self::Failed | Self::Verified => matches!(row.state, RunState::Ended(_)),
            Self::Interrupted => row.state == RunState::Interrupted,
            Self::Running => matches!(row.state, RunState::Running { .. }) && !row.is_lost,
            Self::Lost => row.is_lost,
        }
    }
}

impl Default for Filter {
    fn default() -> Self {
        Self { limit: 50, before: None, only: None, text: None, now_ms: 0 }
    }
}

impl Filter {
    /// The condition of SQL by which a row has the text of the second parameter.
    pub(super) fn has_text() -> String {
        TEXTS.map(|text| format!("{text} LIKE '%' || ?2 || '%' ESCAPE '\\'")).join(" OR ")
    }
}
