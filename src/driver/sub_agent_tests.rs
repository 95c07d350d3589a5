//! Whole runs with sub-agents, and cassettes as their models.

use super::*;
use crate::driver::inbox::{AcceptedRequests, Inbox, InboxItem};
use crate::driver::tests::{agent_of, cut_off, store, task};
use crate::driver::{EventRecord, journal, replay, whose};
use crate::limits::OUTPUT_ESTIMATE;
use crate::run::{Action, AgentEvent};
use crate::store::{JournalRecord, Store};
use crate::task::{Task, TaskBudget, Tier, ToolChoice};
use crate::test_support::{PATIENCE, drawn, step};
use std::fs;
use std::path::Path;
use std::sync::Mutex;

/// A sub-agent that writes a file.
const ONE: &str = r#"turns:
  - tools: [{ name: subagent-spawn, input: { task: "Write b.txt with the word two in it.", title: "Write b" } }]
    usage: { input: 100, output: 10 }
  - of: 1
    expect: { contains: ["Write b.txt with the word two"] }
    tools: [{ name: files-write, input: { path: b.txt, content: two } }]
    usage: { input: 20, output: 5 }
  - { of: 1, text: "b.txt is there.", expect: { tool_result: ok }, usage: { input: 30, output: 6 } }
  - text: "All is done."
    expect: { tool_result: ok, contains: ["Output of the sub-agent 1", "b.txt is there.", "Files changed: b.txt +1 -0", "2 turns, 50 tokens in, 11 out"] }
    usage: { input: 200, output: 20 }
"#;

/// The events of a run, in order.
type Told = Arc<Mutex<Vec<EventRecord>>>;

async fn run(home: &Path, cassette: &str, task: Task) -> (TaskResult, Vec<EventRecord>) {
    let reported = Told::default();
    let mut agent = agent_of(home, "state", cassette);
    let watched = reported.clone();
    agent.on_record(move |record| watched.lock().unwrap().push(record.clone()));
    let result = match agent.run_task(task).await {
        Ok(result) => result,
        Err(error) => error.result().unwrap().clone(),
    };
    agent.wait_for_watchers(PATIENCE).await;
    let reported = reported.lock().unwrap().clone();
    (result, reported)
}

fn records(home: &Path, result: &TaskResult) -> Vec<JournalRecord> {
    store(home).events(&result.run, 0).unwrap().map(Result::unwrap).collect()
}

/// Returns the whole results of the tool, in order.
fn results(reported: &[EventRecord], of: Option<&str>, tool: &str) -> Vec<String> {
    let result = |record: &EventRecord| match &record.event {
        AgentEvent::ToolDetail { name, output, .. } if name == tool && record.of.as_deref() == of => {
            Some(output.clone())
        }
        _ => None,
    };
    reported.iter().filter_map(result).collect()
}

#[tokio::test]
async fn a_sub_agent_does_its_part_and_its_parent_hears_what_it_came_to() {
    let home = crate::test_support::temp_dir();
    let (result, reported) = run(home.path(), ONE, task()).await;
    assert_eq!((result.reason, result.turns, result.summary.as_str()), (Reason::Skipped, 4, "All is done."));
    let total = &result.usage.total;
    assert_eq!((result.usage.requests, total.input_tokens, total.output_tokens), (4, 350, 41));
    assert_eq!(result.usage.by_model["c.yaml"].input_tokens, 350);
    assert_eq!(result.files_changed.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["b.txt"]);
    assert_eq!(fs::read_to_string(home.path().join("tree/b.txt")).unwrap(), "two");
    assert!(
        reported.iter().map(|record| record.seq).eq(1..=reported.len() as u64),
        "every event has the number of its place"
    );
    let of_child = |record: &&EventRecord| record.of.as_deref() == Some("1");
    let first = reported.iter().find(of_child).map(|record| &record.event);
    assert!(matches!(first, Some(AgentEvent::Started { title, verify: false, .. }) if title == "Write b"), "{first:?}");
    let last = reported.iter().rfind(of_child).map(|record| &record.event);
    let Some(AgentEvent::Finished { reason: Reason::Skipped, verified: None, message, .. }) = last else {
        panic!("{last:?}")
    };
    assert_eq!(message, "done");
    let of_run = reported.last().map(|record| &record.event);
    assert!(matches!(of_run, Some(AgentEvent::Finished { verified: Some(true), .. })), "{of_run:?}");
    let began = reported.iter().find_map(|record| match &record.event {
        AgentEvent::Subagent { finished: false, note } => Some(note.as_str()),
        _ => None,
    });
    assert_eq!(began, Some("Write b"));
    let kinds: Vec<String> = records(home.path(), &result).into_iter().map(|record| record.kind).collect();
    let kinds: Vec<String> = kinds.into_iter().filter(|kind| journal::is_event(kind)).collect();
    let wanted = [
        "TaskSubmitted",
        "PlanReady",
        "ModelCompleted",
        "1:TaskSubmitted",
        "1:PlanReady",
        "1:ModelCompleted",
        "1:ToolFinished",
        "1:HooksFinished",
        "1:ModelCompleted",
        "1:ReportSaved",
        "ChildFinished",
        "HooksFinished",
        "ModelCompleted",
        "ReportSaved",
    ];
    assert_eq!(kinds, wanted);
    assert_eq!(replay(&store(home.path()), &result.run).unwrap().difference, None);
}

#[tokio::test]
async fn a_plain_watcher_hears_of_the_run_alone() {
    let home = crate::test_support::temp_dir();
    let finished = Arc::new(Mutex::new(0));
    let mut agent = agent_of(home.path(), "state", ONE);
    let counted = finished.clone();
    agent.on_event(move |event| *counted.lock().unwrap() += u32::from(matches!(event, AgentEvent::Finished { .. })));
    agent.run_task(task()).await.unwrap();
    agent.wait_for_watchers(PATIENCE).await;
    assert_eq!(*finished.lock().unwrap(), 1);
}

#[tokio::test]
async fn a_sub_agent_may_have_sub_agents_and_those_have_none() {
    let home = crate::test_support::temp_dir();
    let cassette = r#"turns:
  - { tools: [{ name: subagent-spawn, input: { task: one } }, { name: subagent-spawn, input: { task: two } }] }
  - { of: 2, tools: [{ name: subagent-spawn, input: { task: deep } }, { name: subagent-spawn, input: { task: deeper } }] }
  - { of: 1, text: "first" }
  - { of: "2.2", text: "second deep" }
  - { of: "2.1", tools: [{ name: subagent-spawn, input: { task: no } }] }
  - { of: "2.1", text: "deep", expect: { contains: ["there is no tool `subagent-spawn`"] } }
  - { of: 2, text: "second", expect: { contains: ["Output of the sub-agent 2.1", "second deep"] } }
  - { text: "Done.", expect: { tool_result: ok, contains: ["first", "second"] } }
"#;
    let (result, reported) = run(home.path(), cassette, task()).await;
    assert_eq!((result.reason, result.turns), (Reason::Skipped, 8), "{}", result.message);
    let mut paths: Vec<&str> = reported.iter().filter_map(|record| record.of.as_deref()).collect();
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths, ["1", "2", "2.1", "2.2"]);
    assert_eq!(replay(&store(home.path()), &result.run).unwrap().difference, None);
}

#[tokio::test]
async fn a_sub_agent_has_no_tool_that_its_parent_has_not_nor_more_than_was_asked_for() {
    let home = crate::test_support::temp_dir();
    let cassette = r#"turns:
  - tools: [{ name: subagent-spawn, input: { task: look, tier: read } }]
  - { of: 1, tools: [{ name: files-write, input: { path: a, content: a } }, { name: shell-exec, input: { command: touch b } }] }
  - { of: 1, text: "refused", expect: { contains: ["there is no tool `files-write`", "there is no tool `shell-exec`"] } }
  - tools: [{ name: subagent-spawn, input: { task: look, tools: ["files-*"] } }]
  - { of: 2, tools: [{ name: search-grep, input: { pattern: a } }, { name: files-list, input: {} }] }
  - { of: 2, text: "listed", expect: { contains: ["there is no tool `search-grep`"] } }
  - tools: [{ name: subagent-spawn, input: { task: look, tier: code } }]
  - text: "Done."
"#;
    let (result, reported) = run(home.path(), cassette, Task { tier: Tier::Tool, ..task() }).await;
    assert_eq!((result.reason, result.summary.as_str()), (Reason::Skipped, "Done."), "{}", result.message);
    assert_eq!(result.files_changed, []);
    let results = results(&reported, None, "subagent-spawn");
    assert!(results[0].contains("refused") && results[1].contains("listed"), "{results:?}");
    assert_eq!(
        results[2],
        "subagent-spawn: the tier `code` is above your tier `tool`: a sub-agent cannot have more than you"
    );
    assert_eq!(reported.iter().filter(|record| record.of.as_deref() == Some("3")).count(), 0);
}

#[tokio::test]
async fn a_wish_that_cannot_be_met_is_told_and_costs_nothing() {
    let home = crate::test_support::temp_dir();
    let cassette = r#"turns:
  - tools:
      - { name: subagent-spawn, input: { task: " " } }
      - { name: subagent-spawn, input: { task: x, tier: root } }
      - { name: subagent-spawn, input: { task: x, tools: ["no-such"] } }
      - { name: subagent-spawn, input: { task: x, tools: ["["] } }
      - { name: subagent-spawn, input: { task: x, turns: 0 } }
      - { name: subagent-spawn, input: { job: x } }
  - text: "Done."
"#;
    let (result, reported) = run(home.path(), cassette, task()).await;
    assert_eq!((result.turns, result.tools["subagent-spawn"].failed), (2, 6));
    let results = results(&reported, None, "subagent-spawn");
    let parts =
        ["`task` is empty", "found `root`", "none of your tools", "invalid pattern", "`turns`", "unknown field `job`"];
    for (result, part) in results.iter().zip(parts) {
        assert!(result.contains(part), "{part} is not in {result}");
    }
    assert_eq!((results.len(), reported.iter().filter(|record| record.of.is_some()).count()), (6, 0));
}

#[tokio::test]
async fn where_tier_or_lists_say_so_there_are_no_sub_agents() {
    let deny = ToolChoice { deny: vec!["subagent-*".into()], ..ToolChoice::default() };
    for task in [Task { tier: Tier::Read, ..task() }, Task { tools: deny, ..task() }] {
        let home = crate::test_support::temp_dir();
        let cassette = "turns: [{ tools: [{ name: subagent-spawn, input: { task: x } }] }, { text: No. }]";
        let (_, reported) = run(home.path(), cassette, task).await;
        assert_eq!(results(&reported, None, "subagent-spawn"), ["there is no tool `subagent-spawn` in this task"]);
    }
}

#[tokio::test]
async fn a_sub_agent_that_spends_its_share_is_ended_and_its_parent_goes_on() {
    let home = crate::test_support::temp_dir();
    let cassette = r#"turns:
  - tools: [{ name: subagent-spawn, input: { task: look, turns: 2 } }]
  - { of: 1, text: "Looking.", tools: [{ name: files-list, input: {} }] }
  - { of: 1, text: "Still looking.", tools: [{ name: files-list, input: { path: "." } }] }
  - { text: "Done.", expect: { tool_result: error, contains: ["did not finish: the turn limit", "Still looking."] } }
"#;
    let (result, _) = run(home.path(), cassette, task()).await;
    assert_eq!(
        (result.reason, result.turns, result.summary.as_str()),
        (Reason::Skipped, 4, "Done."),
        "{}",
        result.message
    );
    // With a budget for the whole run, the parent cannot spend what its sub-agent has spent.
    let home = crate::test_support::temp_dir();
    let budget = TaskBudget { turns: Some(3), ..TaskBudget::default() };
    let cassette = cassette.replace(", turns: 2", "").replace("Still looking.", "Looking.");
    let (result, _) = run(home.path(), &cassette, Task { budget, ..task() }).await;
    assert_eq!((result.reason, result.turns), (Reason::Skipped, 3), "{}", result.message);
}

#[tokio::test]
async fn a_run_that_is_cut_off_with_a_sub_agent_at_work_never_does_its_work_again() {
    let home = crate::test_support::temp_dir();
    let home = home.path();
    let cassette = r#"turns:
  - { tools: [{ name: subagent-spawn, input: { task: write } }], usage: { input: 100, output: 10 } }
  - { of: 1, tools: [{ name: shell-exec, input: { command: "echo did >> log" } }], usage: { input: 20, output: 5 } }
  - { of: 1, fault: { kind: busy, message: overloaded, retry_after: 1ms } }
  - { of: 1, text: "Written.", usage: { input: 30, output: 6 } }
  - { text: "Done.", usage: { input: 200, output: 20 } }
"#;
    let plain = |result: TaskResult| TaskResult { duration_ms: 0, ..result };
    let calm = plain(run(home, cassette, task()).await.0);
    let all = records(home, &calm);
    let retry = ["1:ModelFailed", "1:DeadlinePassed", "1:Sent", "1:ModelCompleted"];
    assert!(all.windows(4).any(|some| some.iter().map(|record| record.kind.as_str()).eq(retry)));
    let mut unknown = 0;
    for cut in drawn(0..=all.len()) {
        let (state, before) = (format!("state-{cut}"), &all[..cut]);
        cut_off(home, &state, before);
        let _it_may_be_gone = fs::remove_file(home.join("tree/log"));
        let is = |kind: &str| before.iter().any(|record| record.kind == kind);
        if is("1:ToolFinished") {
            fs::write(home.join("tree/log"), "did\n").unwrap();
        }
        let mut again = agent_of(home, &state, cassette);
        let result = plain(again.resume(&calm.run).await.unwrap());
        let store = Store::open(&home.join(&state), &home.join("tree")).unwrap();
        assert_eq!(replay(&store, &calm.run).unwrap().difference, None, "cut at {cut}");
        assert_eq!(plain(again.resume(&calm.run).await.unwrap()), result, "resumed again, cut at {cut}");
        if !is("1:TaskSubmitted") || is("ChildFinished") {
            let lost = store.events(&calm.run, 0).unwrap().map(Result::unwrap);
            let lost = lost.filter(|record| record.kind == "Interrupted").count() as u64;
            assert_eq!(result.usage.requests, calm.usage.requests + lost, "what was cut off is paid for, cut at {cut}");
            let usage = if lost == 0 { result.usage.clone() } else { calm.usage.clone() };
            assert_eq!(TaskResult { usage, ..result }, calm, "cut at {cut}");
            assert_eq!(fs::read_to_string(home.join("tree/log")).unwrap(), "did\n", "cut at {cut}");
            continue;
        }
        unknown += 1;
        let written = fs::read_to_string(home.join("tree/log")).unwrap_or_default();
        assert_eq!(written, if is("1:ToolFinished") { "did\n" } else { "" }, "cut at {cut}");
        let (mut journal, mut of_child) = (Vec::new(), 0);
        for record in store.events(&calm.run, 0).unwrap().map(Result::unwrap) {
            of_child += usize::from(whose(&record.kind).0.is_some());
            journal.push(record);
        }
        assert_eq!(of_child, before.iter().filter(|record| record.kind.starts_with("1:")).count(), "cut at {cut}");
        let reported = journal.iter().find(|record| record.kind == "ChildFinished").unwrap();
        assert!(reported.data.contains("interrupted while this sub-agent was at work"), "{}", reported.data);
        // Completed calls are charged, and so is what was reserved for the call that was sent.
        let charged = before.iter().filter(|record| record.kind == "1:ModelCompleted").count() as u64;
        assert_eq!(result.turns, 2 + charged, "cut at {cut}");
        let is_asking = before[cut - 1].kind == "1:Sent";
        let (input, output) = [(300, 30), (320, 35), (350, 41)][charged as usize];
        let total = &result.usage.total;
        match is_asking {
            true => assert!(
                total.input_tokens > input && total.output_tokens == output + OUTPUT_ESTIMATE,
                "cut at {cut}: {total:?}"
            ),
            false => assert_eq!((total.input_tokens, total.output_tokens), (input, output), "cut at {cut}"),
        }
    }
    assert_eq!(unknown * step(), 12);
}

#[tokio::test]
async fn a_sub_agent_that_does_not_stop_in_time_is_paid_for() {
    let home = crate::test_support::temp_dir();
    let agent = agent_of(home.path(), "state", ONE);
    let spec = agent.spec(&task(), RunId::new("run-1"));
    let journal = journal::begin_journal(&agent.settings, &spec, &task(), None, None, 0).unwrap();
    let (bus, stop) = (EventBus::default(), StopToken::default());
    let effects = EffectRunner::new(agent.settings.clone(), Arc::new(task()), journal.folder(), stop.clone());
    let mut drive = RunDrive::new(&bus, &stop, effects, journal, spec.run.clone());
    let mut begun = drive.run.handle(Elapsed(0), Event::TaskSubmitted { spec: Box::new(spec) });
    let plan = begun.iter().find_map(Action::call).unwrap();
    begun = drive.run.handle(Elapsed(1), Event::PlanReady { call: plan, plan: Box::default() });
    assert!(begun.iter().any(|action| matches!(action, Action::CallModel { .. })), "{begun:?}");
    let asked = begun.iter().find_map(Action::call).unwrap();
    drive.sent = std::collections::BTreeSet::from([asked]).into();
    let mut inbox = Inbox::new(0);
    drop(UndeliveredEvents { drive, call: CallId(7), outbox: Some(inbox.outbox()) });
    let happened = inbox.next(None, &StopToken::default(), AcceptedRequests::default()).await;
    let InboxItem::Event(Event::ChildFinished { call, outcome, usage, .. }) = happened else { panic!("{happened:?}") };
    assert_eq!((call, outcome.is_error, usage.output_tokens), (CallId(7), true, OUTPUT_ESTIMATE), "{outcome:?}");
}
