//! The database of a project: how it is opened, told from others, and brought up to date.

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

/// The name of the file.
pub(super) const FILE: &str = "fledge.db";
/// What a database of a kind is told by, in its head, and how it came to be what it is.
pub(super) struct Form<'a> {
    pub(super) application: i64,
    /// One step each from a version of the schema to the next. What was released is never changed.
    pub(super) migrations: &'a [&'a str],
}

/// That of a project: "fldg".
const FORM: Form<'static> = Form { application: 0x666c_6467, migrations: MIGRATIONS };
/// How long a write waits for those of other processes. To wait is better than to lose a run.
const PATIENCE: Duration = Duration::from_secs(120);
/// The same for what can as well be lost.
const IMPATIENCE: Duration = Duration::from_millis(20);
/// What every connection sets. Commits are written without a sync, and the write-ahead log is emptied in `Journal::sync`; 16 MB of it is
/// for whoever never syncs. A process may have hundreds of connections, each of which mostly adds to the end: few pages are kept in memory.
const CONNECTION: &str =
    "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4096; PRAGMA journal_size_limit = 4194304; PRAGMA cache_size = -256;
    PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF;";

const MIGRATIONS: &[&str] = &[RUNS, MEMORY, MEMORY_BY_ID, EVENTS_BY_PLACE, DURATIONS, JOBS, SYNC, MEMORY_OF_TASKS];

/// `safe_seq` and `safe_hash` are the last record that is safe from a crash of the machine, so that a journal whose end is gone is told
/// from one that goes no further. `synced` is what a server was sent of it.
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

/// What agents remember from run to run, and its words.
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

/// The same with ids that are made of what is remembered, and found by the stems of words. There was nothing in it yet. An expiry is
/// what makes a memory ephemeral.
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

/// The records by one number, see [`super::events::place`]: rows of up to a page stay on theirs, where those of a table without such a
/// number leave it at a quarter of one. A record that cannot have been written is left out, and its journal is then found to be damaged.
/// `bytes` is known of every run from now on: of one that did not end, what its records take.
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

/// How long the steps of lanes take. `command` is the start of a digest of what the step runs, `run` counts those that have added to it.
const DURATIONS: &str = "
    CREATE TABLE durations (
        lane TEXT NOT NULL, step TEXT NOT NULL, command TEXT NOT NULL, ms INTEGER NOT NULL, run INTEGER NOT NULL,
        PRIMARY KEY (lane, step, command)
    ) STRICT, WITHOUT ROWID;";

/// Jobs that come again and monitors. `handled` and `weighed` are until when all that was due is dealt with; the unique rows of what was due
/// hold all the same where the clock was set back. `monitor_news` is what others are to be told, until it is told.
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

/// Runs that other machines have told of, and from which of the own ones on a server is told: of those whose number is larger. A run of
/// another machine has its key here alone: it is none in this project.
const SYNC: &str = "
    CREATE TABLE received (run INTEGER PRIMARY KEY, machine TEXT NOT NULL, run_key TEXT, heard_at INTEGER NOT NULL) STRICT;
    CREATE TABLE sending (one INTEGER PRIMARY KEY CHECK (one = 1), beyond INTEGER NOT NULL) STRICT;";

/// `task` is the digest of the task whose outcome a memory tells. Null: it is no note of how a run ended.
const MEMORY_OF_TASKS: &str = "ALTER TABLE memory ADD COLUMN task TEXT;";

/// Opens the database, new or old.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    open_up_to(path, &FORM, PATIENCE)
}

/// The same for a database of another kind.
pub(super) fn open_form(path: &Path, form: &Form<'_>) -> Result<Connection, StoreError> {
    open_up_to(path, form, PATIENCE)
}

/// The same for who would rather go without it than wait for others.
pub(super) fn open_at_once(path: &Path) -> Result<Connection, StoreError> {
    open_up_to(path, &FORM, IMPATIENCE)
}

/// The same for who only looks: `None` where there is none, or an older one.
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

/// Whether the connection moves the log into the database when it is closed as the last one. One that has only looked does not, nor one
/// that has met an error: after that nothing is written again.
pub(super) fn tidy_up_at_last(db: &Connection, wanted: bool) -> rusqlite::Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !wanted).map(drop)
}

/// What the system has against writing here, which SQLite keeps to itself.
fn refused(path: &Path) -> Option<io::Error> {
    let places = [Some(path), path.parent()].into_iter().flatten().filter(|place| place.exists());
    places.filter_map(|place| access(place, Access::WRITE_OK).err()).map(io::Error::from).next()
}

/// Makes the file its owner's alone; those that SQLite puts beside it get the same mode. By its name: closing a handle of our own would
/// drop the locks that other connections of this process hold.
fn keep_others_out(path: &Path) -> Result<(), StoreError> {
    let mode = fs::metadata(path).map(|meta| meta.permissions().mode() & 0o777);
    let closed = match mode {
        Ok(0o600) => Ok(()),
        Ok(_) => fs::set_permissions(path, Permissions::from_mode(0o600)),
        Err(error) => Err(error),
    };
    closed.map_err(|source| StoreError::new("keep others out of", path, source))
}

/// How many migrations it has seen; 0 for one that is empty.
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

/// Goes from version to version, each in one transaction. One process at a time: another one that comes waits, if it has the patience.
fn migrate(db: &mut Connection, path: &Path, form: &Form<'_>, patience: Duration) -> Result<(), StoreError> {
    let lock = path.with_extension("migrating");
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&lock);
    let take = |file: &File| if patience < PATIENCE { file.try_lock().map_err(io::Error::from) } else { file.lock() };
    let held = file.and_then(|file| take(&file).map(|()| file));
    let _held = held.map_err(|source| StoreError::new("lock", &lock, source))?;
    let fail = |error| StoreError::database("bring up to date", path, error);
    let (mut at, mut was_filled) = (version(db, path, form)?, true);
    if at == 0 {
        was_filled = false;
        // The second only counts before anything is written. As long as there is no write-ahead log, a failure of the power is survived
        // with the first alone.
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

/// Gives the pages that are free now back to the file system, with the next checkpoint. Each step of the pragma frees one.
pub(super) fn shrink(db: &Connection) -> rusqlite::Result<()> {
    let mut statement = db.prepare("PRAGMA incremental_vacuum")?;
    let mut steps = statement.query([])?;
    while steps.next()?.is_some() {}
    Ok(())
}

/// Has the database kept with a write-ahead log. SQLite says in which mode the database is, and only after that writes it down, which may
/// fail: the pragma is heard to its end.
fn keep_log(db: &Connection, path: &Path) -> Result<(), StoreError> {
    let set = || -> rusqlite::Result<Option<String>> {
        let mut statement = db.prepare("PRAGMA journal_mode = WAL")?;
        let modes = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
        Ok(modes.into_iter().next())
    };
    match set().map_err(|error| StoreError::database("keep a log beside", path, error))?.as_deref() {
        Some("wal") => Ok(()),
        other => {
            let stays = io::Error::other(format!("the database stays in the mode `{}`", other.unwrap_or_default()));
            Err(StoreError::new("keep a log beside", path, stays))
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
