//! Past durations of a project's lane steps, by which the longest steps can start first. They are
//! only a hint: access does not wait long for other processes, and unreadable durations count as
//! unknown.

use super::{StoreError, files, schema, sha256};
use crate::fail_point::reach;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The maximum number of steps that are remembered. The steps not seen for the longest time are
/// forgotten.
const MOST: i64 = 2000;
/// Limits the pages of the write-ahead log, since a process that opens the database alone reads the
/// whole log.
const SHORT_LOG: &str = "PRAGMA wal_autocheckpoint = 256";
/// Averages three tenths of the new duration and seven tenths of the known one.
const ADD: &str = "INSERT INTO durations (lane, step, command, ms, run) VALUES (?1, ?2, ?3, ?4, ?5) \
    ON CONFLICT DO UPDATE SET ms = (ms * 7 + excluded.ms * 3) / 10, run = excluded.run";
const FORGET: &str = "DELETE FROM durations WHERE (lane, step, command) IN (SELECT lane, step, command FROM durations \
    ORDER BY run, lane, step, command LIMIT max(0, (SELECT count(*) FROM durations) - ?1))";

/// The expected durations of the steps of one lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Durations {
    /// Durations in milliseconds, by the name of the step and the digest of its command.
    steps: BTreeMap<(String, String), u32>,
}

impl Durations {
    /// Reads the known durations of a lane from a project's folder. Creates nothing.
    ///
    /// # Errors
    /// When the database is busy, damaged, or belongs to another program or a newer fledge.
    pub fn read(project: &Path, lane: &str) -> Result<Self, StoreError> {
        let path = project.join(schema::FILE);
        let Some(db) = schema::glance(&path)? else { return Ok(Self::default()) };
        let read = || -> rusqlite::Result<_> {
            let mut statement = db.prepare("SELECT step, command, ms FROM durations WHERE lane = ?1")?;
            statement.query_map([lane], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?.collect()
        };
        Ok(Self { steps: read().map_err(|error| StoreError::database("read", &path, error))? })
    }

    /// Returns the expected duration of a step; zero if it is unknown. A step with another command
    /// is another step.
    pub fn of(&self, step: &str, command: &str) -> Duration {
        let ms = self.steps.get(&(step.to_owned(), digest(command))).copied();
        Duration::from_millis(ms.unwrap_or_default().into())
    }

    /// Records in a project's folder how long steps took, each with its lane, name and command.
    /// This is not synced: a crash of the machine may lose the last durations.
    ///
    /// # Errors
    /// When the database cannot be written, or another process writes to it. The known durations
    /// then remain.
    pub fn add<'a>(
        project: &Path,
        took: impl IntoIterator<Item = (&'a str, &'a str, &'a str, Duration)>,
    ) -> Result<(), StoreError> {
        let took: Vec<_> = took.into_iter().collect();
        if took.is_empty() {
            return Ok(());
        }
        files::make_safely(project)?;
        let path = project.join(schema::FILE);
        let db = schema::open_at_once(&path)?;
        let fail_point = |stage| reach("durations", stage).map_err(|error| StoreError::new("write", &path, error));
        fail_point("begun")?;
        add(&db, &took).map_err(|error| StoreError::database("write", &path, error))?;
        fail_point("done")
    }
}

fn add(db: &Connection, took: &[(&str, &str, &str, Duration)]) -> rusqlite::Result<()> {
    db.prepare(SHORT_LOG)?.query([])?.next()?;
    let transaction = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    let run: i64 = transaction.query_row("SELECT coalesce(max(run), 0) + 1 FROM durations", [], |row| row.get(0))?;
    let mut add = transaction.prepare(ADD)?;
    for (lane, step, command, took) in took {
        let ms = u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
        add.execute(params![lane, step, digest(command), ms, run])?;
    }
    transaction.execute(FORGET, [MOST])?;
    drop(add);
    transaction.commit()
}

/// Returns the digest that identifies a command.
fn digest(command: &str) -> String {
    let mut digest = sha256(command.as_bytes());
    digest.truncate(12);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn of(project: &Path, lane: &str, step: &str, command: &str) -> Duration {
        Durations::read(project, lane).unwrap().of(step, command)
    }

    #[test]
    fn what_is_learned_moves_slowly_and_belongs_to_a_command() {
        let folder = crate::test_support::temp_dir();
        let project = &folder.path().join("project");
        assert_eq!(Durations::read(project, "verify").unwrap(), Durations::default());
        Durations::add(project, []).unwrap();
        assert!(!project.exists());
        Durations::add(project, [("verify", "test", "cargo test", ms(1000)), ("verify", "lint", "x", ms(5))]).unwrap();
        Durations::add(project, [("verify", "test", "cargo test", ms(2000))]).unwrap();
        let of = |lane: &str, step: &str, command: &str| of(project, lane, step, command);
        assert_eq!(
            [of("verify", "test", "cargo test"), of("verify", "test", "true"), of("fix", "test", "cargo test")],
            [ms(1300), ms(0), ms(0)]
        );
        assert_eq!(of("verify", "lint", "x"), ms(5));
    }

    #[test]
    fn nobody_waits_for_a_database_that_is_busy_and_one_that_is_newer_is_let_be() {
        let folder = crate::test_support::temp_dir();
        let project = folder.path();
        let step = |took| [("verify", "test", "c", ms(took))];
        Durations::add(project, step(100)).unwrap();
        let other = Connection::open(project.join(schema::FILE)).unwrap();
        other.execute_batch("BEGIN IMMEDIATE; UPDATE durations SET ms = 1").unwrap();
        let busy = Durations::add(project, step(900)).unwrap_err();
        assert!(matches!(&busy, StoreError::Database { verb: "write", .. }), "{busy:?}");
        assert_eq!(of(project, "verify", "test", "c"), ms(100));
        other.execute_batch("ROLLBACK; PRAGMA user_version = 99").unwrap();
        assert!(matches!(Durations::add(project, step(900)), Err(StoreError::Newer { found: 99, .. })));
        assert!(matches!(Durations::read(project, "verify"), Err(StoreError::Newer { found: 99, .. })));
        let left: u32 = other.query_row("SELECT ms FROM durations", [], |row| row.get(0)).unwrap();
        assert_eq!(left, 100);
    }

    #[test]
    fn what_was_not_seen_for_longest_is_forgotten() {
        let folder = crate::test_support::temp_dir();
        let project = folder.path();
        let steps: Vec<String> = (1..MOST).map(|n| format!("step {n}")).collect();
        Durations::add(project, [("verify", "first", "c", ms(100))]).unwrap();
        Durations::add(project, [("verify", "second", "c", ms(100))]).unwrap();
        Durations::add(project, steps.iter().map(|step| ("verify", step.as_str(), "c", ms(100)))).unwrap();
        let known = Durations::read(project, "verify").unwrap();
        assert_eq!([known.of("first", "c"), known.of("second", "c")], [ms(0), ms(100)]);
        assert_eq!(i64::try_from(known.steps.len()).unwrap(), MOST);
    }

    /// Reads, and tries again while another thread opens the database.
    fn read_between_writes(project: &Path) -> Durations {
        loop {
            match Durations::read(project, "verify") {
                Err(StoreError::Database { source, .. }) if source.to_string().contains("locked") => {}
                known => return known.unwrap(),
            }
        }
    }

    #[test]
    fn lanes_that_end_at_once_never_tear_it() {
        let folder = crate::test_support::temp_dir();
        let project = folder.path();
        Durations::add(project, ["a", "b", "c"].map(|name| ("verify", name, "c", ms(100)))).unwrap();
        std::thread::scope(|scope| {
            for name in ["a", "b", "c"] {
                scope.spawn(move || {
                    for _ in 0..25 {
                        let _somebody_else_may_be_writing = Durations::add(project, [("verify", name, "c", ms(100))]);
                        assert_eq!(read_between_writes(project).of(name, "c"), ms(100));
                    }
                });
            }
        });
    }
}
