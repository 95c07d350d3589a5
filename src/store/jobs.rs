//! Recurring jobs and their history. Each due moment starts a job at most once, and moments without
//! a start are recorded as missed or skipped.

use super::events::unsigned;
use super::{Store, StoreError};
use crate::fail_point::reach;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

/// The number of entries that are kept for each job and each monitor.
pub(super) const KEPT: i64 = 1000;
/// The time in milliseconds for which the history of a removed job is kept after its newest run,
/// because the job's file may come back.
const KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;
const COLUMNS: &str = "no, job, due, began, ended, state, tries, count, said, run";

/// A known job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredJob {
    /// The job's name.
    pub name: String,
    /// `builtin` or `task`.
    pub kind: String,
    /// The schedule in its text form.
    pub schedule: String,
    /// The time zone of the schedule.
    pub zone: String,
    /// The time up to which every due moment is handled, in milliseconds since 1970.
    pub handled_ms: i64,
}

/// A run of a job: for a due moment, or on request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredJobRun {
    /// The run's number.
    pub no: i64,
    /// The job's name.
    pub job: String,
    /// The due moment, in milliseconds since 1970; `None` for a run on request.
    pub due_ms: Option<i64>,
    /// The time at which the run began or was found to be missed.
    pub began_ms: i64,
    /// The end of the run.
    pub ended_ms: Option<i64>,
    /// `running`, `ok`, `failed`, `missed`, `skipped` or `interrupted`.
    pub state: String,
    /// The number of tries.
    pub tries: u64,
    /// The number of moments that this entry covers, if several were missed.
    pub count: u64,
    /// The error message.
    pub message: Option<String>,
    /// The task run that the job started.
    pub run: Option<String>,
}

/// The end of a job's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredJobEnd<'a> {
    /// The time of the end, in milliseconds since 1970.
    pub ended_ms: i64,
    /// The final state, as in [`StoredJobRun::state`].
    pub state: &'a str,
    /// The number of tries.
    pub tries: u32,
    /// The error message.
    pub message: Option<&'a str>,
}

impl Store {
    /// Returns all known jobs, sorted by name.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn jobs(&self) -> Result<Vec<StoredJob>, StoreError> {
        let read = || -> rusqlite::Result<Vec<StoredJob>> {
            let sql = "SELECT name, kind, schedule, zone, handled FROM jobs ORDER BY name";
            self.db.prepare(sql)?.query_map([], job)?.collect()
        };
        read().map_err(self.fault("read"))
    }

    /// Registers a job with this schedule, and returns the stored job. With a changed schedule,
    /// moments of the old schedule are no longer due. A job that was unknown was not expected
    /// meanwhile, so its monitor expects nothing from that time.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn settle_job(&self, row: &StoredJob) -> Result<StoredJob, StoreError> {
        self.alter("job", |db| {
            let sql = "INSERT INTO jobs (name, kind, schedule, zone, handled) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (name) DO UPDATE SET \
                 kind = excluded.kind, schedule = excluded.schedule, zone = excluded.zone, handled = iif(schedule = excluded.schedule \
                 AND zone = excluded.zone, handled, excluded.handled)";
            let StoredJob { name, kind, schedule, zone, handled_ms } = row;
            let comes = "UPDATE monitors SET weighed = max(weighed, ?2) WHERE owner = ?1 AND NOT EXISTS (SELECT 1 FROM jobs WHERE name = ?1)";
            db.execute(comes, params![name, handled_ms])?;
            db.execute(sql, params![name, kind, schedule, zone, handled_ms])?;
            db.query_row("SELECT name, kind, schedule, zone, handled FROM jobs WHERE name = ?1", [name], job)
        })
    }

    /// Removes the jobs of this kind that are not in `kept`. Their history is kept for 30 days, and
    /// then removed.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn drop_jobs_but(&self, kind: &str, kept: &[String], now_ms: i64) -> Result<(), StoreError> {
        let gone = |job: &StoredJob| job.kind == kind && !kept.contains(&job.name);
        for job in self.jobs()?.into_iter().filter(gone) {
            self.alter("job", |db| db.execute("DELETE FROM jobs WHERE name = ?1", [&job.name]).map(drop))?;
        }
        for name in self.long_gone(now_ms).map_err(self.fault("read"))? {
            self.alter("job", |db| db.execute("DELETE FROM job_runs WHERE job = ?1", [&name]).map(drop))?;
        }
        Ok(())
    }

    /// Returns the removed jobs that have no open or new run.
    fn long_gone(&self, now_ms: i64) -> rusqlite::Result<Vec<String>> {
        let sql = "SELECT job FROM job_runs WHERE job NOT IN (SELECT name FROM jobs) GROUP BY job \
             HAVING count(*) = count(ended) AND max(began) < ?1";
        self.db.prepare(sql)?.query_map([now_ms.saturating_sub(KEPT_MS)], |row| row.get(0))?.collect()
    }

    /// Begins a run of a job, for a due moment or on request, and returns the run's number. Returns
    /// `None` if the moment is already handled, so no moment starts a job twice.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn begin_job(&self, name: &str, due_ms: Option<i64>, now_ms: i64) -> Result<Option<i64>, StoreError> {
        self.alter("job", |db| {
            let sql =
                "INSERT INTO job_runs (job, due, began, state) VALUES (?1, ?2, ?3, 'running') ON CONFLICT DO NOTHING";
            let is_new = db.execute(sql, params![name, due_ms, now_ms])? > 0;
            let no = db.last_insert_rowid();
            handled(db, name, due_ms)?;
            forget(db, name)?;
            Ok(is_new.then_some(no))
        })
    }

    /// Records moments as `missed` or `skipped`, each with the number of moments that it covers.
    /// Recorded moments stay as they are. Afterwards, everything up to `to_ms` is handled. Returns
    /// the number of new entries.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn pass_over_job(
        &self,
        name: &str,
        state: &str,
        dues: &[(i64, u64)],
        to_ms: i64,
        now_ms: i64,
    ) -> Result<u64, StoreError> {
        self.alter("job", |db| {
            let sql = "INSERT INTO job_runs (job, due, began, ended, state, count) VALUES (?1, ?2, ?3, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
            let mut message = 0;
            for (due, count) in dues {
                let count = i64::try_from(*count).unwrap_or(i64::MAX);
                message += db.execute(sql, params![name, due, now_ms, state, count])? as u64;
            }
            handled(db, name, Some(to_ms))?;
            forget(db, name)?;
            Ok(message)
        })
    }

    /// Records the progress of a job's run: the task run that it started, the number of tries, and
    /// the last error.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn note_job(&self, no: i64, tries: u32, message: Option<&str>, run: Option<&str>) -> Result<(), StoreError> {
        let sql = "UPDATE job_runs SET tries = max(tries, ?2), said = coalesce(?3, said), run = coalesce(?4, run) WHERE no = ?1";
        self.alter("job", |db| db.execute(sql, params![no, tries, message, run]).map(drop))
    }

    /// Ends a job's run. A run that has ended stays unchanged.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn end_job(&self, no: i64, end: &StoredJobEnd<'_>) -> Result<(), StoreError> {
        let StoredJobEnd { ended_ms, state, tries, message } = end;
        let sql = "UPDATE job_runs SET ended = ?2, state = ?3, tries = max(tries, ?4), said = ?5 WHERE no = ?1 AND ended IS NULL";
        self.alter("job", |db| db.execute(sql, params![no, ended_ms, state, tries, message]).map(drop))
    }

    /// Returns the runs of a job that have not ended, oldest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn open_job_runs(&self, name: &str) -> Result<Vec<StoredJobRun>, StoreError> {
        self.job_runs(
            &format!("SELECT {COLUMNS} FROM job_runs WHERE job = ?1 AND ended IS NULL ORDER BY no LIMIT ?2"),
            name,
            u32::MAX,
        )
    }

    /// Returns the history of a job, newest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn job_history(&self, name: &str, limit: u32) -> Result<Vec<StoredJobRun>, StoreError> {
        self.job_runs(&format!("SELECT {COLUMNS} FROM job_runs WHERE job = ?1 ORDER BY no DESC LIMIT ?2"), name, limit)
    }

    fn job_runs(&self, sql: &str, name: &str, limit: u32) -> Result<Vec<StoredJobRun>, StoreError> {
        let read = || -> rusqlite::Result<Vec<StoredJobRun>> {
            self.db.prepare(sql)?.query_map(params![name, limit], job_run)?.collect()
        };
        read().map_err(self.fault("read"))
    }

    /// Changes jobs and monitors in one transaction.
    pub(super) fn alter<T>(
        &self,
        what: &str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let fail_point = |stage| reach(what, stage).map_err(|error| StoreError::new("write", &self.path(), error));
        fail_point("begun")?;
        let changed = || {
            let transaction = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate)?;
            let changed = work(&transaction)?;
            transaction.commit().map(|()| changed)
        };
        let changed = changed().map_err(self.fault("write"))?;
        fail_point("done").map(|()| changed)
    }
}

/// Sets the time up to which moments are handled. The time may go back: after a clock was ahead,
/// its time no longer counts.
fn handled(db: &Connection, name: &str, to_ms: Option<i64>) -> rusqlite::Result<()> {
    match to_ms {
        Some(to_ms) => db.execute("UPDATE jobs SET handled = ?2 WHERE name = ?1", params![name, to_ms]).map(drop),
        None => Ok(()),
    }
}

fn forget(db: &Connection, name: &str) -> rusqlite::Result<()> {
    let sql = "DELETE FROM job_runs WHERE job = ?1 AND ended IS NOT NULL \
         AND no <= (SELECT no FROM job_runs WHERE job = ?1 ORDER BY no DESC LIMIT 1 OFFSET ?2)";
    db.execute(sql, params![name, KEPT]).map(drop)
}

fn job(row: &Row<'_>) -> rusqlite::Result<StoredJob> {
    Ok(StoredJob {
        name: row.get(0)?,
        kind: row.get(1)?,
        schedule: row.get(2)?,
        zone: row.get(3)?,
        handled_ms: row.get(4)?,
    })
}

fn job_run(row: &Row<'_>) -> rusqlite::Result<StoredJobRun> {
    Ok(StoredJobRun {
        no: row.get(0)?,
        job: row.get(1)?,
        due_ms: row.get(2)?,
        began_ms: row.get(3)?,
        ended_ms: row.get(4)?,
        state: row.get(5)?,
        tries: unsigned(row, 6)?,
        count: unsigned(row, 7)?,
        message: row.get(8)?,
        run: row.get(9)?,
    })
}

/// Returns the row, or `None` if none exists.
pub(super) fn one<T>(found: rusqlite::Result<T>) -> rusqlite::Result<Option<T>> {
    found.optional()
}

#[cfg(test)]
mod tests {
    use super::super::tests::store;
    use super::*;

    #[test]
    fn what_became_of_a_job_that_is_gone_is_kept_for_thirty_days() {
        let (_home, store) = store();
        let row = |name: &str| StoredJob {
            name: name.into(),
            kind: "task".into(),
            schedule: "@daily".into(),
            ..StoredJob::default()
        };
        for name in ["stays", "goes", "runs"] {
            store.settle_job(&row(name)).unwrap();
            store.pass_over_job(name, "missed", &[(1, 1)], 1, 1000).unwrap();
        }
        store.begin_job("runs", Some(2), 1000).unwrap();
        let left = |now_ms| {
            store.drop_jobs_but("task", &["stays".into()], now_ms).unwrap();
            ["stays", "goes", "runs"].map(|name| store.job_history(name, 9).unwrap().len())
        };
        assert_eq!(left(1000 + KEPT_MS), [1, 1, 2]);
        assert_eq!(left(1001 + KEPT_MS), [1, 0, 2], "a run that is open is not forgotten");
    }
}
