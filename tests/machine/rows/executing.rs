//! Rows within Executing: outcomes of answers from models, tools, people and sub-agents.

use crate::machine::walk::{
    Walk, calls, everywhere, fails, heard, interrupted, ran, replies, reported, says, spec, summarised, tool,
    unsummarised,
};
use crate::machine::world::nature;
use fledge::chat::{
    Block, Delta, FileChange, FileChangeKind, Message, ModelError, ModelErrorKind, StopReason, ToolOutcome, Usage,
};
use fledge::id::{CallId, TreeId};
use fledge::limits::Limits;
use fledge::run::{Action, AgentEvent, DoneTool, Event, ModelQuery, RunSpec};
use fledge::verdict::Reason;
use serde_json::json;

fn call_model(call: u64) -> Action {
    Action::CallModel { call: CallId(call), model: 0, most: None }
}

fn run_tool(call: u64, id: &str, name: &str) -> Action {
    Action::RunTool { call: CallId(call), tool: name.into(), input: json!({ "path": id }) }
}

/// Returns the action that starts a sub-agent with this number of turns.
fn run_child(call: u64, id: &str, turns: u64) -> Action {
    let limits = Limits { turns, ..Limits::default() };
    Action::RunChild { call: CallId(call), input: json!({ "path": id }), limits }
}

/// Returns a run whose model has just called these tools.
fn using(tools: &[(&str, &str)]) -> Walk {
    Walk::calling(spec()).answer(calls(tools))
}

#[test]
pub(super) fn pieces_of_an_answer_are_shown_and_decide_nothing() {
    let arguments = AgentEvent::ToolCall { name: "files-read".into(), args: json!({"path": "c1"}) };
    for (delta, event) in [
        (Delta::Text("a".into()), AgentEvent::Text("a".into())),
        (Delta::Thinking("b".into()), AgentEvent::Thinking("b".into())),
        (Delta::ToolCall(tool("c1", "files-read")), arguments),
    ] {
        let walk = Walk::calling(spec()).answer(|call| Event::ModelDelta { call, delta });
        let walk = walk.gives_all("CallingModel", &[Action::Emit { event }]);
        assert_eq!(walk.run, Walk::calling(spec()).run);
    }
}

#[test]
pub(super) fn a_tool_use_runs_asks_or_dispatches() {
    using(&[("c1", "files-read")]).gives("RunningTools", &[run_tool(3, "c1", "files-read")]);
    let ask = Action::AskConfirmation { call: CallId(3), tool: tool("c1", "files-delete") };
    using(&[("c1", "files-delete")]).gives("Confirming", &[ask]);
    using(&[("c1", "subagent-spawn")]).gives("Dispatching", &[run_child(3, "c1", 49)]);
}

#[test]
pub(super) fn an_answer_without_calls_goes_to_the_gate_or_the_report() {
    Walk::verifying(spec()).gives("Verifying", &[Action::RunGate { call: CallId(3), attempt: 1 }]);
    let skipped = Walk::verifying(RunSpec { verify: false, ..spec() });
    skipped.gives("Reporting", &[Action::SaveReport { call: CallId(3) }]).ends_as(Reason::Skipped);
}

#[test]
pub(super) fn a_question_in_prose_is_looked_up() {
    let query = ModelQuery::File { path: "src/main.rs".into() };
    let walk = Walk::calling(spec()).answer(says(StopReason::EndTurn, "I need to read src/main.rs"));
    walk.gives("AnsweringQuery", &[Action::AnswerQuery { call: CallId(3), query }]);
}

#[test]
pub(super) fn an_answer_cut_off_is_asked_to_go_on_a_few_times() {
    let mut walk = Walk::calling(spec());
    for call in 3..6 {
        walk = walk.answer(says(StopReason::OutputLimit, "and so")).gives("CallingModel", &[call_model(call)]);
        assert!(heard(&walk.run)[0].ends_with("Continue exactly where it stopped."));
    }
    walk.answer(says(StopReason::OutputLimit, "and so")).ends_as(Reason::ModelProtocol);
}

#[test]
pub(super) fn a_refusal_ends_the_run() {
    let walk = Walk::calling(spec()).answer(replies(StopReason::Refusal, Vec::new()));
    walk.gives("Reporting", &[Action::SaveReport { call: CallId(3) }]).ends_as(Reason::Refused);
}

#[test]
pub(super) fn a_retryable_failure_waits_before_the_next_try() {
    for fault in [ModelErrorKind::Network, ModelErrorKind::Busy, ModelErrorKind::Protocol] {
        let walk = Walk::calling(spec()).answer(fails(fault)).gives("BackingOff", &[]);
        let due = walk.run.deadline().map_or(0, |due| due.0);
        assert!((500..=1_000).contains(&due), "due at {due} ms");
    }
}

#[test]
pub(super) fn a_conversation_that_is_too_long_is_summarised() {
    let walk = Walk::calling_after_much(spec()).answer(fails(ModelErrorKind::ContextTooLong));
    walk.gives("Compacting", &[Action::Compact { call: CallId(3), upto: 3, most: 16384 }]);
}

#[test]
pub(super) fn a_final_failure_falls_back_to_the_next_model() {
    let two = RunSpec { models: vec!["first".into(), "second".into()], ..spec() };
    let walk = Walk::calling(two).answer(fails(ModelErrorKind::Quota));
    walk.gives("CallingModel", &[Action::CallModel { call: CallId(3), model: 1, most: None }]);
}

#[test]
pub(super) fn the_last_model_s_failure_ends_the_run() {
    let report = Action::SaveReport { call: CallId(3) };
    let walk = Walk::calling(spec()).answer(fails(ModelErrorKind::Auth)).gives("Reporting", &[report]);
    walk.ends_as(Reason::ProviderFailed);
    let mut spent = Walk::calling(spec()).answer(fails(ModelErrorKind::Busy));
    for _ in 0..3 {
        spent = spent.wait().answer(fails(ModelErrorKind::Busy));
    }
    spent.ends_as(Reason::ProviderFailed);
}

#[test]
pub(super) fn a_call_that_was_cut_off_is_asked_for_anew() {
    Walk::calling(spec()).answer(interrupted).gives("CallingModel", &[call_model(3)]);
}

#[test]
pub(super) fn a_summary_that_may_come_waits_for_its_next_try() {
    let walk = Walk::calling_after_much(spec()).answer(fails(ModelErrorKind::ContextTooLong));
    walk.answer(unsummarised(ModelError::new(ModelErrorKind::Busy, "later"))).gives("BackingOff", &[]);
}

#[test]
pub(super) fn a_summary_that_was_cut_off_is_asked_for_anew() {
    let walk = Walk::calling_after_much(spec()).answer(fails(ModelErrorKind::ContextTooLong)).answer(interrupted);
    walk.gives("Compacting", &[Action::Compact { call: CallId(4), upto: 3, most: 16384 }]);
}

#[test]
pub(super) fn after_the_pause_the_same_effect_is_tried_again() {
    Walk::calling(spec()).answer(fails(ModelErrorKind::Busy)).wait().gives("CallingModel", &[call_model(3)]);
    let flaky = ToolOutcome { transient: true, ..ToolOutcome::error("busy") };
    let read = using(&[("c1", "files-read"), ("c2", "files-read")]).answer(ran(flaky));
    read.wait().gives("RunningTools", &[run_tool(4, "c1", "files-read")]);
}

#[test]
pub(super) fn what_a_tool_prints_is_shown() {
    let walk = using(&[("c1", "files-read")]);
    let walk = walk.answer(|call| Event::ToolProgress { call, text: "1 of 2".into() });
    walk.gives_all("RunningTools", &[Action::Emit { event: AgentEvent::ToolOutput { text: "1 of 2".into() } }]);
}

#[test]
pub(super) fn a_read_that_may_pass_waits() {
    let flaky = || ToolOutcome { transient: true, ..ToolOutcome::error("busy") };
    let walk = using(&[("c1", "files-read")]).answer(ran(flaky()));
    let what = walk.told().into_iter().find_map(|told| match told {
        AgentEvent::Retry { what, .. } => Some(what),
        _ => None,
    });
    assert_eq!(what.as_deref(), Some("files-read"));
    walk.gives("BackingOff", &[]);
    using(&[("c1", "files-edit")]).answer(ran(flaky())).gives("RunningHooks", &[Action::RunHooks { call: CallId(4) }]);
}

#[test]
pub(super) fn the_next_call_starts_when_the_one_before_has_ended() {
    let two = [("c1", "files-edit"), ("c2", "files-edit")];
    let walk = using(&two).gives("RunningTools", &[run_tool(3, "c1", "files-edit")]);
    walk.answer(ran(ToolOutcome::ok("ok"))).gives("RunningTools", &[run_tool(4, "c2", "files-edit")]);
    let reads = calls(&[("c1", "files-read"), ("c2", "files-read"), ("c3", "files-edit")]);
    let walk = Walk::calling(RunSpec { parallel_reads: true, ..spec() }).answer(reads);
    let both = [run_tool(3, "c1", "files-read"), run_tool(4, "c2", "files-read")];
    let one = walk.gives("RunningTools", &both).answer(ran(ToolOutcome::ok("ok"))).gives("RunningTools", &[]);
    one.answer(ran(ToolOutcome::ok("ok"))).gives("RunningTools", &[run_tool(5, "c3", "files-edit")]);
}

#[test]
pub(super) fn hooks_follow_a_turn_that_may_have_changed_something() {
    let change = FileChange { path: "a.rs".into(), kind: FileChangeKind::Modified, added: 1, removed: 1 };
    let edited = ToolOutcome { change: Some(change), ..ToolOutcome::ok("edited") };
    let walk = using(&[("c1", "files-edit"), ("c2", "rm-rf"), ("c3", "files-read")]).answer(ran(edited));
    let walk = walk.gives("RunningTools", &[run_tool(4, "c3", "files-read")]).answer(ran(ToolOutcome::error("gone")));
    let walk = walk.gives("RunningHooks", &[Action::RunHooks { call: CallId(5) }]);
    let done = |name: &str, success, changed: &[&str]| DoneTool {
        name: name.into(),
        success,
        changed: changed.iter().map(|path| (*path).to_owned()).collect(),
    };
    assert_eq!(walk.run.done_tools(), [done("files-edit", true, &["a.rs"]), done("files-read", false, &[])]);
    let change = FileChange { path: "b.rs".into(), kind: FileChangeKind::Created, added: 1, removed: 0 };
    let walk = using(&[("c1", "subagent-spawn")]).answer(|call| match reported("done")(call) {
        Event::ChildFinished { call, outcome, usage, turns, requests, by_model, .. } => {
            Event::ChildFinished { call, outcome, usage, turns, requests, by_model, changes: vec![change] }
        }
        other => other,
    });
    assert_eq!(walk.run.done_tools(), [done("subagent-spawn", true, &["b.rs"])], "also those of a sub-agent");
}

#[test]
pub(super) fn results_go_straight_back_to_the_model() {
    let walk = using(&[("c1", "files-read")]).answer(ran(ToolOutcome::ok("text")));
    assert_eq!(heard(&walk.gives("CallingModel", &[call_model(4)]).run), ["text"]);
    let crowded = Walk::calling_after_much(RunSpec { context_window: Some(12), ..spec() });
    let walk = crowded.answer(calls(&[("c1", "files-read")])).answer(ran(ToolOutcome::ok("text")));
    walk.gives("Compacting", &[Action::Compact { call: CallId(4), upto: 5, most: 3 }]);
}

#[test]
pub(super) fn a_person_is_asked_when_the_call_s_turn_has_come() {
    let walk =
        using(&[("c1", "files-read"), ("c2", "git-log")]).gives("RunningTools", &[run_tool(3, "c1", "files-read")]);
    let ask = Action::AskConfirmation { call: CallId(4), tool: tool("c2", "git-log") };
    walk.answer(ran(ToolOutcome::ok("text"))).gives("Confirming", &[ask]);
}

#[test]
pub(super) fn a_yes_runs_the_call() {
    let yes = |call| Event::ConfirmationAnswered { call, approved: true, note: String::new() };
    let walk = using(&[("c1", "files-delete")]).answer(yes);
    walk.gives("RunningTools", &[run_tool(4, "c1", "files-delete")]);
}

#[test]
pub(super) fn a_no_or_silence_is_the_call_s_result() {
    let two = calls(&[("c1", "files-delete"), ("c2", "files-read")]);
    let walk = Walk::calling(RunSpec { confirm_within_ms: Some(30_000), ..spec() }).answer(two);
    let no = |call| Event::ConfirmationAnswered { call, approved: false, note: "not today".into() };
    for (walk, denial) in [(walk.clone().answer(no), "denied: not today"), (walk.wait(), "denied: no answer in time")] {
        let walk = walk.gives("RunningTools", &[run_tool(4, "c2", "files-read")]);
        assert_eq!(heard(&walk.answer(ran(ToolOutcome::ok("text"))).run), [denial, "text"]);
    }
}

#[test]
pub(super) fn children_are_waited_for_together() {
    let walk = using(&[("c1", "subagent-spawn"), ("c2", "subagent-spawn")]);
    let walk = walk.gives("Dispatching", &[run_child(3, "c1", 33), run_child(4, "c2", 33)]).answer(reported("one"));
    let walk = walk.gives("Dispatching", &[]);
    let used = Usage { input_tokens: 17, output_tokens: 1, ..Usage::default() };
    assert!(walk.told().contains(&AgentEvent::Usage(used)));
}

#[test]
pub(super) fn the_last_child_leads_on() {
    let walk = using(&[("c1", "subagent-spawn"), ("c2", "files-read")]).answer(reported("one"));
    let walk = walk.gives("RunningTools", &[run_tool(4, "c2", "files-read")]).answer(ran(ToolOutcome::ok("two")));
    assert_eq!(heard(&walk.gives("RunningHooks", &[Action::RunHooks { call: CallId(5) }]).run), ["one", "two"]);
}

#[test]
pub(super) fn after_hooks_the_model_is_called() {
    let walk = everywhere()[7].clone();
    let walk = walk.answer(|call| Event::HooksFinished {
        call,
        notes: vec!["fmt failed\nin a.rs".into()],
        reported: vec!["gen failed".into()],
        checkpoint: Some(TreeId::empty()),
    });
    let walk = walk.gives("CallingModel", &[call_model(5)]);
    assert_eq!(heard(&walk.run), ["edited", "fmt failed\nin a.rs"]);
    assert_eq!(walk.run.checkpoint(), Some(&TreeId::empty()));
    let warned = |said: &str| AgentEvent::Warning(said.into());
    let kept = AgentEvent::Checkpoint { turn: 1, tree: TreeId::empty() };
    let whole = AgentEvent::Hook { note: "fmt failed\nin a.rs".into() };
    for told in [warned("gen failed"), warned("fmt failed"), whole, kept] {
        assert!(walk.told().contains(&told), "{told:?}: {:?}", walk.told());
    }
}

#[test]
pub(super) fn files_that_are_changed_to_and_fro_are_a_loop_of_which_the_model_is_told_before() {
    let mut walk = Walk::calling(RunSpec { limits: Limits { loop_threshold: 4, ..Limits::default() }, ..spec() });
    let mut told = Vec::new();
    for turn in 1..=10 {
        let content = vec![Block::ToolUse(tool("c", "files-edit"))];
        walk = walk.answer(replies(StopReason::ToolUse, content)).answer(ran(ToolOutcome::ok("edited ".repeat(turn))));
        let checkpoint = Some(nature::tree(if turn % 2 == 0 { '0' } else { '1' }));
        let after = |call| Event::HooksFinished { call, notes: Vec::new(), reported: Vec::new(), checkpoint };
        walk = walk.answer(after);
        if heard(&walk.run).iter().any(|heard| heard.contains("back and forth")) {
            told.push(turn);
        }
        if walk.run.label() != "CallingModel" {
            assert_eq!((turn, told), (8, vec![4]));
            return walk.ends_as(Reason::LoopDetected);
        }
    }
    panic!("no end");
}

#[test]
pub(super) fn what_was_looked_up_is_told_to_the_model() {
    let walk = everywhere()[8].clone().answer(|call| Event::QueryAnswered { call, answer: "fn main() {}".into() });
    let heard = heard(&walk.gives("CallingModel", &[call_model(4)]).run);
    assert_eq!(heard, ["You asked for this. Next time, call the tool.\n\nfn main() {}"]);
}

fn compacted(result: Result<&str, &str>) -> Walk {
    everywhere()[9].clone().answer(summarised(result, Usage::default()))
}

#[test]
pub(super) fn a_summary_takes_the_place_of_the_older_part() {
    let walk = compacted(Ok("so far")).gives("CallingModel", &[call_model(4)]);
    let long = Walk::calling_after_much(spec());
    let summary = "The task:\n\nprompt\n\nThe conversation so far, summarised:\n\nso far";
    let expected: Vec<_> =
        std::iter::once(Message::user(summary)).chain(long.run.conversation()[3..].to_vec()).collect();
    assert_eq!(walk.run.conversation(), expected);
}

#[test]
pub(super) fn a_failed_summary_changes_nothing() {
    let walk = compacted(Err("too long")).gives("CallingModel", &[call_model(4)]);
    assert_eq!(walk.run.conversation(), Walk::calling_after_much(spec()).run.conversation());
}
