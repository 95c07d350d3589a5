//! Benchmark of resuming a long run: its time and its memory.
//!
//! It writes a journal of 100,000 events and 100 MB. A separate process then reads and folds the
//! journal, as resume and replay do. Prints the figures; asserts only that the machine asks for the
//! same actions again.
//!
//! The machine itself produces the run: turns with a call whose result has about 2 KB. Every 100
//! turns the conversation becomes too long and is summarised. A number as argument sets the number
//! of events.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and its arguments, and starts itself")]
#![expect(clippy::print_stdout, reason = "its figures are what it is for")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use fledge::chat::{
    Block, Message, ModelError, ModelErrorKind, Reply, StopReason, ToolCall, ToolInput, ToolOutcome, Usage,
};
use fledge::driver::replay;
use fledge::elapsed::Elapsed;
use fledge::id::{CallId, RunId};
use fledge::limits::Limits;
use fledge::run::{Action, Event, Run, RunPlan, RunSpec, ToolAccess, ToolRole, ToolRule};
use fledge::store::{Journal, RunHead, Store, TaskCopy, sha256};
use std::path::Path;
use std::time::Instant;

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let events = match (args.next(), args.next()) {
        (Some(home), Some(_)) => return look(Path::new(&home)),
        (events, _) => events.map_or(100_000, |events| events.parse().unwrap()),
    };
    let home = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let bytes = write(home.path(), events);
    println!("write {events} events of {} MB: {:.1?}", bytes / 1_000_000, start.elapsed());
    let program = std::env::current_exe().unwrap();
    assert!(std::process::Command::new(program).arg(home.path()).arg("look").status().unwrap().success());
}

/// Folds the journal, and prints the time and the memory.
fn look(home: &Path) {
    let start = Instant::now();
    let replayed = replay(&store(home), &RunId::new("long")).unwrap();
    let took = start.elapsed();
    assert_eq!(replayed.difference, None);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("unknown").trim();
    println!("fold {} events: {took:.1?}, at most {peak} of memory", replayed.records);
}

fn store(home: &Path) -> Store {
    Store::open(home, Path::new("/a/app")).unwrap()
}

/// Writes the journal. Returns the size of the events in bytes.
fn write(home: &Path, events: u64) -> usize {
    let mut journal = journal(&store(home));
    let (mut run, mut before, mut bytes) = (Run::new(), None, 0);
    let mut feed = |at: u64, event: Event| {
        let mut record = serde_json::to_value(&event).unwrap();
        record.as_object_mut().unwrap().extend(before.take().map(|asked| ("before".to_owned(), asked)));
        let record = record.to_string();
        journal.append(at, event.name(), &record).unwrap();
        bytes += record.len();
        let actions = run.handle(Elapsed(at), event);
        if actions.iter().any(Action::is_irrevocable) && at.is_multiple_of(100) {
            journal.sync().unwrap(); // a real run syncs at each; `journal` measures that
        }
        before = Some(asked(&actions));
        run.awaited().first().copied().unwrap_or(CallId(0))
    };
    let limits = Limits { turns: u64::MAX, time_ms: u64::MAX, ..Limits::default() };
    let spec = RunSpec { limits, ..RunSpec::new(RunId::new("long"), "title", "prompt") };
    let call = feed(0, Event::TaskSubmitted { spec: Box::new(spec) });
    let rule = ToolRule { name: "files-read".into(), access: ToolAccess::Allowed, role: ToolRole::Reader };
    let plan = RunPlan { messages: vec![Message::user("do it")], rules: vec![rule], ..RunPlan::default() };
    let mut call = feed(1, Event::PlanReady { call, plan: Box::new(plan) });
    let mut at = 2;
    while at < events {
        if at.is_multiple_of(202) {
            let error = ModelError::new(ModelErrorKind::ContextTooLong, "too long");
            call = feed(at, Event::ModelFailed { call, error });
            let usage = Usage::default();
            call = feed(
                at + 1,
                Event::CompactionFinished {
                    call,
                    result: Ok("Files were read.".into()),
                    usage,
                    model: String::new(),
                    error: None,
                },
            );
        } else {
            call = feed(at, Event::ModelCompleted { call, reply: Box::new(reply(at)) });
            let lines: String =
                (0..40).map(|line| format!("{line}: let value_{at}_{line} = 1; // \"seen\"\n")).collect();
            call = feed(at + 1, Event::ToolFinished { call, outcome: ToolOutcome::ok(lines) });
        }
        at += 2;
    }
    journal.sync().unwrap();
    bytes
}

fn reply(at: u64) -> Reply {
    let input = ToolInput::parse(&format!("{{\"path\": \"src/file{at}.rs\"}}"));
    let call = ToolCall { id: format!("call_{at}"), name: "files-read".into(), input };
    let said = Block::Text { text: "I look at this first, since the test names it. ".repeat(4) };
    let usage = Some(Usage { input_tokens: 900, output_tokens: 90, ..Usage::default() });
    Reply {
        content: vec![said, Block::ToolUse(call)],
        stop: StopReason::ToolUse,
        usage,
        model: "bench-v1".into(),
        lacks_end: false,
    }
}

/// Returns the note that the driver stores with the next record.
fn asked(actions: &[Action]) -> serde_json::Value {
    let asked: Vec<&Action> = actions.iter().filter(|action| !matches!(action, Action::Emit { .. })).collect();
    let names: Vec<&str> = asked.iter().map(|action| action.name()).collect();
    let digest = sha256(&serde_json::to_vec(&asked).unwrap());
    serde_json::json!({ "names": names, "digest": &digest[..16] })
}

fn journal(store: &Store) -> Journal {
    let head = RunHead {
        id: RunId::new("long"),
        run_key: None,
        parent: None,
        title: "title".into(),
        source: "task.md".into(),
        task_digest: "0".repeat(64),
        workspace: "/a/app".into(),
        models: vec!["anthropic/claude".into()],
        fledge: "0.1.0".into(),
        journal_version: 1,
        started_at_ms: 0,
    };
    Journal::create(store, &head, &TaskCopy::default()).unwrap()
}
