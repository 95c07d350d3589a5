//! The request body of the Messages API, with marks for its prompt cache.
//!
//! The cache works on prefixes in the order tools, system, messages, and accepts four marks. fledge
//! marks the last tool, the system prompt, and the last two user messages. The older of these two
//! was the newest one a turn ago. Its cache entry is therefore found no matter how many blocks the
//! last turn added; without a mark the API looks back only 20.

use super::thinking;
use crate::{
    chat::{Block, Image, Message, Role, ToolResult},
    provider::{
        Endpoint, ModelRequest,
        codec::{wire_input, wire_name},
    },
};
use serde_json::{Value, json};

/// The default limit of one answer, in tokens; all current models accept it.
const MAX_TOKENS: u64 = 16_384;

/// Builds the request body.
pub(super) fn body(endpoint: &Endpoint, request: &ModelRequest) -> Value {
    let mut messages: Vec<Value> = request.messages.iter().filter_map(message).collect();
    for message in messages.iter_mut().rev().filter(|message| message["role"] == "user").take(2) {
        mark(message["content"].as_array_mut());
    }
    let mut body = json!({
        "model": endpoint.model,
        "max_tokens": most(endpoint, request),
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
    if let Some(effort) = endpoint.reasoning {
        let stretch = endpoint.max_output_tokens.is_none() && request.max_output.is_none();
        thinking::ask(&mut body, effort, stretch, &endpoint.model, &request.messages);
    }
    body
}

/// Returns the token limit of the answer: the limit of the request, else of the configuration, else
/// a default that leaves room in a small context window.
fn most(endpoint: &Endpoint, request: &ModelRequest) -> u64 {
    let usual = endpoint.context_window.map_or(MAX_TOKENS, |window| MAX_TOKENS.min(window / 4).max(1));
    request.max_output.or(endpoint.max_output_tokens).unwrap_or(usual)
}

/// Marks the last block, so the API may cache everything up to it.
fn mark(blocks: Option<&mut Vec<Value>>) {
    if let Some(last) = blocks.and_then(|blocks| blocks.last_mut()) {
        last["cache_control"] = json!({"type": "ephemeral"});
    }
}

/// Encodes a message. Returns `None` if no part of it can be sent.
fn message(message: &Message) -> Option<Value> {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    // The API expects the results of the last turn's calls first.
    let (results, others): (Vec<_>, Vec<_>) =
        message.content.iter().partition(|block| matches!(block, Block::ToolResult(_)));
    let content: Vec<Value> = results.into_iter().chain(others).filter_map(block).collect();
    (!content.is_empty()).then(|| json!({"role": role, "content": content}))
}

/// Encodes a block. Returns `None` for blocks that the API would refuse: empty text, and reasoning
/// without its signature.
fn block(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } => (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text})),
        Block::Thinking { text, opaque } => {
            let signature = opaque.as_ref()?.get("signature")?.as_str()?;
            Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
        }
        Block::Image(shown) => Some(image(shown)),
        Block::ToolUse(call) => Some(json!({
            "type": "tool_use", "id": call.id, "name": wire_name(&call.name), "input": wire_input(&call.input),
        })),
        Block::ToolResult(ToolResult { id, content, is_error, images }) => {
            let content = match images.as_slice() {
                [] => json!(content),
                images => {
                    let text = (!content.trim().is_empty()).then(|| json!({"type": "text", "text": content}));
                    text.into_iter().chain(images.iter().map(image)).collect()
                }
            };
            Some(json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error}))
        }
        Block::Opaque { value } => value["type"].is_string().then(|| value.clone()),
    }
}

fn image(image: &Image) -> Value {
    let source = json!({"type": "base64", "media_type": image.media_type, "data": image.data});
    json!({"type": "image", "source": source})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{ToolCall, ToolInput, ToolSpec};
    use crate::provider::{Effort, WireFormat};

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
                    Block::ToolResult(ToolResult::text("t1", "ok", false)),
                    Block::ToolResult(ToolResult::text("t2", "no", true)),
                ],
            },
        ]
    }

    fn request(messages: Vec<Message>) -> ModelRequest {
        let tool =
            |name: &str| ToolSpec { name: name.into(), description: "d".into(), schema: json!({"type": "object"}) };
        ModelRequest {
            system: "be good".into(),
            messages: messages.into(),
            tools: [tool("a"), tool("b")].into(),
            turn: 1,
            max_output: None,
        }
    }

    #[test]
    fn a_conversation_is_translated_whole_and_marked_for_the_cache() {
        let cached = json!({"type": "ephemeral"});
        assert_eq!(
            body(&Endpoint::new(WireFormat::Anthropic, "m"), &request(conversation())),
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
            let body = body(&Endpoint::new(WireFormat::Anthropic, "m"), &request(messages));
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
    fn pictures_are_blocks_also_in_results() {
        let shown = Image::new("image/png", b"png");
        let result = ToolResult { images: vec![shown.clone()], ..ToolResult::text("t1", "a.png", false) };
        let content = vec![Block::Image(shown), Block::ToolResult(result)];
        let picture = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "cG5n"}});
        assert_eq!(
            message(&Message { role: Role::User, content }),
            Some(json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "is_error": false, "content": [{"type": "text", "text": "a.png"}, picture]},
                picture,
            ]}))
        );
    }

    #[test]
    fn a_model_is_asked_to_think_when_that_is_wanted() {
        let endpoint =
            Endpoint { reasoning: Some(Effort::Low), ..Endpoint::new(WireFormat::Anthropic, "claude-sonnet-4-5") };
        let body = body(&endpoint, &request(vec![Message::user("go")]));
        assert_eq!((&body["max_tokens"], &body["thinking"]["budget_tokens"]), (&json!(18_432), &json!(2048)));
    }

    #[test]
    fn blocks_of_another_provider_are_left_out() {
        assert_eq!(block(&Block::Opaque { value: json!({"item": {"type": "x"}}) }), None);
        let reasoning = json!({"type": "reasoning", "encrypted_content": "x"});
        assert_eq!(block(&Block::Thinking { text: "hm".into(), opaque: Some(reasoning) }), None);
    }

    #[test]
    fn a_message_of_nothing_sendable_is_left_out() {
        assert_eq!(message(&Message::assistant(vec![Block::Text { text: "\n".into() }])), None);
    }
}
