//! Benchmark of many runs in one process, against a scripted server in another: memory of each run,
//! turns a second, and how evenly the runs progress.
//!
//! Prints the figures and asserts nothing. A number as argument sets the number of runs; the
//! default is 200. Each run has eight turns, of which seven read a file.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and its arguments, and starts its server")]
#![expect(clippy::print_stdout, reason = "its figures are what it is for")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use fledge::driver::DriverSettings;
use fledge::process::sandbox::SandboxChoice;
use fledge::provider::{Endpoint, WireFormat, connect};
use fledge::task::{Baseline, GateChoice, Tier};
use fledge::{Agent, Task};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

/// The number of turns of a run.
const TURNS: usize = 8;
/// The server's delay before each answer.
const THOUGHT: Duration = Duration::from_millis(50);
/// The interval between two readings of the memory.
const LOOK: Duration = Duration::from_millis(20);
/// The argument that makes this program the server.
const SERVE: &str = "--serve";

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if std::env::args().any(|word| word == SERVE) {
        return runtime.block_on(serve());
    }
    let runs = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(200);
    let (mut server, url) = server();
    // The first run pays the costs that all runs share.
    let home = tempfile::tempdir().unwrap();
    runtime.block_on(LocalSet::new().run_until(fleet(home.path(), &url, 1)));
    let before = memory();
    let begun = Instant::now();
    let (mut ends, most) = runtime.block_on(LocalSet::new().run_until(fleet(home.path(), &url, runs)));
    let all = begun.elapsed();
    ends.sort();
    let turns = (runs * TURNS) as f64 / all.as_secs_f64();
    println!("{runs} runs of {TURNS} turns: {all:.1?}, {turns:.0} turns per second");
    println!("a run ends after {:.1?}, {:.1?}, {:.1?} (first, median, last)", ends[0], ends[runs / 2], ends[runs - 1]);
    let (each, files) = ((most.0.saturating_sub(before.0)) as f64 / runs as f64, most.1.saturating_sub(before.1));
    println!("memory: {} KiB before, {} KiB at most: {each:.0} KiB a run", before.0, most.0);
    println!("descriptors: {:.1} a run", files as f64 / runs as f64);
    server.kill().unwrap();
    server.wait().unwrap();
}

/// Starts this many runs at once. Returns when each ended, and the peaks of memory and open files.
async fn fleet(home: &Path, url: &str, runs: usize) -> (Vec<Duration>, (usize, usize)) {
    let begun = Instant::now();
    let run = |number: usize| {
        let mut agent = Agent::new(settings(home, url));
        let task = Task {
            gate: GateChoice::Skip,
            tier: Tier::Read,
            ..Task::from_prompt(format!("Read the file, and say what is in it. This is run {number}."))
        };
        tokio::task::spawn_local(async move {
            agent.run_task(task).await.unwrap();
            begun.elapsed()
        })
    };
    let all: Vec<_> = (0..runs).map(run).collect();
    let looking = tokio::task::spawn_local(async move {
        let mut most = (0, 0);
        loop {
            let now = memory();
            most = (most.0.max(now.0), most.1.max(now.1));
            MOST.set(most);
            tokio::time::sleep(LOOK).await;
        }
    });
    MOST.set((0, 0));
    let mut ends = Vec::new();
    for run in all {
        ends.push(run.await.unwrap());
    }
    looking.abort();
    (ends, MOST.get())
}

thread_local! {
    static MOST: std::cell::Cell<(usize, usize)> = const { std::cell::Cell::new((0, 0)) };
}

fn settings(home: &Path, url: &str) -> DriverSettings {
    let workspace = home.join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::write(workspace.join("notes.txt"), "a line of notes\n".repeat(100)).unwrap();
    let endpoint = Endpoint { base_url: Some(format!("{url}/v1")), ..Endpoint::new(WireFormat::OpenAi, "scripted") };
    DriverSettings {
        models: vec![connect(endpoint).unwrap().into()],
        env: vec![("PATH".into(), std::env::var("PATH").unwrap())],
        step_env: vec![("PATH".into(), std::env::var("PATH").unwrap())],
        jobs: 1,
        memory: None,
        baseline: Baseline::Never,
        sandbox: SandboxChoice::Off,
        ..DriverSettings::new(workspace.canonicalize().unwrap(), home.join("state"))
    }
}

/// Returns the resident memory in KiB, and the number of open files.
fn memory() -> (usize, usize) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let resident = line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0);
    (resident, std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count))
}

/// Starts this program again, as the server. Returns its address.
fn server() -> (Child, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut child = command.arg(SERVE).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, line.trim().to_owned())
}

async fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}", listener.local_addr().unwrap());
    let all = LocalSet::new();
    all.run_until(async {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::task::spawn_local(answer(stream));
        }
    })
    .await;
}

/// Answers the requests of a connection until it is closed.
async fn answer(mut stream: TcpStream) -> Option<()> {
    let mut held = Vec::new();
    loop {
        let body = loop {
            let text = String::from_utf8_lossy(&held);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
                if body.len() >= length.unwrap_or(0) {
                    break body.to_owned();
                }
            }
            let mut piece = [0; 16 * 1024];
            let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
            held.extend(&piece[..count]);
        };
        held.clear();
        tokio::time::sleep(THOUGHT).await;
        let turn = body.matches("\"role\":\"assistant\"").count();
        let delta = match turn + 1 < TURNS {
            true => format!(
                r#"{{"tool_calls":[{{"index":0,"id":"c{turn}","type":"function","function":{{"name":"files-read","arguments":"{{\"path\":\"notes.txt\",\"offset\":{}}}"}}}}]}}"#,
                turn + 1
            ),
            false => r#"{"content":"Notes."}"#.to_owned(),
        };
        let stop = if turn + 1 < TURNS { "tool_calls" } else { "stop" };
        let chunk = |delta: &str, stop: &str| {
            format!(
                r#"data: {{"id":"c","model":"m","choices":[{{"index":0,"delta":{delta},"finish_reason":{stop}}}]}}"#
            )
        };
        let body = format!("{}\n\n{}\n\ndata: [DONE]\n\n", chunk(&delta, "null"), chunk("{}", &format!("\"{stop}\"")));
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).await.ok()?;
        stream.write_all(body.as_bytes()).await.ok()?;
    }
}
