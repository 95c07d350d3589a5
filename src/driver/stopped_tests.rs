//! Runs that are stopped from outside at any point, and resumed.

use super::tests::{agent_of, cut_off, task};
use super::*;
use crate::store::{JournalRecord, Store};
use crate::test_support::{drawn, step};
use crate::verdict::{Reason, StopCause};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

const LOOK_AND_WRITE: &str = r#"turns:
  - { tools: [{ name: files-list, input: {} }] }
  - { tools: [{ name: shell-exec, input: { command: "echo did >> log" } }] }
  - { text: "Written." }"#;

const WITH_SUB_AGENT: &str = r#"turns:
  - { tools: [{ name: subagent-spawn, input: { task: write } }] }
  - { of: 1, tools: [{ name: shell-exec, input: { command: "echo did >> log" } }] }
  - { of: 1, text: "Written." }
  - { text: "Done." }"#;

fn store(home: &Path, state: &str) -> Store {
    Store::open(&home.join(state), &home.join("tree")).unwrap()
}

/// Runs a task, stops it after this many events, and returns its result.
async fn stopped_after(events: usize, home: &Path, state: &str, cassette: &str) -> TaskResult {
    let (stop, told) = (StopToken::default(), AtomicUsize::new(0));
    let mut agent = agent_of(home, state, cassette).with_stop(stop.clone());
    agent.on_record(move |_| {
        if told.fetch_add(1, Ordering::SeqCst) == events {
            stop.ask(StopCause::Terminate);
        }
    });
    agent.run_task(task()).await.unwrap()
}

#[tokio::test]
async fn a_run_that_is_stopped_anywhere_resumes_and_repeats_no_side_effect() {
    goes_on_wherever_it_is_ended(LOOK_AND_WRITE).await;
}

#[tokio::test]
async fn a_run_with_a_sub_agent_that_is_stopped_anywhere_resumes_without_repeats() {
    goes_on_wherever_it_is_ended(WITH_SUB_AGENT).await;
}

async fn goes_on_wherever_it_is_ended(cassette: &str) {
    let (home, mut stopped) = (crate::test_support::temp_dir(), 0);
    let home = home.path();
    for events in drawn(0..) {
        let state = format!("state-{events}");
        let _it_may_be_gone = fs::remove_file(home.join("tree/log"));
        let first = stopped_after(events, home, &state, cassette).await;
        if first.reason == Reason::Skipped && first.stopped_by.is_none() {
            break; // that was the last event
        }
        stopped += usize::from(first.cancelled);
        let mut again = agent_of(home, &state, cassette);
        let result = again.resume(&first.run).await.unwrap();
        assert_eq!(result.reason, Reason::Skipped, "after {events}");
        assert!(result.usage.requests >= first.usage.requests, "after {events}");
        assert!(fs::read_to_string(home.join("tree/log")).unwrap_or_default().lines().count() <= 1);
        assert_eq!(replay(&store(home, &state), &first.run).unwrap().difference, None, "after {events}");
        assert_eq!(again.resume(&first.run).await.unwrap(), result, "resumed again, after {events}");
    }
    assert!(stopped * step() > 5, "{stopped}");
}

#[tokio::test]
async fn a_run_that_goes_on_may_be_cut_off_after_any_record_too() {
    let home = crate::test_support::temp_dir();
    let home = home.path();
    let first = stopped_after(8, home, "state", LOOK_AND_WRITE).await;
    assert!(first.cancelled, "{first:?}");
    agent_of(home, "state", LOOK_AND_WRITE).with_bound(Some(7)).resume(&first.run).await.unwrap();
    let records: Vec<JournalRecord> = store(home, "state").events(&first.run, 0).unwrap().map(Result::unwrap).collect();
    assert!(records.iter().any(|record| record.kind == RESUMED && record.data.contains("\"stop_again\":true")));
    for cut in drawn(0..=records.len()) {
        let state = format!("state-{cut}");
        cut_off(home, &state, &records[..cut]);
        let result = agent_of(home, &state, LOOK_AND_WRITE).resume(&first.run).await.unwrap();
        assert_eq!(result.reason, Reason::Skipped, "cut at {cut}");
        assert_eq!(replay(&store(home, &state), &first.run).unwrap().difference, None, "cut at {cut}");
    }
}

const COUNTED: &str = r#"turns:
  - { tools: [{ name: files-list, input: {} }], usage: { input: 100, output: 10 } }
  - { tools: [{ name: shell-exec, input: { command: "true" } }], usage: { input: 200, output: 20 } }
  - { text: "Written.", usage: { input: 300, output: 30 } }"#;

/// Returns the requests, the input tokens and the output tokens of a run.
fn used(result: &TaskResult) -> (u64, u64, u64) {
    let usage = &result.usage;
    (usage.requests, usage.total.input_tokens, usage.total.output_tokens)
}

#[tokio::test]
async fn wherever_a_run_is_left_at_rest_it_is_charged_for_nothing_that_was_not_sent() {
    let (home, mut rested) = (crate::test_support::temp_dir(), 0);
    for events in drawn(0..) {
        let (state, stop, told) = (format!("state-{events}"), StopToken::default(), AtomicUsize::new(0));
        let mut agent = agent_of(home.path(), &state, COUNTED).with_stop(stop.clone());
        agent.on_record_at_once(move |_| {
            if told.fetch_add(1, Ordering::SeqCst) == events {
                stop.ask_for_rest();
            }
        });
        let Err(error) = agent.run_task(task()).await else { break };
        assert!(matches!(error, RunError::Rests), "{error}");
        rested += 1;
        let run = store(home.path(), &state).find("last").unwrap();
        // A server that is about to stop resumes a run only to leave it again.
        let stop = StopToken::default();
        stop.ask_for_rest();
        let again = agent_of(home.path(), &state, COUNTED).with_stop(stop).resume(&run).await;
        assert!(matches!(again, Err(RunError::Rests)), "{again:?}, after {events}");
        let result = agent_of(home.path(), &state, COUNTED).resume(&run).await.unwrap();
        assert_eq!(used(&result), (3, 600, 60), "after {events}");
        assert_eq!(replay(&store(home.path(), &state), &run).unwrap().difference, None, "after {events}");
    }
    assert!(rested * step() > 5, "{rested}");
}

/// A model that never sends a request, because it waits for its turn.
#[derive(Debug)]
struct Waiting(String);

impl crate::provider::Provider for Waiting {
    fn name(&self) -> String {
        self.0.clone()
    }

    fn complete<'a>(
        &'a self,
        _: &'a crate::provider::ModelRequest,
        _: crate::provider::DeltaSink<'a>,
    ) -> crate::provider::PendingReply<'a> {
        Box::pin(std::future::pending())
    }
}

/// Returns an agent whose model calls wait for their turn.
fn agent_in_line(home: &Path) -> Agent {
    let mut agent = agent_of(home, "state", COUNTED);
    let name = agent.settings.models[0].provider.name();
    let waiting: Arc<dyn crate::provider::Provider> = Arc::new(Waiting(name));
    agent.settings =
        Arc::new(DriverSettings { models: vec![waiting.into()], ..DriverSettings::clone(&agent.settings) });
    agent
}

/// Runs the task. Calls `act` once a model call is under way.
async fn run_until_a_call(mut agent: Agent, act: impl FnOnce() -> bool) -> Option<Result<TaskResult, RunError>> {
    let calling = Arc::new(tokio::sync::Notify::new());
    let called = Arc::clone(&calling);
    agent.on_record_at_once(move |record| {
        if record.event == crate::run::AgentEvent::PhaseChanged(crate::run::Phase::CallingModel) {
            called.notify_one();
        }
    });
    let mut running = std::pin::pin!(agent.run_task(task()));
    let called = async {
        calling.notified().await;
        for _ in 0..100 {
            tokio::task::yield_now().await; // the call gets as far as it can
        }
    };
    tokio::select! {
        biased;
        () = called => {}
        ended = &mut running => panic!("the run has ended: {ended:?}"),
    }
    let goes_on = act();
    if goes_on { Some(running.await) } else { None }
}

/// Runs the task until a model call is under way, then drops the run as a killed process does.
async fn killed_in_a_call(agent: Agent) {
    let ended = run_until_a_call(agent, || false).await;
    assert!(ended.is_none());
}

#[tokio::test]
async fn a_call_that_waited_for_its_turn_when_the_process_died_is_not_charged() {
    let home = crate::test_support::temp_dir();
    killed_in_a_call(agent_in_line(home.path())).await;
    let run = store(home.path(), "state").find("last").unwrap();
    let row = store(home.path(), "state").run(&run).unwrap();
    assert_eq!(spent(&store(home.path(), "state"), &row).unwrap(), 0);
    let result = agent_of(home.path(), "state", COUNTED).resume(&run).await.unwrap();
    assert_eq!(used(&result), (3, 600, 60));
    assert_eq!(replay(&store(home.path(), "state"), &run).unwrap().difference, None);
}

#[tokio::test]
async fn a_call_that_was_sent_when_the_process_died_is_charged_once() {
    let home = crate::test_support::temp_dir();
    killed_in_a_call(agent_of(home.path(), "state", "turns:\n  - { hang: true }")).await;
    let run = store(home.path(), "state").find("last").unwrap();
    let result = agent_of(home.path(), "state", COUNTED).resume(&run).await.unwrap();
    let (requests, input, _) = used(&result);
    assert!(requests == 4 && input > 600, "{:?}", used(&result));
    assert_eq!(agent_of(home.path(), "state", COUNTED).resume(&run).await.unwrap(), result);
}

#[tokio::test]
async fn a_run_rests_although_a_call_waits_for_its_turn_and_is_not_charged_for_it() {
    let home = crate::test_support::temp_dir();
    let stop = StopToken::default();
    let agent = agent_in_line(home.path()).with_stop(stop.clone());
    let rest = || {
        stop.ask_for_rest();
        true
    };
    let rests = tokio::time::timeout(crate::test_support::PATIENCE, run_until_a_call(agent, rest)).await;
    assert!(matches!(rests, Ok(Some(Err(RunError::Rests)))), "{rests:?}");
    let run = store(home.path(), "state").find("last").unwrap();
    let result = agent_of(home.path(), "state", COUNTED).resume(&run).await.unwrap();
    assert_eq!(used(&result), (3, 600, 60));
}

#[tokio::test]
async fn a_call_that_still_waited_at_the_end_of_a_run_is_not_charged_after_resume() {
    let home = crate::test_support::temp_dir();
    let stop = StopToken::default();
    let mut agent = agent_in_line(home.path()).with_stop(stop.clone());
    agent.on_record_at_once(move |record| {
        if record.event == crate::run::AgentEvent::PhaseChanged(crate::run::Phase::CallingModel) {
            stop.ask(StopCause::Terminate);
        }
    });
    let first = agent.run_task(task()).await.unwrap();
    assert_eq!((first.cancelled, used(&first)), (true, (0, 0, 0)));
    let result = agent_of(home.path(), "state", COUNTED).resume(&first.run).await.unwrap();
    assert_eq!(used(&result), (3, 600, 60));
    assert_eq!(replay(&store(home.path(), "state"), &first.run).unwrap().difference, None);
}

#[tokio::test]
async fn one_that_was_ended_before_its_start_begins_then() {
    let home = crate::test_support::temp_dir();
    let home = home.path();
    let stop = StopToken::default();
    stop.ask(StopCause::Terminate);
    let first = agent_of(home, "state", LOOK_AND_WRITE).with_stop(stop).run_task(task()).await.unwrap();
    assert_eq!((first.cancelled, first.turns), (true, 0));
    let result = agent_of(home, "state", LOOK_AND_WRITE).resume(&first.run).await.unwrap();
    assert_eq!((result.reason, result.turns, result.stopped_by), (Reason::Skipped, 3, None));
    assert_eq!(replay(&store(home, "state"), &first.run).unwrap().difference, None);
    assert_eq!(agent_of(home, "state", LOOK_AND_WRITE).resume(&first.run).await.unwrap(), result);
}
