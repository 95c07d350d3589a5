//! Whole runs with a cassette as the model: the events that they journal, and the work that they do
//! not start.

use super::*;
use crate::chat::{Block, Reply, StopReason};
use crate::elapsed::Elapsed;
use crate::id::{CallId, TreeId};
use crate::provider::{Endpoint, WireFormat, connect};
use crate::run::{Delivery, Event, Run};
use crate::store::{Journal, JournalRecord, RunListFilter, RunOutcome, RunRow, Store, StoredRunState};
use crate::task::{Commit, GateChoice};
use crate::verdict::{Proof, Reason, Ruling, Verdict, Verification};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const TURNS: &str = r#"turns:
  - { text: "I'll write it.", tools: [{ name: files-write, input: { path: a.txt, content: one } }] }
  - { text: "Written." }"#;

/// Turns that list files and write one, before the end.
const LOOK_AND_WRITE: &str = r#"turns:
  - { tools: [{ name: files-list, input: {} }] }
  - { tools: [{ name: files-write, input: { path: a.txt, content: one } }] }
  - { text: "Written." }"#;

/// Returns an agent in an empty workspace.
fn agent(home: &Path) -> Agent {
    agent_of(home, "state", TURNS)
}

pub(super) fn agent_of(home: &Path, state: &str, cassette: &str) -> Agent {
    let workspace = home.join("tree");
    fs::create_dir_all(&workspace).unwrap();
    let cassette =
        connect(Endpoint::new(WireFormat::Cassette { text: cassette.into(), path: "c.yaml".into() }, "c.yaml"))
            .unwrap();
    Agent::new(DriverSettings {
        models: vec![cassette.into()],
        env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        step_env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        sandbox: crate::process::sandbox::SandboxChoice::Off,
        jobs: 1,
        ..DriverSettings::new(workspace, home.join(state))
    })
}

pub(super) fn task() -> Task {
    Task { gate: GateChoice::Skip, ..Task::from_prompt("Write a.txt") }
}

pub(super) fn store(home: &Path) -> Store {
    Store::open(&home.join("state"), &home.join("tree")).unwrap()
}

/// Returns the journal's events, each with its moment.
fn journal(home: &Path) -> Vec<(Elapsed, Event)> {
    let store = store(home);
    let run = store.find("last").unwrap();
    let records = store.events(&run, 0).unwrap().map(Result::unwrap).filter(|record| journal::is_event(&record.kind));
    let event = |record: JournalRecord| {
        let event: Event = serde_json::from_str(&record.data).unwrap();
        assert_eq!(event.name(), record.kind);
        (Elapsed(record.at_ms), event)
    };
    records.map(event).collect()
}

/// Returns the outcome of the only run.
fn ended(home: &Path) -> RunOutcome {
    let rows = store(home).runs(&RunListFilter::default()).unwrap();
    let [RunRow { state: StoredRunState::Ended(outcome), .. }] = rows.as_slice() else { panic!("{rows:?}") };
    outcome.clone()
}

#[tokio::test]
async fn a_journal_folds_into_the_result_it_led_to() {
    let home = crate::test_support::temp_dir();
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
    let home = crate::test_support::temp_dir();
    let result = agent(home.path()).run_task(task()).await.unwrap();
    let mut outcome = ended(home.path());
    assert!(std::mem::take(&mut outcome.ended_at_ms) > 0);
    let wanted = RunOutcome {
        reason: "skipped".into(),
        verified: true,
        turns: 2,
        tokens_in: result.usage.total.input_tokens,
        tokens_out: result.usage.total.output_tokens,
        summary: "Written.".into(),
        ..RunOutcome::default()
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
    let home = crate::test_support::temp_dir();
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
    let home = crate::test_support::temp_dir();
    fs::write(home.path().join("state"), "a file, not a folder").unwrap();
    let error = agent(home.path()).run_task(task()).await.unwrap_err();
    assert_eq!((error.result(), error.reason()), (None, Reason::IoError));
    assert_eq!(fs::read_dir(home.path().join("tree")).unwrap().count(), 0);
}

/// Creates a state folder in which the journal of the one run of `home` has only these records.
pub(super) fn cut_off(home: &Path, state: &str, records: &[JournalRecord]) {
    let whole = store(home);
    let row = whole.runs(&RunListFilter::default()).unwrap().remove(0);
    let cut = Store::open(&home.join(state), &home.join("tree")).unwrap();
    let mut journal = Journal::create(&cut, &row.head, &whole.task(&row.head.id).unwrap()).unwrap();
    for record in records {
        journal.append(record.at_ms, &record.kind, &record.data).unwrap();
    }
    fs::copy(whole.folder(&row.head.id).gate(), cut.folder(&row.head.id).gate()).unwrap();
    let trees = |store: &Store| store.folder(&row.head.id).project().join("trees.git");
    for entry in walkdir::WalkDir::new(trees(&whole)).into_iter().map(Result::unwrap) {
        let to = trees(&cut).join(entry.path().strip_prefix(trees(&whole)).unwrap());
        if entry.file_type().is_dir() {
            fs::create_dir_all(to).unwrap()
        } else {
            fs::copy(entry.path(), to).map(|_| ()).unwrap()
        }
    }
}

#[tokio::test]
async fn a_run_that_is_cut_off_after_any_record_ends_as_if_it_had_not_been() {
    let home = crate::test_support::temp_dir();
    let home = home.path();
    let plain = |result: TaskResult| TaskResult { duration_ms: 0, ..result };
    let calm = plain(agent_of(home, "state", LOOK_AND_WRITE).run_task(task()).await.unwrap());
    let records: Vec<JournalRecord> = store(home).events(&calm.run, 0).unwrap().map(Result::unwrap).collect();
    let is_tool = |record: &&JournalRecord| record.kind == "ToolFinished";
    for cut in 0..=records.len() {
        let (state, before) = (format!("state-{cut}"), &records[..cut]);
        cut_off(home, &state, before);
        let _it_may_be_gone = fs::remove_file(home.join("tree/a.txt"));
        if before.iter().filter(is_tool).count() == 2 {
            fs::write(home.join("tree/a.txt"), "one").unwrap();
        }
        let mut again = agent_of(home, &state, LOOK_AND_WRITE);
        let result = plain(again.resume(&calm.run).await.unwrap());
        let kept = Store::open(&home.join(&state), &home.join("tree")).unwrap();
        let events = kept.events(&calm.run, 0).unwrap().map(Result::unwrap);
        let lost = events.filter(|record| record.kind == "Interrupted").count() as u64;
        assert_eq!(result.usage.requests, calm.usage.requests + lost, "what was cut off is paid for, cut at {cut}");
        let is_writing = before.iter().filter(is_tool).count() == 1
            && before.iter().filter(|record| record.kind == "ModelCompleted").count() == 2;
        if is_writing {
            let tally = result.tools["files-write"];
            assert_eq!((tally.called, tally.failed, result.files_changed.len()), (1, 1, 0), "cut at {cut}");
            assert_eq!((result.reason, result.turns, &result.summary), (calm.reason, calm.turns, &calm.summary));
        } else {
            let usage = if lost == 0 { result.usage.clone() } else { calm.usage.clone() };
            assert_eq!(TaskResult { usage, ..result.clone() }, calm, "cut at {cut}");
        }
        assert_eq!(plain(again.resume(&calm.run).await.unwrap()), result, "resumed again, cut at {cut}");
        let store = Store::open(&home.join(&state), &home.join("tree")).unwrap();
        assert_eq!(replay(&store, &calm.run).unwrap().difference, None, "cut at {cut}");
    }
}

#[tokio::test]
async fn a_machine_that_asks_for_something_else_is_found_out_with_the_place() {
    let home = crate::test_support::temp_dir();
    let result = agent(home.path()).run_task(task()).await.unwrap();
    let store_of = store(home.path());
    let mut records: Vec<JournalRecord> = store_of.events(&result.run, 0).unwrap().map(Result::unwrap).collect();
    assert_eq!(records[4].kind, "ToolFinished");
    records[4].data = records[4].data.replace("RunTool", "RunGate");
    cut_off(home.path(), "other", &records);
    let other = Store::open(&home.path().join("other"), &home.path().join("tree")).unwrap();
    let difference = replay(&other, &result.run).unwrap().difference.unwrap();
    assert_eq!((difference.seq, difference.event.as_str()), (4, "ModelCompleted"));
    assert!(difference.then.starts_with("RunGate (") && difference.now.starts_with("RunTool ("), "{difference:?}");
}

#[tokio::test]
async fn a_delivery_that_came_through_counts_although_the_driver_panicked() {
    let home = crate::test_support::temp_dir();
    let agent = agent(home.path());
    let task = Task { commit: Some(Commit::OnSuccess), ..Task::from_prompt("Write a.txt") };
    let spec = agent.spec(&task, RunId::new("run"));
    let journal = journal::begin_journal(&agent.settings, &spec, &task, None, None, 0).unwrap();
    let effects = EffectRunner::new(agent.settings.clone(), Arc::new(task), journal.folder(), agent.stop.clone());
    let mut drive = RunDrive::new(&agent.bus, &agent.stop, effects, journal, spec.run.clone());
    let proof = Proof {
        base: TreeId::empty(),
        tree: TreeId::parse(&"a".repeat(40)).unwrap(),
        lanes: String::new(),
        room: "clean".into(),
        sandbox: "off".into(),
        tests: None,
        tests_before: None,
        tests_by_name: 0,
        canaries: 0,
        without_canary: BTreeMap::new(),
        held_out: 0,
        hidden: 0,
    };
    let verdict = Verdict {
        ruling: Ruling::Passed,
        steps: Vec::new(),
        findings: Vec::new(),
        duration_ms: 0,
        feedback: String::new(),
        signature: String::new(),
        notes: Vec::new(),
        installed: None,
        failed_before: Vec::new(),
        unchanged_since: None,
        proof: Some(Box::new(proof)),
    };
    let said = Block::Text { text: "Done.".into() };
    let reply =
        Reply { content: vec![said], stop: StopReason::EndTurn, usage: None, model: "m".into(), lacks_end: false };
    drive.run.handle(Elapsed::default(), Event::TaskSubmitted { spec: Box::new(spec) });
    let mut answer = |event: &dyn Fn(CallId) -> Event| {
        let call = drive.run.awaited()[0];
        drive.run.handle(Elapsed::default(), event(call));
    };
    answer(&|call| Event::PlanReady { call, plan: Box::default() });
    answer(&|call| Event::ModelCompleted { call, reply: Box::new(reply.clone()) });
    answer(&|call| Event::GateFinished { call, verdict: Box::new(verdict.clone()) });
    assert_eq!(drive.run.label(), "Delivering");
    let delivery = Delivery { commit: "c".into(), branch: None, tree: None, notes: Vec::new() };
    let call = drive.run.awaited()[0];
    drive.inbox.outbox().send(Event::Delivered { call, result: Ok(delivery), ways: None });
    drive.end_after_panic().await;
    let result = drive.run.result().unwrap();
    assert_eq!((result.reason, result.commit.as_deref()), (Reason::Verified, Some("c")));
}

/// Sets a price of 3 dollars per million input tokens and 15 dollars per million output tokens.
fn priced(agent: Agent, context_window: Option<u64>) -> Agent {
    let price = crate::chat::Price { input: 3_000_000, output: 15_000_000, ..Default::default() };
    let terms =
        ModelTerms { price: Some(price), context_window, max_output_tokens: Some(500), ..ModelTerms::default() };
    let models = agent.settings.models.iter().map(|model| DriverModel { terms, ..model.clone() }).collect();
    Agent::new(DriverSettings { models, ..(*agent.settings).clone() })
}

#[tokio::test]
async fn a_run_ends_before_it_would_pass_its_money_and_the_report_says_what_it_cost() {
    let home = crate::test_support::temp_dir();
    let turns = r#"turns:
  - { tools: [{ name: files-list, input: {} }], usage: { input: 2000, output: 100 } }
  - { text: "Done.", usage: { input: 2200, output: 10 } }"#;
    let budget = |usd_micros| crate::task::TaskBudget { usd_micros: Some(usd_micros), ..Default::default() };
    let poor = Task { budget: budget(21_000), ..task() };
    let ended = priced(agent_of(home.path(), "state", turns), None).run_task(poor).await;
    let Err(RunError::Limit(result)) = ended else { panic!("{ended:?}") };
    assert_eq!((result.reason, result.usage.total.cost_micros), (Reason::BudgetMoney, Some(7_500)));
    let rich = Task { budget: budget(100_000), ..task() };
    let result = priced(agent_of(home.path(), "other", turns), None).run_task(rich.clone()).await.unwrap();
    assert_eq!((result.usage.total.cost_micros, result.limits.usd_micros), (Some(14_250), Some(100_000)));
    let unpriced = agent_of(home.path(), "third", turns).run_task(rich).await;
    assert_eq!(unpriced.unwrap_err().reason(), Reason::BadInput);
}

#[tokio::test]
async fn a_long_conversation_is_summarised_by_the_model_in_use_and_goes_on() {
    let home = crate::test_support::temp_dir();
    let step = |n: usize| {
        format!(
            "  - {{ text: '{}', tools: [{{ name: files-list, input: {{}} }}], usage: {{ input: {}, output: 9 }} }}\n",
            "hm ".repeat(90),
            n * 100
        )
    };
    let turns = format!(
        "turns:\n{}  - {{ text: 'All is well.', usage: {{ input: 50, output: 5 }} }}\n  - {{ text: Done. }}",
        (1..6).map(step).collect::<String>()
    );
    let result = priced(agent_of(home.path(), "state", &turns), Some(1_000)).run_task(task()).await.unwrap();
    assert_eq!((result.summary.as_str(), result.turns, result.usage.requests), ("Done.", 6, 7));
    let kinds: Vec<&str> = journal(home.path()).iter().map(|(_, event)| event.name()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "CompactionFinished").count(), 1, "{kinds:?}");
    let folded = fold_of(home.path());
    let first = crate::chat::text_of(&folded.conversation()[0].content);
    assert_eq!(first, "The task:\n\nWrite a.txt\n\nThe conversation so far, summarised:\n\nAll is well.");
}

fn fold_of(home: &Path) -> Run {
    let mut run = Run::new();
    for (moment, event) in journal(home) {
        run.handle(moment, event);
    }
    run
}

#[tokio::test]
async fn the_final_answer_fits_its_schema_or_is_sent_back() {
    let home = crate::test_support::temp_dir();
    let turns = r#"turns:
  - { text: "All is done." }
  - { text: '{"files": 3}', expect: { contains: ["it is not JSON"] } }"#;
    let agent = || agent_of(home.path(), "state", turns);
    let asking = Task { output_schema: Some("form.json".into()), ..task() };
    let missing = agent().run_task(asking.clone()).await.unwrap_err();
    assert_eq!(
        (missing.reason(), missing.to_string().contains("output_schema: ")),
        (Reason::BadInput, true),
        "{missing}"
    );
    let form = home.path().join("tree/form.json");
    fs::write(&form, r#"{"type": "objekt"}"#).unwrap();
    let wrong = agent().run_task(asking.clone()).await.unwrap_err().to_string();
    assert!(wrong.contains("`form.json` is not a usable JSON Schema: "), "{wrong}");
    fs::write(&form, r#"{"type": "object", "properties": {"files": {"type": "integer"}}}"#).unwrap();
    let result = agent().run_task(asking).await.unwrap();
    assert_eq!((result.answer, result.attempts.len()), (Some(serde_json::json!({"files": 3})), 1));
}
