//! Events of a run from its journal, with the numbers that they had live.
//!
//! They equal the live events, but their time is that of the record, which is slightly earlier.
//! Events that were sent in pieces come whole.

use super::fold::{FoldedJournal, LastRecord};
use super::read::readable;
use super::record::{RESUMED, ResumedRecord};
use crate::driver::{EVENT_SCHEMA_VERSION, EventRecord, ResumeError};
use crate::id::RunId;
use crate::store::{JournalEvents, JournalRecord, Store};
use jiff::Timestamp;
use std::collections::VecDeque;

/// Returns the events of a run with numbers above `after`, up to the newest record of its journal.
///
/// # Errors
/// [`ResumeError`] if the run does not exist or was started by a newer fledge.
pub fn events_after<'s>(store: &'s Store, run: &RunId, after: u64) -> Result<RunEvents<'s>, ResumeError> {
    let head = store.run(run)?.head;
    readable(&head)?;
    let records = store.events(run, 0)?;
    let (folded, ready) = (FoldedJournal::default(), VecDeque::new());
    Ok(RunEvents {
        run: run.clone(),
        after,
        records,
        folded,
        zero_ms: head.started_at_ms,
        ready,
        last: 0,
        is_over: false,
    })
}

/// The events of a run, in order; see [`events_after`]. An error ends them.
#[derive(Debug)]
pub struct RunEvents<'s> {
    run: RunId,
    after: u64,
    records: JournalEvents<'s>,
    folded: FoldedJournal,
    /// The time of day at which the run's clock was at zero, in milliseconds since 1970. A resume
    /// sets it anew, because the clock stops while no process drives the run.
    zero_ms: i64,
    ready: VecDeque<EventRecord>,
    last: u64,
    is_over: bool,
}

impl Iterator for RunEvents<'_> {
    type Item = Result<EventRecord, ResumeError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && !self.is_over {
            let read = self.records.next()?.map_err(ResumeError::from).and_then(|record| self.read(&record));
            if let Err(fault) = read {
                self.is_over = true;
                return Some(Err(fault));
            }
        }
        self.ready.pop_front().map(Ok)
    }
}

impl<'s> RunEvents<'s> {
    /// Continues with records that the journal got since, once all earlier ones were read.
    ///
    /// # Errors
    /// [`ResumeError`] if the journal cannot be read.
    #[cfg(feature = "cli")]
    pub(crate) fn read_on(&mut self, store: &'s Store) -> Result<(), ResumeError> {
        self.records = store.events(&self.run, self.last)?;
        Ok(())
    }

    /// Returns the number of the last record that was read.
    pub fn read_so_far(&self) -> u64 {
        self.last
    }

    fn read(&mut self, record: &JournalRecord) -> Result<(), ResumeError> {
        let since_zero = i64::try_from(record.at_ms).unwrap_or(i64::MAX);
        let unclear = |source| ResumeError::Unclear { run: self.run.clone(), seq: record.seq, source };
        if record.kind == RESUMED {
            let resumed: ResumedRecord = serde_json::from_str(&record.data).map_err(unclear)?;
            if let Ok(at) = resumed.at.parse::<Timestamp>() {
                self.zero_ms = at.as_millisecond().saturating_sub(since_zero);
            }
        }
        let unclear = |source| ResumeError::Unclear { run: self.run.clone(), seq: record.seq, source };
        let at = Timestamp::from_millisecond(self.zero_ms.saturating_add(since_zero)).unwrap_or(Timestamp::UNIX_EPOCH);
        let after = self.after;
        self.last = record.seq;
        let message = self.folded.push(record).map_err(unclear)?;
        self.ready.extend(message.into_iter().filter(|message| message.seq > after).map(
            |LastRecord { seq, from, of, event }| EventRecord {
                schema_version: EVENT_SCHEMA_VERSION,
                run: self.run.clone(),
                seq,
                from,
                job: None,
                of,
                at: format!("{at:.3}"),
                is_kept: from.is_none(),
                event,
            },
        ));
        Ok(())
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
