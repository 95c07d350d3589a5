//! The request body of Chat Completions.
//!
//! Reasoning is sent back only with tool calls, only as `reasoning_content`, and never to OpenAI's
//! own address. Servers that send that field want it back during the model's turn (DeepSeek,
//! Moonshot). OpenAI's server refuses the field.

use crate::{
    chat::{Block, Image, Message, Role, ToolSpec, text_of},
    provider::{
        Endpoint, ModelRequest,
        codec::{wire_input, wire_name},
    },
};
use serde_json::{Value, json};

/// The field of reasoning that some servers want back.
pub(super) const REASONING: &str = "reasoning_content";
/// The member of a call that is sent back unchanged, in the block after the call.
pub(super) const EXTRA: &str = "extra_content";
/// Prefixes of the OpenAI models that accept only the newer name of the token limit.
const NEWER: [&str; 5] = ["gpt-5", "gpt-6", "o1", "o3", "o4"];
/// The text of a message that has only images from tool results.
const SHOWN: &str = "Images from the tools:";

/// Builds the request body.
pub(super) fn body(endpoint: &Endpoint, request: &ModelRequest) -> Value {
    let mut messages = Vec::new();
    if !request.system.trim().is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    for message in request.messages.iter() {
        match message.role {
            Role::User => user(message, &mut messages),
            Role::Assistant => messages.extend(assistant(message, endpoint)),
        }
    }
    let mut body = json!({
        "model": endpoint.model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if let Some(tokens) = request.max_output.or(endpoint.max_output_tokens) {
        body[bound(endpoint)] = tokens.into();
    }
    if let Some(effort) = endpoint.reasoning {
        body["reasoning_effort"] = effort.name().into();
    }
    body
}

/// Returns the name of the field for the token limit. OpenAI's newer models refuse the older name,
/// and other servers refuse the newer name.
fn bound(endpoint: &Endpoint) -> &'static str {
    let model = endpoint.model.rsplit('/').next().unwrap_or_default();
    let is_own = endpoint.base_url.is_none() || NEWER.iter().any(|name| model.starts_with(name));
    if is_own { "max_completion_tokens" } else { "max_tokens" }
}

fn tool(tool: &ToolSpec) -> Value {
    let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.schema});
    json!({"type": "function", "function": function})
}

/// Adds the messages of a user message. Each tool result becomes a message, right after the calls.
/// Text and images follow in one message; it includes the images of the results, because a tool
/// message can hold only text.
fn user(message: &Message, messages: &mut Vec<Value>) {
    let (mut texts, mut shown): (Vec<&str>, Vec<&Image>) = (Vec::new(), Vec::new());
    for block in &message.content {
        match block {
            Block::ToolResult(result) => {
                // The format has no flag for a failed call, so the text marks it.
                let mark = if result.is_error { "error: " } else { "" };
                let content = format!("{mark}{}", result.content);
                messages.push(json!({"role": "tool", "tool_call_id": result.id, "content": content}));
                shown.extend(&result.images);
            }
            Block::Image(image) => shown.push(image),
            Block::Text { text } => texts.push(text.as_str()),
            Block::Thinking { .. } | Block::ToolUse(_) | Block::Opaque { .. } => {}
        }
    }
    if shown.is_empty() && !texts.is_empty() {
        messages.push(json!({"role": "user", "content": texts.join("\n\n")}));
    } else if !shown.is_empty() {
        let text = if texts.is_empty() { SHOWN.to_owned() } else { texts.join("\n\n") };
        let mut parts = vec![json!({"type": "text", "text": text})];
        parts.extend(shown.iter().map(|image| json!({"type": "image_url", "image_url": {"url": image.data_url()}})));
        messages.push(json!({"role": "user", "content": parts}));
    }
}

/// Encodes a message of the model. Returns `None` if no part of it can be sent.
fn assistant(message: &Message, endpoint: &Endpoint) -> Option<Value> {
    let text = text_of(&message.content);
    let mut calls = Vec::new();
    for (place, block) in message.content.iter().enumerate() {
        if let Block::ToolUse(call) = block {
            let function = json!({"name": wire_name(&call.name), "arguments": wire_input(&call.input).to_string()});
            let mut call_entry = json!({"id": call.id, "type": "function", "function": function});
            let own = message.content.get(place + 1).and_then(extra);
            let needed = || (calls.is_empty() && endpoint.model.contains("gemini-3")).then(unsigned);
            if let Some(extra) = own.cloned().or_else(needed) {
                call_entry[EXTRA] = extra;
            }
            calls.push(call_entry);
        }
    }
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let mut entry = json!({"role": "assistant", "content": (!text.is_empty()).then_some(text)});
    if !calls.is_empty() {
        entry["tool_calls"] = Value::Array(calls);
        if let Some(thought) = message.content.iter().find_map(wanted_thought).filter(|_| endpoint.base_url.is_some()) {
            entry[REASONING] = thought.into();
        }
    }
    Some(entry)
}

/// Returns the data that is sent back with the call before this block.
fn extra(block: &Block) -> Option<&Value> {
    match block {
        Block::Opaque { value } => value.get(EXTRA).filter(|extra| extra.is_object()),
        Block::Thinking { .. } | Block::Text { .. } | Block::Image(_) | Block::ToolUse(_) | Block::ToolResult(_) => {
            None
        }
    }
}

/// Returns a placeholder for Gemini 3's own signature. Gemini 3 demands a signature for the first
/// call of each step, and accepts the placeholder for calls of another model
/// (<https://ai.google.dev/gemini-api/docs/thought-signatures>).
fn unsigned() -> Value {
    json!({"google": {"thought_signature": "skip_thought_signature_validator"}})
}

/// Returns the text of a thought that arrived in the field that is sent back.
fn wanted_thought(block: &Block) -> Option<&str> {
    match block {
        Block::Thinking { text, opaque: Some(opaque) } if opaque["field"] == REASONING => Some(text),
        Block::Thinking { .. }
        | Block::Text { .. }
        | Block::Image(_)
        | Block::ToolUse(_)
        | Block::ToolResult(_)
        | Block::Opaque { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        chat::{ToolCall, ToolInput, ToolResult},
        provider::{Effort, WireFormat},
    };

    #[test]
    fn a_conversation_is_translated_whole() {
        let call = |id: &str, input| Block::ToolUse(ToolCall { id: id.into(), name: "read".into(), input });
        let request = ModelRequest {
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
                        Block::ToolResult(ToolResult::text("c1", "ok", false)),
                        Block::ToolResult(ToolResult::text("c2", "no", true)),
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
            max_output: None,
        };
        let called = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": arguments}});
        assert_eq!(
            body(&Endpoint { max_output_tokens: Some(9), ..Endpoint::new(WireFormat::OpenAi, "m") }, &request),
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

    fn sent(endpoint: &Endpoint, messages: Vec<Message>) -> Value {
        let request = ModelRequest {
            system: String::new(),
            messages: messages.into(),
            tools: [].into(),
            turn: 1,
            max_output: None,
        };
        body(endpoint, &request)
    }

    #[test]
    fn the_output_limit_uses_the_servers_field_name_and_a_request_may_lower_it() {
        let bounds = |base: Option<&str>, model: &str, max_output| {
            let base_url = base.map(str::to_owned);
            let endpoint =
                Endpoint { base_url, max_output_tokens: Some(9), ..Endpoint::new(WireFormat::OpenAi, model) };
            let request =
                ModelRequest { system: String::new(), messages: [].into(), tools: [].into(), turn: 1, max_output };
            let body = body(&endpoint, &request);
            ["max_completion_tokens", "max_tokens"].map(|name| body.get(name).and_then(Value::as_u64))
        };
        assert_eq!(bounds(None, "gpt-4.1", None), [Some(9), None]);
        assert_eq!(bounds(Some("https://h/v1"), "openai/gpt-5-mini", Some(7)), [Some(7), None]);
        assert_eq!(bounds(Some("https://h/v1"), "mistral-large", Some(7)), [None, Some(7)]);
    }

    #[test]
    fn pictures_come_after_the_results() {
        let image = || Image::new("image/png", b"png");
        let result = ToolResult { images: vec![image()], ..ToolResult::text("c1", "a.png", false) };
        let part = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}});
        let user = |content| Message { role: Role::User, content };
        assert_eq!(
            sent(
                &Endpoint::new(WireFormat::OpenAi, "m"),
                vec![
                    user(vec![Block::ToolResult(result)]),
                    user(vec![Block::Text { text: "see".into() }, Block::Image(image())])
                ]
            )["messages"],
            json!([
                {"role": "tool", "tool_call_id": "c1", "content": "a.png"},
                {"role": "user", "content": [{"type": "text", "text": SHOWN}, part]},
                {"role": "user", "content": [{"type": "text", "text": "see"}, part]},
            ])
        );
    }

    #[test]
    fn what_came_with_a_call_goes_back_with_it_and_gemini_takes_no_first_call_without() {
        let call = |id: &str| {
            let input = ToolInput::Object(json!({}));
            Block::ToolUse(ToolCall { id: id.into(), name: "read".into(), input })
        };
        let signed = json!({"google": {"thought_signature": "s"}});
        let own = Block::Opaque { value: json!({ (EXTRA): signed }) };
        let found = |model: &str, content: Vec<Block>| {
            let endpoint =
                Endpoint { base_url: Some("https://g/v1".into()), ..Endpoint::new(WireFormat::OpenAi, model) };
            let calls = sent(&endpoint, vec![Message::assistant(content)])["messages"][0]["tool_calls"].clone();
            calls.as_array().unwrap().iter().map(|call| call.get(EXTRA).cloned()).collect::<Vec<_>>()
        };
        assert_eq!(found("gemini-3-pro", vec![call("1"), own, call("2")]), [Some(signed), None]);
        assert_eq!(found("gemini-3-pro", vec![call("1"), call("2")]), [Some(unsigned()), None]);
        let stranger = Block::Opaque { value: json!({"type": "redacted_thinking"}) };
        assert_eq!(found("qwen3", vec![call("1"), stranger]), [None]);
    }

    #[test]
    fn reasoning_goes_back_with_its_calls_to_the_servers_that_want_it() {
        let thought = Block::Thinking { text: "hm".into(), opaque: Some(json!({"field": REASONING})) };
        let call = ToolCall { id: "c".into(), name: "read".into(), input: ToolInput::Object(json!({})) };
        let calling = Message::assistant(vec![thought.clone(), Block::ToolUse(call)]);
        let done = Message::assistant(vec![thought, Block::Text { text: "done".into() }]);
        let mut endpoint = Endpoint { reasoning: Some(Effort::High), ..Endpoint::new(WireFormat::OpenAi, "m") };
        let own = sent(&endpoint, vec![calling.clone()]);
        assert_eq!((own["messages"][0].get(REASONING), &own["reasoning_effort"]), (None, &json!("high")));
        endpoint.base_url = Some("https://elsewhere/v1".into());
        let sent = sent(&endpoint, vec![calling, done]);
        let found = [0, 1].map(|place: usize| sent["messages"][place].get(REASONING));
        assert_eq!(found, [Some(&json!("hm")), None]);
    }
}
