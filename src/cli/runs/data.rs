//! Texts and numbers about the row of a run.

use crate::chat::Usage;
use crate::cli::paint::Tone;
use crate::cli::resume::LARGEST_REPORT;
use crate::store::{RunOutcome, RunRow, Store, StoredRunState, read_text};
use serde::Deserialize;

pub(super) use crate::report::ago;
pub(super) use crate::report::runs::{RUNS_SCHEMA_VERSION, outcome, rfc3339, row};

/// Returns the tone of this outcome.
pub(super) fn tone(row: &RunRow) -> Tone {
    match &row.state {
        StoredRunState::Running { .. } if row.is_lost => Tone::Warn,
        StoredRunState::Running { .. } => Tone::Strong,
        StoredRunState::Interrupted => Tone::Warn,
        StoredRunState::Ended(end) if end.cancelled || end.reason == "skipped" => Tone::Warn,
        StoredRunState::Ended(RunOutcome { exit_code: 0, .. }) => Tone::Good,
        StoredRunState::Ended(_) => Tone::Bad,
    }
}

/// Reads facts beyond those of its row from the report of an ended run.
pub(super) fn reported(store: &Store, row: &RunRow) -> Option<ReportSummary> {
    let StoredRunState::Ended(_) = row.state else { return None };
    let text = read_text(&store.folder(&row.head.id).report(), LARGEST_REPORT).ok()??;
    serde_json::from_str(&text).ok()
}

/// A part of a report.
#[derive(Debug, Deserialize)]
pub(super) struct ReportSummary {
    /// The time of work in milliseconds, without pauses in which no process drove the run.
    pub(super) duration_ms: u64,
    usage: ReportedUsage,
}

#[derive(Debug, Deserialize)]
struct ReportedUsage {
    total: Usage,
}

impl ReportSummary {
    /// Returns true if some of the tokens, and so the cost, are an estimate.
    pub(super) fn is_estimate(&self) -> bool {
        self.usage.total.estimated_tokens > 0
    }
}

/// Formats a time in milliseconds since 1970 in the local time zone, to the second.
pub(super) fn local_time(ms: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(ms).map(|time| time.to_zoned(jiff::tz::TimeZone::system()));
    time.map(|time| time.strftime("%Y-%m-%d %H:%M:%S").to_string()).unwrap_or_default()
}

/// Returns the time from a run's start to its end, or to now, in milliseconds. Returns `None` for
/// an interrupted run.
pub(super) fn duration_ms(row: &RunRow, now_ms: i64) -> Option<u64> {
    let end = match &row.state {
        StoredRunState::Running { .. } => now_ms,
        StoredRunState::Interrupted => return None,
        StoredRunState::Ended(end) => end.ended_at_ms,
    };
    u64::try_from(end.saturating_sub(row.head.started_at_ms)).ok()
}
