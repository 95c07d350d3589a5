//! Loop of one job. It starts due runs, records missed ones, and serves requests, one after the
//! other.

use super::data::JobState;
use super::job::{JobContext, JobError, ScheduledJob};
use super::shared::{SchedulerShared, SchedulerUpdate};
use crate::schedule::jitter;
use crate::store::{StoredJob, StoredJobEnd};
use futures_util::FutureExt;
use jiff::Timestamp;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// The longest sleep. It bounds the delay until an adjustment of the wall clock is noticed.
const NAP: Duration = Duration::from_secs(20);
/// The maximum number of tries of a run, and the pause after the first one.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(5);
/// Missed due times of one check that get a row each. Earlier ones share one row.
const NAMED: usize = 50;

/// The loop of one job.
#[derive(Debug)]
pub(super) struct JobLoop {
    pub(super) shared: Arc<SchedulerShared>,
    pub(super) name: String,
    /// The end of its last run. Due times up to then passed while it ran.
    busy_until: Option<Timestamp>,
}

/// A run to begin.
#[derive(Debug, Clone, Copy)]
struct Begin {
    due: Timestamp,
    /// The start time: the due time plus jitter.
    at: Timestamp,
}

impl JobLoop {
    pub(super) fn new(shared: Arc<SchedulerShared>, name: String) -> Self {
        Self { shared, name, busy_until: None }
    }

    /// Runs the loop until the job is gone or the server ends.
    pub(super) async fn tend(mut self) {
        let mut begins_anew = true;
        while let Some(job) = self.shared.job(&self.name) {
            let tended = self.once(&job, begins_anew).await;
            match tended {
                Ok(()) => begins_anew = false,
                Err(error) => {
                    tracing::warn!("job `{}` is delayed: {error}", self.name);
                    // A run may still be open in the store. It is handled like one left by an
                    // earlier server.
                    self.shared.is_in(&self.name, JobState::Idle);
                    begins_anew = true;
                    self.rest(PAUSE).await;
                }
            }
            if self.shared.stop.is_cancelled() {
                break;
            }
        }
        self.shared.gone(&self.name);
    }

    async fn once(&mut self, job: &Arc<dyn ScheduledJob>, begins_anew: bool) -> Result<(), JobError> {
        let row = self.settle(job).await?;
        if begins_anew {
            self.take_up(job).await?;
        }
        let begin = self.due(job, &row).await?;
        let now = self.shared.clock.now();
        match begin {
            Some(Begin { due, at }) if at <= now => {
                let (name, stamp) = (self.name.clone(), now.as_millisecond());
                let begun = self
                    .shared
                    .ledger
                    .with(move |store| store.begin_job(&name, Some(due.as_millisecond()), stamp))
                    .await?;
                if let Some(no) = begun {
                    self.run(job, no, Some(due)).await?;
                }
                return Ok(());
            }
            _ => {}
        }
        if self.shared.take_asked(&self.name) {
            let (name, stamp) = (self.name.clone(), now.as_millisecond());
            if let Some(no) = self.shared.ledger.with(move |store| store.begin_job(&name, None, stamp)).await? {
                self.run(job, no, None).await?;
            }
            return Ok(());
        }
        let next = begin.map(|begin| begin.at).or_else(|| job.schedule().next(now).map(|due| self.put_off(job, due)));
        self.shared.expects(&self.name, begin.map_or_else(|| job.schedule().next(now), |begin| Some(begin.due)));
        let until = next.map_or(NAP, |next| Duration::try_from(next.duration_since(now)).unwrap_or_default().min(NAP));
        self.rest(until).await;
        Ok(())
    }

    /// Waits until the time is over, a request arrives, or the server ends.
    async fn rest(&self, time: Duration) {
        let poked = self.shared.poked(&self.name);
        tokio::select! {
            biased;
            () = self.shared.stop.cancelled() => {}
            () = poked.notified() => {}
            () = sleep(time.max(Duration::from_millis(1))) => {}
        }
    }

    async fn settle(&self, job: &Arc<dyn ScheduledJob>) -> Result<StoredJob, JobError> {
        let now = self.shared.clock.now().as_millisecond();
        let schedule = job.schedule();
        let row = StoredJob {
            name: self.name.clone(),
            kind: job.kind().word().into(),
            schedule: schedule.text().into(),
            zone: schedule.zone().into(),
            handled_ms: if job.tolerance().is_none() { 0 } else { now },
        };
        self.shared.ledger.with(move |store| store.settle_job(&row)).await
    }

    /// Handles runs that an earlier server left open: continues them, or marks them as interrupted.
    async fn take_up(&mut self, job: &Arc<dyn ScheduledJob>) -> Result<(), JobError> {
        let name = self.name.clone();
        let left = self.shared.ledger.with(move |store| store.open_job_runs(&name)).await?;
        for run in left {
            if job.resumes() && !self.shared.stop.is_cancelled() {
                let due = run.due_ms.and_then(|due| Timestamp::from_millisecond(due).ok());
                self.run(job, run.no, due).await?;
            } else if !job.resumes() {
                self.end(run.no, "interrupted", 0, Some("the server stopped before the job ended".into())).await?;
            }
        }
        Ok(())
    }

    /// Returns the run to begin next. Records due times that are too old as missed or skipped.
    async fn due(&self, job: &Arc<dyn ScheduledJob>, row: &StoredJob) -> Result<Option<Begin>, JobError> {
        let now = self.shared.clock.now();
        let handled = Timestamp::from_millisecond(row.handled_ms).unwrap_or(now).min(now);
        let schedule = job.schedule();
        let Some(tolerance) = job.tolerance() else {
            let latest = schedule.latest(now).filter(|due| *due > handled);
            return Ok(latest.map(|due| Begin { due, at: self.put_off(job, due) }));
        };
        let due = schedule.due(handled, now, NAMED + 1);
        let newest = due.newest.last().copied().map(|due| Begin { due, at: self.put_off(job, due) });
        let begin = newest.filter(|begin| begin.at.checked_add(tolerance).is_ok_and(|until| now <= until));
        let old = due.newest.len() - usize::from(begin.is_some());
        let old = &due.newest[..old];
        let together = old.first().and_then(|first| schedule.previous(*first)).filter(|_| due.earlier > 0);
        let mut over: Vec<(Timestamp, u64)> = together.map(|before| (before, due.earlier)).into_iter().collect();
        over.extend(old.iter().map(|due| (*due, 1)));
        if let Some((last, _)) = over.last().copied() {
            let was_busy = |due: Timestamp| self.busy_until.is_some_and(|until| due <= until);
            let (skipped, missed): (Vec<_>, Vec<_>) = over.into_iter().partition(|(due, _)| was_busy(*due));
            let (to_ms, now_ms) = (last.as_millisecond(), now.as_millisecond());
            for (state, dues) in [("skipped", skipped), ("missed", missed)] {
                let dues: Vec<(i64, u64)> =
                    dues.into_iter().map(|(due, count)| (due.as_millisecond(), count)).collect();
                let name = self.name.clone();
                self.shared.ledger.with(move |store| store.pass_over_job(&name, state, &dues, to_ms, now_ms)).await?;
            }
        }
        Ok(begin)
    }

    fn put_off(&self, job: &Arc<dyn ScheduledJob>, due: Timestamp) -> Timestamp {
        due.checked_add(jitter(job.jitter(), &self.name, due)).unwrap_or(due)
    }

    /// Runs the job, three times at most, and records how it ended. A paused run stays open.
    async fn run(&mut self, job: &Arc<dyn ScheduledJob>, no: i64, due: Option<Timestamp>) -> Result<(), JobError> {
        self.shared.is_in(&self.name, JobState::Running);
        self.shared.publish(SchedulerUpdate::Job { name: self.name.clone(), state: "running".into() });
        let context = |tries| JobContext { no, due, is_last: tries == TRIES, stop: self.shared.stop.clone() };
        let mut tries = 0;
        let ended = loop {
            tries += 1;
            let done = AssertUnwindSafe(job.run(context(tries))).catch_unwind().await;
            let done = done.unwrap_or_else(|_| Err(JobError::Final("the job panicked".into())));
            match done {
                Err(JobError::Retryable(why)) if tries < TRIES => {
                    let message = why.clone();
                    self.shared.ledger.with(move |store| store.note_job(no, tries, Some(&message), None)).await?;
                    tokio::select! {
                        biased;
                        () = self.shared.stop.cancelled() => break Err(JobError::Resting),
                        () = sleep(PAUSE * 2u32.pow(tries - 1)) => {}
                    }
                }
                done => break done,
            }
        };
        self.busy_until = Some(self.shared.clock.now());
        self.shared.is_in(&self.name, JobState::Idle);
        match ended {
            Err(JobError::Resting) => Ok(()),
            Ok(()) => self.end(no, "ok", tries, None).await,
            Err(JobError::Retryable(why) | JobError::Final(why)) => {
                tracing::warn!("job `{}` failed: {why}", self.name);
                self.end(no, "failed", tries, Some(why)).await
            }
        }
    }

    async fn end(&self, no: i64, state: &'static str, tries: u32, message: Option<String>) -> Result<(), JobError> {
        let ended_ms = self.shared.clock.now().as_millisecond();
        let end = move |store: &crate::store::Store| {
            store.end_job(no, &StoredJobEnd { ended_ms, state, tries, message: message.as_deref() })
        };
        self.shared.ledger.with(end).await?;
        self.shared.publish(SchedulerUpdate::Job { name: self.name.clone(), state: state.into() });
        Ok(())
    }
}
