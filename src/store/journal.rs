//! The journal of a run: append-only, in the order in which the run machine sees the events.
//!
//! [`Journal::append`] is the only way to add a record. An appended record is still there if this
//! process is killed. After [`Journal::sync`], it is still there if the computer crashes. After a
//! failed write or sync, every later `append`, `sync` and `finish` returns [`StoreError::Broken`].

use super::chain::{self as hash_chain, ChainLink};
use super::events::{number, number_of, place as place_of};
use super::files::{make_private, sync_folder, tidy_beside, write_whole};
use super::lock::RunLock;
use super::prune::{in_files, in_rows};
use super::{JournalRecord, RunDir, RunHead, RunOutcome, Store, StoreError, TaskCopy, schema};
use crate::fail_point;
use crate::id::RunId;
use rusqlite::Connection;

/// Data with more bytes than this is kept in a separate file.
pub(super) const LARGEST_IN_ROW: usize = 64 * 1024;
/// The number of pages in the write-ahead log from which a sync moves them into the database: 4 MB.
const FULL_LOG: i64 = 1000;

/// Settings after a sync: commits are fast again, and no page is kept in memory. A sync precedes
/// each request to a model, and of hundreds of runs in a process nearly all wait for a model.
const AFTER_SYNC: &str = "PRAGMA synchronous = NORMAL; PRAGMA shrink_memory";

/// Limits the pages that a journal keeps between two syncs. SQLite allocates their memory at once,
/// and each of hundreds of runs keeps its pages while its model thinks. Appending to the end of two
/// trees needs no more.
const FEW_PAGES: &str = "PRAGMA cache_size = 8; PRAGMA shrink_memory";

/// An open journal: the right to write to a run, which one process has at a time.
#[derive(Debug)]
pub struct Journal {
    store: Store,
    run: RunId,
    /// The number of the run's row in the database.
    row_number: i64,
    /// The number of the last record.
    seq: u64,
    link: ChainLink,
    /// The bytes that the records take in the database.
    bytes: u64,
    /// The last record that is safe from a crash of the computer; `None` while even the run's row
    /// is not.
    safe: Option<u64>,
    is_broken: bool,
    _lock: RunLock,
}

impl Journal {
    /// Creates the journal and the folder of a new run.
    ///
    /// # Errors
    /// If a run with this id or with the `run_key` of `head` exists, if another process holds the
    /// lock of the run, or if the journal cannot be written.
    pub fn create(store: &Store, head: &RunHead, task: &TaskCopy) -> Result<Self, StoreError> {
        let folder = store.folder(&head.id);
        let is_new = !folder.path().exists();
        let fail_point = |stage| {
            fail_point::reach("journal create", stage)
                .map_err(|e| StoreError::new("create the journal in", folder.path(), e))
        };
        fail_point("begun")?;
        folder.create_folders()?;
        let lock = RunLock::take(&folder, &head.id)?;
        fail_point("locked")?;
        let store = store.open_connection()?;
        let link = hash_chain::initial_link(head, task);
        let inserted = store.insert_run(head, task, &link);
        if inserted.is_err() && is_new {
            let _ignored = std::fs::remove_dir_all(folder.path()); // a leftover folder without a run does no harm
        }
        let row_number = inserted?;
        fail_point("done")?;
        let run = head.id.clone();
        Ok(Self { store, run, row_number, seq: 0, link, bytes: 0, safe: None, is_broken: false, _lock: lock })
    }

    /// Reopens the journal of a run. Passes the records to `each` in order, and keeps only one in
    /// memory. If the run had ended, its end is removed.
    ///
    /// # Errors
    /// When the run does not exist, belongs to another machine, is executed by another process,
    /// or has a damaged journal. The first error of `each` is returned, too.
    pub fn reopen<E: From<StoreError>>(
        store: &Store,
        run: &RunId,
        mut each: impl FnMut(JournalRecord) -> Result<(), E>,
    ) -> Result<Self, E> {
        let row_number = number_of(store, run)?;
        if let Some(machine) = store.machine_of(run)? {
            return Err(StoreError::Elsewhere { run: run.clone(), machine }.into());
        }
        let folder = store.folder(run);
        let fail_point = |stage| {
            fail_point::reach("journal reopen", stage)
                .map_err(|e| StoreError::new("reopen the journal in", folder.path(), e))
        };
        fail_point("begun")?;
        folder.create_folders()?;
        let lock = RunLock::take(&folder, run)?;
        [folder.report(), folder.blobs().join("any"), folder.outputs().join("any")]
            .iter()
            .for_each(|path| tidy_beside(path));
        let store = store.open_connection()?;
        let mut events = store.events(run, 0)?;
        let mut bytes = 0;
        for record in events.by_ref() {
            let record = record?;
            bytes += in_rows(record.data.len());
            each(record)?;
        }
        let (seq, link) = events.end();
        store.take_back_end(row_number, bytes)?;
        fail_point("done")?;
        let run = run.clone();
        Ok(Self { store, run, row_number, seq, link, bytes, safe: None, is_broken: false, _lock: lock })
    }

    /// Returns the run's folder.
    pub fn folder(&self) -> RunDir {
        self.store.folder(&self.run)
    }

    /// Adds one record: the milliseconds since the start of the run, the kind of the event, and the
    /// event as JSON.
    ///
    /// # Errors
    /// When the record cannot be written, or an earlier write failed.
    pub fn append(&mut self, at_ms: u64, kind: &str, data: &str) -> Result<(), StoreError> {
        self.guard("journal append", |journal| {
            let (seq, digest) = (journal.seq + 1, hash_chain::of(data));
            let link = hash_chain::next(&journal.link, seq, at_ms, kind, &digest);
            let (length, is_large) = (data.len(), data.len() > LARGEST_IN_ROW);
            if is_large {
                write_blob(&journal.folder(), &hash_chain::hex(&digest), data)?;
            }
            let (data, blob) = if is_large { (None, Some(digest)) } else { (Some(data), None) };
            let sql = "INSERT INTO events (place, at, kind, data, blob, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let row = (place_of(journal.row_number, seq), number(at_ms), kind, data, blob, link);
            let added = journal.store.db.prepare_cached(sql).and_then(|mut statement| statement.execute(row));
            added.map_err(journal.store.fault("append to"))?;
            (journal.seq, journal.link) = (seq, link);
            journal.bytes += in_rows(length);
            Ok(())
        })
    }

    /// Makes everything appended so far safe from a crash of the computer.
    ///
    /// # Errors
    /// When the disk reports an error, or an earlier write failed.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.guard("journal sync", |journal| {
            if journal.safe == Some(journal.seq) {
                return Ok(());
            }
            journal.commit_safely(journal.bytes, "", &[])
        })
    }

    /// Writes the outcome of the run, and makes everything safe from a crash of the computer.
    ///
    /// # Errors
    /// The errors of [`Journal::sync`].
    pub fn finish(&mut self, outcome: &RunOutcome) -> Result<(), StoreError> {
        self.guard("journal finish", |journal| {
            let bytes = journal.bytes.saturating_add(in_files(&journal.folder()));
            let RunOutcome { reason, summary, ended_at_ms, cost_micros, .. } = outcome;
            let cost = cost_micros.map(number);
            let counts = [outcome.attempts, outcome.turns, outcome.tokens_in, outcome.tokens_out, outcome.tokens_cached];
            let [attempts, turns, tokens_in, tokens_out, cached] = counts.map(number);
            let more = ", ended_at = ?5, reason = ?6, exit_code = ?7, verified = ?8, cancelled = ?9, attempts = ?10, turns = ?11, \
                 tokens_in = ?12, tokens_out = ?13, tokens_cached = ?14, cost_micros = ?15, summary = ?16";
            journal.commit_safely(
                bytes,
                more,
                rusqlite::params![
                    ended_at_ms, reason, outcome.exit_code, outcome.verified, outcome.cancelled, attempts, turns, tokens_in,
                    tokens_out, cached, cost, summary
                ],
            )?;
            schema::tidy_up_at_last(&journal.store.db, true).map_err(journal.store.fault("sync"))
        })
    }

    /// Commits the last record of the journal, the bytes of the run, and further columns of its
    /// row. This syncs the write-ahead log, and with it all earlier commits.
    fn commit_safely(&mut self, bytes: u64, more: &str, values: &[&dyn rusqlite::ToSql]) -> Result<(), StoreError> {
        let (seq, bytes) = (number(self.seq), number(bytes));
        let sql = format!("UPDATE runs SET safe_seq = ?2, safe_hash = ?3, bytes = ?4{more} WHERE no = ?1");
        let values = [&[&self.row_number as &dyn rusqlite::ToSql, &seq, &self.link, &bytes], values].concat();
        let changed = empty_full_log(&self.store.db)
            .and_then(|()| self.store.db.execute_batch("PRAGMA synchronous = FULL"))
            .and_then(|()| self.store.db.execute(&sql, values.as_slice()))
            .and_then(|changed| self.store.db.execute_batch(AFTER_SYNC).map(|()| changed));
        if changed.map_err(self.store.fault("sync"))? != 1 {
            return Err(StoreError::Unknown { name: self.run.to_string() });
        }
        self.safe = Some(self.seq);
        Ok(())
    }

    fn guard(&mut self, verb: &str, work: impl FnOnce(&mut Self) -> Result<(), StoreError>) -> Result<(), StoreError> {
        if self.is_broken {
            return Err(StoreError::Broken { run: self.run.clone() });
        }
        let path = self.store.path();
        let fail_point = |stage| fail_point::reach(verb, stage).map_err(|error| StoreError::new("write", &path, error));
        let done = fail_point("begun").and_then(|()| work(self)).and_then(|()| fail_point("done"));
        self.is_broken = done.is_err();
        done
    }
}

impl Store {
    /// Opens another connection to the same database.
    fn open_connection(&self) -> Result<Self, StoreError> {
        let db = schema::open(&self.path())?;
        db.execute_batch(FEW_PAGES).map_err(|source| StoreError::database("open", &self.path(), source))?;
        Ok(Self { db, project: self.project.clone() })
    }
}

/// Writes data into a separate file, named by its digest, safe from a crash of the computer.
pub(super) fn write_blob(folder: &RunDir, name: &str, data: &str) -> Result<(), StoreError> {
    let blobs = folder.blobs();
    if !blobs.is_dir() {
        make_private(&blobs)?;
        blobs.ancestors().skip(1).take(3).try_for_each(sync_folder)?; // the run's, that of all runs, the project's
    }
    let path = blobs.join(name);
    if path.exists() { Ok(()) } else { write_whole(&path, data.as_bytes()) }
}

/// Moves a long write-ahead log into the database, so that the next commit restarts the log. This
/// costs syncs, so it happens where the caller waits for a sync anyway, and not while appending.
fn empty_full_log(db: &Connection) -> rusqlite::Result<()> {
    let pages = |sql| db.query_row(sql, [], |row| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)));
    let (written, moved) = pages("PRAGMA wal_checkpoint(NOOP)")?;
    if written >= FULL_LOG && moved < written {
        pages("PRAGMA wal_checkpoint(PASSIVE)")?;
    }
    Ok(())
}
