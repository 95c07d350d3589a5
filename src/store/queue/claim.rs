//! Claims: finding a job that may start, and giving it to a worker.

use super::super::StoreError;
use super::clock::Clock;
use super::ledger::{QueueTables, Safe, reap};
use crate::queue::{BatchId, JobLease, PoolName, Worker};
use rusqlite::{Connection, OptionalExtension, Row, Transaction};

/// Selects true for a pool that is neither paused nor at its limit.
const IS_OPEN: &str = "SELECT paused_until <= ?2 AND (most IS NULL OR most > \
    (SELECT count(*) FROM jobs WHERE pool = ?1 AND state = 'running')) FROM pools WHERE name = ?1";
/// Selects the next job of a pool, with its sort key among all pools.
const NEXT: &str = "SELECT priority, no FROM jobs WHERE pool = ?1 AND state = 'queued' AND not_before <= ?2 \
    AND (?3 IS NULL OR batch = ?3) ORDER BY priority, no LIMIT 1";
const TOKEN: &str = "UPDATE fence SET last = last + 1 RETURNING last";
const TAKE: &str = "UPDATE jobs SET state = 'running', attempt = attempt + 1, token = ?2, worker = ?3, lease_until = ?4, changed = ?5 \
    WHERE no = ?1 RETURNING id, batch, pool, payload, attempt, deliveries";

impl QueueTables {
    /// Claims the next job that may start, for this worker.
    pub(super) fn claim(&self, worker: &Worker, pools: &[PoolName]) -> Result<Option<JobLease>, StoreError> {
        // Checks without a lock first, so that waiting workers do not block other processes.
        let batch = worker.batch.as_ref();
        let is_due = || Ok(self.is_late()? || next(&self.db, pools, batch, self.now())?.is_some());
        if !is_due().map_err(|error| self.fault(error))? {
            return Ok(None);
        }
        self.write("queue claim", Safe::FromKill, |transaction, now| {
            reap(transaction, now)?;
            let no = next(transaction, pools, batch, now)?;
            no.map(|no| take(transaction, no, worker, now)).transpose()
        })
    }
}

/// Returns the number of the next job over all of these pools.
fn next(db: &Connection, pools: &[PoolName], batch: Option<&BatchId>, now: i64) -> rusqlite::Result<Option<i64>> {
    let (mut is_open, mut next) = (db.prepare_cached(IS_OPEN)?, db.prepare_cached(NEXT)?);
    let (batch, mut first) = (batch.map(BatchId::as_str), None::<(i64, i64)>);
    for pool in pools {
        if is_open.query_row((pool.as_str(), now), |row| row.get(0)).optional()?.unwrap_or(true) {
            let found = next.query_row((pool.as_str(), now, batch), |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            first = [first, found].into_iter().flatten().min();
        }
    }
    Ok(first.map(|(_, no)| no))
}

fn take(transaction: &Transaction<'_>, no: i64, worker: &Worker, now: i64) -> rusqlite::Result<JobLease> {
    let token: i64 = transaction.prepare_cached(TOKEN)?.query_row([], |row| row.get(0))?;
    let lease = |row: &Row<'_>| {
        let (attempt, deliveries): (u32, u32) = (row.get(4)?, row.get(5)?);
        Ok(JobLease {
            job: super::look::name(row, 0)?,
            batch: super::look::name(row, 1)?,
            pool: super::look::name(row, 2)?,
            payload: row.get(3)?,
            attempt,
            is_last: attempt >= deliveries,
            token: token.cast_unsigned(),
            worker: worker.id.clone(),
            term: worker.term,
        })
    };
    let until = Clock::after(now, worker.term);
    transaction.prepare_cached(TAKE)?.query_row((no, token, worker.id.as_str(), until, now), lease)
}
