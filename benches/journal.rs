//! What the journal costs a run: the same run of 199 events, in which a model that answers at once has a file written in every turn, with
//! what is kept on a disk and in memory. Each event is written, and before each model call and each change all is synced; what a
//! disk takes for that is the difference. Prints. A folder as argument is the place on a disk; else it is the one for temporary files.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and its arguments")]
#![expect(clippy::print_stdout, reason = "its figures are what it is for")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use fledge::driver::{Agent, DriverSettings};
use fledge::provider::{Endpoint, WireFormat, connect};
use fledge::store::{RunListFilter, Store};
use fledge::task::{GateChoice, Task};
use fledge::tool::SecretMask;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Turns with a call; each has three events, beside the four of the beginning and the end.
const TURNS: usize = 65;
/// Runs in each place, of which the median counts.
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

/// How long a run takes whose state is kept in this place.
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
        workspace: workspace.clone(),
        project: None,
        state_dir: state.path().to_owned(),
        models: vec![connect(Endpoint::new(kind, "c.yaml")).unwrap().into()],
        no_models: None,
        holdout: None,
        lanes_from: None,
        baseline: fledge::task::Baseline::Auto,
        env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        step_env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        protect: Vec::new(),
        reports: Vec::new(),
        patch: None,
        mcp: Vec::new(),
        earlier: None,
        memory: None,
        secrets: SecretMask::default(),
        wall: fledge::process::sandbox::SandboxChoice::Off,
        network: false,
        limits: fledge::process::sandbox::SandboxLimits::default(),
        hooks: Vec::new(),
        asker: fledge::driver::Asker::default(),
        helper: None,
        jobs: 1,
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
