//! Calls to a queue that need no lease: orders, queries, and the conversion of values from and to
//! columns.

use super::super::{StoreError, schema};
use super::clock::Clock;
use super::tables::{QueueTables, Safe, reap, reason};
use crate::queue::{
    BatchId, CancelCount, CancelScope, JobFilter, JobId, JobSpec, KeptResult, NameError, PoolName, PoolStatus,
    Priority, QueueState, QueueStatus, QueuedJob, ResultText, Revived, Submitted, WorkerId,
};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use std::time::Duration;

const ADD: &str = "INSERT INTO jobs (id, batch, pool, priority, payload, deliveries, not_before, changed) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (id) DO NOTHING";
const REVIVE: &str = "UPDATE jobs SET state = 'queued', attempt = 0, not_before = ?2, reason = NULL, why = NULL, changed = ?2 \
    WHERE id = ?1 AND state IN ('dead', 'cancelled')";
const AGAIN: &str = "UPDATE jobs SET state = 'queued', payload = ?2, attempt = 0, not_before = ?3, changed = ?3, reason = NULL, why = NULL, \
    is_cancelling = 0 WHERE id = ?1 AND state IN ('done', 'dead', 'cancelled')";
const FORGET_RESULT: &str = "DELETE FROM results WHERE job = (SELECT no FROM jobs WHERE id = ?1)";
const PAUSE: &str = "INSERT INTO pools (name, paused_until) VALUES (?1, ?2) \
    ON CONFLICT DO UPDATE SET paused_until = max(paused_until, excluded.paused_until)";
const LIMIT: &str = "INSERT INTO pools (name, most) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET most = excluded.most";
const OLD: &str = "state IN ('done', 'dead', 'cancelled') AND changed <= ?1";

impl QueueTables {
    pub(super) fn submit(&self, jobs: &[JobSpec]) -> Result<Vec<Submitted>, StoreError> {
        self.write("queue submit", Safe::FromPower, |transaction, now| {
            jobs.iter().map(|job| add(transaction, job, now)).collect()
        })
    }

    pub(super) fn submit_again(&self, job: &JobSpec) -> Result<Submitted, StoreError> {
        self.write("queue submit again", Safe::FromPower, |transaction, now| {
            let id = job.id.as_str();
            if transaction.execute(AGAIN, params![id, job.payload, Clock::after(now, job.delay)])? == 0 {
                return add(transaction, job, now);
            }
            transaction.execute(FORGET_RESULT, [id])?;
            Ok(Submitted::Queued)
        })
    }

    pub(super) fn cancel(&self, scope: &CancelScope) -> Result<CancelCount, StoreError> {
        let (column, name) = match scope {
            CancelScope::Job(job) => ("id", job.as_str()),
            CancelScope::Batch(batch) => ("batch", batch.as_str()),
        };
        self.write("queue cancel", Safe::FromPower, |transaction, now| {
            let change =
                |sql: String, row: &[&dyn rusqlite::ToSql]| transaction.execute(&sql, row).map(|count| count as u64);
            let end =
                format!("UPDATE jobs SET state = 'cancelled', changed = ?2 WHERE {column} = ?1 AND state = 'queued'");
            let tell = format!("UPDATE jobs SET is_cancelling = 1 WHERE {column} = ?1 AND state = 'running'");
            Ok(CancelCount { ended: change(end, &[&name, &now])?, running: change(tell, &[&name])? })
        })
    }

    pub(super) fn revive(&self, job: &JobId) -> Result<Revived, StoreError> {
        self.write("queue revive", Safe::FromPower, |transaction, now| {
            if transaction.execute(REVIVE, (job.as_str(), now))? == 1 {
                return Ok(Revived::Queued);
            }
            let sql = "SELECT state FROM jobs WHERE id = ?1";
            let found = transaction.query_row(sql, [job.as_str()], |row| state(row, 0)).optional()?;
            Ok(found.map_or(Revived::Unknown, Revived::Is))
        })
    }

    pub(super) fn take_back(&self, pool: &PoolName) -> Result<(), StoreError> {
        self.write("queue take back", Safe::FromKill, |transaction, now| {
            let sql = "UPDATE jobs SET lease_until = ?2 WHERE pool = ?1 AND state = 'running'";
            transaction.execute(sql, (pool.as_str(), now))?;
            reap(transaction, now)
        })
    }

    pub(super) fn pause(&self, pool: &PoolName, time: Duration) -> Result<(), StoreError> {
        self.write("queue pause", Safe::FromKill, |transaction, now| {
            transaction.execute(PAUSE, (pool.as_str(), Clock::after(now, time))).map(drop)
        })
    }

    pub(super) fn resume(&self, pool: &PoolName) -> Result<(), StoreError> {
        self.write("queue resume", Safe::FromKill, |transaction, _| {
            transaction.execute("UPDATE pools SET paused_until = 0 WHERE name = ?1", [pool.as_str()]).map(drop)
        })
    }

    pub(super) fn limit(&self, pool: &PoolName, most: Option<u32>) -> Result<(), StoreError> {
        self.write("queue limit", Safe::FromPower, |transaction, _| {
            transaction.execute(LIMIT, (pool.as_str(), most)).map(drop)
        })
    }

    pub(super) fn gc(&self, age: Duration) -> Result<u64, StoreError> {
        let gone = self.write("queue gc", Safe::FromKill, |transaction, now| forget(transaction, now, age))?;
        schema::shrink(&self.db).map_err(|error| self.fault(error))?;
        Ok(gone)
    }
}

/// Adds a job, unless its id is known.
fn add(transaction: &Transaction<'_>, job: &JobSpec, now: i64) -> rusqlite::Result<Submitted> {
    let added = transaction.prepare_cached(ADD)?.execute(params![
        job.id.as_str(),
        job.batch.as_str(),
        job.pool.as_str(),
        priority_number(job.priority),
        job.payload,
        job.deliveries.get(),
        Clock::after(now, job.delay),
        now
    ])?;
    Ok(if added == 1 { Submitted::Queued } else { Submitted::Duplicate })
}

fn forget(transaction: &Transaction<'_>, now: i64, age: Duration) -> rusqlite::Result<u64> {
    let before = now.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
    transaction.execute(&format!("DELETE FROM results WHERE job IN (SELECT no FROM jobs WHERE {OLD})"), [before])?;
    transaction.execute(&format!("DELETE FROM jobs WHERE {OLD}"), [before]).map(|count| count as u64)
}

const ROWS: &str = "SELECT no, id, batch, pool, priority, state, changed, jobs.attempt, deliveries, jobs.worker, not_before, is_cancelling, \
    reason, why, r.token, r.attempt, r.worker, manifest FROM jobs LEFT JOIN results r ON job = no";
const ROWS_AND_PAYLOADS: &str = "SELECT no, id, batch, pool, priority, state, changed, jobs.attempt, deliveries, jobs.worker, not_before, \
    is_cancelling, reason, why, r.token, r.attempt, r.worker, manifest, payload FROM jobs LEFT JOIN results r ON job = no";
const COUNTS: &str =
    "SELECT state, count(*), total(is_cancelling) FROM jobs WHERE ?1 IS NULL OR batch = ?1 GROUP BY state";
const POOLS: &str = "WITH names (name) AS (SELECT name FROM pools UNION SELECT pool FROM jobs) \
    SELECT name, most, coalesce(paused_until, 0), (SELECT count(*) FROM jobs WHERE pool = name AND state = 'queued'), \
    (SELECT count(*) FROM jobs WHERE pool = name AND state = 'running') FROM names LEFT JOIN pools USING (name) ORDER BY name";

impl QueueTables {
    pub(super) fn status(&self, batch: Option<&BatchId>) -> Result<QueueStatus, StoreError> {
        self.read(|db, now| {
            let mut status = QueueStatus::default();
            let mut statement = db.prepare_cached(COUNTS)?;
            let mut rows = statement.query([batch.map(BatchId::as_str)])?;
            while let Some(row) = rows.next()? {
                let count = row.get::<_, i64>(1)?.cast_unsigned();
                match state(row, 0)? {
                    QueueState::Queued => status.queued = count,
                    QueueState::Running => (status.running, status.cancelling) = (count, row.get::<_, f64>(2)? as u64),
                    QueueState::Done => status.done = count,
                    QueueState::Dead => status.dead = count,
                    QueueState::Cancelled => status.cancelled = count,
                }
            }
            status.pools = pools(db, now)?;
            Ok(status)
        })
    }

    pub(super) fn jobs(&self, which: &JobFilter) -> Result<Vec<QueuedJob>, StoreError> {
        let sql = format!(
            "{ROWS} WHERE (?1 IS NULL OR batch = ?1) AND (?2 IS NULL OR state = ?2) AND no > ?3 ORDER BY no LIMIT ?4"
        );
        let after = i64::try_from(which.after).unwrap_or(i64::MAX);
        let values = (which.batch.as_ref().map(BatchId::as_str), which.state.map(state_text), after, which.most);
        self.read(|db, now| db.prepare_cached(&sql)?.query_map(values, |row| job(row, now))?.collect())
    }

    /// Returns the jobs of a pool in these states before a position, newest first, with their
    /// payloads.
    pub(super) fn newest(
        &self,
        pool: &PoolName,
        states: &[QueueState],
        before: Option<u64>,
        most: u32,
    ) -> Result<Vec<(QueuedJob, String)>, StoreError> {
        let sql = format!(
            "{ROWS_AND_PAYLOADS} WHERE pool = ?1 AND state IN ({}) AND no < ?2 ORDER BY no DESC LIMIT ?3",
            states.iter().map(|state| format!("'{}'", state_text(*state))).collect::<Vec<_>>().join(", ")
        );
        let before = before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
        let both = |row: &Row<'_>, now| Ok((job(row, now)?, row.get(18)?));
        self.read(|db, now| {
            db.prepare_cached(&sql)?.query_map((pool.as_str(), before, most), |row| both(row, now))?.collect()
        })
    }

    /// Returns one job with its payload.
    pub(super) fn job_and_payload(&self, id: &JobId) -> Result<Option<(QueuedJob, String)>, StoreError> {
        let sql = format!("{ROWS_AND_PAYLOADS} WHERE id = ?1");
        let both = |row: &Row<'_>, now| Ok((job(row, now)?, row.get(18)?));
        self.read(|db, now| db.prepare_cached(&sql)?.query_row([id.as_str()], |row| both(row, now)).optional())
    }

    pub(super) fn job(&self, id: &JobId) -> Result<Option<QueuedJob>, StoreError> {
        let sql = format!("{ROWS} WHERE id = ?1");
        self.read(|db, now| db.prepare_cached(&sql)?.query_row([id.as_str()], |row| job(row, now)).optional())
    }
}

fn pools(db: &Connection, now: i64) -> rusqlite::Result<Vec<PoolStatus>> {
    let pool = |row: &Row<'_>| {
        Ok(PoolStatus {
            name: name(row, 0)?,
            limit: row.get(1)?,
            paused: Clock::between(now, row.get(2)?),
            queued: row.get::<_, i64>(3)?.cast_unsigned(),
            running: row.get::<_, i64>(4)?.cast_unsigned(),
        })
    };
    db.prepare_cached(POOLS)?.query_map([], pool)?.collect()
}

fn job(row: &Row<'_>, now: i64) -> rusqlite::Result<QueuedJob> {
    let state = state(row, 5)?;
    let worker = row.get::<_, Option<String>>(9)?.map(|_| name::<WorkerId>(row, 9)).transpose()?;
    let result = row.get::<_, Option<i64>>(14)?.map(|token| {
        Ok::<_, rusqlite::Error>(KeptResult {
            manifest: ResultText(row.get(17)?),
            token: token.cast_unsigned(),
            attempt: row.get(15)?,
            worker: name(row, 16)?,
        })
    });
    Ok(QueuedJob {
        place: row.get::<_, i64>(0)?.cast_unsigned(),
        id: name(row, 1)?,
        batch: name(row, 2)?,
        pool: name(row, 3)?,
        priority: priority(row.get(4)?),
        state,
        since: Clock::between(row.get(6)?, now),
        attempt: row.get(7)?,
        deliveries: row.get(8)?,
        worker,
        delay: if state == QueueState::Queued { Clock::between(now, row.get(10)?) } else { Duration::ZERO },
        is_cancelling: row.get(11)?,
        why: reason(row.get::<_, Option<String>>(12)?.as_deref(), row.get(13)?),
        result: result.transpose()?,
    })
}

/// Reads a name from a column.
pub(super) fn name<T: TryFrom<String, Error = NameError>>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    T::try_from(text).map_err(|fault| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(fault)))
}

fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<QueueState> {
    let text: String = row.get(column)?;
    let all = [QueueState::Queued, QueueState::Running, QueueState::Done, QueueState::Dead, QueueState::Cancelled];
    let unknown = || rusqlite::Error::InvalidColumnType(column, text.clone(), Type::Text);
    all.into_iter().find(|state| state_text(*state) == text).ok_or_else(unknown)
}

fn state_text(state: QueueState) -> &'static str {
    match state {
        QueueState::Queued => "queued",
        QueueState::Running => "running",
        QueueState::Done => "done",
        QueueState::Dead => "dead",
        QueueState::Cancelled => "cancelled",
    }
}

fn priority_number(priority: Priority) -> u8 {
    match priority {
        Priority::High => 0,
        Priority::Normal => 1,
        Priority::Low => 2,
    }
}

fn priority(number: u8) -> Priority {
    match number {
        0 => Priority::High,
        1 => Priority::Normal,
        _ => Priority::Low,
    }
}
