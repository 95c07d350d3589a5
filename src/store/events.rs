//! Reading of journals, record by record, each checked against the chain. It takes no lock, so it
//! also works while the run is under way.

use super::chain::{self, ChainLink};
use super::{Store, StoreError};
use crate::id::RunId;
use rusqlite::{OptionalExtension, Row};
use std::fs;

/// The number of records that are read at once.
const PAGE: u32 = 64;

/// A record of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalRecord {
    /// The record's number, from 1.
    pub seq: u64,
    /// Milliseconds since the start of the run.
    pub at_ms: u64,
    /// The kind of the event.
    pub kind: String,
    /// The event, as JSON.
    pub data: String,
}

impl Store {
    /// Returns the records of a run after number `after`, in order. The iterator ends at the last
    /// existing record; later ones need another call.
    ///
    /// # Errors
    /// When the run or the record `after` does not exist, or the database cannot be read.
    pub fn events(&self, run: &RunId, after: u64) -> Result<JournalEvents<'_>, StoreError> {
        let (head, task) = (self.head_of(run)?, self.task(run)?);
        let sql = "SELECT no, safe_seq, safe_hash FROM runs WHERE id = ?1";
        let found = self.db.query_row(sql, [run.as_str()], |row| Ok((row.get(0)?, (unsigned(row, 1)?, row.get(2)?))));
        let (no, safe) = found.map_err(self.fault("read"))?;
        let link =
            || self.db.query_row("SELECT hash FROM events WHERE place = ?1", [place(no, after)], |row| row.get(0));
        let before = match after {
            0 => Some(chain::initial_link(&head, &task)),
            _ => link().optional().map_err(self.fault("read"))?,
        };
        let none = || StoreError::Damaged { run: run.clone(), seq: after, what: "the record is missing".into() };
        let before = before.ok_or_else(none)?;
        Ok(JournalEvents {
            store: self,
            run: run.clone(),
            no,
            seq: after,
            link: before,
            safe,
            page: Vec::new(),
            is_over: false,
        })
    }
}

/// An iterator over the records of a run, in order. It ends after an error.
#[derive(Debug)]
pub struct JournalEvents<'a> {
    store: &'a Store,
    run: RunId,
    no: i64,
    seq: u64,
    link: ChainLink,
    /// The last record that was safe when the iterator was created.
    safe: (u64, ChainLink),
    /// Records that were read and not returned yet, the last record first.
    page: Vec<Raw>,
    is_over: bool,
}

/// A row of the table of records.
#[derive(Debug)]
struct Raw {
    seq: u64,
    at_ms: u64,
    kind: String,
    data: Option<String>,
    blob: Option<ChainLink>,
    link: ChainLink,
}

impl Iterator for JournalEvents<'_> {
    type Item = Result<JournalRecord, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.advance();
        self.is_over = !matches!(next, Ok(Some(_)));
        next.transpose()
    }
}

impl JournalEvents<'_> {
    /// Returns the link of the last returned record, in hexadecimal; before the first record, that
    /// of the run's head and task. A link is the SHA-256 digest of the previous link, number and
    /// time (8 bytes each, big-endian), the SHA-256 digest of the data, and the kind.
    pub fn hash(&self) -> String {
        chain::hex(&self.link)
    }

    fn advance(&mut self) -> Result<Option<JournalRecord>, StoreError> {
        if self.page.is_empty() {
            self.page = self.read().map_err(self.store.fault("read"))?;
        }
        let Some(raw) = self.page.pop() else {
            let is_whole = self.seq >= self.safe.0;
            return if is_whole { Ok(None) } else { Err(self.damage("the record is missing")) };
        };
        if raw.seq != self.seq + 1 {
            return Err(self.damage("the record is missing"));
        }
        let data = match (raw.data, raw.blob) {
            (Some(data), _) => data,
            (None, Some(blob)) => self.blob(&blob)?,
            (None, None) => return Err(self.damage("the record has no data")),
        };
        let link = chain::next(&self.link, raw.seq, raw.at_ms, &raw.kind, &chain::of(&data));
        if link != raw.link || (raw.seq == self.safe.0 && link != self.safe.1) {
            return Err(self.damage("the record was changed"));
        }
        (self.seq, self.link) = (raw.seq, link);
        Ok(Some(JournalRecord { seq: raw.seq, at_ms: raw.at_ms, kind: raw.kind, data }))
    }

    fn read(&self) -> rusqlite::Result<Vec<Raw>> {
        let sql = "SELECT place & 4294967295, at, kind, data, blob, hash FROM events WHERE place > ?1 AND place <= ?2 \
             ORDER BY place LIMIT ?3";
        let raw = |row: &Row<'_>| {
            let (kind, data, blob, link) = (row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?);
            Ok(Raw { seq: unsigned(row, 0)?, at_ms: unsigned(row, 1)?, kind, data, blob, link })
        };
        let mut statement = self.store.db.prepare_cached(sql)?;
        let page = statement.query_map((place(self.no, self.seq), place(self.no, u64::MAX), PAGE), raw)?;
        let mut page = page.collect::<rusqlite::Result<Vec<_>>>()?;
        page.reverse();
        Ok(page)
    }

    fn blob(&self, digest: &ChainLink) -> Result<String, StoreError> {
        let path = self.store.folder(&self.run).blobs().join(chain::hex(digest));
        fs::read_to_string(&path)
            .map_err(|source| self.damage(&format!("cannot read its data in {}: {source}", path.display())))
    }

    /// Returns an error about the next record.
    fn damage(&self, what: &str) -> StoreError {
        StoreError::Damaged { run: self.run.clone(), seq: self.seq + 1, what: what.into() }
    }

    /// Returns the number and the link of the last returned record.
    pub(super) fn end(&self) -> (u64, ChainLink) {
        (self.seq, self.link)
    }
}

/// Returns the number of a run in the database.
pub(super) fn number_of(store: &Store, run: &RunId) -> Result<i64, StoreError> {
    let no = store.db.query_row("SELECT no FROM runs WHERE id = ?1", [run.as_str()], |row| row.get(0)).optional();
    no.map_err(store.fault("read"))?.ok_or_else(|| StoreError::Unknown { name: run.to_string() })
}

/// Returns the key of a record in its table: the number of its run in the upper half, its own
/// number in the lower half. So the records of a run are adjacent and in order. Numbers that are
/// too large get the last key, which only one row can have.
pub(super) fn place(no: i64, seq: u64) -> i64 {
    (no.min(i64::from(i32::MAX)) << 32) | i64::from(u32::try_from(seq).unwrap_or(u32::MAX))
}

/// Converts a number for SQLite, which has only signed numbers. Real values are far below the
/// limit.
pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Reads a number that is negative only if the database is damaged.
pub(super) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}
