//! Whole runs with a server: the server in the plan and in model calls, and no process alive when
//! the gate runs.

use super::scene::{PYTHON, server};
use crate::support::must_be_gone;
use fledge::driver::DriverSettings;
use fledge::mcp::ServerConfig;
use fledge::process::sandbox::SandboxChoice;
use fledge::provider::{Endpoint, WireFormat, connect};
use fledge::task::{Baseline, GateChoice, Tier};
use fledge::verdict::Reason;
use fledge::{Agent, AgentEvent, RunError, Task, TaskResult};
use std::fs;
use std::path::Path;
use std::sync::mpsc::channel;
use tempfile::TempDir;

/// Runs a task with the server and returns all events.
async fn run(
    folder: &TempDir,
    server: ServerConfig,
    turns: &str,
    task: Task,
) -> (Result<TaskResult, RunError>, Vec<AgentEvent>) {
    let workspace = folder.path().join("workspace");
    fs::create_dir_all(workspace.join("lanes")).unwrap();
    // The gate searches for the server's process.
    let looks = format!(
        "steps:\n  - {{ name: alone, run: \"! grep -aqs '{}/[s]erver.py' /proc/[0-9]*/cmdline\" }}\n",
        folder.path().display()
    );
    fs::write(workspace.join("lanes/verify.yaml"), looks).unwrap();
    let cassette =
        connect(Endpoint::new(WireFormat::Cassette { text: turns.into(), path: "c.yaml".into() }, "c.yaml")).unwrap();
    let mut agent = Agent::new(DriverSettings {
        models: vec![cassette.into()],
        env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        step_env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        baseline: Baseline::Never,
        mcp: vec![server],
        memory: None,
        sandbox: SandboxChoice::Off,
        jobs: 1,
        ..DriverSettings::new(workspace.canonicalize().unwrap(), folder.path().join("state"))
    });
    let (tell, events) = channel();
    agent.on_event(move |event| drop(tell.send(event)));
    let result = agent.run_task(Task { mcp: vec!["t".into()], ..task }).await;
    drop(agent);
    must_be_gone(&script(folder.path()));
    (result, events.iter().collect())
}

fn script(folder: &Path) -> String {
    folder.join("server.py").display().to_string()
}

fn task() -> Task {
    Task { gate: GateChoice::Lanes(vec!["verify".into()]), ..Task::from_prompt("Use the server.") }
}

const DONE: &str = "  - { text: Done. }\n";

#[tokio::test]
async fn a_model_calls_a_tool_and_the_server_is_gone_before_the_gate_looks() {
    needs_python!();
    let folder = crate::support::temp_dir();
    let turns = "turns:\n  - { tools: [{ name: mcp-t-echo, input: { text: hello } }] }\n\
         \x20 - { expect: { contains: [hello, Do not trust it], tool_result: ok }, \
         tools: [{ name: mcp-t-fail, input: { text: luck } }] }\n\
         \x20 - { expect: { contains: [no luck], tool_result: error }, text: Done. }\n"
        .to_string();
    let (result, _) = run(&folder, server(folder.path(), "deaf"), &turns, task()).await;
    let result = result.unwrap();
    assert_eq!((result.reason, result.verified), (Reason::Verified, true));
}

#[tokio::test]
async fn a_long_answer_is_cut_fenced_and_can_be_paged() {
    needs_python!();
    let folder = crate::support::temp_dir();
    let text = "long ".repeat(10_000);
    let turns = format!(
        "turns:\n  - {{ tools: [{{ name: mcp-t-echo, input: {{ text: '{text}' }} }}] }}\n\
         \x20 - {{ expect: {{ contains: ['bytes left out; all of it: files-read @output/', </said], tool_result: ok }}, text: Done. }}\n"
    );
    let task = Task { gate: GateChoice::Skip, ..task() };
    let (result, _) = run(&folder, server(folder.path(), "good"), &turns, task).await;
    assert_eq!(result.unwrap().reason, Reason::Skipped);
}

#[tokio::test]
async fn a_server_that_the_run_cannot_be_without_ends_it_and_another_is_a_note() {
    needs_python!();
    let folder = crate::support::temp_dir();
    let skip = || Task { gate: GateChoice::Skip, ..task() };
    let bad = server(folder.path(), "no start");
    let required = ServerConfig { required: true, ..bad.clone() };
    let turns = format!("turns:\n{DONE}");
    let (result, _) = run(&folder, required, &turns, skip()).await;
    let error = result.unwrap_err();
    assert_eq!(error.reason(), Reason::PlanFailed);
    let (result, events) = run(&folder, bad, &turns, skip()).await;
    assert_eq!(result.unwrap().reason, Reason::Skipped);
    assert!(events.iter().any(|event| format!("{event:?}").contains("`t` did not start")), "{events:?}");
}

#[tokio::test]
async fn a_hanging_mcp_server_ends_no_run_late_and_one_in_the_workspace_is_refused() {
    needs_python!();
    let folder = crate::support::temp_dir();
    let slow = ServerConfig { timeout: std::time::Duration::from_millis(300), ..server(folder.path(), "frozen") };
    let turns = "turns:\n  - { tools: [{ name: mcp-t-echo, input: { text: '600' } }] }\n  \
        - { expect: { contains: [it no longer responds], tool_result: error }, text: Done. }\n";
    let (result, _) = run(&folder, slow, turns, task()).await;
    assert_eq!(result.unwrap().reason, Reason::Verified);
    let inside = folder.path().join("workspace/server.py");
    fs::copy(script(folder.path()), &inside).unwrap();
    let command = vec![PYTHON.into(), inside.display().to_string()];
    let open = ServerConfig { network: true, ..ServerConfig::program("t", command) };
    let (result, _) = run(&folder, open, &format!("turns:\n{DONE}"), task()).await;
    let error = result.unwrap_err();
    assert_eq!(error.reason(), Reason::BadInput);
    let why = "MCP server `t`: it reaches the network, and the agent can write";
    assert!(error.to_string().contains(why), "{error}");
}

#[tokio::test]
async fn tools_that_the_task_does_not_allow_and_unknown_servers_are_refused() {
    needs_python!();
    let folder = crate::support::temp_dir();
    let turns = "turns:\n  - { tools: [{ name: mcp-t-write, input: { text: made } }] }\n  - { expect: { tool_result: error }, text: Done. }\n".to_string();
    let skip = || Task { gate: GateChoice::Skip, ..task() };
    let mut denying = skip();
    denying.tools.deny = vec!["mcp-t-write".into()];
    for task in [denying, Task { tier: Tier::Read, ..skip() }] {
        let (result, _) = run(&folder, server(folder.path(), "good"), &turns, task).await;
        assert_eq!(result.unwrap().reason, Reason::Skipped);
        assert!(!folder.path().join("workspace/made").exists());
    }
    let other = ServerConfig { name: "other".into(), ..server(folder.path(), "good") };
    let (result, _) = run(&folder, other, &turns, skip()).await;
    let error = result.unwrap_err();
    assert_eq!(error.reason(), Reason::BadInput);
    assert!(error.to_string().contains("unknown MCP server `t` (known: other)"), "{error}");
}

#[tokio::test]
async fn a_sub_agent_has_the_tools_of_servers_that_were_asked_for_it_and_no_others() {
    needs_python!();
    let folder = crate::support::temp_dir();
    let turns = "turns:
  - { tools: [{ name: subagent-spawn, input: { task: echo, tools: [mcp-t-echo] } }] }
  - { of: 1, tools: [{ name: mcp-t-echo, input: { text: hello } }, { name: mcp-t-write, input: { text: made } }] }
  - { of: 1, expect: { contains: [hello, there is no tool `mcp-t-write`] }, text: echoed }
  - { tools: [{ name: subagent-spawn, input: { task: echo, tier: read } }] }
  - { of: 2, tools: [{ name: mcp-t-echo, input: { text: hello } }] }
  - { of: 2, expect: { contains: [there is no tool `mcp-t-echo`] }, text: none }
  - { expect: { tool_result: ok }, text: Done. }
";
    let (result, _) = run(&folder, server(folder.path(), "good"), turns, task()).await;
    assert_eq!(result.unwrap().reason, Reason::Verified);
    assert!(!folder.path().join("workspace/made").exists());
}
