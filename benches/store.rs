//! Benchmark of the store: opening, an event with and without a sync, and a list of many runs.
//!
//! Prints times and asserts nothing. Syncs depend on the disk: `TMPDIR` selects it. `strace -f -e
//! trace=fsync,fdatasync` shows the syncs; a number as argument ends each round after that many
//! events.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and its arguments")]
#![expect(clippy::print_stdout, reason = "its figures are what it is for")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use fledge::id::RunId;
use fledge::store::{Journal, Retention, RunHead, RunListFilter, RunOutcome, Store, TaskCopy};
use std::path::Path;
use std::time::{Duration, Instant};

fn main() {
    let events = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(10_000);
    let home = tempfile::tempdir().unwrap();
    let open = || Store::open(home.path(), Path::new("/a/app")).unwrap();
    measure("make a database", 1, |_| drop(open()));
    measure("open it, alone", 20, |_| drop(open()));
    let store = open();
    let mut journal = begin(&store, 0);
    measure("open it beside others", 20, |_| drop(open()));
    for size in [300, 2_000, 20_000] {
        let data = "x".repeat(size);
        measure(&format!("append {size} bytes"), events, |at| {
            journal.append(u64::from(at), "ToolFinished", &data).unwrap()
        });
        journal.sync().unwrap();
    }
    let slowest = (0..events)
        .map(|at| took(|| journal.append(u64::from(at), "ToolFinished", "x").unwrap()).1)
        .max()
        .unwrap_or_default();
    println!("slowest of {events} appends: {slowest:.1?}");
    measure("append and sync", 200.min(events), |at| {
        journal.append(u64::from(at), "ToolFinished", "x").unwrap();
        journal.sync().unwrap();
    });
    let read = || store.events(&RunId::new("run-0"), 0).unwrap().map(Result::unwrap).count();
    let (count, time) = took(read);
    println!("read and verify {count} events: {time:.1?}");
    (1..events).for_each(|at| begin(&store, at).finish(&RunOutcome::default()).unwrap());
    let everything = RunListFilter { limit: u32::MAX, ..RunListFilter::default() };
    measure(&format!("list {events} runs"), 5, |_| assert_eq!(store.runs(&everything).unwrap().len() as u32, events));
    measure("list 50 of them", 20, |_| store.runs(&RunListFilter::default()).unwrap());
    let all = Retention { age_ms: None, runs: None, bytes: None };
    measure("prune nothing", 5, |_| store.prune(&all, 0).unwrap());
}

fn begin(store: &Store, number: u32) -> Journal {
    let head = RunHead {
        id: RunId::new(format!("run-{number}")),
        run_key: None,
        parent: None,
        title: "Repair the date parser".into(),
        source: "tasks/dates.md".into(),
        task_digest: "0".repeat(64),
        workspace: "/a/app".into(),
        models: vec!["anthropic/claude".into()],
        fledge: "0.1.0".into(),
        journal_version: 1,
        started_at_ms: 0,
    };
    Journal::create(store, &head, &TaskCopy::default()).unwrap()
}

/// Repeats the work this often, and prints the median, which a busy machine distorts least.
fn measure<T>(name: &str, times: u32, mut work: impl FnMut(u32) -> T) {
    let mut all: Vec<Duration> = (0..times).map(|at| took(|| work(at)).1).collect();
    all.sort();
    println!("{name}: {:.1?}", all[all.len() / 2]);
}

fn took<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    (work(), start.elapsed())
}
