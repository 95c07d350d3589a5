//! Faults at each step of a worker with its queue, and of the queue itself: the worker dies and
//! another one continues, or the step fails and the worker repeats the call.

use crate::queue::deaths::one_result_each;
use crate::queue::stage::{Stage, rows, with};
use crate::queue::worker::{Log, orders, start_so, story, work};
use fledge::queue::{BuryReason, QueueState, QueuedJob};
use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

const TERM: Duration = Duration::from_millis(300);

pub(crate) fn a_process_that_dies_at_any_step_loses_nothing_and_leaves_one_result<S: Stage>() {
    each(&places::<S>(), dies_at::<S>);
}

pub(crate) fn a_call_that_failed_at_any_step_can_be_repeated<S: Stage>() {
    each(&places::<S>(), fails_at::<S>);
}

fn each(places: &[String], case: fn(&str)) {
    for verb in ["submit", "claim", "renew", "complete", "release", "bury"] {
        for how_far in ["begun", "written", "done"] {
            let place = format!("queue {verb}: {how_far}#1");
            assert!(places.contains(&place), "{place} is none of {places:?}");
        }
    }
    let (next, failed) = (Mutex::new(places.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(place) = { next.lock().unwrap().next() } {
                    if catch_unwind(AssertUnwindSafe(|| case(place))).is_err() {
                        failed.lock().unwrap().push(place);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} of {} failed: {failed:?}", failed.len(), places.len());
}

/// Returns the first time that one worker passes each place, and the third time if there is one.
fn places<S: Stage>() -> Vec<String> {
    with(async |stage: &S, _| {
        let log = Log::new();
        let (mut orders, trace) = (orders(stage, &log, "calm", TERM), tempfile::NamedTempFile::new().unwrap());
        orders.tells = true;
        let fail = format!("trace:{}", trace.path().display());
        assert!(start_so::<S>(&orders, &fail).wait().success());
        let mut counts = BTreeMap::<String, usize>::new();
        let text = fs::read_to_string(trace.path()).unwrap();
        text.lines()
            .filter(|line| line.starts_with("queue "))
            .for_each(|name| *counts.entry(name.into()).or_default() += 1);
        let is_sure = |name: &str| ["claim", "complete"].iter().any(|verb| name.contains(verb));
        let times = |(name, count): (String, usize)| {
            let third = (count >= 3 && is_sure(&name)).then(|| format!("{name}#3"));
            [Some(format!("{name}#1")), third].into_iter().flatten()
        };
        counts.into_iter().flat_map(times).collect()
    })
}

fn dies_at<S: Stage>(place: &str) {
    with(async |stage: &S, queue| {
        let log = Log::new();
        let mut orders = orders(stage, &log, "dies", TERM);
        orders.tells = true;
        assert!(!start_so::<S>(&orders, &format!("abort:{place}")).wait().success(), "{place} was not reached");
        let there = rows(&queue).await.len();
        assert!([0, story().len()].contains(&there), "{there} of the jobs are there");
        work(&queue, &orders).await;
        judge(&rows(&queue).await, &log);
    });
}

fn fails_at<S: Stage>(place: &str) {
    with(async |stage: &S, queue| {
        let log = Log::new();
        let mut orders = orders(stage, &log, "repeats", TERM);
        orders.tells = true;
        assert!(start_so::<S>(&orders, &format!("error:{place}")).wait().success(), "{place}");
        judge(&rows(&queue).await, &log);
    });
}

/// Asserts that all jobs of the story have ended as expected.
fn judge(rows: &[QueuedJob], log: &Log) {
    let ends: Vec<_> = rows.iter().map(|row| (row.id.as_str(), row.state)).collect();
    let expected = [
        ("long", QueueState::Done),
        ("again", QueueState::Done),
        ("never", QueueState::Dead),
        ("short", QueueState::Done),
    ];
    assert_eq!(ends, expected);
    assert_eq!(rows[2].why, Some(BuryReason::Refused("no".into())));
    one_result_each(rows, &log.lines());
}
