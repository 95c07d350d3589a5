//! Leases: finding a job that may start and giving it to a worker, and calls under a lease. Such
//! calls take effect only if the job still has the lease's number.

use super::super::StoreError;
use super::clock::Clock;
use super::tables::{QueueTables, Safe, columns, reap};
use crate::queue::{BatchId, BuryReason, Completed, JobLease, PoolName, Released, Renewed, ResultText, Retry, Worker};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use std::time::Duration;

/// Selects true for a pool that is neither paused nor at its limit.
const IS_OPEN: &str = "SELECT paused_until <= ?2 AND (most IS NULL OR most > \
    (SELECT count(*) FROM jobs WHERE pool = ?1 AND state = 'running')) FROM pools WHERE name = ?1";
/// Selects the next job of a pool, with its sort key among all pools.
const NEXT: &str = "SELECT priority, no FROM jobs WHERE pool = ?1 AND state = 'queued' AND not_before <= ?2 \
    AND (?3 IS NULL OR batch = ?3) ORDER BY priority, no LIMIT 1";
const TOKEN: &str = "UPDATE fence SET last = last + 1 RETURNING last";
const TAKE: &str = "UPDATE jobs SET state = 'running', attempt = attempt + 1, token = ?2, worker = ?3, lease_until = ?4, changed = ?5 \
    WHERE no = ?1 RETURNING id, batch, pool, payload, attempt, deliveries";
const HELD: &str = "SELECT no, lease_until, is_cancelling, attempt, deliveries FROM jobs \
    WHERE id = ?1 AND token = ?2 AND state = 'running'";
const RENEW: &str = "UPDATE jobs SET lease_until = ?2 WHERE no = ?1";
const KEEP: &str = "INSERT INTO results (job, token, attempt, worker, manifest) VALUES (?1, ?2, ?3, ?4, ?5)";
const KEPT: &str = "SELECT r.token, r.manifest FROM results r JOIN jobs ON no = job WHERE id = ?1";
const DONE: &str = "UPDATE jobs SET state = 'done', lease_until = NULL, is_cancelling = 0, reason = NULL, why = NULL, changed = ?2 WHERE no = ?1";
const END: &str = "UPDATE jobs SET state = ?2, lease_until = NULL, is_cancelling = 0, not_before = ?3, attempt = ?4, reason = ?5, why = ?6, \
    changed = ?7 WHERE no = ?1";

/// A job whose lease still holds.
struct Held {
    no: i64,
    until: i64,
    is_cancelling: bool,
    attempt: u32,
    deliveries: u32,
}

impl QueueTables {
    pub(super) fn renew(&self, lease: &JobLease) -> Result<Renewed, StoreError> {
        let reported = |held: &Held| if held.is_cancelling { Renewed::Cancelled } else { Renewed::Kept };
        // While more than the promised time is left, a renewal needs no write.
        let held = held(&self.db, lease).map_err(|error| self.fault(error))?;
        let Some(found) = held else { return Ok(Renewed::Lost) };
        if Clock::between(self.now(), found.until) > lease.fence() {
            return Ok(reported(&found));
        }
        self.write("queue renew", Safe::FromKill, |transaction, now| {
            let Some(held) = self::held(transaction, lease)? else { return Ok(Renewed::Lost) };
            transaction.prepare_cached(RENEW)?.execute((held.no, Clock::after(now, lease.term)))?;
            Ok(reported(&held))
        })
    }

    pub(super) fn complete(&self, lease: &JobLease, manifest: &ResultText) -> Result<Completed, StoreError> {
        self.write("queue complete", Safe::FromPower, |transaction, now| {
            let Some(held) = held(transaction, lease)? else { return kept(transaction, lease, manifest) };
            let token = lease.token.cast_signed();
            let row = params![held.no, token, held.attempt, lease.worker.as_str(), manifest.0];
            transaction.prepare_cached(KEEP)?.execute(row)?;
            transaction.prepare_cached(DONE)?.execute((held.no, now))?;
            Ok(Completed::First)
        })
    }

    pub(super) fn release(&self, lease: &JobLease, retry: &Retry) -> Result<Released, StoreError> {
        self.write("queue release", Safe::FromKill, |transaction, now| {
            let Some(held) = held(transaction, lease)? else { return Ok(Released::Lost) };
            let is_over = held.attempt >= held.deliveries;
            match retry {
                _ if held.is_cancelling => held.end(transaction, Released::Cancelled, None, Duration::ZERO, now),
                Retry::Unused => Held { attempt: held.attempt.saturating_sub(1), ..held }.end(
                    transaction,
                    Released::Queued,
                    None,
                    Duration::ZERO,
                    now,
                ),
                Retry::After { delay, why } => {
                    let becomes = if is_over { Released::Buried } else { Released::Queued };
                    held.end(transaction, becomes, Some(&BuryReason::Failed(why.clone())), *delay, now)
                }
            }
        })
    }

    pub(super) fn bury(&self, lease: &JobLease, why: &str) -> Result<Released, StoreError> {
        self.write("queue bury", Safe::FromPower, |transaction, now| {
            let Some(held) = held(transaction, lease)? else { return Ok(Released::Lost) };
            let becomes = if held.is_cancelling { Released::Cancelled } else { Released::Buried };
            held.end(transaction, becomes, Some(&BuryReason::Refused(why.to_owned())), Duration::ZERO, now)
        })
    }
}

impl Held {
    /// Ends the lease.
    fn end(
        self,
        transaction: &Transaction<'_>,
        becomes: Released,
        why: Option<&BuryReason>,
        delay: Duration,
        now: i64,
    ) -> rusqlite::Result<Released> {
        let state = match becomes {
            Released::Queued => "queued",
            Released::Buried => "dead",
            Released::Cancelled => "cancelled",
            Released::Lost => return Ok(becomes),
        };
        let (reason, why) = why.map(columns).map_or((None, None), |(reason, why)| (Some(reason), why));
        let row = params![self.no, state, Clock::after(now, delay), self.attempt, reason, why, now];
        transaction.prepare_cached(END)?.execute(row)?;
        Ok(becomes)
    }
}

/// Returns the job of a lease if the lease still holds.
fn held(db: &Connection, lease: &JobLease) -> rusqlite::Result<Option<Held>> {
    let row = (lease.job.as_str(), lease.token.cast_signed());
    let held = db.prepare_cached(HELD)?.query_row(row, |row| {
        Ok(Held {
            no: row.get(0)?,
            until: row.get(1)?,
            is_cancelling: row.get(2)?,
            attempt: row.get(3)?,
            deliveries: row.get(4)?,
        })
    });
    held.optional()
}

/// Returns the outcome for a result whose lease no longer holds.
fn kept(transaction: &Transaction<'_>, lease: &JobLease, manifest: &ResultText) -> rusqlite::Result<Completed> {
    let kept =
        transaction.query_row(KEPT, [lease.job.as_str()], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)));
    Ok(match kept.optional()? {
        None => Completed::Lost,
        Some((token, text)) if token == lease.token.cast_signed() && text == manifest.0 => Completed::First,
        Some(_) => Completed::AlreadyDone,
    })
}

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
            job: super::jobs::name(row, 0)?,
            batch: super::jobs::name(row, 1)?,
            pool: super::jobs::name(row, 2)?,
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
