//! The database of a queue. Over all processes, one transaction writes at a time. It reads the time
//! while no other process can write, so the recorded times follow the order of events.

use super::super::schema::Form;
use super::super::{StoreError, schema};
use super::clock::Clock;
use crate::fail_point::reach;
use crate::queue::BuryReason;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};

/// The form of a queue's database. The application id is "fldq".
pub(super) const FORM: Form<'static> = Form { application: 0x666c_6471, tables: &[TABLES] };

/// `no` is the order of submission. `token` is the number of the job's latest lease, and `fence`
/// has the highest number of all. No number is used twice, even if jobs are forgotten and submitted
/// again. `changed` is the time at which the job entered its state. Times are those of `Clock`.
const TABLES: &str = "
    CREATE TABLE jobs (
        no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, batch TEXT NOT NULL, pool TEXT NOT NULL, priority INTEGER NOT NULL,
        payload TEXT NOT NULL, deliveries INTEGER NOT NULL, changed INTEGER NOT NULL, not_before INTEGER NOT NULL,
        state TEXT NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'dead', 'cancelled')),
        attempt INTEGER NOT NULL DEFAULT 0, token INTEGER NOT NULL DEFAULT 0, worker TEXT, lease_until INTEGER,
        is_cancelling INTEGER NOT NULL DEFAULT 0,
        reason TEXT CHECK (reason IN ('vanished', 'failed', 'refused')), why TEXT,
        CHECK ((state = 'running') = (lease_until IS NOT NULL))
    ) STRICT;
    CREATE INDEX jobs_waiting ON jobs (pool, priority, no) WHERE state = 'queued';
    CREATE INDEX jobs_running ON jobs (pool, lease_until) WHERE state = 'running';
    CREATE INDEX jobs_of_batch ON jobs (batch, no);
    CREATE TABLE results (
        job INTEGER PRIMARY KEY, token INTEGER NOT NULL, attempt INTEGER NOT NULL, worker TEXT NOT NULL, manifest TEXT NOT NULL
    ) STRICT;
    CREATE TABLE pools (name TEXT PRIMARY KEY, most INTEGER, paused_until INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
    CREATE TABLE fence (last INTEGER NOT NULL) STRICT;
    INSERT INTO fence VALUES (0);
    CREATE TABLE clocks (place TEXT PRIMARY KEY, ahead INTEGER NOT NULL) STRICT, WITHOUT ROWID;";
/// Ends every lease whose time is over.
const REAP: &str = "UPDATE jobs SET lease_until = NULL, is_cancelling = 0, changed = ?1, not_before = ?1,
        state = CASE WHEN is_cancelling THEN 'cancelled' WHEN attempt >= deliveries THEN 'dead' ELSE 'queued' END,
        reason = 'vanished', why = NULL
    WHERE state = 'running' AND lease_until <= ?1";
const IS_LATE: &str = "SELECT EXISTS (SELECT 1 FROM jobs WHERE state = 'running' AND lease_until <= ?1)";

/// The failures that a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Safe {
    /// Survives the death of any process. Survives a crash of the machine only if a later commit
    /// does; lost work is done again.
    FromKill,
    /// Survives a power failure, too.
    FromPower,
}

/// A connection to the database of a queue.
#[derive(Debug)]
pub(super) struct QueueTables {
    pub(super) db: Connection,
    path: PathBuf,
    clock: Clock,
    /// The current setting of the connection; `None` if a failure left it unknown.
    safe: Cell<Option<Safe>>,
    /// True after an I/O error: later writes may not survive a power failure.
    is_broken: Cell<bool>,
}

impl QueueTables {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let db = schema::open_form(path, &FORM)?;
        let fail = |error| StoreError::database("open", path, error);
        // Moves the log into the database often, since a queue is small and writes few pages twice.
        db.execute_batch("PRAGMA wal_autocheckpoint = 1000").map_err(fail)?;
        let clock = Clock::read(&db).map_err(fail)?;
        Ok(Self { db, path: path.to_owned(), clock, safe: Cell::new(None), is_broken: Cell::new(false) })
    }

    /// Returns the current time, for reads.
    pub(super) fn now(&self) -> i64 {
        self.clock.now()
    }

    /// Runs one transaction and passes it the time. `work` is the name of its fail points: `begun`,
    /// `written` before the commit, `done` after it.
    pub(super) fn write<T>(
        &self,
        work: &str,
        safe: Safe,
        change: impl FnOnce(&Transaction<'_>, i64) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let fail_point = |stage| reach(work, stage).map_err(|error| StoreError::new("write", &self.path, error));
        if self.is_broken.get() {
            let why = io::Error::other("an earlier write failed, so later writes may not be safe");
            return Err(StoreError::new("write", &self.path, why));
        }
        fail_point("begun")?;
        let fail = |error: rusqlite::Error| {
            self.is_broken.set(error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure));
            StoreError::database("write", &self.path, error)
        };
        self.make(safe).map_err(fail)?;
        let transaction = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate).map_err(fail)?;
        let done = change(&transaction, self.clock.now()).map_err(fail)?;
        fail_point("written")?;
        transaction.commit().map_err(fail)?;
        fail_point("done")?;
        Ok(done)
    }

    /// Reads a consistent state, after ending the leases whose time is over.
    pub(super) fn read<T>(&self, look: impl FnOnce(&Connection, i64) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let fail = |error| StoreError::database("read", &self.path, error);
        if self.is_late().map_err(fail)? {
            self.write("queue reap", Safe::FromKill, reap)?;
        }
        let transaction = self.db.unchecked_transaction().map_err(fail)?;
        look(&transaction, self.now()).map_err(fail)
    }

    /// Returns true if there is a lease whose time is over.
    pub(super) fn is_late(&self) -> rusqlite::Result<bool> {
        self.db.prepare_cached(IS_LATE)?.query_row([self.now()], |row| row.get(0))
    }

    pub(super) fn fault(&self, error: rusqlite::Error) -> StoreError {
        StoreError::database("read", &self.path, error)
    }

    #[cfg(test)]
    pub(super) fn break_off(&self) {
        self.is_broken.set(true);
    }

    fn make(&self, safe: Safe) -> rusqlite::Result<()> {
        if self.safe.get() == Some(safe) {
            return Ok(());
        }
        self.safe.set(None);
        self.db.execute_batch(match safe {
            Safe::FromKill => "PRAGMA synchronous = NORMAL",
            Safe::FromPower => "PRAGMA synchronous = FULL",
        })?;
        self.safe.set(Some(safe));
        Ok(())
    }
}

/// Ends every lease whose time is over. The job waits again, is dead after its last delivery, or
/// ends if it was cancelled.
pub(super) fn reap(transaction: &Transaction<'_>, now: i64) -> rusqlite::Result<()> {
    transaction.prepare_cached(REAP)?.execute([now]).map(drop)
}

/// Returns the values for the columns `reason` and `why`.
pub(super) fn columns(reason: &BuryReason) -> (&'static str, Option<&str>) {
    match reason {
        BuryReason::Vanished => ("vanished", None),
        BuryReason::Failed(why) => ("failed", Some(why)),
        BuryReason::Refused(why) => ("refused", Some(why)),
    }
}

/// Returns the reason in the columns `reason` and `why`.
pub(super) fn reason(reason: Option<&str>, why: Option<String>) -> Option<BuryReason> {
    let why = why.unwrap_or_default();
    match reason? {
        "failed" => Some(BuryReason::Failed(why)),
        "refused" => Some(BuryReason::Refused(why)),
        _ => Some(BuryReason::Vanished),
    }
}
