//! A request in the words of the Messages API, with marks for its prompt cache.
//!
//! The cache works on prefixes in the order tools, system, messages, and takes four marks: here the last tool, the system
//! prompt, and the last two user messages. The older of these was the newest a turn ago, so its entry is found however many
//! blocks the last turn brought (by itself the API looks back only 20).

use crate::{
    chat::{Block, Message, Role, ToolResult},
    provider::{
        Request,
        codec::{wire_input, wire_name},
    },
};
use serde_json::{Value, json};

/// What one answer may have when nothing else is configured; all current models accept it.
const MAX_TOKENS: u64 = 16_384;

/// The whole body.
pub(super) fn body(model: &str, max_output_tokens: Option<u64>, request: &Request) -> Value {
    let mut messages: Vec<Value> = request.messages.iter().filter_map(message).collect();
    for message in messages.iter_mut().rev().filter(|message| message["role"] == "user").take(2) {
        mark(message["content"].as_array_mut());
    }
    let mut body = json!({
        "model": model,
        "max_tokens": max_output_tokens.unwrap_or(MAX_TOKENS),
        "stream": true,
        "messages": messages,
    });
    if !request.system.trim().is_empty() {
        let mut system = vec![json!({"type": "text", "text": request.system})];
        mark(Some(&mut system));
        body["system"] = Value::Array(system);
    }
    if !request.tools.is_empty() {
        let tool = |tool: &crate::chat::ToolSpec| json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema});
        let mut tools = request.tools.iter().map(tool).collect();
        mark(Some(&mut tools));
        body["tools"] = Value::Array(tools);
    }
    body
}

/// Marks the last of some blocks: what is up to it may be cached.
fn mark(blocks: Option<&mut Vec<Value>>) {
    if let Some(last) = blocks.and_then(|blocks| blocks.last_mut()) {
        last["cache_control"] = json!({"type": "ephemeral"});
    }
}

/// A message, unless nothing of it can be sent.
fn message(message: &Message) -> Option<Value> {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    // The API wants the results of the last turn's calls before anything else.
    let (results, others): (Vec<_>, Vec<_>) =
        message.content.iter().partition(|block| matches!(block, Block::ToolResult(_)));
    let content: Vec<Value> = results.into_iter().chain(others).filter_map(block).collect();
    (!content.is_empty()).then(|| json!({"role": role, "content": content}))
}

/// A block, unless the API would refuse it: empty text, and reasoning that is not its own.
fn block(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } => (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text})),
        Block::Thinking { text, opaque } => {
            let signature = opaque.as_ref()?.get("signature")?.as_str()?;
            Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
        }
        Block::ToolUse(call) => Some(json!({
            "type": "tool_use", "id": call.id, "name": wire_name(&call.name), "input": wire_input(&call.input),
        })),
        Block::ToolResult(ToolResult { id, content, is_error }) => Some(json!({
            "type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error,
        })),
        Block::Opaque { value } => Some(value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{ToolCall, ToolInput, ToolSpec};

    fn conversation() -> Vec<Message> {
        vec![
            Message::user("do it"),
            Message::assistant(vec![
                Block::Thinking { text: "hm".into(), opaque: Some(json!({"signature": "sig"})) },
                Block::Thinking { text: "another provider's".into(), opaque: None },
                Block::Opaque { value: json!({"type": "redacted_thinking", "data": "x"}) },
                Block::Text { text: " ".into() },
                Block::ToolUse(ToolCall {
                    id: "t1".into(),
                    name: "read".into(),
                    input: ToolInput::Object(json!({"p": 1})),
                }),
                Block::ToolUse(ToolCall { id: "t2".into(), name: "".into(), input: ToolInput::parse("{") }),
            ]),
            Message {
                role: Role::User,
                content: vec![
                    Block::Text { text: "note".into() },
                    Block::ToolResult(ToolResult { id: "t1".into(), content: "ok".into(), is_error: false }),
                    Block::ToolResult(ToolResult { id: "t2".into(), content: "no".into(), is_error: true }),
                ],
            },
        ]
    }

    fn request(messages: Vec<Message>) -> Request {
        let tool =
            |name: &str| ToolSpec { name: name.into(), description: "d".into(), schema: json!({"type": "object"}) };
        Request { system: "be good".into(), messages: messages.into(), tools: [tool("a"), tool("b")].into(), turn: 1 }
    }

    #[test]
    fn a_conversation_is_translated_whole_and_marked_for_the_cache() {
        let cached = json!({"type": "ephemeral"});
        assert_eq!(
            body("m", None, &request(conversation())),
            json!({
                "model": "m", "max_tokens": 16384, "stream": true,
                "system": [{"type": "text", "text": "be good", "cache_control": cached}],
                "tools": [
                    {"name": "a", "description": "d", "input_schema": {"type": "object"}},
                    {"name": "b", "description": "d", "input_schema": {"type": "object"}, "cache_control": cached},
                ],
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "do it", "cache_control": cached}]},
                    {"role": "assistant", "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "sig"},
                        {"type": "redacted_thinking", "data": "x"},
                        {"type": "tool_use", "id": "t1", "name": "read", "input": {"p": 1}},
                        {"type": "tool_use", "id": "t2", "name": "_", "input": {"unparsed": "{"}},
                    ]},
                    {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "t1", "content": "ok", "is_error": false},
                        {"type": "tool_result", "tool_use_id": "t2", "content": "no", "is_error": true},
                        {"type": "text", "text": "note", "cache_control": cached},
                    ]},
                ],
            })
        );
    }

    #[test]
    fn a_longer_conversation_begins_with_the_same_bytes_but_for_the_marks() {
        let bytes = |messages: Vec<Message>| {
            let body = body("m", Some(5), &request(messages));
            body["messages"].to_string().replace(r#""cache_control":{"type":"ephemeral"},"#, "")
        };
        let (short, long) = (bytes(conversation()), {
            let mut messages = conversation();
            messages.extend([Message::assistant(vec![Block::Text { text: "done?".into() }]), Message::user("no")]);
            bytes(messages)
        });
        assert!(long.starts_with(short.trim_end_matches(']')), "{short}\n{long}");
    }

    #[test]
    fn a_message_of_nothing_sendable_is_left_out() {
        assert_eq!(message(&Message::assistant(vec![Block::Text { text: "\n".into() }])), None);
    }
}
