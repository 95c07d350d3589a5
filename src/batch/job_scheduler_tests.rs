//! Scripted tests of the scheduler, and a seeded simulation of its rules.

use super::*;
use crate::batch::outcome::{JobStatus, RunSummary};
use crate::id::RunId;
use crate::verdict::{Reason, Verification};
use std::collections::BTreeMap;

fn slot(name: &str, needs: &[usize]) -> JobSlot {
    JobSlot {
        name: name.into(),
        title: name.into(),
        needs: needs.iter().map(|need| vec![*need]).collect(),
        ..JobSlot::default()
    }
}

fn ran(reason: Reason, usd_micros: u64) -> FinishedJob {
    let (verified, cancelled) = (reason.row().exit_code == 0, reason == Reason::Cancelled);
    let ran = RunSummary {
        run: RunId::new("r"),
        reason,
        exit_code: reason.row().exit_code,
        verified,
        verification: Verification::NotReached,
        exit_codes_alone: false,
        cancelled,
        message: reason.row().meaning.into(),
        summary: String::new(),
        attempts: 1,
        turns: 1,
        tokens_in: 0,
        tokens_out: 0,
        estimated_tokens: 0,
        usd_micros: Some(usd_micros),
        duration_ms: 0,
        files_changed: Vec::new(),
        tree: None,
        commit: None,
        branch: None,
        worktree: None,
        protected: Vec::new(),
    };
    FinishedJob {
        job: "j".into(),
        title: "j".into(),
        tries: 0,
        usd_micros,
        beaten: false,
        end: JobEnding::Ran(Box::new(ran)),
    }
}

fn over(outcome: Option<FinishedJob>) -> KnownJob {
    outcome.map_or(KnownJob::Nothing, |outcome| KnownJob::Over(Box::new(outcome)))
}

fn scheduler(bounds: BatchLimits, slots: Vec<JobSlot>) -> BatchScheduler {
    BatchScheduler::new(bounds, slots, |_| KnownJob::Nothing)
}

/// Formats steps: `+0` starts, `-0` cancels, `0:skipped` ended, `0 again`.
fn format_steps(steps: &[SchedulerStep]) -> Vec<String> {
    let one = |step: &SchedulerStep| match step {
        SchedulerStep::Start { job, usd_micros: None, .. } => format!("+{job}"),
        SchedulerStep::Start { job, usd_micros: Some(share), .. } => format!("+{job}/{share}"),
        SchedulerStep::Cancel { job } => format!("-{job}"),
        SchedulerStep::Over(job, outcome) => format!("{job}:{}", outcome.says()),
        SchedulerStep::Again { job, tries, .. } => format!("{job} again, {tries}"),
    };
    steps.iter().map(one).collect()
}

#[test]
fn jobs_begin_in_order_as_places_are_free_and_after_what_they_need() {
    let mut scheduler = scheduler(
        BatchLimits { jobs: 2, ..BatchLimits::default() },
        vec![slot("a", &[]), slot("b", &[0]), slot("c", &[]), slot("d", &[1, 2])],
    );
    let now = Elapsed::default();
    assert_eq!(format_steps(&scheduler.next(now)), ["+0", "+2"]);
    assert!(scheduler.next(now).is_empty());
    scheduler.ended(0, ran(Reason::Verified, 0), now);
    assert_eq!(format_steps(&scheduler.next(now)), ["+1"]);
    scheduler.ended(2, ran(Reason::Skipped, 0), now);
    assert!(scheduler.next(now).is_empty(), "it waits for both");
    scheduler.ended(1, ran(Reason::Verified, 0), now);
    assert_eq!(format_steps(&scheduler.next(now)), ["+3"]);
    scheduler.ended(3, ran(Reason::GateFailed, 0), now);
    assert!(scheduler.next(now).is_empty() && scheduler.is_over());
}

#[test]
fn what_needs_an_unverified_job_is_left_out_and_so_is_what_needs_that() {
    let mut scheduler =
        scheduler(BatchLimits::default(), vec![slot("a", &[]), slot("b", &[0]), slot("c", &[1]), slot("d", &[])]);
    let now = Elapsed::default();
    assert_eq!(format_steps(&scheduler.next(now)), ["+0"]);
    scheduler.ended(0, ran(Reason::GateFailed, 0), now);
    assert_eq!(
        format_steps(&scheduler.next(now)),
        ["1:needed but not verified: a", "2:needed but not verified: b", "+3"]
    );
    let standings: Vec<JobStatus> = scheduler.outcomes().map(FinishedJob::standing).collect();
    assert_eq!(standings, [JobStatus::Failed, JobStatus::Skipped, JobStatus::Skipped]);
}

#[test]
fn the_first_failure_ends_a_batch_that_fails_fast() {
    let bounds = BatchLimits { jobs: 2, fail_fast: true, ..BatchLimits::default() };
    let mut scheduler = scheduler(bounds, vec![slot("a", &[]), slot("b", &[]), slot("c", &[])]);
    let now = Elapsed::default();
    assert_eq!(format_steps(&scheduler.next(now)), ["+0", "+1"]);
    scheduler.ended(1, ran(Reason::GateFailed, 0), now);
    assert_eq!(format_steps(&scheduler.next(now)), ["-0", "2:fail-fast: another job was not verified"]);
    scheduler.ended(0, ran(Reason::Cancelled, 0), now);
    assert!(scheduler.next(now).is_empty() && scheduler.is_over());
}

#[test]
fn only_an_error_is_tried_again_and_not_before_its_time() {
    let bounds = BatchLimits { retries: 1, retry_delay: Duration::from_secs(3), ..BatchLimits::default() };
    let mut scheduler = scheduler(bounds, vec![slot("a", &[]), slot("b", &[])]);
    assert_eq!(format_steps(&scheduler.next(Elapsed(0))), ["+0"]);
    scheduler.ended(0, ran(Reason::ProviderFailed, 5), Elapsed(100));
    assert_eq!(format_steps(&scheduler.next(Elapsed(100))), ["0 again, 2", "+1"]);
    scheduler.ended(1, ran(Reason::GateFailed, 0), Elapsed(200));
    assert!(scheduler.next(Elapsed(200)).is_empty(), "a gate's no is a result");
    assert_eq!(scheduler.due(Elapsed(200)), Some(Elapsed(3100)));
    assert_eq!(format_steps(&scheduler.next(Elapsed(3100))), ["+0"]);
    scheduler.ended(0, ran(Reason::ProviderFailed, 7), Elapsed(3200));
    assert!(scheduler.next(Elapsed(3200)).is_empty() && scheduler.is_over());
    let outcome = scheduler.outcome(0).unwrap();
    assert_eq!((outcome.tries, outcome.usd_micros), (2, 12), "both runs were paid for");
}

#[test]
fn a_job_that_no_money_is_left_for_is_not_begun() {
    let bounds = BatchLimits { jobs: 2, usd_micros: Some(100), ..BatchLimits::default() };
    let mut scheduler = scheduler(bounds, (0..4).map(|n| slot(&n.to_string(), &[])).collect());
    let now = Elapsed::default();
    assert_eq!(format_steps(&scheduler.next(now)), ["+0/50", "+1/50"]);
    scheduler.ended(0, ran(Reason::Verified, 50), now);
    assert!(scheduler.next(now).is_empty(), "what is set aside for the other may come back");
    scheduler.ended(1, ran(Reason::Verified, 20), now);
    assert_eq!(format_steps(&scheduler.next(now)), ["+2/15", "+3/15"]);
    scheduler.ended(2, ran(Reason::BudgetMoney, 15), now);
    scheduler.ended(3, ran(Reason::BudgetMoney, 15), now);
    assert!(scheduler.is_over());
    let spent = BatchLimits { usd_micros: Some(100), ..BatchLimits::default() };
    let mut scheduler = BatchScheduler::new(spent.clone(), vec![slot("a", &[]), slot("b", &[])], |job| {
        over((job == 0).then(|| ran(Reason::Verified, 100)))
    });
    assert_eq!(format_steps(&scheduler.next(now)), ["1:the batch has reached its money limit"]);
    // The cost of earlier processes counts as spent and is reported. The outcome of the run has
    // only its cost since the resume.
    let mut scheduler = BatchScheduler::new(spent, vec![slot("a", &[])], |_| KnownJob::Paid(60));
    assert_eq!(format_steps(&scheduler.next(now)), ["+0/40"]);
    scheduler.ended(0, ran(Reason::Verified, 30), now);
    assert_eq!(scheduler.outcome(0).unwrap().usd_micros, 90);
}

#[test]
fn the_first_verified_candidate_ends_the_others_which_count_for_nothing() {
    let candidate = |name: &str| JobSlot { race: Some(0), ..slot(name, &[]) };
    let after = JobSlot { needs: vec![vec![0, 1, 2]], ..slot("after", &[]) };
    let bounds = BatchLimits { jobs: 2, fail_fast: true, ..BatchLimits::default() };
    let mut scheduler = scheduler(bounds, vec![candidate("a"), candidate("b"), candidate("c"), after]);
    let now = Elapsed::default();
    assert_eq!(format_steps(&scheduler.next(now)), ["+0", "+1"]);
    scheduler.ended(0, ran(Reason::GateFailed, 0), now);
    assert_eq!(format_steps(&scheduler.next(now)), ["+2"], "while others may win nothing has failed");
    scheduler.ended(2, ran(Reason::Verified, 0), now);
    assert_eq!(format_steps(&scheduler.next(now)), ["-1", "+3"]);
    scheduler.ended(1, ran(Reason::Cancelled, 0), now);
    scheduler.ended(3, ran(Reason::Verified, 0), now);
    assert!(scheduler.is_over());
    let codes: Vec<u8> = scheduler.outcomes().map(FinishedJob::exit_code).collect();
    assert_eq!(codes, [0, 0, 0, 0]);
}

#[test]
fn of_two_candidates_that_are_verified_the_first_one_has_won() {
    let candidate = |name: &str| JobSlot { race: Some(0), usd_micros: Some(100), ..slot(name, &[]) };
    let mut scheduler = scheduler(
        BatchLimits { jobs: 2, ..BatchLimits::default() },
        vec![candidate("a"), candidate("b"), candidate("c")],
    );
    let now = Elapsed::default();
    assert_eq!(format_steps(&scheduler.next(now)), ["+0/33", "+1/33"], "one task's money is for all of them");
    scheduler.ended(1, ran(Reason::Verified, 33), now);
    assert_eq!(format_steps(&scheduler.next(now)), ["-0", "2:another candidate was verified first"]);
    scheduler.ended(0, ran(Reason::Verified, 33), now);
    let beaten: Vec<bool> = scheduler.outcomes().map(|outcome| outcome.beaten).collect();
    assert_eq!(beaten[..2], [true, false]);
    // A resumed batch sees the same winner.
    let before: Vec<FinishedJob> = scheduler.outcomes().cloned().collect();
    let again = BatchScheduler::new(BatchLimits::default(), vec![candidate("a"), candidate("b")], |job| {
        over(before.get(job).cloned())
    });
    assert_eq!(again.outcomes().map(|outcome| outcome.beaten).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn a_stop_begins_nothing_more_and_what_runs_is_waited_for() {
    let mut scheduler = scheduler(BatchLimits::default(), vec![slot("a", &[]), slot("b", &[])]);
    let now = Elapsed::default();
    scheduler.next(now);
    scheduler.stop(StopCause::Interrupt);
    assert_eq!(format_steps(&scheduler.next(now)), ["1:the batch stopped before this job began"]);
    assert!(!scheduler.is_over());
    scheduler.ended(0, ran(Reason::ProviderFailed, 0), now);
    assert!(scheduler.next(now).is_empty() && scheduler.is_over(), "and nothing is tried again");
}

/// A pseudo-random sequence.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Checks the rules in random batches. Every job ends once, no more jobs run in parallel than
/// allowed, and no job begins before its needs are verified. No more money is given out than there
/// is.
#[test]
fn whatever_happens_the_laws_of_a_batch_hold() {
    for seed in 0..400 {
        let mut dice = Dice(seed);
        let count = 1 + dice.roll(12) as usize;
        let slots: Vec<JobSlot> = (0..count)
            .map(|job| {
                let needs = (0..job).filter(|_| dice.roll(4) == 0).collect::<Vec<_>>();
                JobSlot { usd_micros: (dice.roll(3) == 0).then(|| 1 + dice.roll(50)), ..slot(&job.to_string(), &needs) }
            })
            .collect();
        let limit = (dice.roll(2) == 0).then(|| dice.roll(200));
        let bounds = BatchLimits {
            jobs: 1 + dice.roll(4) as usize,
            fail_fast: dice.roll(4) == 0,
            retries: dice.roll(3) as u32,
            retry_delay: Duration::from_millis(dice.roll(50)),
            usd_micros: limit,
        };
        let mut scheduler = scheduler(bounds.clone(), slots.clone());
        let (mut now, mut running, mut spent) = (Elapsed::default(), BTreeMap::new(), 0);
        for round in 0.. {
            assert!(round < 1000, "seed {seed}: it never ends");
            for step in scheduler.next(now) {
                if let SchedulerStep::Start { job, tries, usd_micros } = step {
                    assert!(tries <= bounds.retries + 1, "seed {seed}");
                    assert!(running.insert(job, usd_micros).is_none(), "seed {seed}: job {job} runs twice");
                    let is_met = |need: &Vec<usize>| {
                        need.iter().any(|need| scheduler.outcome(*need).is_some_and(FinishedJob::is_verified))
                    };
                    assert!(slots[job].needs.iter().all(is_met), "seed {seed}: job {job} began too early");
                }
            }
            assert!(running.len() <= bounds.jobs, "seed {seed}: too many at once");
            let reserved: u64 = running.values().map(|share| share.unwrap_or(0)).sum();
            assert!(limit.is_none_or(|limit| spent + reserved <= limit), "seed {seed}: more money than there is");
            if dice.roll(60) == 0 {
                scheduler.stop(StopCause::Terminate);
            }
            let Some((&job, &share)) = running.iter().nth(dice.roll(running.len().max(1) as u64) as usize) else {
                match scheduler.due(now) {
                    Some(due) => now = due,
                    None => break,
                }
                continue;
            };
            running.remove(&job);
            now = now.plus(Duration::from_millis(dice.roll(20)));
            let cost = dice.roll(share.unwrap_or(30) + 1);
            spent += cost;
            let reasons =
                [Reason::Verified, Reason::Verified, Reason::GateFailed, Reason::ProviderFailed, Reason::Cancelled];
            scheduler.ended(job, ran(reasons[dice.roll(5) as usize], cost), now);
        }
        assert!(scheduler.is_over() && scheduler.outcomes().count() == count, "seed {seed}: not every job has ended");
        let paid: u64 = scheduler.outcomes().map(|outcome| outcome.usd_micros).sum();
        assert_eq!(paid, spent, "seed {seed}: the paid amount is reported");
    }
}
