//! The library in a program: a task runs with recorded answers, the program watches its events, and
//! a token cancels the task if it takes too long.
//!
//! ```text
//! cargo run --example embed
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use fledge::driver::{Agent, DriverModel, DriverSettings};
use fledge::provider::Cassette;
use fledge::{AgentEvent, Task};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The answers of the model: it writes the file, and says so.
const ANSWERS: &str = "
turns:
  - text: I will write the greeting.
    tools: [{ name: files-write, input: { path: greeting.txt, content: 'hello' } }]
  - text: The greeting is written.
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let workspace = tempfile::tempdir()?;
    let state = tempfile::tempdir()?;
    std::fs::create_dir(workspace.path().join("lanes"))?;
    std::fs::write(workspace.path().join("lanes/verify.yaml"), "steps: [{ run: grep -q hello greeting.txt }]")?;

    let token = CancellationToken::new();
    let mut agent = Agent::new(DriverSettings {
        models: vec![DriverModel::new(Cassette::parse(ANSWERS, "answers")?)],
        env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        step_env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        sandbox: fledge::process::sandbox::SandboxChoice::Off,
        ..DriverSettings::new(workspace.path().canonicalize()?, state.path())
    })
    .with_cancellation(token.clone());
    agent.on_event(|event| match event {
        AgentEvent::StateChanged(state) => println!("state: {state:?}"),
        AgentEvent::ToolCall { name, args } => println!("tool:  {name} {args}"),
        AgentEvent::VerifyResult { success, .. } => println!("gate:  {}", if success { "passed" } else { "failed" }),
        _ => {}
    });

    let timer = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        token.cancel();
        std::future::pending::<()>().await;
    };
    let result = tokio::select! {
        result = agent.run_task(Task::from_prompt("Write a greeting into greeting.txt")) => result?,
        () = timer => unreachable!("the timer only cancels"),
    };
    println!("{}: {} ({} turns)", result.reason, result.summary, result.turns);
    Ok(())
}
