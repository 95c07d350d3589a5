//! Replay: folds the journal of a run again and checks that the machine asks for the same actions.

use super::fold::{FoldedJournal, ReplayDifference};
use super::read::{fold_record, readable};
use super::record;
use crate::driver::ResumeError;
use crate::id::RunId;
use crate::store::{Store, StoredRunState};
use serde::Serialize;

/// The result of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplayResult {
    /// The id of the run.
    pub run: RunId,
    /// The number of records in its journal.
    pub records: u64,
    /// The first difference. `None` if none exists.
    pub difference: Option<ReplayDifference>,
}

/// Folds the journal of a run and compares the actions after each record, and the outcome at the
/// end.
///
/// # Errors
/// [`ResumeError`] if the run does not exist, or its journal is damaged or cannot be understood.
pub fn replay(store: &Store, run: &RunId) -> Result<ReplayResult, ResumeError> {
    let row = store.run(run)?;
    readable(&row.head)?;
    let mut folded = FoldedJournal::default();
    let mut last = (0, String::new());
    for record in store.events(run, 0)? {
        let record = record?;
        fold_record(&mut folded, run, &record)?;
        last = (record.seq, record.kind);
    }
    let mut difference = folded.difference.take();
    if let (StoredRunState::Ended(then), None) = (row.state, &difference) {
        let now = folded.run.result().map(|result| record::outcome(&result, then.ended_at_ms));
        if now.as_ref() != Some(&then) {
            let now = now.map_or_else(|| "the run has not ended".into(), |now| format!("{now:?}"));
            difference = Some(ReplayDifference { seq: last.0, event: last.1, then: format!("{then:?}"), now });
        }
    }
    Ok(ReplayResult { run: run.clone(), records: last.0, difference })
}
