//! Golden streams of the Responses API, whole and broken, and the reply or error of each.

use super::stream::ResponsesStream;
use crate::{
    chat::{Block, Delta, ModelError, ModelErrorKind, Reply, StopReason, ToolCall, ToolInput, Usage},
    provider::codec::tests::decode,
};
use serde_json::{Value, json};

fn start() -> Value {
    json!({"type": "response.created", "response": {"id": "r", "model": "gpt-x", "status": "in_progress"}})
}

fn begin(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn piece(kind: &str, index: u64, delta: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": index, "delta": delta})
}

fn close(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn end() -> Value {
    json!({"type": "response.completed", "response": {"model": "gpt-x-1", "status": "completed", "usage": {
        "input_tokens": 100, "input_tokens_details": {"cached_tokens": 64},
        "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 8}, "total_tokens": 120,
    }}})
}

fn cut(reason: &str) -> Value {
    json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": reason}}})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn called(arguments: &str) -> Value {
    json!({"type": "function_call", "id": "fc", "call_id": "c1", "name": "read", "arguments": arguments})
}

fn run(events: &[Value]) -> (Vec<Delta>, Result<Option<Reply>, ModelError>) {
    let events: Vec<String> = events.iter().map(Value::to_string).collect();
    decode(&mut ResponsesStream::default(), &events)
}

/// Returns the reply to these events between start and end.
fn reply(events: &[Value], end: Value) -> Reply {
    run(&[&[start()], events, &[end]].concat()).1.unwrap().unwrap()
}

#[test]
fn a_whole_answer_becomes_a_reply_and_its_pieces_are_streamed() {
    let thought = json!({"type": "reasoning", "id": "rs", "encrypted_content": "x", "summary": [
        {"type": "summary_text", "text": "hm"}, {"type": "summary_text", "text": "so"},
    ]});
    let part = json!({"type": "response.reasoning_summary_part.added", "output_index": 0});
    let (deltas, done) = run(&[
        start(),
        json!({"type": "response.in_progress", "response": {}}),
        begin(0, json!({"type": "reasoning", "id": "rs", "summary": []})),
        part.clone(),
        piece("reasoning_summary_text", 0, "hm"),
        part,
        piece("reasoning_summary_text", 0, "so"),
        close(0, thought.clone()),
        begin(1, json!({"type": "message", "content": []})),
        json!({"type": "response.content_part.added", "output_index": 1}),
        piece("output_text", 1, "I'll "),
        piece("output_text", 1, "look."),
        json!({"type": "response.output_text.done", "output_index": 1, "text": "I'll look."}),
        close(1, message("I'll look.")),
        begin(2, json!({"type": "a_newer_item"})),
        close(2, json!({"type": "a_newer_item"})),
        begin(3, called("")),
        piece("function_call_arguments", 3, "{\"p\":"),
        piece("function_call_arguments", 3, "1}"),
        close(3, called("{\"p\":1}")),
        end(),
    ]);
    let call = ToolCall { id: "c1".into(), name: "read".into(), input: ToolInput::Object(json!({"p": 1})) };
    assert_eq!(
        deltas,
        [
            Delta::Thinking("hm".into()),
            Delta::Thinking("\n\n".into()),
            Delta::Thinking("so".into()),
            Delta::Text("I'll ".into()),
            Delta::Text("look.".into()),
            Delta::ToolCall(call.clone()),
        ]
    );
    let reply = Reply {
        content: vec![
            Block::Thinking { text: "hm\n\nso".into(), opaque: Some(thought) },
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
        model: "gpt-x-1".into(),
        lacks_end: false,
    };
    assert_eq!(done, Ok(Some(reply)));
}

#[test]
fn the_phase_of_a_message_stands_behind_its_text() {
    let with = |phase: Value| json!({"type": "message", "phase": phase, "content": [{"type": "output_text", "text": "I look."}]});
    let output = |phase: Value| {
        let first = json!({"type": "message", "content": []});
        reply(&[begin(0, first), piece("output_text", 0, "I look."), close(0, with(phase))], end()).content
    };
    let text = Block::Text { text: "I look.".into() };
    assert_eq!(output(json!("commentary")), [text.clone(), Block::Opaque { value: json!({"phase": "commentary"}) }]);
    assert_eq!(output(Value::Null), [text]);
}

#[test]
fn items_that_come_whole_are_streamed_whole() {
    let events =
        [begin(0, json!({"type": "message"})), close(0, message("all")), begin(1, called("")), close(1, called("{}"))];
    let (deltas, done) = run(&[&[start()], &events[..], &[end()]].concat());
    let call = ToolCall { id: "c1".into(), name: "read".into(), input: ToolInput::Object(json!({})) };
    assert_eq!(deltas, [Delta::Text("all".into()), Delta::ToolCall(call)]);
    assert_eq!(done.unwrap().unwrap().text(), "all");
}

#[test]
fn an_answer_that_was_cut_keeps_what_came_and_says_why() {
    let events = [
        begin(0, json!({"type": "message"})),
        piece("output_text", 0, "half"),
        close(0, message("half")),
        begin(1, called("")),
        piece("function_call_arguments", 1, "{\"p\":"),
    ];
    let cut_off = reply(&events, cut("max_output_tokens"));
    assert_eq!((cut_off.stop, cut_off.text()), (StopReason::OutputLimit, "half".into()));
    assert!(matches!(cut_off.tool_calls().next().unwrap().input, ToolInput::Malformed { .. }));
    assert_eq!(reply(&[], cut("content_filter")).stop, StopReason::Refusal);
    assert_eq!(run(&[start(), cut("boredom")]).1.unwrap_err().fault, ModelErrorKind::Protocol);
}

#[test]
fn a_refusal_is_told_apart_from_an_answer() {
    let refusal = json!({"type": "message", "content": [{"type": "refusal", "refusal": "I can't"}]});
    let events = [begin(0, json!({"type": "message"})), piece("refusal", 0, "I can"), close(0, refusal)];
    let refused = reply(&events, end());
    assert_eq!((refused.stop, refused.text()), (StopReason::Refusal, "I can't".into()));
    assert_eq!(reply(&[], end()).stop, StopReason::EndTurn);
}

#[test]
fn what_breaks_the_order_is_a_protocol_fault() {
    let text = |index| begin(index, json!({"type": "message"}));
    let cases: [(&str, Vec<Value>); 15] = [
        ("two starts", vec![start(), start()]),
        ("no start", vec![text(0)]),
        ("an end before the start", vec![end()]),
        ("index skipped", vec![start(), text(1)]),
        ("index twice", vec![start(), text(0), text(0)]),
        ("an item without a type", vec![start(), begin(0, json!({}))]),
        ("a call without an id", vec![start(), begin(0, json!({"type": "function_call", "name": "read"}))]),
        ("piece of an item never begun", vec![start(), piece("output_text", 0, "x")]),
        ("piece of a closed item", vec![start(), text(0), close(0, message("")), piece("output_text", 0, "x")]),
        ("piece of another type", vec![start(), text(0), piece("function_call_arguments", 0, "x")]),
        ("a lost piece", vec![start(), text(0), piece("output_text", 0, "b"), close(0, message("ab"))]),
        (
            "a lost piece of arguments",
            vec![
                start(),
                begin(0, called("")),
                piece("function_call_arguments", 0, "1}"),
                close(0, called("{\"a\":1}")),
            ],
        ),
        ("messages that cross", vec![start(), text(0), text(1), piece("output_text", 0, "x")]),
        ("another item at its end", vec![start(), text(0), close(0, called("{}"))]),
        ("end inside an item", vec![start(), text(0), end()]),
    ];
    for (name, events) in cases {
        assert_eq!(run(&events).1.unwrap_err().fault, ModelErrorKind::Protocol, "{name}");
    }
}

#[test]
fn failures_are_judged_by_their_code() {
    let failed = |code: &str| json!({"type": "response.failed", "response": {"error": {"code": code, "message": "m"}}});
    let error = |code: &str| json!({"type": "error", "code": code, "message": "m", "param": null});
    for (event, fault) in [
        (failed("server_error"), ModelErrorKind::Busy),
        (failed("rate_limit_exceeded"), ModelErrorKind::Busy),
        (failed("context_length_exceeded"), ModelErrorKind::ContextTooLong),
        (failed("insufficient_quota"), ModelErrorKind::Quota),
        (failed("invalid_prompt"), ModelErrorKind::BadRequest),
        (error("server_error"), ModelErrorKind::Busy),
        (
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "m"}}),
            ModelErrorKind::BadRequest,
        ),
    ] {
        assert_eq!(run(&[start(), event.clone()]).1.unwrap_err().fault, fault, "{event}");
    }
}
