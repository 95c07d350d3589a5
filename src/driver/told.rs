//! What was told of a run, from its journal: every event that is kept, with the number that it was told with. Told live or read here, it is
//! the same; only its time is that of the record, which is a little before. What was told in pieces comes whole.

use super::bus::{EVENT_SCHEMA_VERSION, EventRecord};
use super::fold::{Folded, Said};
use super::record::{RESUMED, Resumed};
use super::resume::{ResumeFault, readable};
use crate::id::RunId;
use crate::store::{Events, Record, Store};
use jiff::Timestamp;
use std::collections::VecDeque;

/// What was told of a run with numbers behind `after`, up to the newest record that its journal has now.
///
/// # Errors
/// When there is no such run, or it was begun by a newer fledge.
pub fn told<'s>(store: &'s Store, run: &RunId, after: u64) -> Result<Told<'s>, ResumeFault> {
    let head = store.run(run)?.head;
    readable(&head)?;
    let records = store.events(run, 0)?;
    let (folded, ready) = (Folded::default(), VecDeque::new());
    Ok(Told { run: run.clone(), after, records, folded, zero_ms: head.started_at_ms, ready, last: 0, is_over: false })
}

/// The events, in their order; see [`told`]. After an error there is nothing more.
#[derive(Debug)]
pub struct Told<'s> {
    run: RunId,
    after: u64,
    records: Events<'s>,
    folded: Folded,
    /// The time of day at which the run's clock would have begun, in milliseconds since 1970: no time passes while nobody drives it.
    zero_ms: i64,
    ready: VecDeque<EventRecord>,
    last: u64,
    is_over: bool,
}

impl Iterator for Told<'_> {
    type Item = Result<EventRecord, ResumeFault>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && !self.is_over {
            let read = self.records.next()?.map_err(ResumeFault::from).and_then(|record| self.read(&record));
            if let Err(fault) = read {
                self.is_over = true;
                return Some(Err(fault));
            }
        }
        self.ready.pop_front().map(Ok)
    }
}

impl<'s> Told<'s> {
    /// Goes on with what the journal has got since, once everything before was read.
    ///
    /// # Errors
    /// When the journal cannot be read.
    #[cfg(feature = "cli")]
    pub(crate) fn read_on(&mut self, store: &'s Store) -> Result<(), ResumeFault> {
        self.records = store.events(&self.run, self.last)?;
        Ok(())
    }

    /// The number of the last record that was read.
    pub fn read_so_far(&self) -> u64 {
        self.last
    }

    fn read(&mut self, record: &Record) -> Result<(), ResumeFault> {
        let since_zero = i64::try_from(record.at_ms).unwrap_or(i64::MAX);
        let unclear = |source| ResumeFault::Unclear { run: self.run.clone(), seq: record.seq, source };
        if record.kind == RESUMED {
            let resumed: Resumed = serde_json::from_str(&record.data).map_err(unclear)?;
            if let Ok(at) = resumed.at.parse::<Timestamp>() {
                self.zero_ms = at.as_millisecond().saturating_sub(since_zero);
            }
        }
        let unclear = |source| ResumeFault::Unclear { run: self.run.clone(), seq: record.seq, source };
        let at = Timestamp::from_millisecond(self.zero_ms.saturating_add(since_zero)).unwrap_or(Timestamp::UNIX_EPOCH);
        let after = self.after;
        self.last = record.seq;
        let said = self.folded.take(record).map_err(unclear)?;
        self.ready.extend(said.into_iter().filter(|said| said.seq > after).map(|Said { seq, from, of, event }| {
            EventRecord {
                schema_version: EVENT_SCHEMA_VERSION,
                run: self.run.clone(),
                seq,
                from,
                job: None,
                of,
                at: format!("{at:.3}"),
                is_kept: from.is_none(),
                event,
            }
        }));
        Ok(())
    }
}

#[cfg(test)]
#[path = "told_tests.rs"]
mod tests;
