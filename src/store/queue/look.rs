//! Queries of a queue, and the conversion of its values from and to columns.

use super::super::StoreError;
use super::clock::Clock;
use super::ledger::{QueueTables, reason};
use crate::queue::{
    BatchId, JobFilter, JobId, KeptResult, NameError, PoolName, PoolStatus, Priority, QueueState, QueueStatus,
    QueuedJob, ResultText, WorkerId,
};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row};
use std::time::Duration;

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

pub(super) fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<QueueState> {
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

pub(super) fn priority_number(priority: Priority) -> u8 {
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
