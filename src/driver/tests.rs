//! Whole runs with a cassette in the place of a model: what is written down, and what is not begun.

use super::*;
use crate::provider::{Endpoint, Kind, connect};
use crate::store::{Filter, Outcome, Record, RunRow, RunState, Store};
use crate::verdict::Verification;
use std::fs;
use std::path::Path;

const TURNS: &str = r#"turns:
  - { text: "I'll write it.", tools: [{ name: files-write, input: { path: a.txt, content: one } }] }
  - { text: "Written." }"#;

/// An agent in an empty workspace.
fn agent(home: &Path) -> Agent {
    let workspace = home.join("tree");
    fs::create_dir_all(&workspace).unwrap();
    let cassette = connect(Endpoint::new(Kind::Cassette { text: TURNS.into() }, "c.yaml")).unwrap();
    Agent::new(Settings {
        workspace,
        state_dir: home.join("state"),
        models: vec![cassette],
        env: Vec::new(),
        protect: Vec::new(),
        reports: Vec::new(),
        jobs: 1,
    })
}

fn task() -> Task {
    Task { gate: GateChoice::Skip, ..Task::from_prompt("Write a.txt") }
}

fn store(home: &Path) -> Store {
    Store::open(&home.join("state"), &home.join("tree")).unwrap()
}

/// The journal's events, each with its moment.
fn journal(home: &Path) -> Vec<(Moment, Event)> {
    let store = store(home);
    let run = store.find("last").unwrap();
    let records = store.events(&run, 0).unwrap().map(Result::unwrap);
    let event = |record: Record| {
        let event: Event = serde_json::from_str(&record.data).unwrap();
        assert_eq!(event.name(), record.kind);
        (Moment(record.at_ms), event)
    };
    records.map(event).collect()
}

/// How the row of its one run says that it ended.
fn ended(home: &Path) -> Outcome {
    let rows = store(home).runs(&Filter::default()).unwrap();
    let [RunRow { state: RunState::Ended(outcome), .. }] = rows.as_slice() else { panic!("{rows:?}") };
    outcome.clone()
}

#[tokio::test]
async fn a_journal_folds_into_the_result_it_led_to() {
    let home = tempfile::tempdir().unwrap();
    let result = agent(home.path()).run_task(task()).await.unwrap();
    assert_eq!((result.reason, result.verification, result.turns), (Reason::Skipped, Verification::Skipped, 2));
    assert_eq!(result.files_changed.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["a.txt"]);
    let mut again = Run::new();
    for (moment, event) in journal(home.path()) {
        again.handle(moment, event);
    }
    assert_eq!(again.result(), Some(result));
}

#[tokio::test]
async fn the_row_of_a_run_says_what_it_was_and_how_it_ended() {
    let home = tempfile::tempdir().unwrap();
    let result = agent(home.path()).run_task(task()).await.unwrap();
    let mut outcome = ended(home.path());
    assert!(std::mem::take(&mut outcome.ended_at_ms) > 0);
    let wanted = Outcome {
        reason: "skipped".into(),
        verified: true,
        turns: 2,
        tokens_in: result.usage.total.input_tokens,
        tokens_out: result.usage.total.output_tokens,
        summary: "Written.".into(),
        ..Outcome::default()
    };
    assert_eq!(outcome, wanted);
    let copy = store(home.path()).task(&result.run).unwrap();
    let settings: serde_json::Value = serde_json::from_str(&copy.settings).unwrap();
    assert_eq!(
        (copy.text.as_str(), serde_json::from_value::<Task>(settings["task"].clone()).unwrap()),
        ("Write a.txt", task())
    );
}

#[tokio::test]
async fn a_run_cancelled_before_its_start_begins_nothing() {
    let home = tempfile::tempdir().unwrap();
    let token = CancellationToken::new();
    token.cancel();
    let result = agent(home.path()).with_cancellation(token).run_task(task()).await.unwrap();
    assert_eq!((result.cancelled, result.verified, result.exit_code, result.turns), (true, false, 130, 0));
    let names: Vec<&str> = journal(home.path()).iter().map(|(_, event)| event.name()).collect();
    assert_eq!(names, ["CancelRequested"]);
    assert_eq!((ended(home.path()).reason.as_str(), ended(home.path()).exit_code), ("cancelled", 130));
}

#[tokio::test]
async fn a_run_that_cannot_be_written_down_never_begins() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("state"), "a file, not a folder").unwrap();
    let error = agent(home.path()).run_task(task()).await.unwrap_err();
    assert_eq!((error.result(), error.reason()), (None, Reason::IoError));
    assert_eq!(fs::read_dir(home.path().join("tree")).unwrap().count(), 0);
}
