//! Replay: the journal of a run is folded once more, and the machine must ask for what it asked for then.

use super::fold::Folded;
use super::record::{self, Asked};
use super::resume::{ResumeFault, readable, take};
use crate::id::RunId;
use crate::store::{RunState, Store};
use serde::Serialize;

/// What became of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// The run.
    pub run: RunId,
    /// How many records its journal has.
    pub records: u64,
    /// The first difference; `None`: there is none.
    pub difference: Option<Difference>,
}

/// Where the machine of today does something else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The number of the record after which it does.
    pub seq: u64,
    /// The kind of its event.
    pub event: String,
    /// What was asked for then; for the last record, how the run ended.
    pub then: String,
    /// What is asked for now.
    pub now: String,
}

impl Difference {
    pub(super) fn new(after: &(u64, String), then: Asked, now: &Asked) -> Self {
        let of = |asked: &Asked| format!("{} ({})", asked.names.join(", "), asked.digest);
        Self { seq: after.0, event: after.1.clone(), then: of(&then), now: of(now) }
    }
}

/// Folds the journal of a run, and compares: after each record what was asked for, at the end how it ended.
///
/// # Errors
/// When there is no such run, or its journal is damaged or cannot be understood.
pub fn replay(store: &Store, run: &RunId) -> Result<Replayed, ResumeFault> {
    let row = store.run(run)?;
    readable(&row.head)?;
    let mut folded = Folded::default();
    let mut last = (0, String::new());
    for record in store.events(run, 0)? {
        let record = record?;
        take(&mut folded, run, &record)?;
        last = (record.seq, record.kind);
    }
    let mut difference = folded.difference.take();
    if let (RunState::Ended(then), None) = (row.state, &difference) {
        let now = folded.run.result().map(|result| record::outcome(&result, then.ended_at_ms));
        if now.as_ref() != Some(&then) {
            let now = now.map_or_else(|| "it has not ended".into(), |now| format!("{now:?}"));
            difference = Some(Difference { seq: last.0, event: last.1, then: format!("{then:?}"), now });
        }
    }
    Ok(Replayed { run: run.clone(), records: last.0, difference })
}
