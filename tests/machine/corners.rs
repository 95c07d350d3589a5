//! Cases outside the table that were wrong once or are easy to get wrong.

use crate::machine::laws::{law_12_journals_reproduce, law_13_snapshots_go_on};
use crate::machine::walk::{
    Walk, calls, cancel, everywhere, fails, heard, judged, planned, ran, replies, reported, says, spec, summarised,
};
use crate::machine::world::nature;
use fledge::chat::{
    Block, Delta, FileChange, FileChangeKind, ModelErrorKind, StopReason, ToolCall, ToolInput, ToolOutcome, Usage,
};
use fledge::elapsed::Elapsed;
use fledge::id::CallId;
use fledge::limits::Limits;
use fledge::run::{Action, AgentEvent, Event, RunSpec};
use fledge::verdict::{Reason, Ruling};
use serde_json::json;

#[test]
fn an_event_that_makes_no_sense_changes_nothing_and_yields_one_warning() {
    for walk in everywhere() {
        let stale = Event::ToolFinished { call: CallId(0), outcome: ToolOutcome::ok("late") };
        let after = walk.clone().then(stale);
        assert_eq!(after.run, walk.run, "{}", walk.run.label());
        assert!(matches!(&after.told()[..], [AgentEvent::Warning(_)]) && after.asked().is_empty());
    }
}

#[test]
fn what_only_passes_through_leaves_no_trace_even_when_it_comes_from_the_future() {
    for walk in everywhere() {
        for call in walk.run.awaited().into_iter().chain([CallId(0)]) {
            let mut run = walk.run.clone();
            run.handle(Elapsed(u64::MAX), Event::ModelDelta { call, delta: Delta::Text("a".into()) });
            assert_eq!(run, walk.run, "{}", walk.run.label());
        }
    }
}

#[test]
fn nobody_outside_can_say_that_the_work_counts() {
    for reason in [Reason::Verified, Reason::Skipped, Reason::Cancelled] {
        let limit = Walk::calling(spec()).then(Event::LimitReached { reason });
        limit.gives("CallingModel", &[]);
        let plan = Walk::planning(spec());
        plan.answer(|call| Event::PlanFailed { call, reason, message: String::new() }).ends_as(Reason::PlanFailed);
    }
}

#[test]
fn a_second_task_in_the_same_place_has_its_whole_time() {
    let mut first = Walk::verifying(spec()).answer(judged(Ruling::Passed));
    first.now = Elapsed(10_000_000);
    let second = first
        .answer(|call| Event::ReportSaved { call, saved: Box::default() })
        .then(Event::TaskSubmitted { spec: spec().into() });
    assert_eq!(second.run.deadline(), Some(Elapsed(10_000_000 + Limits::default().time_ms)));
    assert_eq!(second.then(cancel()).run.result().map(|result| result.duration_ms), Some(0));
}

#[test]
fn any_number_of_retries_can_be_counted() {
    let spec = RunSpec { max_retries: u32::MAX, ..spec() };
    Walk::verifying(spec).answer(judged(Ruling::Failed)).gives("CallingModel", &[call_model(4)]);
}

#[test]
fn an_id_made_by_the_machine_is_never_one_that_the_provider_gave() {
    let walk = Walk::calling(spec()).answer(calls(&[("", "no-such-tool"), ("call_t1_0", "no-such-tool")]));
    let uses = |block: &Block| if let Block::ToolUse(call) = block { Some(call.id.clone()) } else { None };
    let ids: Vec<_> = walk.run.conversation()[1].content.iter().filter_map(uses).collect();
    assert_eq!(ids, ["call_t1_0", "call_t1_0_t1_1"]);
}

#[test]
fn a_result_in_a_reply_is_not_kept() {
    let stray = fledge::chat::ToolResult::text("x", "?", false);
    let content = vec![Block::ToolResult(stray), Block::Text { text: "and so".into() }];
    let walk = Walk::calling(spec()).answer(replies(StopReason::OutputLimit, content));
    assert_eq!(walk.run.conversation()[1].content, crate::machine::walk::text("and so"));
}

#[test]
fn what_a_child_or_a_summary_costs_is_booked_and_told_even_after_a_cancel() {
    let [_, _, _, _, _, _, child, _, _, summary, _, _, _] = everywhere();
    let usage = Usage { input_tokens: 7, ..Usage::default() };
    let summarised = || summarised(Ok("in short"), usage.clone());
    let used = |walk: Walk| match walk.told().into_iter().find(|told| matches!(told, AgentEvent::Usage(_))) {
        Some(AgentEvent::Usage(usage)) => usage.input_tokens,
        other => panic!("told {other:?}"),
    };
    assert_eq!(used(child.clone().answer(reported("done"))), 17);
    assert_eq!(used(child.then(cancel()).answer(reported("done"))), 17);
    assert_eq!(used(summary.clone().answer(summarised())), 7);
    assert_eq!(used(summary.then(cancel()).answer(summarised())), 7);
}

#[test]
fn only_file_tools_earn_a_place_in_files_changed() {
    let change = FileChange { path: "a".into(), kind: FileChangeKind::Created, added: 1, removed: 0 };
    let outcome = ToolOutcome { change: Some(change), ..ToolOutcome::ok("ok") };
    for (tool, count) in [("shell-exec", 0), ("files-read", 0), ("files-edit", 1)] {
        let walk = Walk::calling(spec()).answer(calls(&[("c1", tool)])).answer(ran(outcome.clone())).then(cancel());
        assert_eq!(walk.run.result().map(|result| result.files_changed.len()), Some(count), "{tool}");
    }
}

#[test]
fn hooks_follow_a_child_since_it_may_have_changed_something() {
    let walk = Walk::calling(spec()).answer(calls(&[("c1", "subagent-spawn")])).answer(reported("done"));
    walk.gives("RunningHooks", &[Action::RunHooks { call: CallId(4) }]);
}

#[test]
fn a_cancel_between_overlapping_reads_still_shows_and_keeps_every_result_in_order() {
    let spec = RunSpec { parallel_reads: true, ..spec() };
    let reads = calls(&[("c1", "files-read"), ("c2", "files-read"), ("c3", "files-edit")]);
    let walk = Walk::calling(spec).answer(reads);
    let second = ToolOutcome::ok("two");
    let walk = walk.then(Event::ToolFinished { call: CallId(4), outcome: second }).then(cancel());
    let report = walk.asked().last().and_then(Action::call).expect("a report");
    let walk = walk.then(Event::ReportSaved { call: report, saved: Box::default() });
    let results = [
        "the run ended while this call was running: what it did is not known",
        "two",
        "not run: the run ended before this call",
    ];
    assert_eq!(heard(&walk.run), results);
    let shown = |told: AgentEvent| if let AgentEvent::ToolDetail { output, .. } = told { Some(output) } else { None };
    assert_eq!(walk.told().into_iter().filter_map(shown).collect::<Vec<_>>(), results);
}

#[test]
fn numbers_in_arguments_are_read_exactly_and_survive_a_snapshot() {
    let input = ToolInput::parse(r#"{"a": 8.808112154032074e-42, "b": 18446744073709551615, "c": -0.0}"#);
    assert_eq!(input, ToolInput::Object(json!({"a": 8.808_112_154_032_074e-42, "b": u64::MAX, "c": -0.0})));
    let call = Block::ToolUse(ToolCall { id: "c1".into(), name: "files-read".into(), input });
    let walk = Walk::calling(spec()).answer(replies(StopReason::ToolUse, vec![call]));
    assert_eq!(law_13_snapshots_go_on::restore(&walk.run), Ok(walk.run));
}

#[test]
fn a_call_that_ends_in_a_limit_is_not_run_though_it_can_be_read() {
    for stop in [StopReason::OutputLimit, StopReason::Pause] {
        let content = vec![Block::ToolUse(crate::machine::walk::tool("c1", "files-edit"))];
        let walk = Walk::calling(spec()).answer(replies(stop, content));
        walk.gives("CallingModel", &[call_model(3)]);
    }
}

#[test]
fn silence_is_nudged_once_and_never_taken_for_done() {
    let nudged = Walk::calling(spec()).answer(says(StopReason::EndTurn, " ")).gives("CallingModel", &[call_model(3)]);
    nudged.answer(says(StopReason::EndTurn, "")).ends_as(Reason::EmptyResponse);
}

#[test]
fn a_wait_longer_than_allowed_goes_to_the_next_model_and_then_blocks() {
    let wait = |call| {
        let error = fledge::chat::ModelError::new(ModelErrorKind::Busy, "later");
        Event::ModelFailed { call, error: fledge::chat::ModelError { retry_after_ms: Some(120_001), ..error } }
    };
    let two = RunSpec { models: vec!["a".into(), "b".into()], ..spec() };
    let second = Action::CallModel { call: CallId(3), model: 1, most: None };
    Walk::calling(two).answer(wait).gives("CallingModel", &[second]).answer(wait).ends_as(Reason::Blocked);
}

#[test]
fn three_failed_compactions_switch_compaction_off() {
    let mut walk = Walk::calling_after_much(RunSpec { context_window: Some(12), ..spec() });
    let turn = |walk: Walk| walk.answer(calls(&[("c", "files-read")])).answer(ran(ToolOutcome::ok("text")));
    for _ in 0..3 {
        walk = turn(walk);
        assert_eq!(walk.run.label(), "Compacting");
        walk = walk.answer(summarised(Err("no"), Usage::default()));
    }
    let walk = turn(walk);
    assert_eq!(walk.run.label(), "CallingModel");
}

#[test]
fn a_journal_with_shown_pieces_left_out_comes_to_the_same_run() {
    let mut court = crate::machine::laws::Court::new();
    let mut run = fledge::run::Run::new();
    let deltas = [Event::TaskSubmitted { spec: spec().into() }, planned(nature::plan())(CallId(1))]
        .into_iter()
        .chain((0..3).map(|n| Event::ModelDelta { call: CallId(n), delta: Delta::Text("a".into()) }))
        .chain([fails(ModelErrorKind::Busy)(CallId(2)), Event::DeadlinePassed]);
    for (at, event) in deltas.enumerate() {
        court.handle(&mut run, Elapsed(at as u64 * 7), event).expect("lawful");
    }
    assert_eq!(law_12_journals_reproduce::check(&court.journal, &run), Ok(()));
    assert_eq!(run.label(), "BackingOff");
}

fn call_model(call: u64) -> Action {
    Action::CallModel { call: CallId(call), model: 0, most: None }
}
