//! Whole runs with a cassette in the place of a model: what is written down, and what is not begun.

use super::*;
use crate::provider::{Endpoint, Kind, connect};
use crate::verdict::Verification;
use std::fs;
use std::path::Path;
use walkdir::WalkDir;

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

/// The journal's events, each with its moment.
fn journal(home: &Path) -> Vec<(Moment, Event)> {
    let is_journal = |entry: &walkdir::DirEntry| entry.file_name() == "events.jsonl";
    let found = WalkDir::new(home.join("state")).into_iter().flatten().find(is_journal).unwrap();
    let text = fs::read_to_string(found.path()).unwrap();
    let record = |line: &str| {
        let mut json: serde_json::Value = serde_json::from_str(line).unwrap();
        let (at, event) = (json["at_ms"].take(), json["event"].take());
        (serde_json::from_value(at).unwrap(), serde_json::from_value(event).unwrap())
    };
    text.lines().skip(1).map(record).collect()
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
async fn a_run_cancelled_before_its_start_begins_nothing() {
    let home = tempfile::tempdir().unwrap();
    let token = CancellationToken::new();
    token.cancel();
    let result = agent(home.path()).with_cancellation(token).run_task(task()).await.unwrap();
    assert_eq!((result.cancelled, result.verified, result.exit_code, result.turns), (true, false, 130, 0));
    let names: Vec<&str> = journal(home.path()).iter().map(|(_, event)| event.name()).collect();
    assert_eq!(names, ["CancelRequested"]);
}

#[tokio::test]
async fn a_run_that_cannot_be_written_down_never_begins() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("state"), "a file, not a folder").unwrap();
    let error = agent(home.path()).run_task(task()).await.unwrap_err();
    assert_eq!((error.result(), error.reason()), (None, Reason::IoError));
    assert_eq!(fs::read_dir(home.path().join("tree")).unwrap().count(), 0);
}
