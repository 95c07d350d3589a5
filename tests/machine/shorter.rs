//! Shortening of a long conversation, and the parts that survive it.

use crate::machine::walk::{Walk, calls, fails, judged, planned, ran, replies, says, spec, summarised, text, tool};
use crate::machine::world::nature;
use fledge::chat::{Block, Message, ModelErrorKind, Reply, StopReason, ToolOutcome, Usage};
use fledge::id::CallId;
use fledge::run::{Action, AgentEvent, Event, ModelTerms, RunPlan, RunSpec};
use fledge::verdict::{Reason, Ruling};

/// Adds a turn with one read of this number of bytes.
fn read(walk: Walk, id: &str, bytes: usize) -> Walk {
    walk.answer(calls(&[(id, "files-read")])).answer(ran(ToolOutcome::ok("x".repeat(bytes))))
}

/// Adds the same turn with an answer that reports this number of input tokens.
fn read_at(walk: Walk, id: &str, bytes: usize, tokens: u64) -> Walk {
    let usage = Some(Usage { input_tokens: tokens, output_tokens: 1, ..Usage::default() });
    let content = vec![Block::ToolUse(tool(id, "files-read"))];
    let reply = Reply { content, stop: StopReason::ToolUse, usage, model: "model-v1".into(), lacks_end: false };
    walk.answer(|call| Event::ModelCompleted { call, reply: Box::new(reply) })
        .answer(ran(ToolOutcome::ok("x".repeat(bytes))))
}

fn within(window: u64) -> RunSpec {
    RunSpec { terms: vec![ModelTerms { context_window: Some(window), ..ModelTerms::default() }], ..spec() }
}

fn compacted(walk: &Walk) -> Vec<(bool, String)> {
    let told = |told| if let AgentEvent::Compaction { success, note } = told { Some((success, note)) } else { None };
    walk.told().into_iter().filter_map(told).collect()
}

fn results(walk: &Walk) -> Vec<usize> {
    let result = |block: &Block| if let Block::ToolResult(result) = block { Some(result.content.len()) } else { None };
    walk.run.conversation().iter().flat_map(|message| &message.content).filter_map(result).collect()
}

#[test]
fn older_results_are_cleared_before_anything_is_summarised() {
    // Each read of 40,000 bytes is 10,000 tokens. The seventh read reaches 70 % of 100,000.
    let mut walk = Walk::calling(within(100_000));
    for n in 0..7 {
        walk = read_at(walk, &format!("c{n}"), 40_000 + n, n as u64 * 10_000);
        if n < 6 {
            assert_eq!(compacted(&walk), [], "after read {n}");
        }
    }
    assert_eq!(
        (walk.run.label(), compacted(&walk)),
        ("CallingModel", vec![(true, "2 older results were cleared".into())])
    );
    assert_eq!(results(&walk)[2..], [40_002, 40_003, 40_004, 40_005, 40_006]);
    assert!(results(&walk)[..2].iter().all(|bytes| *bytes < 100));
}

#[test]
fn a_conversation_that_stays_long_is_summarised() {
    let walk = Walk::calling_after_much(RunSpec { context_window: Some(12), ..spec() });
    let walk = read(walk, "c1", 4);
    assert!(matches!(walk.asked()[..], [Action::Compact { upto: 5, .. }]));
}

#[test]
fn the_window_of_the_model_in_use_counts_and_what_its_answer_needs() {
    let terms = |window, answer| ModelTerms {
        context_window: Some(window),
        max_output_tokens: Some(answer),
        ..ModelTerms::default()
    };
    let after = |spec| read(Walk::calling_after_much(spec), "c1", 4).run.label();
    let of = |terms| RunSpec { terms: vec![terms], context_window: Some(1_000_000), ..spec() };
    assert_eq!(after(of(terms(12, 0))), "Compacting");
    assert_eq!(after(of(terms(1_000, 0))), "CallingModel");
    assert_eq!(after(of(terms(24, 0))), "CallingModel");
    assert_eq!(after(of(terms(24, 20))), "Compacting", "half of it is kept for the answer");
}

#[test]
fn a_summary_that_is_empty_or_no_shorter_fails() {
    for summary in ["", "  \n", &"at length ".repeat(50)] {
        let walk = Walk::calling_after_much(spec()).answer(fails(ModelErrorKind::ContextTooLong));
        let before = walk.run.conversation().to_vec();
        let walk = walk.answer(summarised(Ok(summary), Usage::default()));
        assert!(matches!(&compacted(&walk)[..], [(false, _)]), "{summary:?}");
        assert_eq!(walk.run.conversation(), before);
    }
}

#[test]
fn the_task_the_newest_feedback_and_the_form_of_the_answer_survive() {
    let schema = serde_json::json!({"type": "object"});
    let long = Message::user("do it, ".repeat(100));
    let plan = RunPlan { messages: vec![long], output_schema: Some(schema), ..nature::plan() };
    let mut walk = Walk::planning(RunSpec { prompt: "mend the parser".into(), ..spec() }).answer(planned(plan));
    walk = walk.answer(says(StopReason::EndTurn, "{}")).answer(judged(Ruling::Failed));
    for n in 0..4 {
        walk = read(walk, &format!("c{n}"), 400);
    }
    let walk = walk.answer(fails(ModelErrorKind::ContextTooLong)).answer(summarised(Ok("so far"), Usage::default()));
    let first = fledge::chat::text_of(&walk.run.conversation()[0].content);
    for part in ["mend the parser", "so far", "1 test failed", "\"type\": \"object\""] {
        assert!(first.contains(part), "{part} is not in {first}");
    }
}

#[test]
fn too_long_for_the_provider_is_one_compaction_and_then_the_end() {
    let too_long = || fails(ModelErrorKind::ContextTooLong);
    let walk = Walk::calling_after_much(spec()).answer(too_long());
    assert_eq!(walk.run.label(), "Compacting");
    let walk = walk.answer(summarised(Ok("so far"), Usage::default()));
    assert_eq!(walk.run.label(), "CallingModel");
    walk.answer(too_long()).ends_as(Reason::ProviderFailed);
    Walk::calling(spec()).answer(too_long()).ends_as(Reason::ProviderFailed);
}

#[test]
fn where_only_results_can_go_they_go_and_it_is_tried_once_more() {
    let mut content: Vec<Block> = (0..3).map(|n| Block::ToolUse(tool(&format!("a{n}"), "files-read"))).collect();
    content.insert(0, text("I read").remove(0));
    let mut walk = Walk::calling(spec()).answer(replies(StopReason::ToolUse, content));
    for _ in 0..3 {
        walk = walk.answer(ran(ToolOutcome::ok("y".repeat(9_000))));
    }
    let six: Vec<(String, &str)> = (0..6).map(|n| (format!("b{n}"), "files-read")).collect();
    let six: Vec<(&str, &str)> = six.iter().map(|(id, name)| (id.as_str(), *name)).collect();
    walk = walk.answer(calls(&six));
    for _ in 0..6 {
        walk = walk.answer(ran(ToolOutcome::ok("z".repeat(9_000))));
    }
    let walk = walk.answer(fails(ModelErrorKind::ContextTooLong));
    assert!(matches!(walk.asked()[..], [Action::CallModel { call: CallId(_), .. }]));
    assert!(results(&walk)[..3].iter().all(|bytes| *bytes < 100) && results(&walk)[3..] == [9_000; 6]);
    walk.answer(fails(ModelErrorKind::ContextTooLong)).ends_as(Reason::ProviderFailed);
}

#[test]
fn after_three_failures_a_conversation_that_is_too_long_is_final() {
    let mut walk = Walk::calling_after_much(RunSpec { context_window: Some(12), ..spec() });
    for n in 0..3 {
        walk = read(walk, &format!("c{n}"), 4).answer(summarised(Err("no"), Usage::default()));
    }
    let walk = read(walk, "c9", 4);
    assert_eq!(walk.run.label(), "CallingModel");
    walk.answer(fails(ModelErrorKind::ContextTooLong)).ends_as(Reason::ProviderFailed);
}

#[test]
fn a_summary_has_room_for_thoughts_and_the_end_of_summaries_is_told() {
    let most = |walk: &Walk| {
        let most = |action| if let Action::Compact { most, .. } = action { Some(most) } else { None };
        walk.asked().into_iter().find_map(most)
    };
    let of = |window, largest_output| {
        let terms = ModelTerms { context_window: window, largest_output, ..ModelTerms::default() };
        let spec = RunSpec { terms: vec![terms], ..spec() };
        Walk::calling_after_much(spec).answer(fails(ModelErrorKind::ContextTooLong))
    };
    assert_eq!(most(&of(Some(400_000), Some(128_000))), Some(16_384));
    assert_eq!(most(&of(Some(20_000), None)), Some(5_000));
    assert_eq!(most(&of(None, None)), Some(16_384));

    let mut walk = Walk::calling_after_much(RunSpec { context_window: Some(12), ..spec() });
    for n in 0..3 {
        walk = read(walk, &format!("c{n}"), 4);
        assert_eq!(most(&walk), Some(if n == 0 { 3 } else { 6 }), "a failed one has more room after it");
        walk = walk.answer(summarised(Err("no summary: it was cut off"), Usage::default()));
        let warned = walk
            .told()
            .iter()
            .any(|told| matches!(told, AgentEvent::Warning(why) if why.contains("stopped summarising")));
        assert_eq!(warned, n == 2, "{n}");
    }
}

#[test]
fn a_summary_is_paid_for_and_not_asked_for_without_the_means() {
    let walk = Walk::calling_after_much(spec()).answer(fails(ModelErrorKind::ContextTooLong));
    let aside = walk.run.reserved();
    assert!(aside.output_tokens > 0 && aside.turns == 0);
    // Without a count, the tokens of a summary come from its length. A rejected one has no length.
    let tokens = aside.input_tokens;
    for (result, charged) in [(Ok("so far"), tokens + 1), (Err("no summary: it was cut off"), aside.tokens())] {
        let walk = walk.clone().answer(summarised(result, Usage::default()));
        let told = walk.told().into_iter();
        let usage: Vec<Usage> = told
            .filter_map(|told| if let AgentEvent::Usage(usage) = told { Some(usage.clone()) } else { None })
            .collect();
        assert_eq!((usage[0].total(), usage[0].estimated_tokens), (charged, charged), "{result:?}");
    }
}
