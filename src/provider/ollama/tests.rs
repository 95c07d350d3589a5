//! Golden streams of Ollama, whole and broken, and the reply or error of each.

use super::stream::OllamaStream;
use crate::{
    chat::{Block, Delta, ModelError, ModelErrorKind, Reply, StopReason, ToolCall, ToolInput, Usage},
    provider::codec::tests::decode,
};
use serde_json::{Value, json};

fn piece(message: Value) -> Value {
    json!({"model": "qwen3", "created_at": "2026-11-22T00:00:00Z", "message": message, "done": false})
}

fn end(reason: &str) -> Value {
    json!({"model": "qwen3", "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": reason,
        "prompt_eval_count": 100, "eval_count": 20})
}

fn run(lines: &[Value]) -> (Vec<Delta>, Result<Option<Reply>, ModelError>) {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    decode(&mut OllamaStream::new(3), &lines)
}

#[test]
fn a_whole_answer_becomes_a_reply_and_its_pieces_are_streamed() {
    let (deltas, done) = run(&[
        piece(json!({"role": "assistant", "content": "", "thinking": "hm"})),
        piece(json!({"role": "assistant", "content": "I'll "})),
        piece(json!({"role": "assistant", "content": "look."})),
        piece(json!({"role": "assistant", "content": "", "tool_calls": [
            {"id": "c1", "function": {"index": 0, "name": "read", "arguments": {"p": 1}}},
            {"function": {"name": "list"}},
        ]})),
        piece(json!({"content": "", "tool_calls": [{"function": {"name": "read", "arguments": "{\"p\": 2"}}]})),
        end("stop"),
    ]);
    let call = |id: &str, name: &str, input| ToolCall { id: id.into(), name: name.into(), input };
    let calls = [
        call("c1", "read", ToolInput::Object(json!({"p": 1}))),
        call("call_3_2", "list", ToolInput::Object(json!({}))),
        call("call_3_3", "read", ToolInput::parse("{\"p\": 2")),
    ];
    let streamed = [Delta::Thinking("hm".into()), Delta::Text("I'll ".into()), Delta::Text("look.".into())];
    assert_eq!(deltas, streamed.into_iter().chain(calls.clone().map(Delta::ToolCall)).collect::<Vec<_>>());
    let content = [
        Block::Thinking { text: "hm".into(), opaque: Some(json!({"field": "thinking"})) },
        Block::Text { text: "I'll look.".into() },
    ];
    let reply = Reply {
        content: content.into_iter().chain(calls.map(Block::ToolUse)).collect(),
        stop: StopReason::ToolUse,
        usage: Some(Usage { input_tokens: 100, output_tokens: 20, ..Usage::default() }),
        model: "qwen3".into(),
        lacks_end: false,
    };
    assert_eq!(done, Ok(Some(reply)));
}

#[test]
fn every_reason_to_be_done_is_known() {
    let stop = |reason: &str| run(&[end(reason)]).1.map(|reply| reply.unwrap().stop).map_err(|error| error.fault);
    assert_eq!(
        ["stop", "length", "unload", ""].map(stop),
        [
            Ok(StopReason::EndTurn),
            Ok(StopReason::OutputLimit),
            Err(ModelErrorKind::Protocol),
            Err(ModelErrorKind::Protocol)
        ]
    );
}

#[test]
fn what_is_no_part_of_an_answer_is_a_protocol_fault() {
    for line in [
        json!({"done": false}),
        json!({"message": {"content": "x"}}),
        json!({"message": "x", "done": true}),
        json!([1]),
    ] {
        assert_eq!(run(&[line]).1.unwrap_err().fault, ModelErrorKind::Protocol);
    }
}

#[test]
fn an_error_line_is_judged_by_its_words() {
    let fault = |error: &str| run(&[json!({"error": error})]).1.unwrap_err().fault;
    assert_eq!(fault("model runner has unexpectedly stopped"), ModelErrorKind::Busy);
    assert_eq!(fault("the input length exceeds the context length"), ModelErrorKind::ContextTooLong);
}

#[test]
fn usage_that_is_missing_is_unknown() {
    let line = json!({"message": {"content": "x"}, "done": true, "done_reason": "stop"});
    assert_eq!(run(&[line]).1.unwrap().unwrap().usage, None);
}
