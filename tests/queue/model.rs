//! A minimal model of a queue: in memory, without clocks.

use crate::queue::stage::pool;
use fledge::queue::{
    BuryReason, CancelCount, CancelScope, Completed, JobLease, JobSpec, QueueState, QueuedJob, Released, Renewed,
    ResultText, Retry, Revived, Submitted, Worker,
};
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Model {
    /// The jobs in the order of submission.
    jobs: Vec<Job>,
    limits: BTreeMap<String, u32>,
    paused: BTreeMap<String, ()>,
}

#[derive(Debug, Clone)]
struct Job {
    spec: JobSpec,
    state: QueueState,
    attempt: u32,
    /// The token of the latest lease.
    token: u64,
    worker: Option<String>,
    is_cancelling: bool,
    is_delayed: bool,
    why: Option<BuryReason>,
    result: Option<(String, u64, u32)>,
}

/// The compared properties of a job.
type Seen = (String, QueueState, u32, Option<String>, bool, bool, Option<BuryReason>, Option<(String, u64, u32)>);

impl Model {
    pub(crate) fn submit(&mut self, specs: &[JobSpec]) -> Vec<Submitted> {
        let mut add = |spec: &JobSpec| {
            if self.jobs.iter().any(|job| job.spec.id == spec.id) {
                return Submitted::Duplicate;
            }
            self.jobs.push(Job {
                spec: spec.clone(),
                state: QueueState::Queued,
                attempt: 0,
                token: 0,
                worker: None,
                is_cancelling: false,
                is_delayed: spec.delay > Duration::ZERO,
                why: None,
                result: None,
            });
            Submitted::Queued
        };
        specs.iter().map(&mut add).collect()
    }

    /// Returns the next job to be claimed, and the number of its delivery.
    pub(crate) fn next(&self, worker: &Worker, pools: &[&str]) -> Option<(String, u32)> {
        let is_free = |of: &str| {
            let running =
                self.jobs.iter().filter(|job| job.spec.pool == pool(of) && job.state == QueueState::Running).count();
            !self.paused.contains_key(of) && self.limits.get(of).is_none_or(|limit| running < *limit as usize)
        };
        let may = |job: &&Job| {
            let of = job.spec.pool.as_str();
            let is_theirs = pools.contains(&of) && worker.batch.as_ref().is_none_or(|batch| *batch == job.spec.batch);
            job.state == QueueState::Queued && !job.is_delayed && is_theirs && is_free(of)
        };
        let first = self.jobs.iter().filter(may).min_by_key(|job| job.spec.priority)?;
        Some((first.spec.id.to_string(), first.attempt + 1))
    }

    pub(crate) fn claimed(&mut self, lease: &JobLease) {
        let highest = self.jobs.iter().map(|job| job.token).max().unwrap_or_default();
        assert!(lease.token > highest, "{lease:?} after {highest}");
        let job = self.jobs.iter_mut().find(|job| job.spec.id == lease.job).unwrap();
        assert_eq!((&lease.payload, lease.is_last), (&job.spec.payload, job.attempt + 1 == job.spec.deliveries.get()));
        (job.state, job.attempt, job.token) = (QueueState::Running, job.attempt + 1, lease.token);
        job.worker = Some(lease.worker.to_string());
    }

    /// Ends a lease whose term has passed.
    pub(crate) fn outlived(&mut self, lease: &JobLease) {
        let Some(job) = self.held(lease) else { return };
        let (is_last, is_cancelling) = (job.attempt >= job.spec.deliveries.get(), job.is_cancelling);
        let becomes = match (is_cancelling, is_last) {
            (true, _) => QueueState::Cancelled,
            (false, true) => QueueState::Dead,
            (false, false) => QueueState::Queued,
        };
        job.end(becomes, Some(BuryReason::Vanished));
    }

    pub(crate) fn renew(&mut self, lease: &JobLease) -> Renewed {
        match self.held(lease) {
            None => Renewed::Lost,
            Some(job) if job.is_cancelling => Renewed::Cancelled,
            Some(_) => Renewed::Kept,
        }
    }

    pub(crate) fn complete(&mut self, lease: &JobLease, manifest: &ResultText) -> Completed {
        if let Some(job) = self.held(lease) {
            job.result = Some((manifest.0.clone(), lease.token, job.attempt));
            job.end(QueueState::Done, None);
            return Completed::First;
        }
        let kept = self.jobs.iter().find(|job| job.spec.id == lease.job).and_then(|job| job.result.as_ref());
        match kept {
            None => Completed::Lost,
            Some((text, token, _)) if (text, *token) == (&manifest.0, lease.token) => Completed::First,
            Some(_) => Completed::AlreadyDone,
        }
    }

    pub(crate) fn release(&mut self, lease: &JobLease, retry: &Retry) -> Released {
        let Some(job) = self.held(lease) else { return Released::Lost };
        let is_last = job.attempt >= job.spec.deliveries.get();
        match retry {
            _ if job.is_cancelling => job.end(QueueState::Cancelled, None),
            Retry::Unused => {
                job.attempt -= 1;
                job.end(QueueState::Queued, None)
            }
            Retry::After { delay, why } => {
                job.is_delayed = *delay > Duration::ZERO;
                job.end(
                    if is_last { QueueState::Dead } else { QueueState::Queued },
                    Some(BuryReason::Failed(why.clone())),
                )
            }
        }
    }

    pub(crate) fn bury(&mut self, lease: &JobLease, why: &str) -> Released {
        let Some(job) = self.held(lease) else { return Released::Lost };
        let becomes = if job.is_cancelling { QueueState::Cancelled } else { QueueState::Dead };
        job.end(becomes, Some(BuryReason::Refused(why.into())))
    }

    pub(crate) fn cancel(&mut self, scope: &CancelScope) -> CancelCount {
        let mut met = CancelCount::default();
        for job in &mut self.jobs {
            let is_meant = match scope {
                CancelScope::Job(id) => job.spec.id == *id,
                CancelScope::Batch(batch) => job.spec.batch == *batch,
            };
            if is_meant && job.state == QueueState::Queued {
                job.state = QueueState::Cancelled;
                met.ended += 1;
            } else if is_meant && job.state == QueueState::Running {
                job.is_cancelling = true;
                met.running += 1;
            }
        }
        met
    }

    pub(crate) fn revive(&mut self, name: &str) -> Revived {
        let Some(job) = self.jobs.iter_mut().find(|job| job.spec.id.as_str() == name) else { return Revived::Unknown };
        if !matches!(job.state, QueueState::Dead | QueueState::Cancelled) {
            return Revived::Is(job.state);
        }
        (job.state, job.attempt, job.why, job.is_delayed) = (QueueState::Queued, 0, None, false);
        Revived::Queued
    }

    pub(crate) fn pause(&mut self, pool: &str, is_paused: bool) {
        self.paused.remove(pool);
        if is_paused {
            self.paused.insert(pool.into(), ());
        }
    }

    pub(crate) fn limit(&mut self, pool: &str, most: Option<u32>) {
        self.limits.remove(pool);
        if let Some(most) = most {
            self.limits.insert(pool.into(), most);
        }
    }

    pub(crate) fn gc(&mut self) -> u64 {
        let before = self.jobs.len();
        self.jobs.retain(|job| matches!(job.state, QueueState::Queued | QueueState::Running));
        (before - self.jobs.len()) as u64
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        let seen = |job: &Job| {
            let is_delayed = job.is_delayed && job.state == QueueState::Queued;
            let (id, result) = (job.spec.id.to_string(), job.result.clone());
            (id, job.state, job.attempt, job.worker.clone(), job.is_cancelling, is_delayed, job.why.clone(), result)
        };
        self.jobs.iter().map(seen).collect()
    }

    fn held(&mut self, lease: &JobLease) -> Option<&mut Job> {
        self.jobs
            .iter_mut()
            .find(|job| job.spec.id == lease.job && job.token == lease.token && job.state == QueueState::Running)
    }
}

impl Job {
    fn end(&mut self, becomes: QueueState, why: Option<BuryReason>) -> Released {
        (self.state, self.is_cancelling, self.why) = (becomes, false, why);
        match becomes {
            QueueState::Queued => Released::Queued,
            QueueState::Dead => Released::Buried,
            QueueState::Cancelled => Released::Cancelled,
            QueueState::Running | QueueState::Done => Released::Lost, // not observed
        }
    }
}

/// Returns the compared properties of a job of a real queue.
pub(crate) fn seen(row: &QueuedJob) -> Seen {
    let result = row.result.as_ref().map(|kept| (kept.manifest.0.clone(), kept.token, kept.attempt));
    let worker = row.worker.as_ref().map(ToString::to_string);
    let is_delayed = row.delay > Duration::ZERO;
    (row.id.to_string(), row.state, row.attempt, worker, row.is_cancelling, is_delayed, row.why.clone(), result)
}
