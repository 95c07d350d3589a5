//! The database of a project: opening, identification and creation.

use super::StoreError;
use super::files::sync_folder;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use rustix::fs::{Access, access};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

/// The name of the database file.
pub(super) const FILE: &str = "fledge.db";
/// The version of every kind of database.
const VERSION: i64 = 1;
/// A kind of database: its application id, and the statements that create its tables.
pub(super) struct Form<'a> {
    pub(super) application: i64,
    pub(super) tables: &'a [&'a str],
}

/// The form of a project's database. The application id is "fldg".
const FORM: Form<'static> = Form { application: 0x666c_6467, tables: &[RUNS, EVENTS, MEMORY, DURATIONS, JOBS, SYNC] };
/// The time that a write waits for those of other processes. Waiting is better than losing a run.
const PATIENCE: Duration = Duration::from_secs(120);
/// The time that an access waits for other processes if its data is dispensable.
const IMPATIENCE: Duration = Duration::from_millis(20);
/// The settings of every connection. Commits are written without a sync, and `Journal::sync`
/// empties the write-ahead log. The limit of 16 MB is for connections that never sync. A process
/// may have hundreds of connections that mostly append, so each keeps few pages in memory.
const CONNECTION: &str =
    "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4096; PRAGMA journal_size_limit = 4194304; PRAGMA cache_size = -256;
    PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF;";

/// `safe_seq` and `safe_hash` are the last record that is safe from a crash of the machine. They
/// distinguish a journal that lost its end from one that is complete. `synced` is the number of
/// records that were sent to a server, where the outcome counts as one more. `bytes` of a run that
/// did not end is the size of its records.
const RUNS: &str = "
    CREATE TABLE runs (
        no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, run_key TEXT UNIQUE, parent TEXT,
        title TEXT NOT NULL, source TEXT NOT NULL, task_digest TEXT NOT NULL, workspace TEXT NOT NULL, models TEXT NOT NULL,
        fledge TEXT NOT NULL, journal_version INTEGER NOT NULL, started_at INTEGER NOT NULL,
        ended_at INTEGER, reason TEXT, exit_code INTEGER, verified INTEGER, cancelled INTEGER, attempts INTEGER, turns INTEGER,
        tokens_in INTEGER, tokens_out INTEGER, tokens_cached INTEGER, cost_micros INTEGER, summary TEXT,
        bytes INTEGER, safe_seq INTEGER NOT NULL, safe_hash BLOB NOT NULL, synced INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE tasks (run INTEGER PRIMARY KEY, text TEXT NOT NULL, settings TEXT NOT NULL) STRICT;";

/// Records by one number, see [`super::events::place`]. Rows of up to a page stay on their page;
/// without this number, rows leave theirs from a quarter of a page on.
const EVENTS: &str = "
    CREATE TABLE events (
        place INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, data TEXT, blob BLOB, hash BLOB NOT NULL,
        CHECK ((data IS NULL) <> (blob IS NULL))
    ) STRICT;";

/// Memories that agents keep from run to run, found by the stems of their words. A memory with an
/// expiry is ephemeral. `task` is the digest of the task whose outcome a memory reports; null if
/// the memory is not a note of how a run ended.
const MEMORY: &str = "
    CREATE TABLE memory (
        no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL, run TEXT, created_at INTEGER NOT NULL,
        expires_at INTEGER, task TEXT
    ) STRICT;
    CREATE INDEX memory_expiry ON memory (expires_at) WHERE expires_at IS NOT NULL;
    CREATE VIRTUAL TABLE memory_words USING fts5 (text, content = 'memory', content_rowid = 'no', tokenize = 'porter unicode61');
    CREATE TRIGGER memory_added AFTER INSERT ON memory BEGIN
        INSERT INTO memory_words (rowid, text) VALUES (new.no, new.text);
    END;
    CREATE TRIGGER memory_removed AFTER DELETE ON memory BEGIN
        INSERT INTO memory_words (memory_words, rowid, text) VALUES ('delete', old.no, old.text);
    END;
    CREATE TRIGGER memory_changed AFTER UPDATE OF text ON memory BEGIN
        INSERT INTO memory_words (memory_words, rowid, text) VALUES ('delete', old.no, old.text);
        INSERT INTO memory_words (rowid, text) VALUES (new.no, new.text);
    END;";

/// Durations of lane steps. `command` is the start of a digest of the step's command, and `run`
/// counts the runs that have added durations.
const DURATIONS: &str = "
    CREATE TABLE durations (
        lane TEXT NOT NULL, step TEXT NOT NULL, command TEXT NOT NULL, ms INTEGER NOT NULL, run INTEGER NOT NULL,
        PRIMARY KEY (lane, step, command)
    ) STRICT, WITHOUT ROWID;";

/// Recurring jobs and monitors. `handled` and `weighed` are the times up to which all due moments
/// are handled. The unique indexes on `due` prevent duplicates even if the clock was set back.
/// `monitor_news` contains the notifications that are still to be delivered.
const JOBS: &str = "
    CREATE TABLE jobs (
        name TEXT PRIMARY KEY, kind TEXT NOT NULL, schedule TEXT NOT NULL, zone TEXT NOT NULL, handled INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE job_runs (
        no INTEGER PRIMARY KEY, job TEXT NOT NULL, due INTEGER, began INTEGER NOT NULL, ended INTEGER, state TEXT NOT NULL,
        tries INTEGER NOT NULL DEFAULT 0, count INTEGER NOT NULL DEFAULT 1, said TEXT, run TEXT
    ) STRICT;
    CREATE UNIQUE INDEX job_runs_due ON job_runs (job, due) WHERE due IS NOT NULL;
    CREATE INDEX job_runs_of ON job_runs (job, no);
    CREATE INDEX job_runs_open ON job_runs (job) WHERE ended IS NULL;
    CREATE TABLE monitors (
        slug TEXT PRIMARY KEY, name TEXT NOT NULL, schedule TEXT NOT NULL, zone TEXT NOT NULL, margin INTEGER NOT NULL,
        max_runtime INTEGER, owner TEXT, on_change TEXT NOT NULL, base TEXT NOT NULL, health TEXT NOT NULL, since INTEGER NOT NULL,
        weighed INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE checkins (
        no INTEGER PRIMARY KEY, monitor TEXT NOT NULL, id TEXT NOT NULL, status TEXT NOT NULL, source TEXT NOT NULL, at INTEGER NOT NULL,
        due INTEGER, duration INTEGER, count INTEGER NOT NULL DEFAULT 1
    ) STRICT;
    CREATE UNIQUE INDEX checkins_due ON checkins (monitor, due) WHERE due IS NOT NULL;
    CREATE INDEX checkins_of ON checkins (monitor, no);
    CREATE INDEX checkins_called ON checkins (monitor, id);
    CREATE INDEX checkins_open ON checkins (monitor) WHERE status = 'in_progress';
    CREATE TABLE monitor_news (
        no INTEGER PRIMARY KEY, delivery TEXT NOT NULL UNIQUE, monitor TEXT NOT NULL, data TEXT NOT NULL, made INTEGER NOT NULL,
        tries INTEGER NOT NULL DEFAULT 0, next INTEGER NOT NULL, ended INTEGER, said TEXT
    ) STRICT;
    CREATE INDEX monitor_news_due ON monitor_news (next) WHERE ended IS NULL;";

/// Runs received from other machines, and the own runs to be sent: those with a number above
/// `beyond`. The key of a received run is only here, since it does not count as a key of this
/// project.
const SYNC: &str = "
    CREATE TABLE received (run INTEGER PRIMARY KEY, machine TEXT NOT NULL, run_key TEXT, heard_at INTEGER NOT NULL) STRICT;
    CREATE TABLE sending (one INTEGER PRIMARY KEY CHECK (one = 1), beyond INTEGER NOT NULL) STRICT;";

/// Opens the database of a project, which is created if needed.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    open_up_to(path, &FORM, PATIENCE)
}

/// Opens a database of another kind.
pub(super) fn open_form(path: &Path, form: &Form<'_>) -> Result<Connection, StoreError> {
    open_up_to(path, form, PATIENCE)
}

/// Opens the database of a project, and fails instead of waiting long for other processes.
pub(super) fn open_at_once(path: &Path) -> Result<Connection, StoreError> {
    open_up_to(path, &FORM, IMPATIENCE)
}

/// Opens the database of a project without creating it. Returns `None` if it is missing or
/// empty.
pub(super) fn glance(path: &Path) -> Result<Option<Connection>, StoreError> {
    if !path.exists() {
        return Ok(None);
    }
    let db = connect(path, IMPATIENCE)?;
    Ok(is_created(&db, path, &FORM)?.then_some(db))
}

fn open_up_to(path: &Path, form: &Form<'_>, patience: Duration) -> Result<Connection, StoreError> {
    let mut db = connect(path, patience)?;
    let is_created = is_created(&db, path, form)?;
    keep_others_out(path)?;
    if !is_created {
        create(&mut db, path, form, patience)?;
    }
    Ok(db)
}

fn connect(path: &Path, patience: Duration) -> Result<Connection, StoreError> {
    let fail = |error| match refused(path) {
        None => StoreError::database("open", path, error),
        Some(source) => StoreError::new("open", path, source),
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags).map_err(fail)?;
    db.busy_timeout(patience).and_then(|()| db.execute_batch(CONNECTION)).map_err(fail)?;
    tidy_up_at_last(&db, false).map_err(fail)?;
    Ok(db)
}

/// Sets whether this connection moves the log into the database when it is closed as the last one.
/// A connection that only read does not, nor one that met an error: after an error, nothing more is
/// written.
pub(super) fn tidy_up_at_last(db: &Connection, wanted: bool) -> rusqlite::Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !wanted).map(drop)
}

/// Returns the system's reason against writing here, which SQLite does not report.
fn refused(path: &Path) -> Option<io::Error> {
    let places = [Some(path), path.parent()].into_iter().flatten().filter(|place| place.exists());
    places.filter_map(|place| access(place, Access::WRITE_OK).err()).map(io::Error::from).next()
}

/// Restricts the file to its owner; files that SQLite puts beside it get the same mode. The mode is
/// changed by path: closing another handle would drop the locks that other connections of this
/// process hold.
fn keep_others_out(path: &Path) -> Result<(), StoreError> {
    let mode = fs::metadata(path).map(|meta| meta.permissions().mode() & 0o777);
    let closed = match mode {
        Ok(0o600) => Ok(()),
        Ok(_) => fs::set_permissions(path, Permissions::from_mode(0o600)),
        Err(error) => Err(error),
    };
    closed.map_err(|source| StoreError::new("restrict access to", path, source))
}

/// Returns false for an empty database, and refuses one of another program or of a newer fledge.
fn is_created(db: &Connection, path: &Path, form: &Form<'_>) -> Result<bool, StoreError> {
    let sql = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id, pragma_user_version";
    let found = db.query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)));
    let (application, found, tables) = found.map_err(|error| StoreError::database("read", path, error))?;
    let path = path.display().to_string();
    match (application, found, tables) {
        (0, 0, 0) => Ok(false),
        (application, VERSION, _) if application == form.application => Ok(true),
        (application, VERSION.., _) if application == form.application => {
            Err(StoreError::Newer { path, found, known: VERSION })
        }
        _ => Err(StoreError::Foreign { path }),
    }
}

/// Creates the tables of an empty database in one transaction. One process creates at a time.
/// Others wait, or fail if their patience is short.
fn create(db: &mut Connection, path: &Path, form: &Form<'_>, patience: Duration) -> Result<(), StoreError> {
    let lock = path.with_extension("creating");
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&lock);
    let take = |file: &File| if patience < PATIENCE { file.try_lock().map_err(io::Error::from) } else { file.lock() };
    let held = file.and_then(|file| take(&file).map(|()| file));
    let _held = held.map_err(|source| StoreError::new("lock", &lock, source))?;
    if is_created(db, path, form)? {
        return Ok(()); // by the process that held the lock before
    }
    let fail = |error| StoreError::database("create", path, error);
    // `auto_vacuum` takes effect only before anything is written. Without a write-ahead log, only
    // `synchronous = FULL` survives a power failure.
    db.execute_batch("PRAGMA synchronous = FULL; PRAGMA auto_vacuum = INCREMENTAL").map_err(fail)?;
    keep_log(db, path)?;
    db.execute_batch("PRAGMA synchronous = NORMAL").map_err(fail)?;
    let folders = path.ancestors().skip(1).take(2).filter(|folder| !folder.as_os_str().is_empty());
    folders.into_iter().try_for_each(sync_folder)?;
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    let application = format!("PRAGMA application_id = {}; PRAGMA user_version = {VERSION};", form.application);
    let mut statements = form.tables.iter().copied().chain([application.as_str()]);
    statements.try_for_each(|sql| transaction.execute_batch(sql)).and_then(|()| transaction.commit()).map_err(fail)
}

/// Returns free pages to the file system with the next checkpoint. Each step of the pragma frees
/// one page.
pub(super) fn shrink(db: &Connection) -> rusqlite::Result<()> {
    let mut statement = db.prepare("PRAGMA incremental_vacuum")?;
    let mut steps = statement.query([])?;
    while steps.next()?.is_some() {}
    Ok(())
}

/// Switches the database to a write-ahead log. SQLite returns the mode before it writes it, which
/// may fail, so the pragma is read to its end.
fn keep_log(db: &Connection, path: &Path) -> Result<(), StoreError> {
    let set = || -> rusqlite::Result<Option<String>> {
        let mut statement = db.prepare("PRAGMA journal_mode = WAL")?;
        let modes = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
        Ok(modes.into_iter().next())
    };
    match set().map_err(|error| StoreError::database("enable write-ahead logging for", path, error))?.as_deref() {
        Some("wal") => Ok(()),
        other => {
            let stays = io::Error::other(format!("the database stays in journal mode `{}`", other.unwrap_or_default()));
            Err(StoreError::new("enable write-ahead logging for", path, stays))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_creation_that_fails_leaves_an_empty_database() {
        let home = crate::test_support::temp_dir();
        let path = home.path().join(FILE);
        let broken = Form { tables: &[RUNS, "CREATE TABLE runs (a)"], ..FORM };
        assert!(open_form(&path, &broken).is_err());
        assert!(glance(&path).unwrap().is_none());
        open(&path).unwrap();
        assert!(glance(&path).unwrap().is_some());
    }

    #[test]
    fn processes_that_create_at_once_share_one_database() {
        let home = crate::test_support::temp_dir();
        let path = &home.path().join(FILE);
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(move || open(path).map(drop))).collect();
            assert!(all.into_iter().all(|opened| opened.join().unwrap().is_ok()));
        });
        assert!(glance(path).unwrap().is_some());
    }
}
