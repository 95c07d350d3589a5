//! The request body of Ollama's API.
//!
//! The body forbids the server to shorten a conversation that is too long for the model, which it
//! does silently by default.

use crate::{
    chat::{Block, Image, Message, Role, ToolSpec, text_of},
    provider::{
        Effort, Endpoint, ModelRequest,
        codec::{wire_input, wire_name},
    },
};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// The mark of a thought that this API produced and accepts back.
pub(super) const THINKING: &str = "thinking";
/// The text of a message that has only images from tool results.
const SHOWN: &str = "Images from the tools:";

/// Builds the request body.
pub(super) fn body(endpoint: &Endpoint, request: &ModelRequest) -> Value {
    let mut messages = Vec::new();
    if !request.system.trim().is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    let mut names = HashMap::new();
    for message in request.messages.iter() {
        match message.role {
            Role::User => user(message, &names, &mut messages),
            Role::Assistant => messages.extend(assistant(message, &mut names)),
        }
    }
    let mut body =
        json!({"model": endpoint.model, "messages": messages, "stream": true, "truncate": false, "shift": false});
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    let limits =
        [("num_ctx", endpoint.context_window), ("num_predict", request.max_output.or(endpoint.max_output_tokens))];
    let options: Map<String, Value> =
        limits.into_iter().filter_map(|(name, limit)| Some((name.to_owned(), limit?.into()))).collect();
    if !options.is_empty() {
        body["options"] = options.into();
    }
    if let Some(effort) = endpoint.reasoning {
        body["think"] = think(&endpoint.model, effort);
    }
    body
}

/// Encodes the reasoning effort. Only the gpt-oss models accept efforts; others accept only a
/// boolean.
fn think(model: &str, effort: Effort) -> Value {
    if model.contains("gpt-oss") { effort.name().into() } else { true.into() }
}

fn tool(tool: &ToolSpec) -> Value {
    let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.schema});
    json!({"type": "function", "function": function})
}

/// Adds the messages of a user message. Each tool result becomes a message. Text and images follow
/// in one message; it includes the images of the results, because a tool message can hold only
/// text.
fn user(message: &Message, names: &HashMap<&str, String>, messages: &mut Vec<Value>) {
    let (mut texts, mut shown): (Vec<&str>, Vec<&Image>) = (Vec::new(), Vec::new());
    for block in &message.content {
        match block {
            Block::ToolResult(result) => {
                // The format has no flag for a failed call, so the text marks it.
                let mark = if result.is_error { "error: " } else { "" };
                let mut reported =
                    json!({"role": "tool", "tool_call_id": result.id, "content": format!("{mark}{}", result.content)});
                if let Some(name) = names.get(result.id.as_str()) {
                    reported["tool_name"] = name.as_str().into();
                }
                messages.push(reported);
                shown.extend(&result.images);
            }
            Block::Text { text } => texts.push(text),
            Block::Image(image) => shown.push(image),
            Block::Thinking { .. } | Block::ToolUse(_) | Block::Opaque { .. } => {}
        }
    }
    if texts.is_empty() && shown.is_empty() {
        return;
    }
    let text = if texts.is_empty() { SHOWN.to_owned() } else { texts.join("\n\n") };
    let mut reported = json!({"role": "user", "content": text});
    if !shown.is_empty() {
        reported["images"] = shown.iter().map(|image| image.data.as_str()).collect();
    }
    messages.push(reported);
}

/// Encodes a message of the model. Returns `None` if no part of it can be sent.
fn assistant<'m>(message: &'m Message, names: &mut HashMap<&'m str, String>) -> Option<Value> {
    let (text, mut calls, mut thoughts) = (text_of(&message.content), Vec::new(), String::new());
    for block in &message.content {
        match block {
            Block::ToolUse(call) => {
                let name = wire_name(&call.name);
                let function = json!({"name": name, "arguments": wire_input(&call.input)});
                calls.push(json!({"id": call.id, "function": function}));
                names.insert(&call.id, name);
            }
            Block::Thinking { text, opaque: Some(opaque) } if opaque["field"] == THINKING => thoughts.push_str(text),
            Block::Text { .. }
            | Block::Thinking { .. }
            | Block::Image(_)
            | Block::ToolResult(_)
            | Block::Opaque { .. } => {}
        }
    }
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = json!({"role": "assistant", "content": text});
    if !thoughts.is_empty() {
        message["thinking"] = thoughts.into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    Some(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        chat::{ToolCall, ToolInput, ToolResult},
        provider::WireFormat,
    };

    #[test]
    fn a_conversation_is_translated_whole() {
        let call = |id: &str, input| Block::ToolUse(ToolCall { id: id.into(), name: "read".into(), input });
        let thought = |opaque| Block::Thinking { text: "hm".into(), opaque };
        let shown = ToolResult { images: vec![Image::new("image/png", b"png")], ..ToolResult::text("c1", "ok", false) };
        let request = ModelRequest {
            system: "be good".into(),
            messages: [
                Message::user("do it"),
                Message::assistant(vec![
                    thought(Some(json!({"field": "thinking"}))),
                    thought(Some(json!({"signature": "another's"}))),
                    call("c1", ToolInput::Object(json!({"p": 1}))),
                    call("c2", ToolInput::parse("{")),
                ]),
                Message {
                    role: Role::User,
                    content: vec![
                        Block::ToolResult(shown),
                        Block::ToolResult(ToolResult::text("c2", "no", true)),
                        Block::Text { text: "note".into() },
                    ],
                },
                Message::assistant(vec![thought(None)]),
                Message::assistant(vec![Block::Text { text: "done".into() }]),
            ]
            .into(),
            tools: [ToolSpec { name: "read".into(), description: "d".into(), schema: json!({"type": "object"}) }]
                .into(),
            turn: 1,
            max_output: None,
        };
        let endpoint = Endpoint {
            max_output_tokens: Some(9),
            context_window: Some(32_768),
            reasoning: Some(Effort::Low),
            ..Endpoint::new(WireFormat::Ollama, "gpt-oss:20b")
        };
        let called =
            |id: &str, arguments: Value| json!({"id": id, "function": {"name": "read", "arguments": arguments}});
        assert_eq!(
            body(&endpoint, &request),
            json!({
                "model": "gpt-oss:20b", "stream": true, "truncate": false, "shift": false, "think": "low",
                "options": {"num_ctx": 32768, "num_predict": 9},
                "tools": [{"type": "function", "function": {"name": "read", "description": "d", "parameters": {"type": "object"}}}],
                "messages": [
                    {"role": "system", "content": "be good"},
                    {"role": "user", "content": "do it"},
                    {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [
                        called("c1", json!({"p": 1})), called("c2", json!({"unparsed": "{"})),
                    ]},
                    {"role": "tool", "tool_call_id": "c1", "tool_name": "read", "content": "ok"},
                    {"role": "tool", "tool_call_id": "c2", "tool_name": "read", "content": "error: no"},
                    {"role": "user", "content": "note", "images": ["cG5n"]},
                    {"role": "assistant", "content": "done"},
                ],
            })
        );
    }

    #[test]
    fn nothing_is_asked_for_that_is_not_known() {
        let request = ModelRequest {
            system: String::new(),
            messages: [Message::user("go")].into(),
            tools: [].into(),
            turn: 1,
            max_output: None,
        };
        let body = body(&Endpoint::new(WireFormat::Ollama, "qwen3"), &request);
        assert_eq!((body.get("options"), body.get("think"), body.get("tools")), (None, None, None));
        assert_eq!(think("qwen3", Effort::High), json!(true));
    }
}
