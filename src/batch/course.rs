//! Which job of a batch has its turn. Pure: told what has ended and what time it is, it says what is to be done. A job begins when all that
//! it needs is verified, a place is free and there is money for it.

use super::outcome::{End, NotRun, Outcome};
use super::purse::Purses;
use crate::moment::Moment;
use crate::verdict::StopCause;
use std::time::Duration;

/// Within which bounds a batch runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// Runs at once.
    pub jobs: usize,
    /// Whether the first job that is not verified ends the batch.
    pub fail_fast: bool,
    /// Further runs for one that ended in an error. What a gate has said is a result, and never tried again.
    pub retries: u32,
    /// How long is waited before each of these.
    pub retry_delay: Duration,
    /// What all of them may cost together, in millionths of a US dollar.
    pub usd_micros: Option<u64>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { jobs: 1, fail_fast: false, retries: 0, retry_delay: Duration::from_secs(10), usd_micros: None }
    }
}

/// A job, as far as its turn depends on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seat {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// What must be verified first: of each of these groups of jobs, one.
    pub needs: Vec<Vec<usize>>,
    /// The race that it is in: the first of these jobs that is verified ends the others.
    pub race: Option<usize>,
    /// What it may cost by itself, or all of its race together, in millionths of a US dollar.
    pub usd_micros: Option<u64>,
}

/// What is known of a job when a course begins.
#[derive(Debug, Clone, PartialEq)]
pub enum Before {
    /// Nobody has worked on it.
    Nothing,
    /// It is to be done, and runs of earlier processes have cost so much for it, in millionths of a US dollar.
    Paid(u64),
    /// It is over.
    Over(Box<Outcome>),
}

/// What is to be done now.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A run begins, for the so-manieth time, and may cost no more than this.
    #[expect(missing_docs, reason = "the fields are named after what they hold")]
    Start { job: usize, tries: u32, usd_micros: Option<u64> },
    /// A run is to be stopped.
    #[expect(missing_docs, reason = "the fields are named after what they hold")]
    Cancel { job: usize },
    /// A job is over, without a run.
    Over(usize, Outcome),
    /// A job is tried once more, after a pause.
    #[expect(missing_docs, reason = "the fields are named after what they hold")]
    Again { job: usize, tries: u32, after: Duration, outcome: Outcome },
}

/// All jobs and where each stands.
#[derive(Debug)]
pub struct Course {
    bounds: Bounds,
    seats: Vec<Seat>,
    states: Vec<State>,
    purses: Purses,
    /// What to say of the jobs that are still to begin, when none does any more.
    closed: Option<NotRun>,
    steps: Vec<Step>,
}

#[derive(Debug)]
enum State {
    Waiting { tries: u32, not_before: Moment, cost: u64 },
    Running { tries: u32, aside: u64, cost: u64, is_stopped: bool },
    Over(Box<Outcome>),
}

impl Course {
    /// Of these jobs. Those that were over before stay as they are, and what any of them has cost is spent.
    pub fn new(bounds: Bounds, seats: Vec<Seat>, mut before: impl FnMut(usize) -> Before) -> Self {
        let mut purses = Purses::new(bounds.usd_micros, &seats);
        let mut state = |job: usize| {
            let (cost, outcome) = match before(job) {
                Before::Nothing => (0, None),
                Before::Paid(cost) => (cost, None),
                Before::Over(outcome) => (outcome.usd_micros, Some(outcome)),
            };
            purses.spend(seats[job].race, cost);
            outcome.map_or(State::Waiting { tries: 0, not_before: Moment::default(), cost }, State::Over)
        };
        let states = (0..seats.len()).map(&mut state).collect();
        let mut course = Self { bounds, seats, states, purses, closed: None, steps: Vec::new() };
        (0..course.seats.len()).for_each(|job| course.heed(job));
        course
    }

    /// What is to be done at this time.
    pub fn next(&mut self, now: Moment) -> Vec<Step> {
        // Whatever ends here may be what another one waits for.
        loop {
            let before = self.steps.len();
            self.leave_out();
            self.begin(now);
            if self.steps.len() == before {
                return std::mem::take(&mut self.steps);
            }
        }
    }

    /// When there is something to do, if nothing ends before.
    pub fn due(&self, now: Moment) -> Option<Moment> {
        let waits = |state: &State| match state {
            State::Waiting { not_before, .. } => Some(*not_before).filter(|moment| *moment > now),
            State::Running { .. } | State::Over(_) => None,
        };
        if self.closed.is_some() { None } else { self.states.iter().filter_map(waits).min() }
    }

    /// A run of this job has ended. `outcome` tells of this run alone, and of what it has cost since it was begun or taken up.
    pub fn ended(&mut self, job: usize, outcome: Outcome, now: Moment) {
        let Some(State::Running { tries, aside, cost, is_stopped }) = self.states.get(job) else { return };
        let (tries, aside, cost, is_stopped) = (*tries, *aside, cost.saturating_add(outcome.usd_micros), *is_stopped);
        self.purses.settle(self.seats[job].race, aside, outcome.usd_micros);
        let has_lost = (0..self.seats.len()).any(|other| {
            let is_won = || self.outcome(other).is_some_and(Outcome::is_verified);
            other != job && self.is_same_race(job, other) && is_won()
        });
        let outcome = Outcome { tries, usd_micros: cost, beaten: has_lost, ..outcome };
        let goes_on = self.closed.is_none() && !is_stopped;
        if goes_on && tries <= self.bounds.retries && outcome.is_worth_another_try() {
            let after = self.bounds.retry_delay;
            self.states[job] = State::Waiting { tries, not_before: now.plus(after), cost };
            self.steps.push(Step::Again { job, tries: tries + 1, after, outcome });
            return;
        }
        self.states[job] = State::Over(Box::new(outcome));
        self.heed(job);
    }

    /// Somebody wants all of it to stop: the runs under way are stopped elsewhere, and no other begins.
    pub fn stop(&mut self, cause: StopCause) {
        self.closed = Some(NotRun::Stopped(cause));
    }

    /// Whether anything is left that could begin.
    pub fn has_work(mut self) -> bool {
        self.next(Moment(u64::MAX)).iter().any(|step| matches!(step, Step::Start { .. }))
    }

    /// Whether every job is over.
    pub fn is_over(&self) -> bool {
        self.states.iter().all(|state| matches!(state, State::Over(_)))
    }

    /// What each job came to that is over, in their order.
    pub fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.states.iter().filter_map(|state| if let State::Over(outcome) = state { Some(&**outcome) } else { None })
    }

    /// What a job came to, if it is over.
    pub fn outcome(&self, job: usize) -> Option<&Outcome> {
        self.states.get(job).and_then(|state| if let State::Over(outcome) = state { Some(&**outcome) } else { None })
    }

    /// How many jobs wait, run and are over.
    pub fn counts(&self) -> (usize, usize, usize) {
        let is = |wanted: fn(&State) -> bool| self.states.iter().filter(|state| wanted(state)).count();
        (
            is(|state| matches!(state, State::Waiting { .. })),
            is(|state| matches!(state, State::Running { .. })),
            is(|state| matches!(state, State::Over(_))),
        )
    }

    /// What follows from the end of a job for others.
    fn heed(&mut self, job: usize) {
        let State::Over(outcome) = &self.states[job] else { return };
        if outcome.is_verified() && !outcome.beaten {
            let rivals = (0..self.seats.len()).filter(|other| *other != job && self.is_same_race(job, *other));
            for rival in rivals.collect::<Vec<_>>() {
                self.call_off(rival, NotRun::Lost);
                if let State::Over(beaten) = &mut self.states[rival] {
                    beaten.beaten = true;
                }
            }
        } else if self.bounds.fail_fast && self.closed.is_none() && self.has_failed(job) {
            self.closed = Some(NotRun::FailFast);
            for other in 0..self.seats.len() {
                self.call_off(other, NotRun::FailFast);
            }
        }
    }

    /// A candidate that fails has failed nothing while another one of its race may still win, or has won.
    fn has_failed(&self, job: usize) -> bool {
        (0..self.seats.len()).filter(|other| self.is_same_race(job, *other)).all(|other| match &self.states[other] {
            State::Over(outcome) => !outcome.is_verified(),
            State::Waiting { .. } | State::Running { .. } => false,
        })
    }

    fn is_same_race(&self, one: usize, other: usize) -> bool {
        one == other || (self.seats[one].race.is_some() && self.seats[one].race == self.seats[other].race)
    }

    fn call_off(&mut self, job: usize, why: NotRun) {
        match &mut self.states[job] {
            State::Running { is_stopped, .. } if !*is_stopped => {
                *is_stopped = true;
                self.steps.push(Step::Cancel { job });
            }
            State::Waiting { .. } => self.leave(job, why),
            State::Running { .. } | State::Over(_) => {}
        }
    }

    /// A job that no run is begun for any more.
    fn leave(&mut self, job: usize, why: NotRun) {
        let State::Waiting { tries, cost, .. } = self.states[job] else { return };
        let Seat { name, title, .. } = &self.seats[job];
        let (job_name, title, end) = (name.clone(), title.clone(), End::NotRun(why));
        let outcome = Outcome { job: job_name, title, tries, usd_micros: cost, beaten: false, end };
        self.states[job] = State::Over(Box::new(outcome.clone()));
        self.steps.push(Step::Over(job, outcome));
    }

    /// Jobs that can't begin any more.
    fn leave_out(&mut self) {
        for job in 0..self.seats.len() {
            if !matches!(self.states[job], State::Waiting { .. }) {
                continue;
            }
            if let Some(why) = self.closed.clone() {
                self.leave(job, why);
            } else if let Some(needs) = self.hopeless(job) {
                self.leave(job, NotRun::Need(needs));
            }
        }
    }

    /// The jobs that are over and not verified, where one was needed.
    fn hopeless(&self, job: usize) -> Option<Vec<String>> {
        let is_lost = |group: &&Vec<usize>| {
            group.iter().all(|need| match &self.states[*need] {
                State::Over(outcome) => !outcome.is_verified(),
                State::Waiting { .. } | State::Running { .. } => false,
            })
        };
        let lost: Vec<String> =
            self.seats[job].needs.iter().filter(is_lost).flatten().map(|need| self.seats[*need].name.clone()).collect();
        (!lost.is_empty()).then_some(lost)
    }

    fn begin(&mut self, now: Moment) {
        let running = self.counts().1;
        let mut free = self.bounds.jobs.saturating_sub(running);
        let ready: Vec<usize> = (0..self.seats.len()).filter(|job| self.is_ready(*job, now)).collect();
        let mut left = ready.len();
        for job in ready {
            if free == 0 {
                break;
            }
            let State::Waiting { tries, cost, .. } = self.states[job] else { continue };
            let rivals = self.rivals_that(job, |state| matches!(state, State::Waiting { .. }));
            match self.purses.take(&self.seats[job], free.min(left), rivals) {
                Some(aside) => {
                    self.states[job] =
                        State::Running { tries: tries + 1, aside: aside.unwrap_or(0), cost, is_stopped: false };
                    self.steps.push(Step::Start { job, tries: tries + 1, usd_micros: aside });
                    (free, left) = (free - 1, left.saturating_sub(1));
                }
                // What is set aside for those under way may come back.
                None if self.may_come_back(job) => {}
                None => self.leave(job, NotRun::Money),
            }
        }
    }

    /// How many of a job's race, with itself, stand like this.
    fn rivals_that(&self, job: usize, is: fn(&State) -> bool) -> usize {
        (0..self.seats.len()).filter(|other| self.is_same_race(job, *other) && is(&self.states[*other])).count()
    }

    /// Whether money that there is none of for a job is set aside for one that is under way.
    fn may_come_back(&self, job: usize) -> bool {
        let runs = |state: &State| matches!(state, State::Running { .. });
        if self.purses.is_race_dry(self.seats[job].race) {
            self.rivals_that(job, runs) > 0
        } else {
            self.states.iter().any(runs)
        }
    }

    fn is_ready(&self, job: usize, now: Moment) -> bool {
        let State::Waiting { not_before, .. } = &self.states[job] else { return false };
        let is_met = |group: &Vec<usize>| {
            group.iter().any(|need| matches!(&self.states[*need], State::Over(outcome) if outcome.is_verified()))
        };
        self.closed.is_none() && *not_before <= now && self.seats[job].needs.iter().all(is_met)
    }
}

#[cfg(test)]
#[path = "course_tests.rs"]
mod tests;
