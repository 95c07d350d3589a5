//! The request body of the Responses API: a flat list of items in the order of the conversation.

use crate::{
    chat::{Block, Image, Message, Role, ToolResult, ToolSpec},
    provider::{
        Endpoint, ModelRequest,
        codec::{wire_input, wire_name},
    },
};
use serde_json::{Value, json};

/// Prefixes of models that do not reason. They refuse requests for encrypted reasoning.
const UNREASONING: [&str; 4] = ["gpt-3", "gpt-4", "chatgpt-", "gpt-5-chat"];

/// The member of a message that names its phase of the work. It is sent back unchanged, in the
/// block after the text.
pub(super) const PHASE: &str = "phase";

/// Builds the request body.
pub(super) fn body(endpoint: &Endpoint, request: &ModelRequest) -> Value {
    let mut items = Vec::new();
    for message in request.messages.iter() {
        match message.role {
            Role::User => user(message, &mut items),
            Role::Assistant => assistant(message, &mut items),
        }
    }
    let mut body = json!({"model": endpoint.model, "input": items, "stream": true, "store": false});
    if !request.system.trim().is_empty() {
        body["instructions"] = request.system.as_str().into();
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if let Some(tokens) = request.max_output.or(endpoint.max_output_tokens) {
        body["max_output_tokens"] = tokens.into();
    }
    if !UNREASONING.iter().any(|name| endpoint.model.starts_with(name)) {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    if let Some(effort) = endpoint.reasoning {
        body["reasoning"] = json!({"effort": effort.name(), "summary": "auto"});
    }
    body
}

/// Encodes a tool. Strict mode is off, because it demands schemas in another form than those of the
/// tools.
fn tool(tool: &ToolSpec) -> Value {
    let ToolSpec { name, description, schema } = tool;
    json!({"type": "function", "name": name, "description": description, "parameters": schema, "strict": false})
}

/// Adds the items of a user message. Each tool result becomes an item; text and images follow in
/// one message.
fn user(message: &Message, items: &mut Vec<Value>) {
    let mut said = Vec::new();
    for block in &message.content {
        match block {
            Block::ToolResult(result) => items.push(output(result)),
            Block::Text { text } => said.push(json!({"type": "input_text", "text": text})),
            Block::Image(shown) => said.push(image(shown)),
            Block::Thinking { .. } | Block::ToolUse(_) | Block::Opaque { .. } => {}
        }
    }
    if !said.is_empty() {
        items.push(json!({"type": "message", "role": "user", "content": said}));
    }
}

fn output(result: &ToolResult) -> Value {
    // The format has no flag for a failed call, so the text marks it.
    let text = format!("{}{}", if result.is_error { "error: " } else { "" }, result.content);
    let output = match result.images.as_slice() {
        [] => Value::String(text),
        images => {
            let text = (!text.is_empty()).then(|| json!({"type": "input_text", "text": text}));
            text.into_iter().chain(images.iter().map(image)).collect()
        }
    };
    json!({"type": "function_call_output", "call_id": result.id, "output": output})
}

fn image(image: &Image) -> Value {
    json!({"type": "input_image", "image_url": image.data_url(), "detail": "auto"})
}

/// Adds the items of a message of the model. Reasoning at the end is left out: the API accepts
/// reasoning only before its result.
fn assistant(message: &Message, items: &mut Vec<Value>) {
    let before = items.len();
    for (place, block) in message.content.iter().enumerate() {
        match block {
            Block::Text { text } if text.is_empty() => {}
            Block::Text { text } => {
                let content = json!([{"type": "output_text", "text": text}]);
                let mut said = json!({"type": "message", "role": "assistant", "content": content});
                if let Some(phase) = message.content.get(place + 1).and_then(phase) {
                    said[PHASE] = phase.clone();
                }
                items.push(said);
            }
            Block::ToolUse(call) => items.push(json!({
                "type": "function_call", "call_id": call.id, "name": wire_name(&call.name),
                "arguments": wire_input(&call.input).to_string(),
            })),
            Block::Thinking { opaque, .. } => items.extend(opaque.as_ref().and_then(reasoning)),
            Block::Image(_) | Block::ToolResult(_) | Block::Opaque { .. } => {}
        }
    }
    while items.len() > before && items.last().is_some_and(|item| item["type"] == "reasoning") {
        items.pop();
    }
}

/// Returns the phase of the message before this block. According to OpenAI's guides, newer models
/// perform worse if it is not sent back.
fn phase(block: &Block) -> Option<&Value> {
    match block {
        Block::Opaque { value } => value.get(PHASE).filter(|phase| phase.is_string()),
        Block::Text { .. } | Block::Thinking { .. } | Block::Image(_) | Block::ToolUse(_) | Block::ToolResult(_) => {
            None
        }
    }
}

/// Returns a reasoning item in the form that is sent back. An item without encrypted content is
/// left out, because the API would look it up, and nothing is stored there.
fn reasoning(item: &Value) -> Option<Value> {
    (item["type"] == "reasoning" && item["encrypted_content"].is_string()).then(|| {
        let kept = ["type", "id", "summary", "encrypted_content"].into_iter();
        kept.filter_map(|member| Some((member.to_owned(), item.get(member)?.clone())))
            .collect::<serde_json::Map<_, _>>()
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        chat::{ToolCall, ToolInput},
        provider::{Effort, WireFormat},
    };

    fn thought(id: &str) -> Block {
        let item =
            json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "x", "status": "completed"});
        Block::Thinking { text: "hm".into(), opaque: Some(item) }
    }

    fn sent(endpoint: &Endpoint, messages: Vec<Message>) -> Value {
        let tool = ToolSpec { name: "read".into(), description: "d".into(), schema: json!({"type": "object"}) };
        let request = ModelRequest {
            system: "be good".into(),
            messages: messages.into(),
            tools: [tool].into(),
            turn: 1,
            max_output: None,
        };
        body(endpoint, &request)
    }

    #[test]
    fn a_conversation_is_translated_whole_and_reasoning_keeps_its_place() {
        let call = |id: &str, input| Block::ToolUse(ToolCall { id: id.into(), name: "read".into(), input });
        let shown = ToolResult { images: vec![Image::new("image/png", b"png")], ..ToolResult::text("c1", "ok", false) };
        let messages = vec![
            Message {
                role: Role::User,
                content: vec![Block::Text { text: "do it".into() }, Block::Image(Image::new("image/gif", b"gif"))],
            },
            Message::assistant(vec![
                thought("r1"),
                Block::Text { text: "I look".into() },
                thought("r2"),
                call("c1", ToolInput::Object(json!({"p": 1}))),
                call("c2", ToolInput::parse("{")),
                Block::Opaque { value: json!({"type": "redacted_thinking"}) },
            ]),
            Message {
                role: Role::User,
                content: vec![
                    Block::Text { text: "note".into() },
                    Block::ToolResult(shown),
                    Block::ToolResult(ToolResult::text("c2", "no", true)),
                ],
            },
            Message::assistant(vec![Block::Text { text: "done".into() }, thought("r3")]),
            Message::assistant(vec![Block::Thinking {
                text: "another's".into(),
                opaque: Some(json!({"signature": "s"})),
            }]),
        ];
        let reasoning = |id: &str| json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "x"});
        let said = |text: &str| json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]});
        let called = |id: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": "read", "arguments": arguments});
        let picture = |url: &str| json!({"type": "input_image", "image_url": url, "detail": "auto"});
        let endpoint = Endpoint {
            max_output_tokens: Some(9),
            reasoning: Some(Effort::Medium),
            ..Endpoint::new(WireFormat::OpenAiResponses, "gpt-5")
        };
        assert_eq!(
            sent(&endpoint, messages),
            json!({
                "model": "gpt-5", "stream": true, "store": false, "include": ["reasoning.encrypted_content"], "max_output_tokens": 9,
                "reasoning": {"effort": "medium", "summary": "auto"}, "instructions": "be good",
                "tools": [{"type": "function", "name": "read", "description": "d", "parameters": {"type": "object"}, "strict": false}],
                "input": [
                    {"type": "message", "role": "user", "content": [
                        {"type": "input_text", "text": "do it"}, picture("data:image/gif;base64,Z2lm"),
                    ]},
                    reasoning("r1"), said("I look"), reasoning("r2"), called("c1", r#"{"p":1}"#), called("c2", r#"{"unparsed":"{"}"#),
                    {"type": "function_call_output", "call_id": "c1", "output": [
                        {"type": "input_text", "text": "ok"}, picture("data:image/png;base64,cG5n"),
                    ]},
                    {"type": "function_call_output", "call_id": "c2", "output": "error: no"},
                    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "note"}]},
                    said("done"),
                ],
            })
        );
    }

    #[test]
    fn the_phase_of_a_message_goes_back_with_it() {
        let said = |text: &str| Block::Text { text: text.into() };
        let phase = Block::Opaque { value: json!({"phase": "commentary"}) };
        let messages = vec![Message::user("a"), Message::assistant(vec![said("I look."), phase, said("Done.")])];
        let items = sent(&Endpoint::new(WireFormat::OpenAiResponses, "gpt-5"), messages)["input"].clone();
        let phases: Vec<Option<&Value>> = items.as_array().unwrap().iter().map(|item| item.get(PHASE)).collect();
        assert_eq!(phases, [None, Some(&json!("commentary")), None]);
    }

    #[test]
    fn a_model_that_does_not_reason_is_not_asked_for_its_reasoning() {
        let included =
            |model: &str| sent(&Endpoint::new(WireFormat::OpenAiResponses, model), Vec::new()).get("include").is_some();
        assert_eq!(
            ["gpt-4.1", "gpt-4o-mini", "gpt-5-chat-latest", "gpt-5.1", "o3"].map(included),
            [false, false, false, true, true]
        );
    }

    #[test]
    fn reasoning_that_nothing_follows_is_not_sent_back() {
        let messages = vec![Message::user("a"), Message::assistant(vec![thought("r1")]), Message::user("b")];
        let items = sent(&Endpoint::new(WireFormat::OpenAiResponses, "gpt-5"), messages)["input"].clone();
        assert_eq!(items.as_array().map(Vec::len), Some(2));
    }
}
