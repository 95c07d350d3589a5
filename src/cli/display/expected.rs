//! The expected times of the steps of a gate, from the newest report that has them.

use crate::store::{RunListFilter, Store, StoredRunState, read_text};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The largest report to read, in bytes.
const LARGEST: usize = 4 * 1024 * 1024;
/// Runs to look at.
const RUNS: u32 = 5;

/// The part of a report with the times.
#[derive(Deserialize)]
struct Report {
    attempts: Vec<Attempt>,
}

#[derive(Deserialize)]
struct Attempt {
    verdict: Verdict,
}

#[derive(Deserialize)]
struct Verdict {
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    lane: String,
    step: String,
    tries: u32,
    duration_ms: u64,
}

/// Returns the milliseconds that each step took when it last ran, by `lane/step`. Empty on any
/// error: the times are optional.
pub(in crate::cli) fn expected(store: &Store) -> BTreeMap<String, u64> {
    let rows = store.runs(&RunListFilter { limit: RUNS, ..RunListFilter::default() }).unwrap_or_default();
    let ended = rows.iter().filter(|row| matches!(row.state, StoredRunState::Ended(_)));
    let times = |text: String| {
        let report: Report = serde_json::from_str(&text).ok()?;
        let steps = report.attempts.into_iter().flat_map(|attempt| attempt.verdict.steps);
        let ran = steps.filter(|step| step.tries > 0);
        let times: BTreeMap<_, _> =
            ran.map(|step| (format!("{}/{}", step.lane, step.step), step.duration_ms)).collect();
        (!times.is_empty()).then_some(times)
    };
    let read = |row| read_text(&store.folder(row).report(), LARGEST).ok()?;
    ended.filter_map(|row| read(&row.head.id)).find_map(times).unwrap_or_default()
}
