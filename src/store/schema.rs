//! The database of a project: opening, identification and migration.

use super::StoreError;
use super::files::sync_folder;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use rustix::fs::{Access, access};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

/// The name of the database file.
pub(super) const FILE: &str = "fledge.db";
/// A kind of database: its application id, and its migrations.
pub(super) struct Form<'a> {
    pub(super) application: i64,
    /// The steps from each version of the schema to the next. A released step is never changed.
    pub(super) migrations: &'a [&'a str],
}

/// The form of a project's database. The application id is "fldg".
const FORM: Form<'static> = Form { application: 0x666c_6467, migrations: MIGRATIONS };
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

const MIGRATIONS: &[&str] = &[RUNS, MEMORY, MEMORY_BY_ID, EVENTS_BY_PLACE, DURATIONS, JOBS, SYNC, MEMORY_OF_TASKS];

/// `safe_seq` and `safe_hash` are the last record that is safe from a crash of the machine. They
/// distinguish a journal that lost its end from one that is complete. `synced` is the number of
/// records that were sent to a server, where the outcome counts as one more.
const RUNS: &str = "
    CREATE TABLE runs (
        no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, run_key TEXT UNIQUE, parent TEXT,
        title TEXT NOT NULL, source TEXT NOT NULL, task_digest TEXT NOT NULL, workspace TEXT NOT NULL, models TEXT NOT NULL,
        fledge TEXT NOT NULL, journal_version INTEGER NOT NULL, started_at INTEGER NOT NULL,
        ended_at INTEGER, reason TEXT, exit_code INTEGER, verified INTEGER, cancelled INTEGER, attempts INTEGER, turns INTEGER,
        tokens_in INTEGER, tokens_out INTEGER, tokens_cached INTEGER, cost_micros INTEGER, summary TEXT,
        bytes INTEGER, safe_seq INTEGER NOT NULL, safe_hash BLOB NOT NULL, synced INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE tasks (run INTEGER PRIMARY KEY, text TEXT NOT NULL, settings TEXT NOT NULL) STRICT;
    CREATE TABLE events (
        run INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL, data TEXT, blob BLOB,
        hash BLOB NOT NULL, PRIMARY KEY (run, seq), CHECK ((data IS NULL) <> (blob IS NULL))
    ) STRICT, WITHOUT ROWID;";

/// Memories that agents keep from run to run, and their words.
const MEMORY: &str = "
    CREATE TABLE memory (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, text TEXT NOT NULL, run TEXT, created_at INTEGER NOT NULL, expires_at INTEGER
    ) STRICT;
    CREATE VIRTUAL TABLE memory_words USING fts5 (text, content = 'memory', content_rowid = 'id');
    CREATE TRIGGER memory_added AFTER INSERT ON memory BEGIN
        INSERT INTO memory_words (rowid, text) VALUES (new.id, new.text);
    END;
    CREATE TRIGGER memory_removed AFTER DELETE ON memory BEGIN
        INSERT INTO memory_words (memory_words, rowid, text) VALUES ('delete', old.id, old.text);
    END;
    CREATE TRIGGER memory_changed AFTER UPDATE ON memory BEGIN
        INSERT INTO memory_words (memory_words, rowid, text) VALUES ('delete', old.id, old.text);
        INSERT INTO memory_words (rowid, text) VALUES (new.id, new.text);
    END;";

/// Memories with ids that are derived from their content, found by the stems of words. The old
/// tables were still empty. A memory with an expiry is ephemeral.
const MEMORY_BY_ID: &str = "
    DROP TABLE memory_words;
    DROP TABLE memory;
    CREATE TABLE memory (
        no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL, run TEXT, created_at INTEGER NOT NULL, expires_at INTEGER
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

/// Records by one number, see [`super::events::place`]. Rows of up to a page stay on their page;
/// without such a number, rows leave theirs from a quarter of a page on. Impossible records are
/// left out, and their journals then count as damaged. From this version on, every run has `bytes`;
/// for a run that did not end, that is the size of its records.
const EVENTS_BY_PLACE: &str = "
    ALTER TABLE events RENAME TO old_events;
    CREATE TABLE events (
        place INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, data TEXT, blob BLOB, hash BLOB NOT NULL,
        CHECK ((data IS NULL) <> (blob IS NULL))
    ) STRICT;
    INSERT INTO events SELECT (run << 32) | seq, at, kind, data, blob, hash FROM old_events
        WHERE run BETWEEN 1 AND 2147483647 AND seq BETWEEN 1 AND 4294967295 ORDER BY run, seq;
    UPDATE runs SET bytes = (SELECT coalesce(sum(octet_length(data)), 0) FROM old_events WHERE run = no) WHERE bytes IS NULL;
    DROP TABLE old_events;";

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

/// `task` is the digest of the task whose outcome a memory reports; null if the memory is not a
/// note of how a run ended.
const MEMORY_OF_TASKS: &str = "ALTER TABLE memory ADD COLUMN task TEXT;";

/// Opens the database of a project, which is created or migrated if needed.
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

/// Opens the database of a project without creating or migrating it. Returns `None` if it is
/// missing or older.
pub(super) fn glance(path: &Path) -> Result<Option<Connection>, StoreError> {
    if !path.exists() {
        return Ok(None);
    }
    let db = connect(path, IMPATIENCE)?;
    Ok((version(&db, path, &FORM)? == MIGRATIONS.len()).then_some(db))
}

fn open_up_to(path: &Path, form: &Form<'_>, patience: Duration) -> Result<Connection, StoreError> {
    let mut db = connect(path, patience)?;
    let version = version(&db, path, form)?;
    keep_others_out(path)?;
    if version < form.migrations.len() {
        migrate(&mut db, path, form, patience)?;
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

/// Returns the number of applied migrations; 0 for an empty database.
fn version(db: &Connection, path: &Path, form: &Form<'_>) -> Result<usize, StoreError> {
    let sql = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id, pragma_user_version";
    let found = db.query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)));
    let (application, found, tables) = found.map_err(|error| StoreError::database("read", path, error))?;
    let path = path.display().to_string();
    match (application, found, tables) {
        (0, 0, 0) => Ok(0),
        (application, 1.., _) if application == form.application => {
            let known = i64::try_from(form.migrations.len()).unwrap_or(i64::MAX);
            usize::try_from(found).ok().filter(|found| *found <= form.migrations.len()).ok_or(StoreError::Newer {
                path,
                found,
                known,
            })
        }
        _ => Err(StoreError::Foreign { path }),
    }
}

/// Applies the missing migrations, each in one transaction. One process migrates at a time. Others
/// wait, or fail if their patience is short.
fn migrate(db: &mut Connection, path: &Path, form: &Form<'_>, patience: Duration) -> Result<(), StoreError> {
    let lock = path.with_extension("migrating");
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&lock);
    let take = |file: &File| if patience < PATIENCE { file.try_lock().map_err(io::Error::from) } else { file.lock() };
    let held = file.and_then(|file| take(&file).map(|()| file));
    let _held = held.map_err(|source| StoreError::new("lock", &lock, source))?;
    let fail = |error| StoreError::database("migrate", path, error);
    let (mut at, mut was_filled) = (version(db, path, form)?, true);
    if at == 0 {
        was_filled = false;
        // `auto_vacuum` takes effect only before anything is written. Without a write-ahead log,
        // only `synchronous = FULL` survives a power failure.
        db.execute_batch("PRAGMA synchronous = FULL; PRAGMA auto_vacuum = INCREMENTAL").map_err(fail)?;
        keep_log(db, path)?;
        db.execute_batch("PRAGMA synchronous = NORMAL").map_err(fail)?;
        let folders = path.ancestors().skip(1).take(2).filter(|folder| !folder.as_os_str().is_empty());
        folders.into_iter().try_for_each(sync_folder)?;
    }
    while let Some(step) = form.migrations.get(at) {
        at += 1;
        let work = |transaction: &Transaction<'_>| {
            transaction.execute_batch(step)?;
            transaction
                .execute_batch(&format!("PRAGMA application_id = {}; PRAGMA user_version = {at};", form.application))
        };
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
        work(&transaction).and_then(|()| transaction.commit()).map_err(fail)?;
    }
    if was_filled { shrink(db).map_err(fail) } else { Ok(()) }
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
    use super::super::events::place;
    use super::*;

    fn of<'a>(migrations: &'a [&'a str]) -> Form<'a> {
        Form { migrations, ..FORM }
    }

    #[test]
    fn a_database_of_the_first_version_is_brought_up_to_date_with_what_is_in_it() {
        let home = crate::test_support::temp_dir();
        let path = home.path().join(FILE);
        let old = open_up_to(&path, &of(&MIGRATIONS[..1]), PATIENCE).unwrap();
        let rows = "INSERT INTO events (run, seq, at, kind, data, hash) \
             VALUES (1, 1, 2, 'A', 'one', x'00'), (7, 3, 4, 'B', 'other', x'01'), (7, 1 << 40, 4, 'B', 'lost', x'02')";
        old.execute_batch(rows).unwrap();
        assert!(matches!(open_up_to(&path, &of(&[]), PATIENCE), Err(StoreError::Newer { found: 1, known: 0, .. })));
        drop(old);
        let db = open(&path).unwrap();
        assert_eq!(version(&db, &path, &FORM).unwrap(), MIGRATIONS.len());
        let mut statement = db.prepare("SELECT place, data FROM events").unwrap();
        let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let found: Vec<(i64, String)> = found.map(Result::unwrap).collect();
        assert_eq!(found, [(place(1, 1), "one".into()), (place(7, 3), "other".into())]);
    }

    #[test]
    fn every_older_version_has_a_database_among_the_fixtures() {
        let fixture =
            |version: &usize| Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/store/{version}.sql"));
        let missing: Vec<usize> = (1..MIGRATIONS.len()).filter(|version| !fixture(version).exists()).collect();
        assert!(missing.is_empty(), "tests/disk needs one of each: {missing:?}");
    }

    #[test]
    fn a_migration_that_fails_leaves_the_version_before() {
        let home = crate::test_support::temp_dir();
        let path = home.path().join(FILE);
        let broken = [RUNS, "CREATE TABLE more (a) STRICT; CREATE TABLE runs (a)"];
        assert!(open_up_to(&path, &of(&broken), PATIENCE).is_err());
        let db = open(&path).unwrap();
        assert_eq!(version(&db, &path, &FORM).unwrap(), MIGRATIONS.len());
    }
}
