//! The program dies at every place where it can, and is taken up again: nothing that was told is lost, nothing is done twice that cannot be,
//! and the end is that of a run which nothing happened to.
//!
//! An ordinary run draws a sample; `FLEDGE_TEST_ALL=1 cargo test --test it crash::` tries
//! everything.

#[cfg(debug_assertions)] // without them there are no such places
mod children;
mod judge;
mod kills;
#[cfg(debug_assertions)] // without them there are no such places
mod places;
mod scene;
mod syscalls;
mod telling;

use crate::support::record_time;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Instant;

/// Cases that are tried at once, for each core: most of the time of each is spent in waiting for a child.
const AT_ONCE: usize = 2;

/// Tries every case, several at a time, and tells of all that fail.
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
