//! Calls to a queue that need no lease.

use super::super::{StoreError, schema};
use super::clock::Clock;
use super::ledger::{QueueTables, Safe, reap};
use super::look::{priority_number, state};
use crate::queue::{CancelCount, CancelScope, JobId, JobSpec, PoolName, Revived, Submitted};
use rusqlite::{OptionalExtension, Transaction, params};
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
