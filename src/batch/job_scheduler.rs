//! Scheduling of the jobs of a batch. It takes ended runs and the time, and returns the next steps.
//! A job begins when everything it needs is verified, a slot is free and there is budget for it.
//! Pure.

use super::budget::BudgetPool;
use super::outcome::{FinishedJob, JobEnding, NotRunReason};
use crate::elapsed::Elapsed;
use crate::verdict::StopCause;
use std::time::Duration;

/// The bounds of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchLimits {
    /// The maximum number of runs in parallel.
    pub jobs: usize,
    /// True if the first job that is not verified ends the batch.
    pub fail_fast: bool,
    /// Further runs for a job whose run ended in an error. A verdict of the gate is a result, and
    /// the job is never tried again.
    pub retries: u32,
    /// The pause before each further run.
    pub retry_delay: Duration,
    /// The money limit for all jobs together, in millionths of a US dollar.
    pub usd_micros: Option<u64>,
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self { jobs: 1, fail_fast: false, retries: 0, retry_delay: Duration::from_secs(10), usd_micros: None }
    }
}

/// The properties of a job that matter for scheduling.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobSlot {
    /// The name of the job.
    pub name: String,
    /// The title of its task.
    pub title: String,
    /// Groups of jobs that it needs. One job of each group must be verified first.
    pub needs: Vec<Vec<usize>>,
    /// The race that it belongs to. The first verified job of a race ends the others.
    pub race: Option<usize>,
    /// The money limit of the job, or of its whole race together, in millionths of a US dollar.
    pub usd_micros: Option<u64>,
}

/// The state of a job before the scheduler starts.
#[derive(Debug, Clone, PartialEq)]
pub enum KnownJob {
    /// No process has worked on it.
    Nothing,
    /// It must be done. Its runs in earlier processes have cost this much, in millionths of a US
    /// dollar.
    Paid(u64),
    /// It has ended.
    Over(Box<FinishedJob>),
}

/// A step to carry out.
#[derive(Debug, Clone, PartialEq)]
pub enum SchedulerStep {
    /// Start a run, which is try number `tries` and may cost at most `usd_micros`.
    #[expect(missing_docs, reason = "the fields are named after what they hold")]
    Start { job: usize, tries: u32, usd_micros: Option<u64> },
    /// Stop a run.
    #[expect(missing_docs, reason = "the fields are named after what they hold")]
    Cancel { job: usize },
    /// Record that a job ended without a run.
    Over(usize, FinishedJob),
    /// Announce another try of a job after a pause.
    #[expect(missing_docs, reason = "the fields are named after what they hold")]
    Again { job: usize, tries: u32, after: Duration, outcome: FinishedJob },
}

/// All jobs of a batch and their states.
#[derive(Debug)]
pub struct BatchScheduler {
    bounds: BatchLimits,
    slots: Vec<JobSlot>,
    states: Vec<SlotState>,
    budgets: BudgetPool,
    /// The reason for jobs not to begin, once no further job may begin.
    closed: Option<NotRunReason>,
    steps: Vec<SchedulerStep>,
}

#[derive(Debug)]
enum SlotState {
    Waiting { tries: u32, not_before: Elapsed, cost: u64 },
    Running { tries: u32, reserved: u64, cost: u64, is_stopped: bool },
    Over(Box<FinishedJob>),
}

impl BatchScheduler {
    /// Creates a scheduler. Jobs that ended earlier keep their outcomes, and all earlier costs
    /// count as spent.
    pub fn new(bounds: BatchLimits, slots: Vec<JobSlot>, mut before: impl FnMut(usize) -> KnownJob) -> Self {
        let mut budgets = BudgetPool::new(bounds.usd_micros, &slots);
        let mut state = |job: usize| {
            let (cost, outcome) = match before(job) {
                KnownJob::Nothing => (0, None),
                KnownJob::Paid(cost) => (cost, None),
                KnownJob::Over(outcome) => (outcome.usd_micros, Some(outcome)),
            };
            budgets.spend(slots[job].race, cost);
            outcome.map_or(SlotState::Waiting { tries: 0, not_before: Elapsed::default(), cost }, SlotState::Over)
        };
        let states = (0..slots.len()).map(&mut state).collect();
        let mut scheduler = Self { bounds, slots, states, budgets, closed: None, steps: Vec::new() };
        (0..scheduler.slots.len()).for_each(|job| scheduler.apply_end(job));
        scheduler
    }

    /// Returns the steps to carry out at this time.
    pub fn next(&mut self, now: Elapsed) -> Vec<SchedulerStep> {
        // A job that ends here can allow or exclude another one, so repeat until nothing changes.
        loop {
            let before = self.steps.len();
            self.leave_out();
            self.start_ready_jobs(now);
            if self.steps.len() == before {
                return std::mem::take(&mut self.steps);
            }
        }
    }

    /// Returns the time of the next step if no run ends before.
    pub fn due(&self, now: Elapsed) -> Option<Elapsed> {
        let waits = |state: &SlotState| match state {
            SlotState::Waiting { not_before, .. } => Some(*not_before).filter(|moment| *moment > now),
            SlotState::Running { .. } | SlotState::Over(_) => None,
        };
        if self.closed.is_some() { None } else { self.states.iter().filter_map(waits).min() }
    }

    /// Records the end of a run. `outcome` describes this run alone, with its cost since it was
    /// started or resumed.
    pub fn ended(&mut self, job: usize, outcome: FinishedJob, now: Elapsed) {
        let Some(SlotState::Running { tries, reserved, cost, is_stopped }) = self.states.get(job) else { return };
        let (tries, reserved, cost, is_stopped) =
            (*tries, *reserved, cost.saturating_add(outcome.usd_micros), *is_stopped);
        self.budgets.settle_reserve(self.slots[job].race, reserved, outcome.usd_micros);
        let has_lost = (0..self.slots.len()).any(|other| {
            let is_won = || self.outcome(other).is_some_and(FinishedJob::is_verified);
            other != job && self.is_same_race(job, other) && is_won()
        });
        let outcome = FinishedJob { tries, usd_micros: cost, beaten: has_lost, ..outcome };
        let goes_on = self.closed.is_none() && !is_stopped;
        if goes_on && tries <= self.bounds.retries && outcome.is_worth_another_try() {
            let after = self.bounds.retry_delay;
            self.states[job] = SlotState::Waiting { tries, not_before: now.plus(after), cost };
            self.steps.push(SchedulerStep::Again { job, tries: tries + 1, after, outcome });
            return;
        }
        self.states[job] = SlotState::Over(Box::new(outcome));
        self.apply_end(job);
    }

    /// Stops the batch: no further job begins. The caller stops the running jobs.
    pub fn stop(&mut self, cause: StopCause) {
        self.closed = Some(NotRunReason::Stopped(cause));
    }

    /// Returns true if a job could still begin.
    pub fn has_work(mut self) -> bool {
        self.next(Elapsed(u64::MAX)).iter().any(|step| matches!(step, SchedulerStep::Start { .. }))
    }

    /// Returns true if every job has ended.
    pub fn is_over(&self) -> bool {
        self.states.iter().all(|state| matches!(state, SlotState::Over(_)))
    }

    /// Returns the outcomes of the ended jobs, in order.
    pub fn outcomes(&self) -> impl Iterator<Item = &FinishedJob> {
        self.states
            .iter()
            .filter_map(|state| if let SlotState::Over(outcome) = state { Some(&**outcome) } else { None })
    }

    /// Returns the outcome of a job, or `None` if it has not ended.
    pub fn outcome(&self, job: usize) -> Option<&FinishedJob> {
        self.states
            .get(job)
            .and_then(|state| if let SlotState::Over(outcome) = state { Some(&**outcome) } else { None })
    }

    /// Returns the number of waiting, running and ended jobs.
    pub fn counts(&self) -> (usize, usize, usize) {
        let is = |wanted: fn(&SlotState) -> bool| self.states.iter().filter(|state| wanted(state)).count();
        (
            is(|state| matches!(state, SlotState::Waiting { .. })),
            is(|state| matches!(state, SlotState::Running { .. })),
            is(|state| matches!(state, SlotState::Over(_))),
        )
    }

    /// Applies the consequences of an ended job for other jobs.
    fn apply_end(&mut self, job: usize) {
        let SlotState::Over(outcome) = &self.states[job] else { return };
        if outcome.is_verified() && !outcome.beaten {
            let rivals = (0..self.slots.len()).filter(|other| *other != job && self.is_same_race(job, *other));
            for rival in rivals.collect::<Vec<_>>() {
                self.call_off(rival, NotRunReason::Lost);
                if let SlotState::Over(beaten) = &mut self.states[rival] {
                    beaten.beaten = true;
                }
            }
        } else if self.bounds.fail_fast && self.closed.is_none() && self.has_failed(job) {
            self.closed = Some(NotRunReason::FailFast);
            for other in 0..self.slots.len() {
                self.call_off(other, NotRunReason::FailFast);
            }
        }
    }

    /// Returns true if the job and all of its race ended without a verified one. Until then, the
    /// failure of a candidate does not count.
    fn has_failed(&self, job: usize) -> bool {
        (0..self.slots.len()).filter(|other| self.is_same_race(job, *other)).all(|other| match &self.states[other] {
            SlotState::Over(outcome) => !outcome.is_verified(),
            SlotState::Waiting { .. } | SlotState::Running { .. } => false,
        })
    }

    fn is_same_race(&self, one: usize, other: usize) -> bool {
        one == other || (self.slots[one].race.is_some() && self.slots[one].race == self.slots[other].race)
    }

    fn call_off(&mut self, job: usize, why: NotRunReason) {
        match &mut self.states[job] {
            SlotState::Running { is_stopped, .. } if !*is_stopped => {
                *is_stopped = true;
                self.steps.push(SchedulerStep::Cancel { job });
            }
            SlotState::Waiting { .. } => self.leave(job, why),
            SlotState::Running { .. } | SlotState::Over(_) => {}
        }
    }

    /// Ends a waiting job without a run.
    fn leave(&mut self, job: usize, why: NotRunReason) {
        let SlotState::Waiting { tries, cost, .. } = self.states[job] else { return };
        let JobSlot { name, title, .. } = &self.slots[job];
        let (job_name, title, end) = (name.clone(), title.clone(), JobEnding::NotRun(why));
        let outcome = FinishedJob { job: job_name, title, tries, usd_micros: cost, beaten: false, end };
        self.states[job] = SlotState::Over(Box::new(outcome.clone()));
        self.steps.push(SchedulerStep::Over(job, outcome));
    }

    /// Ends the waiting jobs that can no longer begin.
    fn leave_out(&mut self) {
        for job in 0..self.slots.len() {
            if !matches!(self.states[job], SlotState::Waiting { .. }) {
                continue;
            }
            if let Some(why) = self.closed.clone() {
                self.leave(job, why);
            } else if let Some(needs) = self.hopeless(job) {
                self.leave(job, NotRunReason::Need(needs));
            }
        }
    }

    /// Returns the unverified jobs that make it impossible for this job to begin.
    fn hopeless(&self, job: usize) -> Option<Vec<String>> {
        let is_lost = |group: &&Vec<usize>| {
            group.iter().all(|need| match &self.states[*need] {
                SlotState::Over(outcome) => !outcome.is_verified(),
                SlotState::Waiting { .. } | SlotState::Running { .. } => false,
            })
        };
        let lost: Vec<String> =
            self.slots[job].needs.iter().filter(is_lost).flatten().map(|need| self.slots[*need].name.clone()).collect();
        (!lost.is_empty()).then_some(lost)
    }

    /// Starts ready jobs while there is room and money. A job without money waits if a running job
    /// may release some; otherwise it ends as not run.
    fn start_ready_jobs(&mut self, now: Elapsed) {
        let running = self.counts().1;
        let mut free = self.bounds.jobs.saturating_sub(running);
        let ready: Vec<usize> = (0..self.slots.len()).filter(|job| self.is_ready(*job, now)).collect();
        let mut left = ready.len();
        for job in ready {
            if free == 0 {
                break;
            }
            let SlotState::Waiting { tries, cost, .. } = self.states[job] else { continue };
            let rivals = self.rivals_that(job, |state| matches!(state, SlotState::Waiting { .. }));
            // The free money is divided among the jobs that can start now.
            match self.budgets.reserve(&self.slots[job], free.min(left), rivals) {
                Some(reserved) => {
                    self.states[job] = SlotState::Running {
                        tries: tries + 1,
                        reserved: reserved.unwrap_or(0),
                        cost,
                        is_stopped: false,
                    };
                    self.steps.push(SchedulerStep::Start { job, tries: tries + 1, usd_micros: reserved });
                    (free, left) = (free - 1, left.saturating_sub(1));
                }
                // The job keeps waiting: a running job may release money.
                None if self.may_come_back(job) => {}
                None => self.leave(job, NotRunReason::Money),
            }
        }
    }

    /// Returns the number of jobs of the same race, including this one, in a given state.
    fn rivals_that(&self, job: usize, is: fn(&SlotState) -> bool) -> usize {
        (0..self.slots.len()).filter(|other| self.is_same_race(job, *other) && is(&self.states[*other])).count()
    }

    /// Returns true if a running job may release money that this job needs.
    fn may_come_back(&self, job: usize) -> bool {
        let runs = |state: &SlotState| matches!(state, SlotState::Running { .. });
        if self.budgets.is_race_dry(self.slots[job].race) {
            self.rivals_that(job, runs) > 0
        } else {
            self.states.iter().any(runs)
        }
    }

    fn is_ready(&self, job: usize, now: Elapsed) -> bool {
        let SlotState::Waiting { not_before, .. } = &self.states[job] else { return false };
        let is_met = |group: &Vec<usize>| {
            group.iter().any(|need| matches!(&self.states[*need], SlotState::Over(outcome) if outcome.is_verified()))
        };
        self.closed.is_none() && *not_before <= now && self.slots[job].needs.iter().all(is_met)
    }
}

#[cfg(test)]
#[path = "job_scheduler_tests.rs"]
mod tests;
