//! Valid streams of each wire format that cover all its features.

use fledge::provider::WireFormat;
use serde_json::{Value, json};

pub(crate) const KINDS: [WireFormat; 4] =
    [WireFormat::Anthropic, WireFormat::OpenAi, WireFormat::OpenAiResponses, WireFormat::Ollama];

/// Returns some valid streams.
pub(crate) fn of(kind: &WireFormat) -> Vec<Vec<u8>> {
    match kind {
        WireFormat::Anthropic => vec![events(&anthropic(true)), events(&anthropic(false))],
        WireFormat::OpenAi => {
            [true, false].map(|calls| [events(&chat(calls)), b"data: [DONE]\n\n".to_vec()].concat()).into()
        }
        WireFormat::OpenAiResponses => vec![events(&responses(true)), events(&responses(false))],
        WireFormat::Ollama => [true, false]
            .map(|calls| ollama(calls).iter().flat_map(|line| format!("{line}\n").into_bytes()).collect())
            .into(),
        WireFormat::Cassette { .. } => Vec::new(),
    }
}

fn events(values: &[Value]) -> Vec<u8> {
    let event = |value: &Value| match value["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {value}\n\n"),
        None => format!("data: {value}\n\n"),
    };
    values.iter().map(event).collect::<String>().into_bytes()
}

fn anthropic(calls: bool) -> Vec<Value> {
    let begin =
        |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let piece = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let close = |index: u64| json!({"type": "content_block_stop", "index": index});
    let mut all = vec![
        json!({"type": "message_start", "message": {"model": "claude", "usage": {"input_tokens": 9, "output_tokens": 1}}}),
        json!({"type": "ping"}),
        begin(0, json!({"type": "thinking", "thinking": ""})),
        piece(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        piece(0, json!({"type": "signature_delta", "signature": "sig"})),
        close(0),
        begin(1, json!({"type": "text", "text": ""})),
        piece(1, json!({"type": "text_delta", "text": "I \"look\" é"})),
        piece(1, json!({"type": "text_delta", "text": " 🦀.\n"})),
        close(1),
    ];
    if calls {
        all.extend([
            begin(2, json!({"type": "tool_use", "id": "t1", "name": "read", "input": {}})),
            piece(2, json!({"type": "input_json_delta", "partial_json": "{\"path\":"})),
            piece(2, json!({"type": "input_json_delta", "partial_json": "\"a.rs\"}"})),
            close(2),
        ]);
    }
    let reason = if calls { "tool_use" } else { "end_turn" };
    all.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 20}}));
    all.push(json!({"type": "message_stop"}));
    all
}

fn chat(calls: bool) -> Vec<Value> {
    let chunk =
        |delta: Value| json!({"model": "gpt", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let mut all = vec![
        chunk(json!({"role": "assistant", "content": ""})),
        chunk(json!({"reasoning_content": "hm"})),
        chunk(json!({"content": "I \"look\" é"})),
        chunk(json!({"content": " 🦀.\n"})),
    ];
    if calls {
        let piece = |index: u64, id: Value, arguments: &str| {
            chunk(
                json!({"tool_calls": [{"index": index, "id": id, "function": {"name": "read", "arguments": arguments}}]}),
            )
        };
        all.extend([
            piece(0, json!("c1"), "{\"path\":"),
            piece(0, Value::Null, "\"a.rs\"}"),
            piece(1, json!("c2"), "{\"path\": \"b.rs\"}"),
        ]);
    }
    let reason = if calls { "tool_calls" } else { "stop" };
    all.push(json!({"model": "gpt", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}));
    all.push(json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}));
    all
}

fn responses(calls: bool) -> Vec<Value> {
    let begin =
        |index: u64, item: Value| json!({"type": "response.output_item.added", "output_index": index, "item": item});
    let piece = |kind: &str, index: u64, delta: &str| json!({"type": format!("response.{kind}.delta"), "output_index": index, "delta": delta});
    let close =
        |index: u64, item: Value| json!({"type": "response.output_item.done", "output_index": index, "item": item});
    let thought = json!({"type": "reasoning", "id": "rs", "encrypted_content": "x", "summary": [{"type": "summary_text", "text": "hm"}]});
    let said = json!({"type": "message", "content": [{"type": "output_text", "text": "I \"look\" é 🦀.\n"}]});
    let mut all = vec![
        json!({"type": "response.created", "response": {"model": "gpt"}}),
        begin(0, json!({"type": "reasoning", "id": "rs", "summary": []})),
        piece("reasoning_summary_text", 0, "hm"),
        close(0, thought),
        begin(1, json!({"type": "message", "content": []})),
        piece("output_text", 1, "I \"look\" é"),
        piece("output_text", 1, " 🦀.\n"),
        close(1, said),
    ];
    if calls {
        let call =
            |arguments: &str| json!({"type": "function_call", "call_id": "c1", "name": "read", "arguments": arguments});
        all.extend([
            begin(2, call("")),
            piece("function_call_arguments", 2, "{\"path\":"),
            piece("function_call_arguments", 2, "\"a.rs\"}"),
            close(2, call("{\"path\":\"a.rs\"}")),
        ]);
    }
    let usage = json!({"input_tokens": 9, "output_tokens": 2});
    all.push(match calls {
        true => {
            json!({"type": "response.completed", "response": {"model": "gpt", "status": "completed", "usage": usage}})
        }
        false => {
            json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}})
        }
    });
    all
}

fn ollama(calls: bool) -> Vec<Value> {
    let piece = |message: Value| json!({"model": "qwen", "message": message, "done": false});
    let mut all = vec![
        piece(json!({"role": "assistant", "content": "", "thinking": "hm"})),
        piece(json!({"role": "assistant", "content": "I \"look\" é"})),
        piece(json!({"role": "assistant", "content": " 🦀.\n"})),
    ];
    if calls {
        let call = |path: &str| json!({"function": {"name": "read", "arguments": {"path": path}}});
        all.push(piece(json!({"content": "", "tool_calls": [call("a.rs"), call("b.rs")]})));
    }
    all.push(json!({"model": "qwen", "message": {"content": ""}, "done": true, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 2}));
    all
}
