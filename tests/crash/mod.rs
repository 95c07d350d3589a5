//! Crash tests. The program dies at every possible fail point and is resumed. No announced event is
//! lost, no unrepeatable action runs twice, and the end equals that of a run without a crash.
//!
//! An ordinary run draws a sample; `FLEDGE_TEST_ALL=1 cargo test --test it crash::` tries
//! everything.

#[cfg(debug_assertions)] // fail points exist only in debug builds
mod children;
mod judge;
mod kills;
#[cfg(debug_assertions)] // fail points exist only in debug builds
mod places;
mod scene;
mod syscalls;
mod telling;

use crate::support::record_time;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Instant;

/// The number of concurrent cases per core. Each case spends most of its time waiting for a child.
const AT_ONCE: usize = 2;

/// Tries every case, several at a time, and reports all failures.
#[track_caller]
fn each(cases: &[String], work: impl Fn(&str) + Sync) {
    record_time();
    let begun = Instant::now();
    let (next, failed) = (Mutex::new(cases.iter()), Mutex::new(Vec::new()));
    let at_once = std::thread::available_parallelism().map_or(1, usize::from) * AT_ONCE;
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let Some(case) = next.lock().unwrap().next() else { return };
                    if catch_unwind(AssertUnwindSafe(|| work(case))).is_err() {
                        println!("-- the case that failed: {case}");
                        failed.lock().unwrap().push(case.clone());
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} of {} cases failed: {failed:#?}", failed.len(), cases.len());
    println!("{} cases in {:?}", cases.len(), begun.elapsed());
}
