//! The database of a project: how it is opened, told from others, and brought up to date.

use super::StoreError;
use super::files::sync_folder;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use rustix::fs::{Access, access};
use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

/// The name of the file.
pub(super) const FILE: &str = "fledge.db";
/// Says in a database's head that it is one of fledge: "fldg".
const APPLICATION: i64 = 0x666c_6467;
/// How long a write waits for those of other processes. To wait is better than to lose a run.
const PATIENCE: Duration = Duration::from_secs(30);
/// What every connection sets. Commits are written without a sync, and the write-ahead log is emptied in `Journal::sync`; 16 MB of it is
/// for whoever never syncs.
const CONNECTION: &str =
    "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4096; PRAGMA journal_size_limit = 4194304;
    PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF;";

/// One step each from a version of the schema to the next. What was released is never changed.
const MIGRATIONS: &[&str] = &[RUNS, MEMORY, MEMORY_BY_ID];

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

/// Opens the database, new or old.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    open_up_to(path, MIGRATIONS)
}

fn open_up_to(path: &Path, migrations: &[&str]) -> Result<Connection, StoreError> {
    let mut db = connect(path)?;
    let version = version(&db, path, migrations)?;
    keep_others_out(path)?;
    if version < migrations.len() {
        migrate(&mut db, path, migrations)?;
    }
    Ok(db)
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    let fail = |error| match refused(path) {
        None => StoreError::database("open", path, error),
        Some(source) => StoreError::new("open", path, source),
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags).map_err(fail)?;
    db.busy_timeout(PATIENCE).and_then(|()| db.execute_batch(CONNECTION)).map_err(fail)?;
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
fn version(db: &Connection, path: &Path, migrations: &[&str]) -> Result<usize, StoreError> {
    let sql = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id, pragma_user_version";
    let found = db.query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)));
    let (application, found, tables) = found.map_err(|error| StoreError::database("read", path, error))?;
    let path = path.display().to_string();
    match (application, found, tables) {
        (0, 0, 0) => Ok(0),
        (APPLICATION, 1.., _) => {
            let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
            usize::try_from(found).ok().filter(|found| *found <= migrations.len()).ok_or(StoreError::Newer {
                path,
                found,
                known,
            })
        }
        _ => Err(StoreError::Foreign { path }),
    }
}

/// Goes from version to version, each in one transaction. One process at a time: another one that comes waits.
fn migrate(db: &mut Connection, path: &Path, migrations: &[&str]) -> Result<(), StoreError> {
    let lock = path.with_extension("migrating");
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&lock);
    let held = file.and_then(|file| file.lock().map(|()| file));
    let _held = held.map_err(|source| StoreError::new("lock", &lock, source))?;
    let fail = |error| StoreError::database("bring up to date", path, error);
    let mut at = version(db, path, migrations)?;
    if at == 0 {
        // The second only counts before anything is written. As long as there is no write-ahead log, a failure of the power is survived
        // with the first alone.
        db.execute_batch("PRAGMA synchronous = FULL; PRAGMA auto_vacuum = INCREMENTAL").map_err(fail)?;
        keep_log(db, path)?;
        db.execute_batch("PRAGMA synchronous = NORMAL").map_err(fail)?;
        let folders = path.ancestors().skip(1).take(2).filter(|folder| !folder.as_os_str().is_empty());
        folders.into_iter().try_for_each(sync_folder)?;
    }
    while let Some(step) = migrations.get(at) {
        at += 1;
        let work = |transaction: &Transaction<'_>| {
            transaction.execute_batch(step)?;
            transaction.execute_batch(&format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {at};"))
        };
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
        work(&transaction).and_then(|()| transaction.commit()).map_err(fail)?;
    }
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
    use super::*;

    #[test]
    fn a_database_of_the_first_version_is_brought_up_to_date_with_what_is_in_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(FILE);
        let old = open_up_to(&path, &MIGRATIONS[..1]).unwrap();
        let event = "INSERT INTO events (run, seq, at, kind, data, hash) VALUES (1, 1, 2, 'A', 'one', x'00')";
        old.execute_batch(event).unwrap();
        assert!(matches!(open_up_to(&path, &[]), Err(StoreError::Newer { found: 1, known: 0, .. })));
        drop(old);
        let db = open(&path).unwrap();
        assert_eq!(version(&db, &path, MIGRATIONS).unwrap(), MIGRATIONS.len());
        let data: String = db.query_row("SELECT data FROM events", [], |row| row.get(0)).unwrap();
        assert_eq!(data, "one");
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
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(FILE);
        let broken = [RUNS, "CREATE TABLE more (a) STRICT; CREATE TABLE runs (a)"];
        assert!(open_up_to(&path, &broken).is_err());
        let db = open(&path).unwrap();
        assert_eq!(version(&db, &path, MIGRATIONS).unwrap(), MIGRATIONS.len());
    }
}
