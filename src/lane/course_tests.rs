//! Lanes told step by step what ended, and what they order next.

use super::*;
use crate::lane::parse;
use Order::{Done, Start, Stop};
use StepStatus::{Cancelled, Errored, Failed, Passed, Skipped, TimedOut};
use proptest::prelude::*;

/// `a`, then `b`, `c`, `d` at once, then `e`: numbers 0 to 4.
fn lane(fail_fast: bool) -> Lane {
    let text = format!(
        "fail_fast: {fail_fast}\nsteps: [{{run: a}}, {{parallel: [{{run: b}}, {{run: c}}, {{run: d}}]}}, {{run: e}}]"
    );
    parse("verify", "lanes/verify.yaml", &text).unwrap()
}

#[test]
fn steps_run_in_order_and_groups_at_once_within_the_limit() {
    let mut course = Course::new(&lane(true), 2);
    assert_eq!(course.start(), [Start(0)]);
    assert_eq!(course.ended(0, Passed), [Start(1), Start(2)]);
    assert_eq!(course.ended(2, Passed), [Start(3)]);
    assert_eq!(course.ended(1, Passed), []);
    assert_eq!(course.ended(3, Passed), [Start(4)]);
    assert_eq!(course.ended(4, Passed), [Done(LaneRuling::Passed)]);
}

#[test]
fn a_failure_stops_its_siblings_and_skips_what_comes_later() {
    let mut course = Course::new(&lane(true), 8);
    course.start();
    assert_eq!(course.ended(0, Passed), [Start(1), Start(2), Start(3)]);
    assert_eq!(course.ended(2, Failed), [Stop(1), Stop(3)]);
    assert_eq!(course.status_of_stopped(), Cancelled);
    assert_eq!(course.ended(1, Cancelled), []);
    assert_eq!(course.ended(3, Passed), [Done(LaneRuling::Failed)]);
    assert_eq!(course.steps[4].at, At::Ended(Skipped));
}

#[test]
fn without_fail_fast_everything_runs_and_every_failure_counts() {
    let mut course = Course::new(&lane(false), 8);
    course.start();
    assert_eq!(course.ended(0, Failed), [Start(1), Start(2), Start(3)]);
    for (step, status) in [(1, Errored), (2, TimedOut)] {
        assert_eq!(course.ended(step, status), []);
    }
    assert_eq!(course.ended(3, Passed), [Start(4)]);
    assert_eq!(course.ended(4, Passed), [Done(LaneRuling::Failed)]);
}

#[test]
fn a_step_that_could_not_run_makes_an_errored_lane_unless_another_said_no() {
    let mut course = Course::new(&lane(true), 8);
    course.start();
    assert_eq!(course.ended(0, Errored), [Done(LaneRuling::Errored)]);
    let mut course = Course::new(&lane(true), 8);
    course.start();
    course.ended(0, Passed);
    course.ended(1, Errored);
    course.ended(2, Failed);
    assert_eq!(course.ended(3, Cancelled), [Done(LaneRuling::Failed)]);
}

#[test]
fn the_end_of_its_time_stops_a_lane_and_fails_it() {
    let mut course = Course::new(&lane(true), 8);
    course.start();
    assert_eq!(course.expire(), [Stop(0)]);
    assert_eq!(course.status_of_stopped(), TimedOut);
    assert_eq!(course.ended(0, TimedOut), [Done(LaneRuling::Failed)]);
}

#[test]
fn a_cancelled_lane_is_cancelled_even_if_its_last_step_passes() {
    let mut course = Course::new(&lane(true), 8);
    course.start();
    assert_eq!(course.cancel(), [Stop(0)]);
    assert_eq!(course.cancel(), []);
    assert_eq!(course.ended(0, Passed), [Done(LaneRuling::Cancelled)]);
    assert_eq!((course.ended(0, Failed), course.cancel(), course.expire()), (vec![], vec![], vec![]));
}

#[test]
fn a_course_cancelled_before_it_starts_starts_nothing() {
    let mut course = Course::new(&lane(true), 8);
    assert_eq!(course.cancel(), [Done(LaneRuling::Cancelled)]);
    assert_eq!(course.start(), []);
}

proptest! {
    /// Whatever ends in whatever order: the limit holds, each step starts once at most, only running steps are stopped, and
    /// it is done exactly once, when nothing runs any more.
    #[test]
    fn every_course_comes_to_its_end(fail_fast: bool, jobs in 0usize..4, choices in proptest::collection::vec((0usize..5, 0usize..8), 40)) {
        let mut course = Course::new(&lane(fail_fast), jobs);
        let (mut running, mut started, mut done) = (Vec::new(), Vec::new(), false);
        let mut orders = course.start();
        for (pick, event) in choices {
            for order in orders {
                prop_assert!(!done);
                match order {
                    Start(step) => {
                        prop_assert!(!started.contains(&step));
                        started.push(step);
                        running.push(step);
                    }
                    Stop(step) => prop_assert!(running.contains(&step)),
                    Done(_) => done = true,
                }
            }
            prop_assert!(running.len() <= jobs.max(1) && (!done || running.is_empty()) && (done || !running.is_empty()));
            orders = match event {
                6 => course.expire(),
                7 => course.cancel(),
                _ if running.is_empty() => Vec::new(),
                status => {
                    let step = running.remove(pick % running.len());
                    course.ended(step, [Passed, Passed, Passed, Failed, Errored, Cancelled][status])
                }
            };
        }
    }
}
