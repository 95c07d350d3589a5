//! Golden streams of Chat Completions, whole and broken, and the reply or error of each.

use super::stream::ChatStream;
use crate::{
    chat::{Block, Delta, ModelError, ModelErrorKind, Reply, StopReason, ToolCall, ToolInput, Usage},
    provider::codec::tests::decode,
};
use serde_json::{Value, json};

const DONE: &str = "[DONE]";

fn delta(delta: &Value) -> String {
    json!({"model": "gpt-x", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]}).to_string()
}

fn calls(calls: &Value) -> String {
    delta(&json!({"tool_calls": calls}))
}

fn finish(reason: &str) -> String {
    json!({"model": "gpt-x", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}).to_string()
}

fn run(events: &[String]) -> (Vec<Delta>, Result<Option<Reply>, ModelError>) {
    decode(&mut ChatStream::new(3), events)
}

/// Returns the calls of the reply to these chunks. Checks that each call was streamed exactly once.
fn called(chunks: &[String]) -> Vec<(String, String, Value)> {
    let (deltas, end) = run(&[chunks, &[finish("tool_calls"), DONE.into()]].concat());
    let calls: Vec<_> = end.unwrap().unwrap().tool_calls().cloned().collect();
    assert_eq!(deltas, calls.iter().cloned().map(Delta::ToolCall).collect::<Vec<_>>());
    calls.into_iter().map(|call| (call.id, call.name, call.input.to_value())).collect()
}

fn call(id: &str, name: &str, input: Value) -> (String, String, Value) {
    (id.into(), name.into(), input)
}

#[test]
fn text_parts_become_text_thought_parts_become_thoughts_and_drops_are_reported() {
    let parts = |content: Value| run(&[delta(&json!({ "content": content })), finish("stop"), DONE.into()]);
    let thought = json!({"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]});
    let (deltas, end) = parts(json!([thought, {"type": "text", "text": "Do"}, {"type": "text", "text": "ne."}]));
    let text = |text: &str| Delta::Text(text.into());
    assert_eq!(deltas, [Delta::Thinking("hm".into()), text("Do"), text("ne.")]);
    let message = [Block::Thinking { text: "hm".into(), opaque: None }, Block::Text { text: "Done.".into() }];
    assert_eq!(end.unwrap().unwrap().content, message);
    for content in [json!([{"type": "hologram"}]), json!({"text": "Done."})] {
        assert_eq!(parts(content.clone()).1.unwrap_err().fault, ModelErrorKind::Protocol, "{content}");
    }
}

#[test]
fn a_whole_answer_becomes_a_reply_and_its_pieces_are_streamed() {
    let usage = json!({"model": "gpt-x", "choices": [], "usage": {
        "prompt_tokens": 100, "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 64}, "completion_tokens_details": {"reasoning_tokens": 8},
    }});
    let (deltas, end) = run(&[
        delta(&json!({"role": "assistant", "content": ""})),
        delta(&json!({"reasoning_content": "hm"})),
        delta(&json!({"content": "I'll "})),
        delta(&json!({"content": "look."})),
        calls(&json!([{"index": 0, "id": "c1", "type": "function", "function": {"name": "read", "arguments": ""}}])),
        calls(&json!([{"index": 0, "function": {"arguments": "{\"p\":"}}])),
        calls(&json!([{"index": 0, "function": {"arguments": "1}"}}])),
        finish("tool_calls"),
        usage.to_string(),
        DONE.into(),
    ]);
    let call = ToolCall { id: "c1".into(), name: "read".into(), input: ToolInput::Object(json!({"p": 1})) };
    assert_eq!(
        deltas,
        [
            Delta::Thinking("hm".into()),
            Delta::Text("I'll ".into()),
            Delta::Text("look.".into()),
            Delta::ToolCall(call.clone()),
        ]
    );
    let reply = Reply {
        content: vec![
            Block::Thinking { text: "hm".into(), opaque: Some(json!({"field": "reasoning_content"})) },
            Block::Text { text: "I'll look.".into() },
            Block::ToolUse(call),
        ],
        stop: StopReason::ToolUse,
        usage: Some(Usage {
            input_tokens: 100,
            output_tokens: 20,
            cached_tokens: 64,
            reasoning_tokens: 8,
            ..Usage::default()
        }),
        model: "gpt-x".into(),
        lacks_end: false,
    };
    assert_eq!(end, Ok(Some(reply)));
}

#[test]
fn calls_are_told_apart_however_a_server_numbers_them() {
    let whole = |index: Value, id: &str, p: u64| {
        calls(
            &json!([{"index": index, "id": id, "function": {"name": "read", "arguments": json!({"p": p}).to_string()}}]),
        )
    };
    let two = [call("a", "read", json!({"p": 1})), call("b", "read", json!({"p": 2}))];
    assert_eq!(called(&[whole(json!(0), "a", 1), whole(json!(1), "b", 2)]), two, "by index");
    assert_eq!(called(&[whole(json!(0), "a", 1), whole(json!(0), "b", 2)]), two, "by id under one index");
    assert_eq!(called(&[whole(Value::Null, "a", 1), whole(Value::Null, "b", 2)]), two, "by id without an index");
    let made = [call("call_3_1", "read", json!({"p": 1})), call("call_3_2", "read", json!({"p": 2}))];
    for index in [Value::Null, json!(0)] {
        assert_eq!(called(&[whole(index.clone(), "", 1), whole(index, "", 2)]), made, "whole, without ids");
    }
    for first in [-1, 1] {
        let numbered = [whole(json!(first), "a", 1), whole(json!(first + 1), "b", 2)];
        assert_eq!(called(&numbered), two, "from {first}, as a block among others");
    }
}

#[test]
fn complete_calls_need_no_finish_reason_before_the_end_and_a_text_alone_does() {
    let piece = |arguments: &str| calls(&json!([{"index": 0, "function": {"name": "read", "arguments": arguments}}]));
    let (deltas, end) = run(&[piece("{\"p\":"), piece("1}"), DONE.into()]);
    let reply = end.unwrap().unwrap();
    assert_eq!((reply.stop, reply.lacks_end), (StopReason::ToolUse, true));
    assert_eq!(deltas, reply.tool_calls().cloned().map(Delta::ToolCall).collect::<Vec<_>>());
    assert_eq!(reply.tool_calls().next().unwrap().input, ToolInput::Object(json!({"p": 1})));
    let message = delta(&json!({"content": "I look."}));
    for cut in [vec![piece("{\"p\":")], vec![piece("")], vec![piece("[1]")], vec![message]] {
        let error = run(&[cut.clone(), vec![DONE.into()]].concat()).1.unwrap_err();
        assert_eq!(error.fault, ModelErrorKind::Protocol, "{cut:?}");
    }
}

#[test]
fn interleaved_pieces_find_their_calls() {
    let piece = |index: u64, text: &str| calls(&json!([{"index": index, "function": {"arguments": text}}]));
    let first = calls(
        &json!([{"index": 0, "id": "a", "function": {"name": "x"}}, {"index": 1, "id": "b", "function": {"name": "y"}}]),
    );
    assert_eq!(
        called(&[first, piece(1, "{\"q\""), piece(0, "{}"), piece(1, ":2}")]),
        [call("a", "x", json!({})), call("b", "y", json!({"q": 2}))]
    );
}

#[test]
fn calls_without_ids_get_their_own() {
    let bare = |index: u64| calls(&json!([{"index": index, "function": {"name": "x", "arguments": {"object": true}}}]));
    let input = json!({"object": true});
    assert_eq!(called(&[bare(0), bare(1)]), [call("call_3_1", "x", input.clone()), call("call_3_2", "x", input)]);
}

#[test]
fn every_finish_reason_is_known() {
    let reasons = [
        ("stop", StopReason::EndTurn),
        ("eos", StopReason::EndTurn),
        ("eos_token", StopReason::EndTurn),
        ("stop_sequence", StopReason::EndTurn),
        ("end_turn", StopReason::EndTurn),
        ("length", StopReason::OutputLimit),
        ("max_tokens", StopReason::OutputLimit),
        ("model_length", StopReason::OutputLimit),
        ("tool_calls", StopReason::ToolUse),
        ("function_call", StopReason::ToolUse),
        ("content_filter", StopReason::Refusal),
    ];
    let found = reasons.map(|(reason, _)| run(&[finish(reason), DONE.into()]).1.unwrap().unwrap().stop);
    assert_eq!(found, reasons.map(|(_, stop)| stop));
}

#[test]
fn a_refusal_is_said_and_named() {
    let (deltas, end) = run(&[delta(&json!({"refusal": "I can't."})), finish("stop"), finish("stop"), DONE.into()]);
    let reply = end.unwrap().unwrap();
    assert_eq!(
        (deltas, reply.text(), reply.stop),
        (vec![Delta::Text("I can't.".into())], "I can't.".into(), StopReason::Refusal)
    );
}

#[test]
fn what_breaks_the_protocol_is_a_fault() {
    let cases: [(&str, Vec<String>); 8] = [
        ("done without a reason", vec![delta(&json!({"content": "x"})), DONE.into()]),
        ("more after the reason", vec![finish("stop"), delta(&json!({"content": "x"}))]),
        ("two reasons", vec![finish("stop"), finish("length")]),
        ("an unknown reason", vec![finish("boredom")]),
        ("index skipped", vec![calls(&json!([{"index": 1, "id": "a"}]))]),
        (
            "another name",
            vec![calls(&json!([{"index": 0, "function": {"name": "a"}}, {"index": 0, "function": {"name": "b"}}]))],
        ),
        ("unexpected second choice", vec![json!({"choices": [{"index": 1, "delta": {"content": "x"}}]}).to_string()]),
        ("not JSON", vec!["{".into()]),
    ];
    for (name, events) in cases {
        assert_eq!(run(&events).1.unwrap_err().fault, ModelErrorKind::Protocol, "{name}");
    }
}

#[test]
fn an_error_object_in_the_stream_is_judged_by_its_words() {
    let error = json!({"error": {"type": "server_error", "message": "try again"}}).to_string();
    assert_eq!(
        run(&[delta(&json!({"content": "x"})), error]).1.unwrap_err(),
        ModelError::new(ModelErrorKind::Busy, "the stream reports: server_error try again")
    );
    let error = json!({"object": "error", "type": "BadRequestError", "code": 400, "message": "no"}).to_string();
    assert_eq!(run(&[error]).1.unwrap_err().fault, ModelErrorKind::BadRequest);
}
