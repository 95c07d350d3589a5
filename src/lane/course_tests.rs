//! Lanes told step by step what ended, and what they order next.

use super::*;
use crate::lane::parse;
use Order::{Again, Done, Leave, Start, Stop};
use StepStatus::{AllowedFailure, Cancelled, Errored, Failed, Flaky, NotRun, Passed, Skipped, TimedOut};
use proptest::prelude::*;

/// `a`, then `b`, `c`, `d` at once, then `e`: numbers 0 to 4.
fn lane(fail_fast: bool) -> Lane {
    let text = format!(
        "fail_fast: {fail_fast}\nsteps: [{{run: a}}, {{parallel: [{{run: b}}, {{run: c}}, {{run: d}}]}}, {{run: e}}]"
    );
    parse("verify", "lanes/verify.yaml", &text).unwrap()
}

fn of(lane: &Lane, jobs: usize) -> Course {
    Course::new(lane, jobs, &[], &[])
}

/// The orders without those that only say what is left out.
fn orders(told: (StepStatus, Vec<Order>)) -> Vec<Order> {
    told.1.into_iter().filter(|order| !matches!(order, Leave(..))).collect()
}

fn course_of(text: &str, jobs: usize) -> Course {
    of(&parse("verify", "lanes/verify.yaml", text).unwrap(), jobs)
}

#[test]
fn steps_run_in_order_and_groups_at_once_within_the_limit() {
    let mut course = of(&lane(true), 2);
    assert_eq!(course.start(), [Start(0)]);
    assert_eq!(orders(course.ended(0, Passed)), [Start(1), Start(2)]);
    assert_eq!(orders(course.ended(2, Passed)), [Start(3)]);
    assert_eq!(orders(course.ended(1, Passed)), []);
    assert_eq!(orders(course.ended(3, Passed)), [Start(4)]);
    assert_eq!(orders(course.ended(4, Passed)), [Done(LaneRuling::Passed)]);
}

#[test]
fn a_failure_stops_its_siblings_and_skips_what_comes_later() {
    let mut course = of(&lane(true), 8);
    course.start();
    assert_eq!(orders(course.ended(0, Passed)), [Start(1), Start(2), Start(3)]);
    assert_eq!(orders(course.ended(2, Failed)), [Stop(1), Stop(3)]);
    assert_eq!(course.status_of_stopped(), Cancelled);
    assert_eq!(orders(course.ended(1, Cancelled)), []);
    assert_eq!(orders(course.ended(3, Passed)), [Done(LaneRuling::Failed)]);
    assert_eq!(course.steps[4].at, At::Ended(NotRun));
}

#[test]
fn without_fail_fast_everything_runs_and_every_failure_counts() {
    let mut course = of(&lane(false), 8);
    course.start();
    assert_eq!(orders(course.ended(0, Failed)), [Start(1), Start(2), Start(3)]);
    for (step, status) in [(1, Errored), (2, TimedOut)] {
        assert_eq!(orders(course.ended(step, status)), []);
    }
    assert_eq!(orders(course.ended(3, Passed)), [Start(4)]);
    assert_eq!(orders(course.ended(4, Passed)), [Done(LaneRuling::Failed)]);
}

#[test]
fn a_step_that_could_not_run_makes_an_errored_lane_unless_another_said_no() {
    let mut course = of(&lane(true), 8);
    course.start();
    assert_eq!(orders(course.ended(0, Errored)), [Done(LaneRuling::Errored)]);
    let mut course = of(&lane(true), 8);
    course.start();
    course.ended(0, Passed);
    course.ended(1, Errored);
    course.ended(2, Failed);
    assert_eq!(orders(course.ended(3, Cancelled)), [Done(LaneRuling::Failed)]);
}

#[test]
fn the_end_of_its_time_stops_a_lane_and_fails_it() {
    let mut course = of(&lane(true), 8);
    course.start();
    assert_eq!(course.expire()[0], Stop(0));
    assert_eq!(course.status_of_stopped(), TimedOut);
    assert_eq!(orders(course.ended(0, TimedOut)), [Done(LaneRuling::Failed)]);
}

#[test]
fn a_cancelled_lane_is_cancelled_even_if_its_last_step_passes() {
    let mut course = of(&lane(true), 8);
    course.start();
    assert_eq!(course.cancel()[0], Stop(0));
    assert_eq!(course.cancel(), []);
    assert_eq!(orders(course.ended(0, Passed)), [Done(LaneRuling::Cancelled)]);
    assert_eq!((course.ended(0, Failed).1, course.cancel(), course.expire()), (vec![], vec![], vec![]));
}

#[test]
fn a_course_cancelled_before_it_starts_starts_nothing() {
    let mut course = of(&lane(true), 8);
    assert_eq!(course.cancel().pop(), Some(Done(LaneRuling::Cancelled)));
    assert_eq!(course.start(), []);
}

#[test]
fn a_step_starts_the_moment_what_it_needs_has_ended() {
    let text = "steps: [{name: a, run: x}, {name: b, run: x, needs: []}, {name: c, run: x, needs: [b]}, {run: last}]";
    let mut course = course_of(text, 8);
    assert_eq!(course.start(), [Start(0), Start(1)]);
    assert_eq!(orders(course.ended(1, Passed)), [Start(2)]);
    assert_eq!(orders(course.ended(2, Passed)), []);
    assert_eq!(orders(course.ended(0, Passed)), [Start(3)]);
}

#[test]
fn what_needs_a_step_that_failed_falls_with_it_and_the_rest_goes_on() {
    let text = "fail_fast: false\nsteps: [{name: a, run: x}, {name: b, run: x, needs: [a]}, {name: c, run: x, needs: [b]}, {run: last}]";
    let mut course = course_of(text, 8);
    course.start();
    let fallen = |step, needed: &str| Leave(step, NotRun, format!("it needs `{needed}`, which did not pass"));
    assert_eq!(course.ended(0, Failed).1, [fallen(1, "a"), fallen(2, "b"), Start(3)]);
    assert_eq!(orders(course.ended(3, Passed)), [Done(LaneRuling::Failed)]);
}

#[test]
fn a_failed_step_is_tried_again_after_its_pause_and_a_late_pass_is_flaky() {
    let text = "steps: [{name: a, run: x, retries: 2, retry_delay: 3s}]";
    let again = || (Failed, vec![Again(0, Duration::from_secs(3))]);
    let mut course = course_of(text, 1);
    course.start();
    assert_eq!(course.ended(0, Failed), again());
    assert_eq!(course.ended(0, Passed), (Flaky, vec![Done(LaneRuling::Passed)]));
    let mut course = course_of(text, 1);
    course.start();
    assert_eq!((course.ended(0, Failed), course.ended(0, Failed)), (again(), again()));
    assert_eq!(course.ended(0, Failed), (Failed, vec![Done(LaneRuling::Failed)]));
}

#[test]
fn nothing_is_tried_again_once_the_lane_is_stopped() {
    let mut course = course_of("steps: [{name: a, run: x, retries: 2}]", 1);
    course.start();
    course.cancel();
    assert_eq!(course.ended(0, Failed), (Failed, vec![Done(LaneRuling::Cancelled)]));
}

#[test]
fn a_failure_that_is_allowed_is_said_and_changes_nothing() {
    let text = "steps: [{name: a, run: x, allow_failure: true}, {name: b, run: x, needs: [a]}]";
    let mut course = course_of(text, 1);
    course.start();
    assert_eq!(course.ended(0, Failed), (AllowedFailure, vec![Start(1)]));
    assert_eq!(orders(course.ended(1, Passed)), [Done(LaneRuling::Passed)]);
}

#[test]
fn a_lane_in_which_nothing_passed_is_no_pass() {
    let lane = parse("verify", "v.yaml", "steps: [{run: a}, {run: b, allow_failure: true}]").unwrap();
    let mut course = Course::new(&lane, 1, &[Some("why".into()), Some("why".into())], &[]);
    let skip = |step| Leave(step, Skipped, "why".into());
    assert_eq!(course.start(), [skip(0), skip(1), Done(LaneRuling::NothingRan)]);
    let mut course = Course::new(&lane, 1, &[Some("why".into())], &[]);
    assert_eq!(course.start(), [skip(0), Start(1)]);
    assert_eq!(orders(course.ended(1, Failed)), [Done(LaneRuling::NothingRan)]);
}

#[test]
fn of_those_that_may_start_the_longest_starts_first() {
    let lane = parse("verify", "v.yaml", "steps: [{parallel: [{run: a}, {run: b}, {run: c}]}]").unwrap();
    let mut course = Course::new(&lane, 1, &[], &[1, 9, 4].map(Duration::from_secs));
    assert_eq!(course.start(), [Start(1)]);
    assert_eq!(orders(course.ended(1, Passed)), [Start(2)]);
    assert_eq!(orders(course.ended(2, Passed)), [Start(0)]);
}

proptest! {
    /// Whatever ends in whatever order: the limit holds, each step starts once at most, only running steps are stopped, and
    /// it is done exactly once, when nothing runs any more.
    #[test]
    fn every_course_comes_to_its_end(fail_fast: bool, jobs in 0usize..4, choices in proptest::collection::vec((0usize..5, 0usize..8), 40)) {
        let mut course = of(&lane(fail_fast), jobs);
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
                    Leave(step, ..) => prop_assert!(!started.contains(&step)),
                    Again(step, _) => running.push(step),
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
                    course.ended(step, [Passed, Passed, Passed, Failed, Errored, Cancelled][status]).1
                }
            };
        }
    }
}
