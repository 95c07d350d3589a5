//! Every fail point that a run reaches. A traced run lists the fail points, so the test covers a
//! new one without naming it.

use crate::crash::judge::{Calm, Course};
use crate::crash::{each, scene};
use crate::support::{draw, is_whole};
use std::collections::BTreeMap;
use std::fs;

/// A fail point by its name and the number of times it was reached, in the form of `FLEDGE_FAIL`.
type Place = String;

/// A run in which the process dies while a command is running.
const IN_A_COMMAND: &str = "abort:tool: done#5";

#[test]
fn a_run_that_dies_at_any_place_ends_as_if_it_had_not() {
    long_table!();
    let calm = Calm::new();
    let places = places("deaths", traced(|trace| first(trace).code()));
    each(&places, |place| {
        let course = first(&format!("abort:{place}"));
        assert_eq!(course.code(), None, "it was not reached");
        course.must_end_like(&calm, false);
    });
}

#[test]
fn a_run_that_fails_at_any_fail_point_claims_no_false_success_and_resumes() {
    long_table!();
    let calm = Calm::new();
    let places = places("faults", traced(|trace| first(trace).code()));
    each(&places, |place| {
        let course = first(&format!("error:{place}"));
        // If the model learns of the failure, the conversation differs. If the failure ends the
        // run, a second run is needed. If fledge cannot store something, the run resumes where it
        // was.
        let is_told = ["tool", "workspace", "query"].iter().any(|told| place.starts_with(told));
        // Failures in data for later runs, or after a turn, do not end a run.
        let is_idle = ["durations", "memory", "hooks"].iter().any(|idle| place.starts_with(idle));
        assert_eq!(course.code() == Some(0), is_told || is_idle);
        let is_own = ["journal", "report"].iter().any(|own| place.starts_with(own));
        assert!(!is_own || course.code() == Some(8), "exit code {:?}", course.code());
        // At the last fail point of a journal, the end is already written; only its confirmation is
        // missing.
        assert!(!is_own || !course.is_over() || place.starts_with("journal finish: done"));
        // The report mentions hooks that could not run.
        course.must_end_like(&calm, is_told || place.starts_with("hooks"));
    });
}

#[test]
fn a_resume_that_dies_or_fails_at_any_place_is_resumed_like_any_other() {
    long_table!();
    let calm = Calm::new();
    let again = |order: &str| first(IN_A_COMMAND).again(&[("FLEDGE_FAIL", order)]);
    let places = places("resumes", traced(|trace| again(trace).code()));
    let orders = places.iter().enumerate().flat_map(|(number, place)| {
        let verbs: &[&str] = match number % 2 {
            _ if is_whole() => &["abort", "error"],
            0 => &["abort"],
            _ => &["error"],
        };
        verbs.iter().map(move |verb| format!("{verb}:{place}"))
    });
    each(&orders.collect::<Vec<_>>(), |order| {
        let (course, dies) = (again(order), order.starts_with("abort"));
        assert_eq!(course.code().is_none(), dies, "it was not reached");
        course.must_end_like(&calm, !dies);
    });
}

#[test]
fn a_process_that_dies_while_it_repeats_a_finished_result_leaves_nothing() {
    long_table!();
    let calm = Calm::new();
    let again = |order: &str| first("trace:/dev/null").again(&[("FLEDGE_FAIL", order)]);
    let places = places("results", traced(|trace| again(trace).code()));
    each(&places, |place| {
        let course = again(&format!("abort:{place}"));
        assert_eq!(course.code(), None, "it was not reached");
        course.must_end_like(&calm, false);
    });
}

/// Runs the first process of a run, with this value in `FLEDGE_FAIL`.
fn first(order: &str) -> Course {
    let model = scene::model();
    let ended = scene::beginning(&model).env("FLEDGE_FAIL", order).run();
    Course::new(model, ended)
}

/// Returns the names of all fail points that the run reaches, in their order.
#[track_caller]
fn traced(run: impl Fn(&str) -> Option<i32>) -> Vec<String> {
    let folder = crate::support::temp_dir();
    let trace = folder.path().join("trace");
    assert_eq!(run(&format!("trace:{}", trace.display())), Some(0));
    fs::read_to_string(trace).unwrap().lines().map(str::to_owned).collect()
}

/// The number of fail points that an ordinary run tries.
const SAMPLE: usize = 3;

/// Returns every fail point, once for each time it was reached. An ordinary run gets a sample.
fn places(table: &str, names: Vec<String>) -> Vec<Place> {
    let mut counts = BTreeMap::<&String, usize>::new();
    for name in &names {
        *counts.entry(name).or_default() += 1;
    }
    let all = counts.iter().flat_map(|(name, count)| (1..=*count).map(move |number| format!("{name}#{number}")));
    draw(table, SAMPLE, all.collect())
}
