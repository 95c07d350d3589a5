//! Effects of complete answers: structured answers, answers that were cut off, and repeated calls.

use crate::machine::walk::{Walk, heard, judged, planned, ran, replies, says, spec};
use crate::machine::world::nature;
use fledge::chat::{StopReason, ToolOutcome};
use fledge::id::CallId;
use fledge::limits::Limits;
use fledge::run::{Action, AgentEvent, Event, ModelQuery, RunPlan, RunSpec};
use fledge::verdict::{Reason, Ruling, Verification};
use serde_json::json;

/// Returns a run at its first call that requires an object with a number.
fn asking(spec: RunSpec) -> Walk {
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    Walk::planning(spec).answer(planned(RunPlan { output_schema: Some(schema), ..nature::plan() }))
}

fn done(said: &str) -> impl FnOnce(CallId) -> Event + use<> {
    says(StopReason::EndTurn, said)
}

#[test]
fn an_answer_of_the_wrong_form_is_sent_back_before_the_gate_runs_and_is_an_attempt() {
    let walk = asking(spec()).answer(done("{\"n\": \"one\"}"));
    let walk = walk.gives("CallingModel", &[Action::CallModel { call: CallId(3), model: 0, most: None }]);
    assert_eq!(
        heard(&walk.run),
        [
            "The final answer does not have the required form: it does not match the schema:\n- at /n: \"one\" is not of type \"integer\"\n\n\
          The checks did not run. Give the whole answer again. After this, 2 more attempts are left."
        ]
    );
    let walk = walk.answer(done("```json\n{\"n\": 1}\n```"));
    let walk =
        walk.gives("Verifying", &[Action::RunGate { call: CallId(4), attempt: 2 }]).answer(judged(Ruling::Passed));
    let result = walk.run.result().expect("a result");
    assert_eq!((result.reason, result.answer, result.attempts.len()), (Reason::Verified, Some(json!({"n": 1})), 2));
}

#[test]
fn the_last_answer_of_the_wrong_form_ends_the_run_as_failed() {
    let walk = asking(RunSpec { max_retries: 0, verify: false, ..spec() }).answer(done("Done."));
    walk.ends_as(Reason::GateFailed);
    let result = walk.run.result().expect("a result");
    assert_eq!((result.verification, result.answer), (Verification::Failed, None));
    assert!(result.message.starts_with("The final answer does not have the required form: it is not JSON"));
}

#[test]
fn an_answer_of_the_wrong_form_twice_can_be_stuck() {
    let walk = asking(RunSpec { stuck_after: Some(2), ..spec() }).answer(done("Done.")).answer(done("Done, really."));
    walk.ends_as(Reason::Stuck);
}

#[test]
fn an_answer_in_pieces_is_one_answer() {
    let walk = asking(RunSpec { verify: false, ..spec() }).answer(says(StopReason::OutputLimit, "{\"n\":"));
    let result = walk.answer(done(" 7}")).run.result().expect("a result");
    assert_eq!((result.reason, result.answer), (Reason::Skipped, Some(json!({"n": 7}))));
}

#[test]
fn a_question_after_variables_is_answered_at_most_so_often_in_a_row() {
    let mut walk = Walk::calling(spec());
    for _ in 0..2 {
        walk = walk.answer(done("Which variables are set?"));
        let query = ModelQuery::Env { name: None };
        assert!(matches!(&walk.asked()[..], [Action::AnswerQuery { query: asked, .. }] if *asked == query));
        walk = walk.answer(|call| Event::QueryAnswered { call, answer: "TZ=UTC".into() });
    }
    assert_eq!(walk.answer(done("Which variables are set?")).run.label(), "Verifying");
}

#[test]
fn what_the_model_waits_for_without_a_call_is_noted_and_nudged() {
    let walk = Walk::calling(spec()).answer(says(StopReason::ToolUse, "I call the tool now."));
    assert!(
        walk.told().contains(&AgentEvent::Warning(
            "the model awaits tools but called none: fledge asked it to continue".into()
        ))
    );
    walk.answer(says(StopReason::ToolUse, "Again.")).ends_as(Reason::EmptyResponse);
}

#[test]
fn pauses_are_sent_back_a_few_times() {
    let mut walk = Walk::calling(spec());
    for _ in 0..3 {
        walk = walk.answer(says(StopReason::Pause, "wait"));
        assert_eq!(walk.run.label(), "CallingModel");
    }
    let walk = walk.answer(says(StopReason::Pause, "wait"));
    walk.ends_as(Reason::ModelProtocol);
    assert_eq!(walk.run.result().map(|result| result.message), Some("the model paused too often".into()));
}

#[test]
fn a_call_cut_off_is_told_and_then_the_end() {
    let cut = || {
        replies(
            StopReason::OutputLimit,
            vec![fledge::chat::Block::ToolUse(crate::machine::walk::tool("c", "files-edit"))],
        )
    };
    let mut walk = Walk::calling(spec());
    for _ in 0..3 {
        walk = walk.answer(cut());
        assert!(heard(&walk.run)[0].contains("do it"), "{:?}", heard(&walk.run));
        assert!(walk.asked().iter().all(|action| matches!(action, Action::CallModel { .. })));
    }
    walk.answer(cut()).ends_as(Reason::ModelProtocol);
}

#[test]
fn to_ask_again_and_again_for_what_there_is_not_is_a_loop() {
    let limits = Limits { loop_threshold: 4, ..Limits::default() };
    let mut walk = Walk::calling(RunSpec { limits, ..spec() });
    let mut turns = 0;
    while walk.run.label() == "CallingModel" && turns < 10 {
        turns += 1;
        let content = vec![fledge::chat::Block::ToolUse(crate::machine::walk::tool("c", "no-such-tool"))];
        walk = walk.answer(replies(StopReason::ToolUse, content));
    }
    let ended = (turns, walk.run.result().map(|result| result.reason));
    assert_eq!(ended, (4, Some(Reason::LoopDetected)));
}

#[test]
fn many_calls_alike_in_one_turn_are_told_before_they_end_a_run() {
    let mut walk = Walk::calling(spec());
    let (mut turn, mut told) = (0, Vec::new());
    while walk.run.label() == "CallingModel" && turn < 9 {
        turn += 1;
        let tool = |n| fledge::chat::ToolCall { id: format!("c{n}"), ..crate::machine::walk::tool("c", "files-read") };
        let calls = (0..8).map(|n| fledge::chat::Block::ToolUse(tool(n)));
        walk = walk.answer(replies(StopReason::ToolUse, calls.collect()));
        for _ in 0..8 {
            walk = walk.answer(ran(ToolOutcome::ok("no matches")));
        }
        if heard(&walk.run).iter().any(|heard| heard.contains("nearly the same call")) {
            told.push(turn);
        }
    }
    let reason = walk.run.result().map(|result| result.reason);
    assert_eq!((turn, told, reason), (2, vec![1], Some(Reason::LoopDetected)));
}

#[test]
fn the_model_is_told_of_repetition_once_at_half_of_the_threshold() {
    let mut walk = Walk::calling(spec());
    let mut told = Vec::new();
    for turn in 1.. {
        let content = vec![fledge::chat::Block::ToolUse(crate::machine::walk::tool("c", "files-read"))];
        walk = walk.answer(replies(StopReason::ToolUse, content)).answer(ran(ToolOutcome::ok("the same")));
        if heard(&walk.run).iter().any(|heard| heard.contains("nearly the same call")) {
            told.push(turn);
        }
        if walk.run.label() != "CallingModel" {
            assert_eq!(turn, 8);
            break;
        }
    }
    assert_eq!(told, [4]);
    walk.ends_as(Reason::LoopDetected);
}

#[test]
fn a_question_is_answered_only_where_the_answer_can_still_be_read() {
    let label = |turns| {
        let spec = RunSpec { limits: Limits { turns, ..Limits::default() }, ..spec() };
        Walk::calling(spec).answer(done("I need to read src/main.rs.")).run.label()
    };
    assert_eq!((label(2), label(1)), ("AnsweringQuery", "Verifying"));
}
