//! Tests that report ends of steps to a course and compare its orders.

use super::*;
use crate::lane::parse;
use LaneOrder::{Done, GiveUp, Leave, Rest, Start, Stop};
use StepStatus::{AllowedFailure, Cancelled, Errored, Failed, Flaky, NotRun, Passed, Skipped, TimedOut};
use proptest::prelude::*;

/// A lane with `a`, then `b`, `c`, `d` in parallel, then `e`: numbers 0 to 4.
fn lane(fail_fast: bool) -> Lane {
    let text = format!(
        "fail_fast: {fail_fast}\nsteps: [{{run: a}}, {{parallel: [{{run: b}}, {{run: c}}, {{run: d}}]}}, {{run: e}}]"
    );
    parse("verify", "lanes/verify.yaml", &text).unwrap()
}

fn of(lane: &Lane, jobs: usize) -> LaneMachine {
    LaneMachine::new(lane, jobs, &[], &[])
}

/// Returns the orders without those that leave steps out.
fn orders(reported: (StepStatus, RetryDecision, Vec<LaneOrder>)) -> Vec<LaneOrder> {
    reported.2.into_iter().filter(|order| !matches!(order, Leave(..))).collect()
}

fn course_of(text: &str, jobs: usize) -> LaneMachine {
    of(&parse("verify", "lanes/verify.yaml", text).unwrap(), jobs)
}

#[test]
fn steps_run_in_order_and_groups_at_once_within_the_limit() {
    let mut machine = of(&lane(true), 2);
    assert_eq!(machine.start(), [Start(0)]);
    assert_eq!(orders(machine.ended(0, Passed)), [Start(1), Start(2)]);
    assert_eq!(orders(machine.ended(2, Passed)), [Start(3)]);
    assert_eq!(orders(machine.ended(1, Passed)), []);
    assert_eq!(orders(machine.ended(3, Passed)), [Start(4)]);
    assert_eq!(orders(machine.ended(4, Passed)), [Done(LaneRuling::Passed)]);
}

#[test]
fn a_failure_stops_its_siblings_and_skips_what_comes_later() {
    let mut machine = of(&lane(true), 8);
    machine.start();
    assert_eq!(orders(machine.ended(0, Passed)), [Start(1), Start(2), Start(3)]);
    assert_eq!(orders(machine.ended(2, Failed)), [Stop(1), Stop(3)]);
    assert_eq!(machine.status_of_stopped(), Cancelled);
    assert_eq!(orders(machine.ended(1, Cancelled)), []);
    assert_eq!(orders(machine.ended(3, Passed)), [Done(LaneRuling::Failed)]);
    assert_eq!(machine.steps[4].at, At::Ended(NotRun));
}

#[test]
fn without_fail_fast_everything_runs_and_every_failure_counts() {
    let mut machine = of(&lane(false), 8);
    machine.start();
    assert_eq!(orders(machine.ended(0, Failed)), [Start(1), Start(2), Start(3)]);
    for (step, status) in [(1, Errored), (2, TimedOut)] {
        assert_eq!(orders(machine.ended(step, status)), []);
    }
    assert_eq!(orders(machine.ended(3, Passed)), [Start(4)]);
    assert_eq!(orders(machine.ended(4, Passed)), [Done(LaneRuling::Failed)]);
}

#[test]
fn a_step_that_could_not_run_makes_an_errored_lane_unless_another_said_no() {
    let mut machine = of(&lane(true), 8);
    machine.start();
    assert_eq!(orders(machine.ended(0, Errored)), [Done(LaneRuling::Errored)]);
    let mut machine = of(&lane(true), 8);
    machine.start();
    machine.ended(0, Passed);
    machine.ended(1, Errored);
    machine.ended(2, Failed);
    assert_eq!(orders(machine.ended(3, Cancelled)), [Done(LaneRuling::Failed)]);
}

#[test]
fn a_step_that_may_fail_must_still_be_able_to_run() {
    let lane = parse("verify", "v.yaml", "steps: [{run: a, allow_failure: true}, {run: b}]").unwrap();
    let mut machine = of(&lane, 8);
    machine.start();
    assert_eq!(
        machine.ended(0, Errored),
        (
            Errored,
            RetryDecision::Over,
            vec![Leave(1, NotRun, "another step failed before".into()), Done(LaneRuling::Errored)]
        )
    );
}

#[test]
fn the_end_of_its_time_stops_a_lane_and_fails_it() {
    let mut machine = of(&lane(true), 8);
    machine.start();
    assert_eq!(machine.expire()[0], Stop(0));
    assert_eq!(machine.status_of_stopped(), TimedOut);
    assert_eq!(orders(machine.ended(0, TimedOut)), [Done(LaneRuling::Failed)]);
}

#[test]
fn a_cancelled_lane_is_cancelled_even_if_its_last_step_passes() {
    let mut machine = of(&lane(true), 8);
    machine.start();
    assert_eq!(machine.cancel()[0], Stop(0));
    assert_eq!(machine.cancel(), []);
    assert_eq!(orders(machine.ended(0, Passed)), [Done(LaneRuling::Cancelled)]);
    assert_eq!((machine.ended(0, Failed).2, machine.cancel(), machine.expire()), (vec![], vec![], vec![]));
}

#[test]
fn a_course_cancelled_before_it_starts_starts_nothing() {
    let mut machine = of(&lane(true), 8);
    assert_eq!(machine.cancel().pop(), Some(Done(LaneRuling::Cancelled)));
    assert_eq!(machine.start(), []);
}

#[test]
fn a_step_starts_the_moment_what_it_needs_has_ended() {
    let text = "steps: [{name: a, run: x}, {name: b, run: x, needs: []}, {name: c, run: x, needs: [b]}, {run: last}]";
    let mut machine = course_of(text, 8);
    assert_eq!(machine.start(), [Start(0), Start(1)]);
    assert_eq!(orders(machine.ended(1, Passed)), [Start(2)]);
    assert_eq!(orders(machine.ended(2, Passed)), []);
    assert_eq!(orders(machine.ended(0, Passed)), [Start(3)]);
}

#[test]
fn what_needs_a_step_that_failed_falls_with_it_and_the_rest_goes_on() {
    let text = "fail_fast: false\nsteps: [{name: a, run: x}, {name: b, run: x, needs: [a]}, {name: c, run: x, needs: [b]}, {run: last}]";
    let mut machine = course_of(text, 8);
    machine.start();
    let fallen = |step, needed: &str| Leave(step, NotRun, format!("it needs `{needed}`, which did not pass"));
    assert_eq!(machine.ended(0, Failed).2, [fallen(1, "a"), fallen(2, "b"), Start(3)]);
    assert_eq!(orders(machine.ended(3, Passed)), [Done(LaneRuling::Failed)]);
}

#[test]
fn a_failed_step_is_tried_again_after_its_pause_and_a_late_pass_is_flaky() {
    let text = "steps: [{name: a, run: x, retries: 2, retry_delay: 3s}]";
    let again = || (Failed, RetryDecision::Again, vec![Rest(0, Duration::from_secs(3))]);
    let mut machine = course_of(text, 1);
    machine.start();
    assert_eq!((machine.ended(0, Failed), machine.rested(0), machine.rested(0)), (again(), vec![Start(0)], vec![]));
    assert_eq!(machine.ended(0, Passed), (Flaky, RetryDecision::Over, vec![Done(LaneRuling::Passed)]));
    let mut machine = course_of(text, 1);
    machine.start();
    assert_eq!((machine.ended(0, Failed), machine.rested(0)), (again(), vec![Start(0)]));
    assert_eq!((machine.ended(0, Failed), machine.rested(0)), (again(), vec![Start(0)]));
    assert_eq!(machine.ended(0, Failed), (Failed, RetryDecision::Over, vec![Done(LaneRuling::Failed)]));
    let mut machine = course_of("steps: [{name: a, run: x, retries: 1}]", 1);
    machine.start();
    assert_eq!(machine.ended(0, Errored), (Errored, RetryDecision::Again, vec![Start(0)]));
}

#[test]
fn a_step_that_waits_for_another_try_takes_no_place_and_has_to_wait_for_one_again() {
    let text = "steps: [{parallel: [{name: a, run: x, retries: 1, retry_delay: 3s}, {run: b}, {run: c}]}]";
    let mut machine = course_of(text, 1);
    assert_eq!(machine.start(), [Start(0)]);
    assert_eq!(machine.ended(0, Failed).2, [Rest(0, Duration::from_secs(3)), Start(1)]);
    assert_eq!(machine.rested(0), []);
    assert_eq!(machine.ended(1, Passed).2, [Start(0)]);
    assert_eq!(machine.ended(0, Passed), (Flaky, RetryDecision::Over, vec![Start(2)]));
    assert_eq!(machine.ended(2, Passed).2, [Done(LaneRuling::Passed)]);
}

#[test]
fn what_waits_for_another_try_when_the_lane_ends_is_given_up_as_it_is() {
    let text = "steps: [{parallel: [{name: a, run: x, retries: 1, retry_delay: 3s}, {run: b}]}]";
    for is_rested in [false, true] {
        let mut machine = course_of(text, 1);
        machine.start();
        machine.ended(0, TimedOut);
        if is_rested {
            machine.rested(0);
        }
        assert_eq!(machine.ended(1, Failed), (Failed, RetryDecision::Over, vec![GiveUp(0), Done(LaneRuling::Failed)]));
        assert_eq!((machine.rested(0), machine.steps[0].at), (vec![], At::Ended(TimedOut)));
    }
}

#[test]
fn a_skipped_step_keeps_its_reason_and_its_dependents_are_skipped_too() {
    let text =
        "fail_fast: false\nsteps: [{name: a, run: x}, {name: b, run: x, needs: [a]}, {name: c, run: x, needs: [b]}]";
    let lane = parse("verify", "v.yaml", text).unwrap();
    let mut machine = LaneMachine::new(&lane, 8, &[None, Some("`when: $CI` does not hold".into())], &[]);
    machine.start();
    let orders = machine.ended(0, Failed).2;
    let skipped = Leave(1, Skipped, "`when: $CI` does not hold".into());
    let fallen = Leave(2, NotRun, "it needs `b`, which did not pass".into());
    assert_eq!(orders, [skipped, fallen, Done(LaneRuling::Failed)]);
}

#[test]
fn nothing_is_tried_again_once_the_lane_is_stopped() {
    let mut machine = course_of("steps: [{name: a, run: x, retries: 2}]", 1);
    machine.start();
    machine.cancel();
    assert_eq!(machine.ended(0, Failed), (Failed, RetryDecision::Over, vec![Done(LaneRuling::Cancelled)]));
}

#[test]
fn a_failure_that_is_allowed_is_said_and_changes_nothing() {
    let text = "steps: [{name: a, run: x, allow_failure: true}, {name: b, run: x, needs: [a]}]";
    let mut machine = course_of(text, 1);
    machine.start();
    assert_eq!(machine.ended(0, Failed), (AllowedFailure, RetryDecision::Over, vec![Start(1)]));
    assert_eq!(orders(machine.ended(1, Passed)), [Done(LaneRuling::Passed)]);
}

#[test]
fn a_lane_in_which_nothing_passed_is_no_pass() {
    let lane = parse("verify", "v.yaml", "steps: [{run: a}, {run: b, allow_failure: true}]").unwrap();
    let mut machine = LaneMachine::new(&lane, 1, &[Some("why".into()), Some("why".into())], &[]);
    let skip = |step| Leave(step, Skipped, "why".into());
    assert_eq!(machine.start(), [skip(0), skip(1), Done(LaneRuling::NothingRan)]);
    let mut machine = LaneMachine::new(&lane, 1, &[Some("why".into())], &[]);
    assert_eq!(machine.start(), [skip(0), Start(1)]);
    assert_eq!(orders(machine.ended(1, Failed)), [Done(LaneRuling::NothingRan)]);
}

#[test]
fn of_those_that_may_start_the_longest_starts_first() {
    let lane = parse("verify", "v.yaml", "steps: [{parallel: [{run: a}, {run: b}, {run: c}]}]").unwrap();
    let mut machine = LaneMachine::new(&lane, 1, &[], &[1, 9, 4].map(Duration::from_secs));
    assert_eq!(machine.start(), [Start(1)]);
    assert_eq!(orders(machine.ended(1, Passed)), [Start(2)]);
    assert_eq!(orders(machine.ended(2, Passed)), [Start(0)]);
}

/// An item of a generated lane: a group of `group` steps, or one step if `group` is 0. Each step
/// has `retries` retries.
#[derive(Debug, Clone)]
struct Item {
    group: usize,
    retries: u32,
    allow_failure: bool,
    /// The earlier steps that the item needs, as bits. `None` means that it waits for all earlier
    /// steps.
    needs: Option<u32>,
    left_out: bool,
}

fn items() -> impl Strategy<Value = Vec<Item>> {
    let item = (0usize..4, 0u32..3, any::<bool>(), proptest::option::of(any::<u32>()), proptest::bool::weighted(0.2));
    let item = item.prop_map(|(group, retries, allow_failure, needs, left_out)| Item {
        group,
        retries,
        allow_failure,
        needs,
        left_out,
    });
    proptest::collection::vec(item, 1..6)
}

/// Builds the lane from items, and the reasons for leaving its steps out.
fn generated(fail_fast: bool, items: &[Item]) -> (Lane, Vec<Option<String>>) {
    let (mut text, mut left_out) = (format!("fail_fast: {fail_fast}\nsteps:\n"), Vec::new());
    for item in items {
        let step = |number: usize| {
            let delay = if item.retries == 1 { ", retry_delay: 1s" } else { "" };
            format!("name: s{number}, run: x, retries: {}, allow_failure: {}{delay}", item.retries, item.allow_failure)
        };
        let begin = left_out.len();
        let steps: Vec<String> =
            (begin..begin + item.group.max(1)).map(|number| format!("{{ {} }}", step(number))).collect();
        left_out.extend(steps.iter().map(|_| item.left_out.then(|| "why".to_owned())));
        text += &match item.needs {
            _ if item.group > 0 => format!("  - parallel: [{}]\n", steps.join(", ")),
            Some(bits) => {
                let needs: Vec<String> =
                    (0..begin).filter(|number| bits >> number & 1 == 1).map(|number| format!("s{number}")).collect();
                format!("  - {{ {}, needs: [{}] }}\n", step(begin), needs.join(", "))
            }
            None => format!("  - {{ {} }}\n", step(begin)),
        };
    }
    (parse("verify", "lanes/verify.yaml", &text).unwrap(), left_out)
}

proptest! {
    /// Ends of steps in any order keep these invariants:
    ///
    /// - The limit of parallel steps holds.
    /// - Each step is started or left out once, not before its dependencies have ended, and not
    ///   after a step that it needs has failed.
    /// - Only running steps are stopped or tried again.
    /// - The lane is done exactly once, when no step runs.
    #[test]
    fn every_course_comes_to_its_end(fail_fast: bool, items in items(), jobs in 0usize..4, choices in proptest::collection::vec((0usize..5, 0usize..40), 0..40)) {
        let (lane, left_out) = generated(fail_fast, &items);
        let mut machine = LaneMachine::new(&lane, jobs, &left_out, &[]);
        let (mut running, mut resting, mut is_done) = (Vec::new(), Vec::new(), false);
        let (mut given, mut tries) = (vec![0; lane.steps.len()], vec![0; lane.steps.len()]);
        let mut ended: Vec<Option<StepStatus>> = vec![None; lane.steps.len()];
        let mut choices = choices.into_iter().chain(std::iter::repeat((0, 0)));
        let mut orders = machine.start();
        while !is_done {
            for order in orders {
                prop_assert!(!is_done);
                match order {
                    Start(step) => {
                        prop_assert!(lane.before(step).into_iter().all(|earlier| ended[earlier].is_some()));
                        let failed = |needed: &usize| ended[*needed].is_none_or(|status| status.is_failure() || status == NotRun);
                        prop_assert!(!lane.steps[step].needs.iter().any(failed));
                        given[step] += u32::from(tries[step] == 0);
                        tries[step] += 1;
                        running.push(step);
                    }
                    Leave(step, status, _) => {
                        given[step] += 1;
                        ended[step] = Some(status);
                    }
                    Stop(step) => prop_assert!(running.contains(&step)),
                    Rest(step, _) => resting.push(step),
                    GiveUp(step) => {
                        prop_assert!(tries[step] > 0 && !running.contains(&step) && ended[step].is_none());
                        resting.retain(|other| *other != step);
                        ended[step] = Some(Failed);
                    }
                    Done(_) => is_done = true,
                }
            }
            prop_assert!(running.len() <= jobs.max(1) && is_done == (running.is_empty() && resting.is_empty()));
            orders = match choices.next() {
                Some((_, 38)) => machine.expire(),
                Some((_, 39)) => machine.cancel(),
                Some((pick, event)) if !is_done && (running.is_empty() || event >= 30 && !resting.is_empty()) => {
                    let step = resting.remove(pick % resting.len());
                    machine.rested(step)
                }
                Some((pick, event)) if !is_done => {
                    let step = running.remove(pick % running.len());
                    let status = [Passed, Passed, Passed, Failed, TimedOut, Errored, Cancelled][event % 7];
                    let (status, next, orders) = machine.ended(step, status);
                    prop_assert_eq!(next == RetryDecision::Again, orders.iter().any(|order| matches!(order, Rest(again, _) | Start(again) if *again == step)));
                    ended[step] = (next == RetryDecision::Over).then_some(status);
                    orders
                }
                Some(_) | None => Vec::new(),
            };
        }
        prop_assert_eq!(given, vec![1; lane.steps.len()]);
        prop_assert!(machine.cancel().is_empty() && machine.expire().is_empty() && orders.is_empty());
    }
}
