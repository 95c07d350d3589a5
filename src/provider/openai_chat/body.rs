//! A request in the words of Chat Completions. Reasoning is not sent back: the format has no place for it.

use crate::{
    chat::{Block, Message, Role, ToolSpec, text_of},
    provider::{
        Request,
        codec::{wire_input, wire_name},
    },
};
use serde_json::{Value, json};

/// The whole body.
pub(super) fn body(model: &str, max_output_tokens: Option<u64>, request: &Request) -> Value {
    let mut messages = Vec::new();
    if !request.system.trim().is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    for message in request.messages.iter() {
        match message.role {
            Role::User => user(message, &mut messages),
            Role::Assistant => messages.extend(assistant(message)),
        }
    }
    let mut body = json!({
        "model": model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    // Only on demand: older servers know the field by another name, and some refuse it.
    if let Some(tokens) = max_output_tokens {
        body["max_completion_tokens"] = tokens.into();
    }
    body
}

fn tool(tool: &ToolSpec) -> Value {
    let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.schema});
    json!({"type": "function", "function": function})
}

/// Tool results are messages of their own, and come right after the calls; what else the user says follows.
fn user(message: &Message, messages: &mut Vec<Value>) {
    let mut said = Vec::new();
    for block in &message.content {
        match block {
            Block::ToolResult(result) => {
                // The format has no flag for a failed call, so the text says it.
                let mark = if result.is_error { "error: " } else { "" };
                let content = format!("{mark}{}", result.content);
                messages.push(json!({"role": "tool", "tool_call_id": result.id, "content": content}));
            }
            Block::Text { text } => said.push(text.as_str()),
            Block::Thinking { .. } | Block::ToolUse(_) | Block::Opaque { .. } => {}
        }
    }
    if !said.is_empty() {
        messages.push(json!({"role": "user", "content": said.join("\n\n")}));
    }
}

/// What the model said, unless nothing of it can be sent.
fn assistant(message: &Message) -> Option<Value> {
    let text = text_of(&message.content);
    let mut calls = Vec::new();
    for block in &message.content {
        if let Block::ToolUse(call) = block {
            let function = json!({"name": wire_name(&call.name), "arguments": wire_input(&call.input).to_string()});
            calls.push(json!({"id": call.id, "type": "function", "function": function}));
        }
    }
    match (text.is_empty(), calls.is_empty()) {
        (true, true) => None,
        (true, false) => Some(json!({"role": "assistant", "content": null, "tool_calls": calls})),
        (false, true) => Some(json!({"role": "assistant", "content": text})),
        (false, false) => Some(json!({"role": "assistant", "content": text, "tool_calls": calls})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{ToolCall, ToolInput, ToolResult};

    #[test]
    fn a_conversation_is_translated_whole() {
        let call = |id: &str, input| Block::ToolUse(ToolCall { id: id.into(), name: "read".into(), input });
        let request = Request {
            system: "be good".into(),
            messages: [
                Message::user("do it"),
                Message::assistant(vec![
                    Block::Thinking { text: "hm".into(), opaque: None },
                    call("c1", ToolInput::Object(json!({"p": 1}))),
                    call("c2", ToolInput::parse("{")),
                ]),
                Message {
                    role: Role::User,
                    content: vec![
                        Block::Text { text: "note".into() },
                        Block::ToolResult(ToolResult { id: "c1".into(), content: "ok".into(), is_error: false }),
                        Block::ToolResult(ToolResult { id: "c2".into(), content: "no".into(), is_error: true }),
                        Block::Text { text: "more".into() },
                    ],
                },
                Message::assistant(vec![Block::Thinking { text: "only this".into(), opaque: None }]),
                Message::assistant(vec![Block::Text { text: "done".into() }]),
            ]
            .into(),
            tools: [ToolSpec { name: "read".into(), description: "d".into(), schema: json!({"type": "object"}) }]
                .into(),
            turn: 1,
        };
        let called = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": arguments}});
        assert_eq!(
            body("m", Some(9), &request),
            json!({
                "model": "m", "stream": true, "stream_options": {"include_usage": true}, "max_completion_tokens": 9,
                "tools": [{"type": "function", "function": {"name": "read", "description": "d", "parameters": {"type": "object"}}}],
                "messages": [
                    {"role": "system", "content": "be good"},
                    {"role": "user", "content": "do it"},
                    {"role": "assistant", "content": null, "tool_calls": [called("c1", r#"{"p":1}"#), called("c2", r#"{"unparsed":"{"}"#)]},
                    {"role": "tool", "tool_call_id": "c1", "content": "ok"},
                    {"role": "tool", "tool_call_id": "c2", "content": "error: no"},
                    {"role": "user", "content": "note\n\nmore"},
                    {"role": "assistant", "content": "done"},
                ],
            })
        );
    }
}
