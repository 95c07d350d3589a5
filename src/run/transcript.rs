//! Conversation of a run. It is valid at every model call: every tool use has exactly one result,
//! in order. Providers reject a conversation that breaks this rule.

use super::compaction::{self, ClearedResults};
use super::prompt;
use crate::chat::{Block, Image, Message, Role, ToolInput, ToolResult, ToolSpec, text_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The conversation, and the ids used by its tool calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Transcript {
    messages: Vec<Message>,
    ids: BTreeSet<String>,
    bytes: usize,
}

impl Transcript {
    /// Creates a conversation from its first messages.
    pub(super) fn start(messages: Vec<Message>) -> Self {
        let mut transcript = Self::default();
        for message in messages {
            transcript.push(message);
        }
        transcript
    }

    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the length of the first `upto` messages in bytes.
    pub(super) fn bytes_upto(&self, upto: usize) -> usize {
        self.messages.iter().take(upto).map(|message| bytes_of(&message.content)).sum()
    }

    /// Returns the length in bytes of text and arguments.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the text of the model's newest message that has any.
    pub(super) fn last_said(&self) -> Option<String> {
        let text_of = |message: &Message| {
            let text = text_of(&message.content);
            (message.role == Role::Assistant && !text.trim().is_empty()).then_some(text)
        };
        self.messages.iter().rev().find_map(text_of)
    }

    /// Returns the whole text of the model's newest answer. If the answer was cut off and
    /// continued, this includes its beginning.
    pub(super) fn said_last(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        for message in self.messages.iter().rev() {
            match message.role {
                Role::Assistant => parts.push(text_of(&message.content)),
                Role::User if text_of(&message.content) == prompt::GO_ON => {}
                Role::User => break,
            }
        }
        parts.iter().rev().map(String::as_str).collect()
    }

    pub(super) fn push(&mut self, message: Message) {
        self.bytes += bytes_of(&message.content);
        for block in &message.content {
            if let Block::ToolUse(call) = block {
                self.ids.insert(call.id.clone());
            }
        }
        self.messages.push(message);
    }

    /// Says something to the model: in the newest message if it is a user message, else in a new
    /// one.
    pub(super) fn say(&mut self, text: String) {
        self.bytes += text.len();
        match self.messages.last_mut() {
            Some(last) if last.role == Role::User => last.content.push(Block::Text { text }),
            Some(_) | None => self.messages.push(Message::user(text)),
        }
    }

    /// Adds the results of the newest turn.
    pub(super) fn answer(&mut self, results: Vec<ToolResult>) {
        self.push(Message { role: Role::User, content: results.into_iter().map(Block::ToolResult).collect() });
    }

    /// Takes an unused id for a tool call: the provider's own if it is free, else one derived from
    /// it.
    pub(super) fn take_id(&mut self, wanted: &str, turn: u64, place: usize) -> String {
        if !wanted.is_empty() && self.ids.insert(wanted.to_owned()) {
            return wanted.to_owned();
        }
        let stem = if wanted.is_empty() { "call" } else { wanted };
        let mut id = format!("{stem}_t{turn}_{place}");
        while !self.ids.insert(id.clone()) {
            id.push('_');
        }
        id
    }

    /// Replaces the content of older results with a marker; their calls keep an answer. Returns the
    /// number of results and the bytes removed.
    pub(super) fn clear_results(&mut self, keep: usize) -> ClearedResults {
        let cleared = compaction::clear(&mut self.messages, keep);
        self.bytes = self.bytes.saturating_sub(cleared.bytes);
        cleared
    }

    /// Replaces the first `upto` messages with a summary.
    pub(super) fn summarise(&mut self, upto: usize, summary: String) {
        let tail = self.messages.split_off(upto.min(self.messages.len()));
        *self = Self { ids: std::mem::take(&mut self.ids), ..Self::start(vec![Message::user(summary)]) };
        for message in tail {
            self.push(message);
        }
    }
}

/// Returns the bytes of text and arguments in some blocks.
pub(super) fn bytes_of(content: &[Block]) -> usize {
    let size = |block: &Block| match block {
        Block::Text { text } | Block::Thinking { text, .. } => text.len(),
        Block::ToolUse(call) => call.name.len() + input_bytes(&call.input),
        Block::Image(_) => Image::BYTES,
        Block::ToolResult(result) => result.content.len() + result.images.len() * Image::BYTES,
        Block::Opaque { value } => value_bytes(value),
    };
    content.iter().map(size).sum()
}

/// Returns the bytes of a tool's specification.
pub(super) fn tool_bytes(tool: &ToolSpec) -> usize {
    tool.name.len() + tool.description.len() + value_bytes(&tool.schema)
}

fn input_bytes(input: &ToolInput) -> usize {
    match input {
        ToolInput::Object(value) => value_bytes(value),
        ToolInput::Malformed { text, .. } => text.len(),
    }
}

/// Returns the approximate length of a JSON value in bytes, without serialising it.
fn value_bytes(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| value_bytes(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => fields.iter().map(|(key, item)| key.len() + value_bytes(item) + 4).sum::<usize>() + 2,
    }
}
