//! The translation of a conversation with tools into plain text, and of a text answer into calls.
//!
//! Each message is translated independently, so a longer conversation begins with the same text as
//! a shorter one.

use super::splitter::{CLOSE, OPEN, TextPiece, TextSplitter};
use crate::{
    chat::{Block, Message, Reply, Role, StopReason, ToolCall, ToolInput, ToolResult, ToolSpec},
    provider::ModelRequest,
};
use serde_json::Value;
use std::fmt::Write as _;

const RULES: &str =
    "You have tools. To call a tool, write a block of exactly this form, with each fence on a separate line:";
const MORE_RULES: &str = "Put one JSON object with `name` and `arguments` in the block, and nothing else. \
    You may write several blocks. Write nothing after the last block: the results come in the next message. \
    When you need no more tools, answer without a block.";

/// Returns the request without tools; the system prompt describes them instead.
pub(super) fn request(request: &ModelRequest) -> ModelRequest {
    let mut system = request.system.clone();
    if !request.tools.is_empty() {
        let example =
            written("the-tool", &Value::Object([("argument".to_owned(), "value".into())].into_iter().collect()));
        let _never_fails = write!(system, "\n\n{RULES}\n\n{example}\n\n{MORE_RULES}\n\nThe tools:\n");
        for ToolSpec { name, description, schema } in request.tools.iter() {
            let _never_fails = write!(system, "\n`{name}`: {description} Arguments (JSON Schema): {schema}\n");
        }
    }
    ModelRequest {
        system: system.trim().to_owned(),
        messages: request.messages.iter().map(message).collect(),
        tools: [].into(),
        turn: request.turn,
        max_output: request.max_output,
    }
}

/// Returns the answer with the calls extracted from its text.
pub(super) fn reply(reply: Reply, turn: u64) -> Reply {
    let (mut splitter, mut content) = (TextSplitter::new(turn), Vec::new());
    for block in reply.content {
        match block {
            Block::Text { text } => splitter.push(&text).into_iter().for_each(|piece| put(piece, &mut content)),
            block => content.push(block),
        }
    }
    splitter.finish().into_iter().for_each(|piece| put(piece, &mut content));
    let calls = content.iter().any(|block| matches!(block, Block::ToolUse(_)));
    let stop = if calls && reply.stop == StopReason::EndTurn { StopReason::ToolUse } else { reply.stop };
    Reply { content, stop, ..reply }
}

fn put(piece: TextPiece, content: &mut Vec<Block>) {
    match (piece, content.last_mut()) {
        (TextPiece::Text(more), Some(Block::Text { text })) => text.push_str(&more),
        (TextPiece::Text(text), _) => content.push(Block::Text { text }),
        (TextPiece::Call(call), _) => content.push(Block::ToolUse(call)),
    }
}

/// Returns a message with its calls and results as text. Other blocks stay unchanged.
fn message(message: &Message) -> Message {
    let (mut content, mut said) = (Vec::new(), Vec::new());
    for block in &message.content {
        match block {
            Block::Text { text } => said.push(text.clone()),
            Block::ToolUse(call) => said.push(call_text(call)),
            Block::ToolResult(ToolResult { id, content: told, is_error, images }) => {
                let what = if *is_error { "failed" } else { "returned" };
                said.push(format!("The call `{id}` {what}:\n{told}"));
                content.extend(images.iter().cloned().map(Block::Image));
            }
            Block::Thinking { .. } | Block::Image(_) | Block::Opaque { .. } => content.push(block.clone()),
        }
    }
    if !said.is_empty() {
        let text = Block::Text { text: said.join(if message.role == Role::User { "\n\n" } else { "\n" }) };
        // In a model's message the text follows the thoughts. In a user message the text precedes
        // the images that it describes.
        let place = if message.role == Role::User { 0 } else { content.len() };
        content.insert(place, text);
    }
    Message { role: message.role, content }
}

fn call_text(call: &ToolCall) -> String {
    match &call.input {
        ToolInput::Object(arguments) => written(&call.name, arguments),
        ToolInput::Malformed { text, .. } => format!("{OPEN}\n{text}\n{CLOSE}"),
    }
}

fn written(name: &str, arguments: &Value) -> String {
    format!("{OPEN}\n{{\"name\": {}, \"arguments\": {arguments}}}\n{CLOSE}", Value::from(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::Image;
    use serde_json::json;

    #[test]
    fn calls_and_results_become_text_that_reads_back_as_the_same_calls() {
        let call = ToolCall { id: "call_1_1".into(), name: "read".into(), input: ToolInput::Object(json!({"p": 1})) };
        let image = Image::new("image/png", b"png");
        let shown = ToolResult { images: vec![image.clone()], ..ToolResult::text("call_1_1", "a.png", false) };
        let said = vec![Block::Text { text: "I look.".into() }, Block::ToolUse(call)];
        let thought = Block::Thinking { text: "hm".into(), opaque: None };
        let messages = vec![
            Message::user("go"),
            Message::assistant([vec![thought.clone()], said.clone()].concat()),
            Message {
                role: Role::User,
                content: vec![Block::ToolResult(shown), Block::ToolResult(ToolResult::text("call_1_2", "no", true))],
            },
        ];
        let asked = ModelRequest {
            system: "be good".into(),
            messages: messages.into(),
            tools: [].into(),
            turn: 1,
            max_output: None,
        };
        let text = |text: &str| Block::Text { text: text.into() };
        let written = text("I look.\n```tool-call\n{\"name\": \"read\", \"arguments\": {\"p\":1}}\n```");
        let plain = request(&asked);
        assert_eq!(
            plain.messages.to_vec(),
            [
                Message::user("go"),
                Message::assistant(vec![thought, written.clone()]),
                Message {
                    role: Role::User,
                    content: vec![
                        text("The call `call_1_1` returned:\na.png\n\nThe call `call_1_2` failed:\nno"),
                        Block::Image(image)
                    ],
                },
            ]
        );
        let answer = Reply {
            content: vec![written],
            stop: StopReason::EndTurn,
            usage: None,
            model: "m".into(),
            lacks_end: false,
        };
        let back = reply(answer, 1);
        assert_eq!(back.content[1], said[1]);
        assert_eq!((back.stop, back.text().as_str()), (StopReason::ToolUse, "I look.\n"));
    }

    #[test]
    fn the_tools_stand_in_the_system_prompt() {
        let tool = ToolSpec { name: "read".into(), description: "Read.".into(), schema: json!({"type": "object"}) };
        let asked = ModelRequest {
            system: "be good".into(),
            messages: [].into(),
            tools: [tool].into(),
            turn: 1,
            max_output: None,
        };
        let plain = request(&asked);
        assert!(plain.tools.is_empty());
        assert!(plain.system.starts_with("be good\n\nYou have tools."), "{}", plain.system);
        assert!(
            plain.system.ends_with("`read`: Read. Arguments (JSON Schema): {\"type\":\"object\"}"),
            "{}",
            plain.system
        );
    }

    #[test]
    fn a_cut_answer_stays_one_and_its_open_call_is_malformed() {
        let content = vec![Block::Text { text: "```tool-call\n{\"name\": \"re".into() }];
        let cut = reply(
            Reply { content, stop: StopReason::OutputLimit, usage: None, model: "m".into(), lacks_end: false },
            1,
        );
        assert_eq!(cut.stop, StopReason::OutputLimit);
        assert!(matches!(cut.tool_calls().next().unwrap().input, ToolInput::Malformed { .. }));
    }
}
