//! Benchmark of a tool call through the sandbox: equal calls to a host in this process and to a
//! host in each available sandbox, interleaved.
//!
//! Prints medians, and the time of the first call, which starts the host. Run it with `cargo bench
//! --bench wall [-- CALLS]`.
#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement is printed, and may not fail")]

use fledge::id::CallId;
use fledge::process::sandbox::{PathRules, Sandbox, SandboxChoice, SandboxLimits};
use fledge::tool::{HostSettings, ToolHost, ToolRequest};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

fn main() {
    let calls = std::env::args().find_map(|arg| arg.parse::<u64>().ok()).unwrap_or(300);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(measure(calls));
}

/// A host in its own folder.
struct Walled {
    name: &'static str,
    host: ToolHost,
    /// The time of the first call.
    first: Duration,
    _folder: tempfile::TempDir,
}

impl Walled {
    async fn new(name: &'static str, sandbox: Sandbox) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("w");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("file"), "a line\n".repeat(100)).unwrap();
        let settings = HostSettings {
            root: root.clone(),
            outputs_dir: folder.path().join("outputs"),
            protected: Vec::new(),
            allow_edit: Vec::new(),
            files: Vec::new(),
            env: vec![("PATH".to_owned(), PATH.to_owned())],
            max_result: 30_000,
            shell_timeout: Duration::from_secs(60),
            bounds: SandboxLimits::default().bounds(),
        };
        let mut holes = PathRules::of_workspace(&root);
        holes.writable.push(settings.outputs_dir.clone());
        let host = ToolHost::behind(settings, None, sandbox, holes).unwrap();
        let mut walled = Self { name, host, first: Duration::ZERO, _folder: folder };
        walled.first = walled.call("files-read", json!({ "path": "file" })).await;
        walled
    }

    async fn call(&self, name: &str, input: Value) -> Duration {
        let request = ToolRequest { call: CallId(1), name: name.into(), input };
        let clock = Instant::now();
        let outcome = self.host.call(request, &CancellationToken::new(), &|_| {}).await;
        let took = clock.elapsed();
        assert!(!outcome.is_error, "{}", outcome.content);
        took
    }
}

async fn measure(calls: u64) {
    let helper = Path::new(env!("CARGO_BIN_EXE_fledge"));
    let mut hosts = vec![Walled::new("off", Sandbox::off()).await];
    for (name, sandbox) in [
        ("bubblewrap", Sandbox::find(SandboxChoice::Required, Some(helper), PATH).await),
        ("landlock", Sandbox::landlock(helper, PATH).await),
    ] {
        match sandbox {
            Ok(sandbox) => hosts.push(Walled::new(name, sandbox).await),
            Err(none) => println!("{name}: not here: {none}"),
        }
    }
    for host in &hosts {
        println!("{:<10} first call, with the host's start: {:7.3} ms", host.name, host.first.as_secs_f64() * 1e3);
    }
    for (tool, input) in [("files-read", json!({ "path": "file" })), ("shell-exec", json!({ "command": ":" }))] {
        let mut took: Vec<Vec<Duration>> = vec![Vec::new(); hosts.len()];
        for _ in 0..calls {
            for (host, took) in hosts.iter().zip(&mut took) {
                took.push(host.call(tool, input.clone()).await);
            }
        }
        let median = |took: &mut Vec<Duration>| {
            took.sort();
            took[took.len() / 2].as_secs_f64() * 1e3
        };
        let medians: Vec<f64> = took.iter_mut().map(median).collect();
        for (host, took) in hosts.iter().zip(&medians) {
            println!("{:<10} {tool}: {took:7.3} ms, {:+7.3} ms beyond none", host.name, took - medians[0]);
        }
    }
    for host in hosts {
        host.host.close().await;
    }
}
