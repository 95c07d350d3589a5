//! Benchmark of the journal: a run of 199 events, with its state on a disk and in memory.
//!
//! The model answers at once and writes a file in every turn. The run writes each event, and syncs
//! before each model call and each change. The difference between the two times is the cost of the
//! disk. An argument names the folder on a disk; the default is the folder for temporary files.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and its arguments")]
#![expect(clippy::print_stdout, reason = "its figures are what it is for")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use fledge::driver::{Agent, DriverSettings};
use fledge::provider::{Endpoint, WireFormat, connect};
use fledge::store::{RunListFilter, Store};
use fledge::task::{GateChoice, Task};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The number of turns with a call. Each has three events; the start and the end have four more.
const TURNS: usize = 65;
/// The number of runs in each place, of which the median counts.
const RUNS: usize = 9;

fn main() {
    let disk = std::env::args().skip(1).find(|arg| arg != "--bench").map_or_else(std::env::temp_dir, PathBuf::from);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let [on_disk, in_memory] = [disk.as_path(), Path::new("/dev/shm")].map(|place| {
        let mut times: Vec<Duration> = (0..RUNS).map(|_| runtime.block_on(run(place))).collect();
        times.sort();
        println!("{}: {:.1?}, at best {:.1?}", place.display(), times[RUNS / 2], times[0]);
        times[RUNS / 2]
    });
    println!("the disk adds {:.1?} to a run of {} events", on_disk.saturating_sub(in_memory), 3 * TURNS + 4);
}

/// Returns the duration of a run whose state is in this folder.
async fn run(place: &Path) -> Duration {
    let (tree, state) = (tempfile::tempdir_in("/dev/shm").unwrap(), tempfile::tempdir_in(place).unwrap());
    let turn = |turn| {
        format!(
            "  - {{ tools: [{{ name: files-write, input: {{ path: f{turn}.txt, content: \"line {turn}\" }} }}] }}\n"
        )
    };
    let turns: String = (0..TURNS).map(turn).collect();
    let kind =
        WireFormat::Cassette { text: format!("turns:\n{turns}  - {{ text: Done. }}\n"), path: "journal.yaml".into() };
    let workspace = tree.path().canonicalize().unwrap();
    let mut agent = Agent::new(DriverSettings {
        models: vec![connect(Endpoint::new(kind, "c.yaml")).unwrap().into()],
        env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        step_env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        memory: None,
        sandbox: fledge::process::sandbox::SandboxChoice::Off,
        jobs: 1,
        ..DriverSettings::new(&workspace, state.path())
    });
    let mut task = Task { gate: GateChoice::Skip, ..Task::from_prompt("Write the files.") };
    task.budget.turns = Some(1000);
    let start = Instant::now();
    let result = agent.run_task(task).await.unwrap();
    let took = start.elapsed();
    let store = Store::open(state.path(), &workspace).unwrap();
    assert_eq!(store.runs(&RunListFilter::default()).unwrap().len(), 1);
    assert_eq!(store.events(&result.run, 0).unwrap().count(), 3 * TURNS + 4);
    took
}
