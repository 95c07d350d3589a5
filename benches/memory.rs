//! Benchmark of recalling a memory from among many.
//!
//! Prints times and asserts nothing. A number as argument sets the number of memories; the default
//! is 10,000.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and its arguments")]
#![expect(clippy::print_stdout, reason = "its figures are what it is for")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use fledge::id::RunId;
use fledge::store::{Store, StoredMemory};
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

const ROUNDS: usize = 50;

fn main() {
    let memories: u32 = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(10_000);
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path(), Path::new("/a/app")).unwrap();
    let (_, all) = took(|| (0..memories).for_each(|number| store.remember(&memory(number)).unwrap()));
    println!("keep one of {memories}: {:.1?}", all / memories.max(1));
    let rare = "Repair the date parser in src/part77.rs: `seconds(\"2h\")` gives 120 instead of 7200.";
    let common = "task outcome verified done files changed repaired parser tests pass now";
    let long: String = (0..20_000).map(|number| format!("{} part{} ", text(number), number % 500)).collect();
    for (name, query) in [("a task", rare), ("words of every memory", common), ("a task of a megabyte", &long)] {
        measure(name, || store.recall(query, 0).unwrap());
    }
    measure("a task, with opening the store", || {
        Store::existing(home.path(), Path::new("/a/app")).unwrap().unwrap().recall(rare, 0).unwrap()
    });
}

fn memory(number: u32) -> StoredMemory {
    let (task, run) = (format!("task-{number}"), RunId::new(format!("run-{number}")));
    StoredMemory::of_task(&task, "verified", run, text(number), i64::from(number))
}

/// Returns the memory of a run: some words that all memories have, some that many have, and a few
/// unique ones.
fn text(number: u32) -> String {
    let (part, kind) = (number % 500, ["parser", "cache", "printer", "scheduler", "codec"][number as usize % 5]);
    format!(
        "Task: Repair the {kind} of part{part}\nOutcome: verified\nDone: The {kind} in src/part{part}.rs took minutes for hours; \
         repaired the factor and added a test case{number}. All tests pass now.\nFiles changed: src/part{part}.rs, tests/case{number}.rs"
    )
}

/// Repeats the work, and prints the median and the longest time.
fn measure<T>(name: &str, mut work: impl FnMut() -> T) {
    let mut all: Vec<Duration> = (0..ROUNDS).map(|_| took(|| black_box(work())).1).collect();
    all.sort();
    println!("{name}: {:.1?}, at most {:.1?}", all[ROUNDS / 2], all[ROUNDS - 1]);
}

fn took<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    (work(), start.elapsed())
}
