//! The whole table as text: for each state and kind of event, the next state and its actions.
//! Reviewers read its changes as a diff.

#![expect(clippy::disallowed_methods, reason = "whether to write the file anew is asked from outside")]

use crate::machine::walk::{
    Walk, breaks, calls, cancel, committing, delivered, everywhere, fails, interrupted, judged, planned, proven, ran,
    replies, reported, says, spec, summarised, unsummarised,
};
use crate::machine::world::nature;
use fledge::chat::{Delta, ModelError, ModelErrorKind, StopReason, ToolOutcome, Usage};
use fledge::id::{CallId, TreeId};
use fledge::run::{Action, Event, RunSpec};
use fledge::verdict::{Reason, Ruling, StepProgress, StepStatus};
use std::fmt::Write;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/specs/generated/run.transitions.md");

#[test]
fn the_printed_table_is_the_committed_one() {
    let printed = print();
    if std::env::var_os("FLEDGE_BLESS").is_some() {
        std::fs::write(FILE, &printed).expect("the table can be written");
    }
    let committed = std::fs::read_to_string(FILE).unwrap_or_default();
    let differs = printed.lines().zip(committed.lines()).find(|(new, old)| new != old);
    assert!(
        printed == committed,
        "the transitions changed, first in {differs:?}: look at it, then FLEDGE_BLESS=1 cargo test --test it machine::table"
    );
}

fn print() -> String {
    let mut out = String::from(
        "# Transitions of a run\n\n\
         Printed by `tests/machine/table.rs`; `FLEDGE_BLESS=1 cargo test --test it machine::table` writes it anew.\n\
         One section for each state, with the variations that matter. The names of the events for watchers come last.\n",
    );
    for (title, walk) in places() {
        section(&mut out, &title, &walk);
    }
    out
}

/// Returns the thirteen states, some of them also with other settings.
fn places() -> Vec<(String, Walk)> {
    let two = || RunSpec { models: vec!["first".into(), "second".into()], ..spec() };
    let once = |spec: RunSpec| RunSpec { limits: fledge::limits::Limits { tries: 1, ..spec.limits.clone() }, ..spec };
    let flaky = || ToolOutcome { transient: true, ..ToolOutcome::error("busy") };
    let mut places: Vec<_> = everywhere().into_iter().map(|walk| (walk.run.label().to_owned(), walk)).collect();
    let mut vary = |title: &str, walk: Walk| places.push((format!("{}, {title}", walk.run.label()), walk));
    vary("tries spent, another model left", Walk::calling(once(two())));
    vary("tries spent, no model left", Walk::calling(once(spec())));
    vary("no gate", Walk::calling(RunSpec { verify: false, ..spec() }));
    vary(
        "one turn allowed",
        Walk::calling(RunSpec { limits: fledge::limits::Limits { turns: 1, ..Default::default() }, ..spec() }),
    );
    vary("a fix", Walk::planning(RunSpec { is_fix: true, ..spec() }));
    vary("long conversation", Walk::calling_after_much(RunSpec { context_window: Some(12), ..spec() }));
    vary("before a tool", Walk::calling(spec()).answer(calls(&[("c1", "files-read")])).answer(ran(flaky())));
    vary("a call still queued", Walk::calling(spec()).answer(calls(&[("c1", "files-edit"), ("c2", "files-edit")])));
    vary("approval needed next", Walk::calling(spec()).answer(calls(&[("c1", "files-read"), ("c2", "git-log")])));
    let within = RunSpec { confirm_within_ms: Some(30_000), ..spec() };
    vary("half a minute to answer", Walk::calling(within).answer(calls(&[("c1", "files-delete")])));
    vary("two children", Walk::calling(spec()).answer(calls(&[("c1", "subagent-spawn"), ("c2", "subagent-spawn")])));
    vary("a run that commits", Walk::verifying(committing()));
    vary("no retries left", Walk::verifying(RunSpec { max_retries: 0, ..spec() }));
    vary("stuck after one", Walk::verifying(RunSpec { stuck_after: Some(1), ..spec() }));
    vary(
        "told of tampering",
        Walk::verifying(spec()).answer(judged(Ruling::Tampered)).answer(says(StopReason::EndTurn, "Done.")),
    );
    vary("effects still in flight", Walk::calling(spec()).answer(calls(&[("c1", "files-edit")])).then(cancel()));
    places
}

fn section(out: &mut String, title: &str, walk: &Walk) {
    let _ = writeln!(out, "\n## {title}\n\n| event | next | actions | told |\n|---|---|---|---|");
    let mut senseless = Vec::new();
    for (name, event) in events() {
        let mut after = walk.clone();
        if name == "DeadlinePassed" {
            after = after.wait();
        } else {
            // The report is the last awaited call; effects in flight come before it.
            let report = name.starts_with("Report");
            let call = if report { walk.run.awaited().last().copied() } else { walk.run.awaited().first().copied() };
            after = after.then(event(call.unwrap_or(CallId(0))));
        }
        let told: Vec<_> = after.told().iter().map(kind).collect();
        let asked: Vec<_> = after.asked().iter().map(Action::name).collect();
        if told == ["warning"] && asked.is_empty() && after.run.label() == walk.run.label() {
            senseless.push(name);
            continue;
        }
        let next = match after.run.result() {
            Some(result) if after.run.label() == "Reporting" => format!("Reporting ({})", result.reason),
            Some(_) | None => after.run.label().to_owned(),
        };
        let _ = writeln!(out, "| {name} | {next} | {} | {} |", asked.join(", "), told.join(", "));
    }
    let _ = writeln!(out, "\nMakes no sense here, and changes nothing: {}.", gathered(&senseless).join("; "));
}

/// Groups the variants of an event under the event's name if all of them are present.
fn gathered(senseless: &[&'static str]) -> Vec<&'static str> {
    let event = |name: &'static str| name.split(':').next().unwrap_or(name);
    let all = |name| {
        events().iter().filter(|(other, _)| event(other) == event(name)).all(|(other, _)| senseless.contains(other))
    };
    let mut names: Vec<_> = senseless.iter().map(|name| if all(*name) { event(name) } else { name }).collect();
    names.dedup();
    names
}

/// Returns the JSON name of a watcher's event.
fn kind(event: &fledge::run::AgentEvent) -> String {
    let value = serde_json::to_value(event).unwrap_or_default();
    let name = value["type"].as_str().unwrap_or("?").to_owned();
    match (name.as_str(), &value["data"]) {
        ("state_changed" | "phase_changed", to) => format!("{name} {}", to.as_str().unwrap_or("?")),
        _ => name,
    }
}

type Make = Box<dyn FnOnce(CallId) -> Event>;

fn events() -> Vec<(&'static str, Make)> {
    let mut all: Vec<(&'static str, Make)> = model_events();
    let mut add = |name, make: Make| all.push((name, make));
    add(
        "ConfirmationAnswered: yes",
        Box::new(|call| Event::ConfirmationAnswered { call, approved: true, note: "ok".into() }),
    );
    add(
        "ConfirmationAnswered: no",
        Box::new(|call| Event::ConfirmationAnswered { call, approved: false, note: "no".into() }),
    );
    add("ToolProgress", Box::new(|call| Event::ToolProgress { call, text: "…".into() }));
    add("ToolFinished: ok", Box::new(ran(ToolOutcome::ok("ok"))));
    add("ToolFinished: failed", Box::new(ran(ToolOutcome::error("bad"))));
    add("ToolFinished: failed, may pass", Box::new(ran(ToolOutcome { transient: true, ..ToolOutcome::error("busy") })));
    add("ChildFinished", Box::new(reported("done")));
    add(
        "HooksFinished",
        Box::new(|call| Event::HooksFinished { call, notes: Vec::new(), reported: Vec::new(), checkpoint: None }),
    );
    add(
        "HooksFinished: with a note",
        Box::new(|call| Event::HooksFinished {
            call,
            notes: vec!["bad".into()],
            reported: Vec::new(),
            checkpoint: None,
        }),
    );
    add(
        "HooksFinished: with a checkpoint",
        Box::new(|call| Event::HooksFinished {
            call,
            notes: Vec::new(),
            reported: vec!["bad".into()],
            checkpoint: Some(TreeId::empty()),
        }),
    );
    add("QueryAnswered", Box::new(|call| Event::QueryAnswered { call, answer: "text".into() }));
    add("CompactionFinished: ok", Box::new(summarised(Ok("so far"), Usage::default())));
    add("CompactionFinished: failed", Box::new(summarised(Err("no"), Usage::default())));
    add("CompactionFinished: failed, may pass", Box::new(unsummarised(ModelError::network("gone"))));
    let progress = StepProgress::Ended(nature::step("test", StepStatus::Passed));
    add("GateProgress", Box::new(move |call| Event::GateProgress { call, progress }));
    add("GateFinished: passed", Box::new(judged(Ruling::Passed)));
    add("GateFinished: passed on another tree", Box::new(proven(nature::proof())));
    add("GateFinished: failed", Box::new(judged(Ruling::Failed)));
    add("GateFinished: errored", Box::new(judged(Ruling::Errored)));
    add("GateFinished: tampered", Box::new(judged(Ruling::Tampered)));
    add("Delivered: ok", Box::new(delivered(Ok(()))));
    add("Delivered: failed", Box::new(delivered(Err("it moved"))));
    add("ReportSaved", Box::new(|call| Event::ReportSaved { call, saved: Box::default() }));
    add("ReportFailed", Box::new(|call| Event::ReportFailed { call, message: "disk full".into() }));
    add("DeadlinePassed", Box::new(|_| Event::DeadlinePassed));
    add("DeadlinePassed: early", Box::new(|_| Event::DeadlinePassed));
    add("BaseJudged: passed", Box::new(|_| Event::BaseJudged { result: Ok(Vec::new()) }));
    add("BaseJudged: failed", Box::new(|_| Event::BaseJudged { result: Ok(vec!["verify/lint".into()]) }));
    add("BaseJudged: cannot run", Box::new(|_| Event::BaseJudged { result: Err("there is no program `x`".into()) }));
    add("LimitReached", Box::new(|_| Event::LimitReached { reason: Reason::BudgetMoney }));
    add("CancelRequested", Box::new(|_| cancel()));
    all
}

fn model_events() -> Vec<(&'static str, Make)> {
    let reads = [("n1", "files-read")];
    let after = |wait| {
        move |call| {
            let error = fledge::chat::ModelError::new(ModelErrorKind::Busy, "later");
            Event::ModelFailed { call, error: fledge::chat::ModelError { retry_after_ms: Some(wait), ..error } }
        }
    };
    vec![
        ("TaskSubmitted", Box::new(|_| Event::TaskSubmitted { spec: spec().into() })),
        ("PlanReady", Box::new(planned(nature::plan()))),
        ("PlanReady: the gate passed on what was there", Box::new(planned(nature::passed_plan()))),
        ("PlanFailed", Box::new(|call| Event::PlanFailed { call, reason: Reason::BadInput, message: "no".into() })),
        ("ModelDelta", Box::new(|call| Event::ModelDelta { call, delta: Delta::Text("a".into()) })),
        ("ModelCompleted: tool use, read", Box::new(calls(&reads))),
        ("ModelCompleted: tool use, needs approval", Box::new(calls(&[("n1", "files-delete")]))),
        ("ModelCompleted: tool use, sub-agent", Box::new(calls(&[("n1", "subagent-spawn")]))),
        ("ModelCompleted: tool use, unknown tool", Box::new(calls(&[("n1", "no-such-tool")]))),
        ("ModelCompleted: end of turn", Box::new(says(StopReason::EndTurn, "Done."))),
        ("ModelCompleted: asks in prose", Box::new(says(StopReason::EndTurn, "I need to read src/main.rs"))),
        ("ModelCompleted: empty", Box::new(says(StopReason::EndTurn, ""))),
        ("ModelCompleted: output limit", Box::new(says(StopReason::OutputLimit, "and so"))),
        ("ModelCompleted: pause", Box::new(says(StopReason::Pause, "wait"))),
        ("ModelCompleted: refusal", Box::new(replies(StopReason::Refusal, Vec::new()))),
        ("ModelFailed: retryable", Box::new(fails(ModelErrorKind::Busy))),
        ("ModelFailed: long wait", Box::new(after(120_001))),
        ("ModelFailed: protocol", Box::new(fails(ModelErrorKind::Protocol))),
        ("ModelFailed: context too long", Box::new(fails(ModelErrorKind::ContextTooLong))),
        ("ModelFailed: final", Box::new(fails(ModelErrorKind::Auth))),
        ("ModelFailed: broken off", Box::new(breaks(ModelErrorKind::Network, None, 40))),
        ("Interrupted", Box::new(interrupted)),
    ]
}
