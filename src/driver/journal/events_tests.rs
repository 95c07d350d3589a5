//! Whole runs with a cassette as the model: their live events, and the events from their journals.

use super::*;
use crate::driver::tests::{agent_of, cut_off, store, task};
use crate::driver::{RunError, StopToken};
use crate::run::{AgentEvent, TaskResult};
use crate::store::{JournalRecord, Store, StoredRunState};
use crate::task::{Task, Tier, ToolChoice};
use crate::test_support::drawn;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Lists files, changes one, has a sub-agent change one, and ends.
const MUCH: &str = r#"turns:
  - { text: "I look.", thinking: "Where?", tools: [{ name: files-list, input: {} }] }
  - tools:
      - { name: files-write, input: { path: a.txt, content: one } }
      - { name: shell-exec, input: { command: "echo from the shell" } }
  - tools: [{ name: subagent-spawn, input: { task: "Write b.txt.", title: "Write b" } }]
  - { of: 1, text: "I do.", tools: [{ name: files-write, input: { path: b.txt, content: two } }] }
  - { of: 1, text: "Done." }
  - { text: "Written." }"#;

type Received = Arc<Mutex<Vec<EventRecord>>>;

fn all() -> Task {
    Task { tier: Tier::Code, tools: ToolChoice::default(), ..task() }
}

/// Starts or resumes a run, and returns its result with its live events.
async fn receive(
    home: &Path,
    state: &str,
    stop: StopToken,
    run: Option<&RunId>,
) -> (Result<TaskResult, RunError>, Vec<EventRecord>) {
    let received = Received::default();
    let hearing = Arc::clone(&received);
    let mut agent = agent_of(home, state, MUCH).with_stop(stop);
    agent.on_record_at_once(move |record| hearing.lock().unwrap().push(record.clone()));
    let ended = match run {
        None => agent.run_task(all()).await,
        Some(run) => agent.resume(run).await,
    };
    let received = received.lock().unwrap().clone();
    (ended, received)
}

/// Returns the events that the journal has, too, without their times.
fn kept(received: &[EventRecord]) -> Vec<EventRecord> {
    received.iter().filter(|record| record.is_kept).map(timeless).collect()
}

fn timeless(record: &EventRecord) -> EventRecord {
    EventRecord { at: String::new(), ..record.clone() }
}

fn folded(home: &Path, run: &RunId, after: u64) -> Vec<EventRecord> {
    kept(&from_journal(home, run, after))
}

fn from_journal(home: &Path, run: &RunId, after: u64) -> Vec<EventRecord> {
    events_after(&store(home), run, after).unwrap().map(Result::unwrap).collect()
}

/// Returns what the agents said and called, as JSON. Pieces of one text are joined.
fn texts_and_calls(events: &[EventRecord]) -> Vec<(Option<String>, String)> {
    let mut message: Vec<(Option<String>, String)> = Vec::new();
    let mut was_text = false;
    for EventRecord { of, event, .. } in events {
        let text = match event {
            AgentEvent::Text(text) if was_text => {
                message.last_mut().unwrap().1.push_str(text);
                continue;
            }
            AgentEvent::Text(text) | AgentEvent::Thinking(text) => text.clone(),
            AgentEvent::ToolCall { name, args } => format!("{name} {args}"),
            _ => {
                was_text = false;
                continue;
            }
        };
        was_text = matches!(event, AgentEvent::Text(_));
        message.push((of.clone(), text));
    }
    message
}

#[tokio::test]
async fn what_was_told_in_pieces_is_whole_in_the_journal_behind_the_numbers_of_the_pieces() {
    let home = crate::test_support::temp_dir();
    let (ended, received) = receive(home.path(), "state", StopToken::default(), None).await;
    let run = ended.unwrap().run;
    let all = from_journal(home.path(), &run, 0);
    assert_eq!(texts_and_calls(&all), texts_and_calls(&received));
    assert_eq!(texts_and_calls(&all).len(), 10, "{:?}", texts_and_calls(&all));
    assert!(all.is_sorted_by(|a, b| a.seq < b.seq), "{all:#?}");
    let is_piece = |record: &&EventRecord| {
        matches!(record.event, AgentEvent::Text(_) | AgentEvent::Thinking(_) | AgentEvent::ToolCall { .. })
    };
    for piece in received.iter().filter(is_piece) {
        let covers = |whole: &EventRecord| {
            whole.of == piece.of && whole.from.is_some_and(|from| (from..=whole.seq).contains(&piece.seq))
        };
        assert!(all.iter().any(covers), "{piece:?} is in none of {all:#?}");
    }
    // A reader that has all events up to a number gets all events after it.
    for EventRecord { seq, .. } in &received {
        let rest: Vec<EventRecord> = all.iter().filter(|record| record.seq > *seq).cloned().collect();
        assert_eq!(from_journal(home.path(), &run, *seq), rest);
    }
    let is_whole = |record: &EventRecord| record.from.is_none_or(|from| from <= record.seq);
    assert!(all.iter().all(is_whole) && received.iter().all(|record| record.from.is_none()));
}

#[tokio::test]
async fn live_events_except_deltas_equal_the_journal_with_the_same_numbers() {
    let home = crate::test_support::temp_dir();
    let (ended, received) = receive(home.path(), "state", StopToken::default(), None).await;
    let run = ended.unwrap().run;
    assert_eq!(folded(home.path(), &run, 0), kept(&received));
    assert!(received.iter().map(|record| record.seq).eq(1..=received.len() as u64));
    let is_piece = |event: &AgentEvent| {
        matches!(
            event,
            AgentEvent::Text(_)
                | AgentEvent::Thinking(_)
                | AgentEvent::ToolCall { .. }
                | AgentEvent::ToolOutput { .. }
                | AgentEvent::LaneStep(_)
        )
    };
    assert!(received.iter().all(|record| record.is_kept != is_piece(&record.event)), "{received:#?}");
    assert!(received.iter().any(|record| record.is_kept && record.of.as_deref() == Some("1")));
    let middle = received[received.len() / 2].seq;
    let behind: Vec<EventRecord> = kept(&received).into_iter().filter(|record| record.seq > middle).collect();
    assert_eq!(folded(home.path(), &run, middle), behind);
}

#[tokio::test]
async fn events_of_a_resumed_run_follow_the_earlier_events_in_the_journal() {
    let home = crate::test_support::temp_dir();
    let (ended, before) = receive(home.path(), "state", StopToken::default(), None).await;
    let run = ended.unwrap().run;
    let records: Vec<JournalRecord> = store(home.path()).events(&run, 0).unwrap().map(Result::unwrap).collect();
    for count in drawn(2..records.len()) {
        let state = format!("state-{count}");
        cut_off(home.path(), &state, &records[..count]);
        let store = Store::open(&home.path().join(&state), &home.path().join("tree")).unwrap();
        let folded = || kept(&events_after(&store, &run, 0).unwrap().map(Result::unwrap).collect::<Vec<_>>());
        let cut = folded();
        assert_eq!(cut, kept(&before)[..cut.len()], "after {count} records");
        let (_, after) = receive(home.path(), &state, StopToken::default(), Some(&run)).await;
        let newest = before.last().unwrap().seq;
        assert!(after[0].seq > newest, "the process before told {newest} events, after {count} records");
        let all: Vec<EventRecord> = cut.into_iter().chain(kept(&after)).collect();
        assert_eq!(folded(), all, "after {count} records");
    }
}

#[tokio::test]
async fn a_run_that_is_to_rest_is_left_where_it_can_go_on_and_a_resume_ends_it() {
    let home = crate::test_support::temp_dir();
    let stop = StopToken::default();
    stop.ask_for_rest();
    let (ended, received) = receive(home.path(), "state", stop, None).await;
    assert!(matches!(ended, Err(RunError::Rests)), "{ended:?}");
    let run = received[0].run.clone();
    assert_eq!(store(home.path()).run(&run).unwrap().state, StoredRunState::Interrupted);
    let (ended, after) = receive(home.path(), "state", StopToken::default(), Some(&run)).await;
    assert!(ended.unwrap().verified);
    let all: Vec<EventRecord> = kept(&received).into_iter().chain(kept(&after)).collect();
    assert_eq!(folded(home.path(), &run, 0), all);
}
