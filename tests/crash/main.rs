//! The program dies at every place where it can, and is taken up again: nothing that was told is lost, nothing is done twice that cannot be,
//! and the end is that of a run which nothing happened to.
//!
//! The ordinary suite takes samples. All of it: `FLEDGE_CRASH=all cargo test --test crash`; a seed of one's own: `FLEDGE_CRASH_SEED=7`.
#![expect(clippy::disallowed_methods, reason = "tests start the program and ask how much of them to run")]
#![expect(clippy::print_stdout, reason = "what was tried, and what failed, is said while it goes on")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

#[cfg(debug_assertions)] // without them there are no such places
mod children;
mod judge;
mod kills;
#[cfg(debug_assertions)] // without them there are no such places
mod places;
mod scene;
#[path = "../it/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "what only the other tests need")]
mod support;
mod syscalls;
mod telling;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Instant;

/// Whether every case is run, and not only a sample.
fn is_whole() -> bool {
    std::env::var("FLEDGE_CRASH").is_ok_and(|how| how == "all")
}

/// Cases that are tried at once, for each core: most of the time of each is spent in waiting for a child.
const AT_ONCE: usize = 2;

/// Tries every case, several at a time, and tells of all that fail.
#[track_caller]
fn each(cases: &[String], work: impl Fn(&str) + Sync) {
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
