//! Reading journals: record by record, each held against the chain. Also while the run is under way: nothing is locked meanwhile.

use super::chain::{self, Link};
use super::{Store, StoreError};
use crate::id::RunId;
use rusqlite::{OptionalExtension, Row};
use std::fs;

/// Records that are read at once.
const PAGE: u32 = 64;

/// One record of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its number, from 1.
    pub seq: u64,
    /// Milliseconds since the start of the run.
    pub at_ms: u64,
    /// What kind of event it is.
    pub kind: String,
    /// The event, as JSON.
    pub data: String,
}

impl Store {
    /// The records of a run that come after number `after`, in order. Ends at the last one that is there; what comes later is asked
    /// for anew.
    ///
    /// # Errors
    /// When there is no such run or record, or the database cannot be read.
    pub fn events(&self, run: &RunId, after: u64) -> Result<Events<'_>, StoreError> {
        let (head, task) = (self.head_of(run)?, self.task(run)?);
        let sql = "SELECT no, safe_seq, safe_hash FROM runs WHERE id = ?1";
        let found = self.db.query_row(sql, [run.as_str()], |row| Ok((row.get(0)?, (unsigned(row, 1)?, row.get(2)?))));
        let (no, safe) = found.map_err(self.fault("read"))?;
        let link =
            || self.db.query_row("SELECT hash FROM events WHERE place = ?1", [place(no, after)], |row| row.get(0));
        let before = match after {
            0 => Some(chain::first(&head, &task)),
            _ => link().optional().map_err(self.fault("read"))?,
        };
        let none = || StoreError::Damaged { run: run.clone(), seq: after, what: "it is not there".into() };
        let before = before.ok_or_else(none)?;
        Ok(Events {
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

/// The records of a run, in order. After an error there is nothing more.
#[derive(Debug)]
pub struct Events<'a> {
    store: &'a Store,
    run: RunId,
    no: i64,
    seq: u64,
    link: Link,
    /// The last record that was safe when this was made.
    safe: (u64, Link),
    /// What was read and not given out yet, the last record first.
    page: Vec<Raw>,
    is_over: bool,
}

/// A record as it is in the database.
#[derive(Debug)]
struct Raw {
    seq: u64,
    at_ms: u64,
    kind: String,
    data: Option<String>,
    blob: Option<Link>,
    link: Link,
}

impl Iterator for Events<'_> {
    type Item = Result<Record, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.advance();
        self.is_over = !matches!(next, Ok(Some(_)));
        next.transpose()
    }
}

impl Events<'_> {
    /// The link of the record that was given out last, in hexadecimal; before the first one, that of the run's head and task. The
    /// digest over the link before, number and time (8 bytes each, big-endian), the SHA-256 digest of the data, and the kind.
    pub fn hash(&self) -> String {
        chain::hex(&self.link)
    }

    fn advance(&mut self) -> Result<Option<Record>, StoreError> {
        if self.page.is_empty() {
            self.page = self.read().map_err(self.store.fault("read"))?;
        }
        let Some(raw) = self.page.pop() else {
            let is_whole = self.seq >= self.safe.0;
            return if is_whole { Ok(None) } else { Err(self.damage("it is gone")) };
        };
        if raw.seq != self.seq + 1 {
            return Err(self.damage("it is gone"));
        }
        let data = match (raw.data, raw.blob) {
            (Some(data), _) => data,
            (None, Some(blob)) => self.blob(&blob)?,
            (None, None) => return Err(self.damage("it has no data")),
        };
        let link = chain::next(&self.link, raw.seq, raw.at_ms, &raw.kind, &chain::of(&data));
        if link != raw.link || (raw.seq == self.safe.0 && link != self.safe.1) {
            return Err(self.damage("it is not what was written"));
        }
        (self.seq, self.link) = (raw.seq, link);
        Ok(Some(Record { seq: raw.seq, at_ms: raw.at_ms, kind: raw.kind, data }))
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

    fn blob(&self, digest: &Link) -> Result<String, StoreError> {
        let path = self.store.folder(&self.run).blobs().join(chain::hex(digest));
        fs::read_to_string(&path)
            .map_err(|source| self.damage(&format!("its data in {} cannot be read: {source}", path.display())))
    }

    /// Of the record that should come next.
    fn damage(&self, what: &str) -> StoreError {
        StoreError::Damaged { run: self.run.clone(), seq: self.seq + 1, what: what.into() }
    }

    /// The last record that was given out, and its link.
    pub(super) fn end(&self) -> (u64, Link) {
        (self.seq, self.link)
    }
}

/// The number of a run in the database.
pub(super) fn number_of(store: &Store, run: &RunId) -> Result<i64, StoreError> {
    let no = store.db.query_row("SELECT no FROM runs WHERE id = ?1", [run.as_str()], |row| row.get(0)).optional();
    no.map_err(store.fault("read"))?.ok_or_else(|| StoreError::Unknown { name: run.to_string() })
}

/// Where a record is in its table: the number of its run in the upper half, its own in the lower one, so that those of a run are side by
/// side in their order. Numbers that are too large have the last place, where only one row can be.
pub(super) fn place(no: i64, seq: u64) -> i64 {
    (no.min(i64::from(i32::MAX)) << 32) | i64::from(u32::try_from(seq).unwrap_or(u32::MAX))
}

/// SQLite has signed numbers alone; ours are far below their limit.
pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number that is never negative unless it is damaged.
pub(super) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}
