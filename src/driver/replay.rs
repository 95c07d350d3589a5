//! Replay: folds the journal of a run again and checks that the machine asks for the same actions.

use super::fold::FoldedJournal;
use super::record::{self, RequestedActions};
use super::resume::{ResumeError, fold_record, readable};
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

/// The place where today's machine acts differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplayDifference {
    /// The number of the record after which it differs.
    pub seq: u64,
    /// The kind of that record.
    pub event: String,
    /// The actions in the journal. For the last record, the outcome of the run.
    pub then: String,
    /// The actions or the outcome now.
    pub now: String,
}

impl ReplayDifference {
    pub(super) fn new(after: &(u64, String), then: RequestedActions, now: &RequestedActions) -> Self {
        let of = |asked: &RequestedActions| format!("{} ({})", asked.names.join(", "), asked.digest);
        Self { seq: after.0, event: after.1.clone(), then: of(&then), now: of(now) }
    }
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
