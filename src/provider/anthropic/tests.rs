//! Golden streams of the Messages API, whole and broken, and the reply or error of each.

use super::stream::AnthropicStream;
use crate::{
    chat::{Block, Delta, ModelError, ModelErrorKind, Reply, StopReason, ToolCall, ToolInput, Usage},
    provider::codec::tests::decode,
};
use serde_json::json;

const START: &str = r#"{"type":"message_start","message":{"model":"claude-x","usage":{"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":5,"output_tokens":1}}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn begin(index: u64, block: &str) -> String {
    format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
}

fn piece(index: u64, delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)
}

fn close(index: u64) -> String {
    format!(r#"{{"type":"content_block_stop","index":{index}}}"#)
}

fn note(reason: &str) -> String {
    format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{"output_tokens":42}}}}"#)
}

fn run(events: &[String]) -> (Vec<Delta>, Result<Option<Reply>, ModelError>) {
    decode(&mut AnthropicStream::default(), events)
}

fn tool(id: &str, input: ToolInput) -> ToolCall {
    ToolCall { id: id.into(), name: "read".into(), input }
}

#[test]
fn a_whole_answer_becomes_a_reply_and_its_pieces_are_streamed() {
    let (deltas, end) = run(&[
        START.into(),
        r#"{"type":"ping"}"#.into(),
        r#"{"type":"a_newer_event","index":"what"}"#.into(),
        begin(0, r#"{"type":"thinking","thinking":""}"#),
        piece(0, r#"{"type":"thinking_delta","thinking":"hm"}"#),
        piece(0, r#"{"type":"signature_delta","signature":"sig"}"#),
        close(0),
        begin(1, r#"{"type":"redacted_thinking","data":"x"}"#),
        close(1),
        begin(2, r#"{"type":"text","text":""}"#),
        piece(2, r#"{"type":"text_delta","text":"I'll "}"#),
        piece(2, r#"{"type":"citations_delta","citation":{}}"#),
        piece(2, r#"{"type":"text_delta","text":"look."}"#),
        close(2),
        begin(3, r#"{"type":"tool_use","id":"t1","name":"read","input":{}}"#),
        piece(3, r#"{"type":"input_json_delta","partial_json":""}"#),
        piece(3, r#"{"type":"input_json_delta","partial_json":"{\"path\":"}"#),
        piece(3, r#"{"type":"input_json_delta","partial_json":"\"a.rs\"}"}"#),
        close(3),
        begin(4, r#"{"type":"tool_use","id":"t2","name":"read","input":{"whole":true}}"#),
        close(4),
        note("tool_use"),
        STOP.into(),
    ]);
    let (one, two) =
        (tool("t1", ToolInput::Object(json!({"path": "a.rs"}))), tool("t2", ToolInput::Object(json!({"whole": true}))));
    assert_eq!(
        deltas,
        [
            Delta::Thinking("hm".into()),
            Delta::Text("I'll ".into()),
            Delta::Text("look.".into()),
            Delta::ToolCall(one.clone()),
            Delta::ToolCall(two.clone()),
        ]
    );
    let reply = Reply {
        content: vec![
            Block::Thinking { text: "hm".into(), opaque: Some(json!({"signature": "sig"})) },
            Block::Opaque { value: json!({"type": "redacted_thinking", "data": "x"}) },
            Block::Text { text: "I'll look.".into() },
            Block::ToolUse(one),
            Block::ToolUse(two),
        ],
        stop: StopReason::ToolUse,
        usage: Some(Usage {
            input_tokens: 115,
            output_tokens: 42,
            cached_tokens: 100,
            cache_write_tokens: 5,
            ..Usage::default()
        }),
        model: "claude-x".into(),
        lacks_end: false,
    };
    assert_eq!(end, Ok(Some(reply)));
}

#[test]
fn a_call_that_the_output_limit_cut_is_malformed_and_the_reply_says_why() {
    let (_, end) = run(&[
        START.into(),
        begin(0, r#"{"type":"tool_use","id":"t","name":"read","input":{}}"#),
        piece(0, r#"{"type":"input_json_delta","partial_json":"{\"path\": \"a"}"#),
        close(0),
        note("max_tokens"),
        STOP.into(),
    ]);
    let reply = end.unwrap().unwrap();
    assert_eq!(reply.stop, StopReason::OutputLimit);
    assert!(matches!(reply.tool_calls().next().unwrap().input, ToolInput::Malformed { .. }));
}

#[test]
fn every_stop_reason_is_known() {
    let reasons = [
        ("end_turn", StopReason::EndTurn),
        ("stop_sequence", StopReason::EndTurn),
        ("tool_use", StopReason::ToolUse),
        ("max_tokens", StopReason::OutputLimit),
        ("model_context_window_exceeded", StopReason::OutputLimit),
        ("refusal", StopReason::Refusal),
        ("pause_turn", StopReason::Pause),
    ];
    let found = reasons.map(|(reason, _)| run(&[START.into(), note(reason), STOP.into()]).1.unwrap().unwrap().stop);
    assert_eq!(found, reasons.map(|(_, stop)| stop));
}

#[test]
fn what_breaks_the_order_is_a_protocol_fault() {
    let text = || begin(0, r#"{"type":"text","text":""}"#);
    let cases: [(&str, Vec<String>); 15] = [
        ("two starts", vec![START.into(), START.into()]),
        ("no start", vec![text()]),
        ("a stop before the start", vec![STOP.into()]),
        ("index skipped", vec![START.into(), begin(1, r#"{"type":"text"}"#)]),
        ("block inside a block", vec![START.into(), text(), begin(1, r#"{"type":"text"}"#)]),
        ("piece of a block never begun", vec![START.into(), piece(0, r#"{"type":"text_delta","text":"x"}"#)]),
        (
            "piece of a closed block",
            vec![START.into(), text(), close(0), piece(0, r#"{"type":"text_delta","text":"x"}"#)],
        ),
        ("piece of another block", vec![START.into(), text(), piece(1, r#"{"type":"text_delta","text":"x"}"#)]),
        (
            "piece of another type",
            vec![START.into(), text(), piece(0, r#"{"type":"input_json_delta","partial_json":"x"}"#)],
        ),
        (
            "text of a block that has none",
            vec![START.into(), begin(0, r#"{"type":"texts"}"#), piece(0, r#"{"type":"text_delta","text":"x"}"#)],
        ),
        ("stop twice", vec![START.into(), text(), close(0), close(0)]),
        ("end inside a block", vec![START.into(), text(), note("end_turn"), STOP.into()]),
        ("end without a reason", vec![START.into(), STOP.into()]),
        ("an unknown reason", vec![START.into(), note("boredom")]),
        ("not JSON", vec![START.into(), r#"{"type":"ping""#.into()]),
    ];
    for (name, events) in cases {
        assert_eq!(run(&events).1.unwrap_err().fault, ModelErrorKind::Protocol, "{name}");
    }
}

#[test]
fn an_error_event_is_judged_by_its_type() {
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    assert_eq!(
        run(&[START.into(), error.into()]).1.unwrap_err(),
        ModelError::new(ModelErrorKind::Busy, "the stream reports: overloaded_error Overloaded")
    );
}

#[test]
fn usage_that_cannot_be_true_is_unknown() {
    let start = r#"{"type":"message_start","message":{"model":"m","usage":{"input_tokens":-4,"output_tokens":1}}}"#;
    assert_eq!(run(&[start.into(), note("end_turn"), STOP.into()]).1.unwrap().unwrap().usage, None);
}
