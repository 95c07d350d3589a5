//! Tests of the library: `fledge::Agent`, its events, its result and its cancellation token.

use crate::support::{Fledge, KEY, Model, SOON, must_be_gone, needs, running_with, say, shell, unique, write};
use fledge::driver::DriverSettings;
use fledge::provider::{Endpoint, Secret, WireFormat, connect};
use fledge::verdict::{Reason, StopCause, Verification};
use fledge::{Agent, AgentEvent, RunError, Task, TaskResult};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// Returns an agent in a workspace whose gate wants the file `done`.
fn agent(model: &Model) -> (Fledge, Agent) {
    let place = Fledge::new().lane("verify", &needs("done"));
    let endpoint = Endpoint {
        base_url: Some(model.url()),
        key: Some(Secret::new(KEY)),
        ..Endpoint::new(WireFormat::Anthropic, "scripted")
    };
    let settings = DriverSettings {
        models: vec![connect(endpoint).unwrap().into()],
        env: vec![("PATH".into(), std::env::var("PATH").unwrap())],
        step_env: vec![("PATH".into(), std::env::var("PATH").unwrap())],
        jobs: 2,
        sandbox: fledge::process::sandbox::SandboxChoice::Off,
        ..DriverSettings::new(place.workspace().canonicalize().unwrap(), place.state())
    };
    (place, Agent::new(settings))
}

fn run(agent: &mut Agent, task: Task) -> Result<TaskResult, RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(agent.run_task(task))
}

fn task() -> Task {
    Task::from_prompt("Make the file `done`.")
}

/// Collects all events of the agent.
fn listen(agent: &mut Agent) -> Receiver<AgentEvent> {
    let (tell, events) = channel();
    agent.on_event(move |event| drop(tell.send(event)));
    events
}

#[test]
fn the_snippet_that_programs_are_written_by_compiles_and_sees_everything() {
    long_test!();
    use AgentEvent::{StateChanged, Text, ToolCall, ToolResult, Usage, VerifyResult};
    let model = Model::new([write("done", "").saying("Making it. "), say("Done.")]);
    let (_place, mut agent) = agent(&model);
    let (tell, notes) = channel();
    agent.on_event(move |event| {
        let note = match event {
            StateChanged(state) => format!("{state:?}"),
            Text(delta) => delta,
            ToolCall { name, args } => format!("{name} {args}"),
            ToolResult { name, success } => format!("{name} {success}"),
            VerifyResult { success, .. } => format!("verified {success}"),
            Usage(u) => format!("{} in, {} out", u.input_tokens, u.output_tokens),
            _ => return,
        };
        tell.send(note).unwrap();
    });
    let result = run(&mut agent, task()).unwrap();
    assert_eq!((result.reason, result.verified, result.summary.as_str()), (Reason::Verified, true, "Done."));
    drop(agent);
    let wanted = [
        "Planning",
        "Executing",
        "Making ",
        "it. ",
        "files-write {\"content\":\"\",\"path\":\"done\"}",
        "100 in, 10 out",
        "files-write true",
        "Done.",
        "200 in, 20 out",
        "Verifying",
        "verified true",
        "Reporting",
        "Idle",
    ];
    assert_eq!(notes.iter().collect::<Vec<String>>(), wanted);
}

#[test]
fn an_error_carries_the_whole_result() {
    long_test!();
    let model = Model::new([write("half", "1\n"), say("I think it is done.").always()]);
    let (_place, mut agent) = agent(&model);
    let error = run(&mut agent, Task { max_retries: 1, ..task() }).unwrap_err();
    let RunError::VerificationFailed(result) = &error else { panic!("{error:?}") };
    assert_eq!((result.reason, result.exit_code, result.verified), (Reason::GateFailed, 1, false));
    assert_eq!((result.attempts.len(), result.files_changed[0].path.as_str()), (2, "half"));
    assert_eq!((result.summary.as_str(), result.turns), ("I think it is done.", 3));
    assert_eq!(error.result(), Some(&**result));
    let said = "verification failed: failed: verify/there; failed before any change, too: verify/there";
    assert_eq!(error.to_string(), said);
}

#[test]
fn a_token_cancels_within_two_seconds_and_gives_ok_with_what_was_said() {
    long_test!();
    let number = unique();
    for last in [say("I have half of it").hanging(), shell(&format!("echo up; setsid sleep {number} & sleep {number}"))]
    {
        let model = Model::new([write("half", "1\n").saying("First."), last]);
        let (_place, agent) = agent(&model);
        let token = CancellationToken::new();
        let mut agent = agent.with_cancellation(token.clone());
        let (tell, asked) = channel();
        agent.on_event(move |event| match event {
            AgentEvent::Text(text) if !text.starts_with(" it") => {}
            AgentEvent::Text(_) | AgentEvent::ToolOutput { .. } => {
                let _nobody_waits = tell.send(Instant::now());
                token.cancel();
            }
            _ => {}
        });
        let result = run(&mut agent, task()).unwrap();
        let took = asked.recv().unwrap().elapsed();
        assert!(took < SOON, "{took:?}");
        assert_eq!((result.cancelled, result.verified, result.exit_code), (true, false, 130));
        assert_eq!(result.stopped_by, Some(StopCause::Token));
        assert_eq!((result.verification, result.files_changed.len()), (Verification::NotReached, 1));
        assert!(["I have half of it", "First."].contains(&result.summary.as_str()), "{}", result.summary);
        assert_eq!(running_with(&number), Vec::<String>::new());
    }
}

#[test]
fn a_token_that_was_cancelled_before_the_start_starts_nothing() {
    let model = Model::new([say("Done.").always()]);
    let (place, agent) = agent(&model);
    let token = CancellationToken::new();
    token.cancel();
    let mut agent = agent.with_cancellation(token);
    let events = listen(&mut agent);
    let result = run(&mut agent, Task { title: "Mine".into(), ..task() }).unwrap();
    assert_eq!((result.cancelled, result.turns, result.title.as_str()), (true, 0, "Mine"));
    assert!(!result.run.as_str().is_empty());
    assert_eq!(model.count(), 0);
    drop(agent);
    let told: Vec<AgentEvent> = events.iter().collect();
    assert!(matches!(told.as_slice(), [AgentEvent::Finished { cancelled: true, .. }]), "{told:?}");
    assert!(!place.workspace().join("done").exists());
}

#[test]
fn a_subscriber_that_never_returns_does_not_hold_the_run_up() {
    long_test!();
    let model = Model::new([write("done", ""), say("Done.")]);
    let (_place, mut agent) = agent(&model);
    let (release, stuck) = channel::<()>();
    agent.on_event(move |_| {
        let _released = stuck.recv();
    });
    let events = listen(&mut agent);
    let begun = Instant::now();
    let result = run(&mut agent, task()).unwrap();
    assert!(result.verified);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    drop((agent, release));
    assert!(events.iter().any(|event| matches!(event, AgentEvent::Finished { verified: Some(true), .. })));
}

#[test]
fn a_subscriber_that_panics_harms_nobody_and_is_told_the_rest() {
    long_test!();
    let model = Model::new([write("done", ""), say("Done.")]);
    let (_place, mut agent) = agent(&model);
    let (tell, heard) = channel();
    agent.on_event(move |event| {
        drop(tell.send(event));
        std::panic::resume_unwind(Box::new("a subscriber fails")); // avoids the printed panic message
    });
    let events = listen(&mut agent);
    assert!(run(&mut agent, task()).unwrap().verified);
    drop(agent);
    let (heard, all): (Vec<_>, Vec<_>) = (heard.iter().collect(), events.iter().collect());
    assert_eq!(heard, all);
    assert_eq!(all.last(), all.iter().find(|event| matches!(event, AgentEvent::Finished { .. })));
}

#[test]
fn one_agent_runs_one_task_after_the_other_and_nothing_is_left_of_the_first() {
    long_test!();
    let model = Model::new([write("done", "1\n"), say("First."), say("Second.")]);
    let (place, mut agent) = agent(&model);
    let first = run(&mut agent, task()).unwrap();
    let second = run(&mut agent, task()).unwrap();
    assert_ne!(first.run, second.run);
    assert_eq!((second.summary.as_str(), second.files_changed.len(), second.turns), ("Second.", 0, 1));
    assert_eq!(model.asked()[2].body["messages"].as_array().unwrap().len(), 1);
    assert!(place.workspace().join("done").exists());
}

#[test]
fn a_run_whose_future_is_dropped_leaves_nothing_alive() {
    long_test!();
    let number = unique();
    let model = Model::new([shell(&format!("echo up; setsid sleep {number} & sleep {number}")), say("No.")]);
    let (_place, mut agent) = agent(&model);
    let (tell, up) = tokio::sync::oneshot::channel();
    let mut tell = Some(tell);
    agent.on_event(move |event| {
        if matches!(event, AgentEvent::ToolOutput { .. }) {
            let _nobody_waits = tell.take().map(|tell| tell.send(()));
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::select! {
            ended = agent.run_task(task()) => panic!("{ended:?}"),
            _ = up => {}
        }
    });
    drop(runtime);
    must_be_gone(&number);
}
