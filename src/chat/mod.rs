//! The conversation as fledge keeps it: provider-neutral messages, tool calls and results, and what a model answered.
//!
//! Providers translate to and from their wire formats. What a provider must get back unchanged (signatures, encrypted
//! reasoning) is kept as opaque data.

mod fault;
mod image;
mod outcome;
mod price;
mod strict;
mod usage;

pub use fault::{ModelError, ModelFault, Spent};
pub use image::Image;
pub use outcome::{ChangeKind, Detail, FileChange, ToolOutcome};
pub use price::{Price, money};
pub use strict::strictly;
pub use usage::{ModelUsage, Usage};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who speaks. The system prompt is not a message: it stands beside the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The task, the feedback of the gate, and tool results.
    User,
    /// The model.
    Assistant,
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order; never empty.
    pub content: Vec<Block>,
}

impl Message {
    /// A user message of one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, content: vec![Block::Text { text: text.into() }] }
    }

    /// A message of the model.
    pub fn assistant(content: Vec<Block>) -> Self {
        Self { role: Role::Assistant, content }
    }
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// The model's reasoning, with what its provider wants back.
    Thinking {
        /// The readable part; empty when the provider hides it.
        text: String,
        /// The provider's own data (Anthropic's signature), sent back as it came.
        opaque: Option<Value>,
    },
    /// A picture that the user shows.
    Image(Image),
    /// A tool call that the model asks for.
    ToolUse(ToolCall),
    /// The result of one tool call.
    ToolResult(ToolResult),
    /// A block that only its provider understands, sent back as it came.
    Opaque {
        /// The block, in the provider's own form.
        value: Value,
    },
}

/// A tool call as the model asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's name for the call; results refer to it.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub input: ToolInput,
}

/// The arguments of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolInput {
    /// A JSON object, parsed strictly.
    Object(Value),
    /// What came was not a JSON object.
    Malformed {
        /// The text as it came, cut to a few hundred bytes.
        text: String,
        /// What is wrong with it.
        error: String,
    },
}

impl ToolInput {
    /// The arguments as JSON; malformed ones as the text that came.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Object(value) => value.clone(),
            Self::Malformed { text, .. } => Value::String(text.clone()),
        }
    }

    /// Parses the arguments text of a call: an empty text is an empty object (providers send it so for tools without
    /// parameters), anything but one JSON object, every key once, is
    /// malformed.
    pub fn parse(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::Object(Value::Object(serde_json::Map::new()));
        }
        match strictly(text) {
            Ok(value) if !is_shallow(&value) => Self::malformed(text, format!("nested deeper than {MAX_DEPTH} levels")),
            Ok(value @ Value::Object(_)) => Self::Object(value),
            Ok(other) => Self::malformed(text, format!("expected a JSON object, found {}", kind_of(&other))),
            Err(error) => Self::malformed(text, error.to_string()),
        }
    }

    fn malformed(text: &str, error: String) -> Self {
        Self::Malformed { text: text.chars().take(300).collect(), error }
    }
}

/// The deepest nesting that a model's JSON may have: well below what a journal's reader takes, so that nothing can be
/// written that cannot be read back.
const MAX_DEPTH: usize = 64;

/// Whether a JSON value from outside is nested no deeper than the journal allows.
pub fn is_shallow(value: &Value) -> bool {
    fn fits(value: &Value, left: usize) -> bool {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
            Value::Array(items) => left > 0 && items.iter().all(|item| fits(item, left - 1)),
            Value::Object(fields) => left > 0 && fields.values().all(|item| fits(item, left - 1)),
        }
    }
    fits(value, MAX_DEPTH)
}

/// What kind of JSON value this is, as a message names it.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The result of one tool call, as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call's id.
    pub id: String,
    /// The text; bounded.
    pub content: String,
    /// Whether the call failed.
    pub is_error: bool,
    /// Pictures beside the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

impl ToolResult {
    /// A result of text alone.
    pub fn text(id: impl Into<String>, content: impl Into<String>, is_error: bool) -> Self {
        Self { id: id.into(), content: content.into(), is_error, images: Vec::new() }
    }
}

/// What the model is told of one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The tool's name.
    pub name: String,
    /// What it does, in a sentence or two.
    pub description: String,
    /// The JSON Schema of its arguments: always an object.
    pub schema: Value,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It is done.
    EndTurn,
    /// It waits for tool results.
    ToolUse,
    /// It met its output limit (or the end of its context window) in the middle.
    OutputLimit,
    /// It refused, or a content filter cut it off.
    Refusal,
    /// The provider asks for the same conversation again, so that it can go on.
    Pause,
}

/// One whole answer of a model: a turn that ended properly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// What it said, in order.
    pub content: Vec<Block>,
    /// Why it stopped.
    pub stop: StopReason,
    /// What it cost; `None` when the provider did not say.
    pub usage: Option<Usage>,
    /// The model that answered, as the provider names it.
    pub model: String,
    /// True if the server left out the end that its protocol demands. The answer counts because it is complete without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_end: bool,
}

impl Reply {
    /// The tool calls asked for, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolUse(call) => Some(call),
            Block::Text { .. }
            | Block::Thinking { .. }
            | Block::Image(_)
            | Block::ToolResult(_)
            | Block::Opaque { .. } => None,
        })
    }

    /// The text said, its blocks joined.
    pub fn text(&self) -> String {
        text_of(&self.content)
    }
}

/// The plain text of some blocks, joined.
pub fn text_of(content: &[Block]) -> String {
    let mut joined = String::new();
    for block in content {
        if let Block::Text { text } = block {
            joined.push_str(text);
        }
    }
    joined
}

/// A piece of an answer while it streams. It decides nothing: the whole [`Reply`] does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delta {
    /// Some text.
    Text(String),
    /// Some reasoning.
    Thinking(String),
    /// A tool call whose arguments are complete. Every provider sends exactly one for each call of the reply.
    ToolCall(ToolCall),
    /// What the call has used so far. The first one says that the request is on its way, so that the call may cost something; those of the
    /// same call that follow take its place.
    Spent(Spent),
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn empty_arguments_are_an_empty_object() {
        assert_eq!(ToolInput::parse("  "), ToolInput::Object(json!({})));
    }

    #[test]
    fn arguments_that_are_not_an_object_are_malformed() {
        assert_eq!(
            ToolInput::parse("[1]"),
            ToolInput::Malformed { text: "[1]".into(), error: "expected a JSON object, found an array".into() }
        );
    }

    #[test]
    fn half_an_object_is_malformed() {
        assert!(matches!(ToolInput::parse("{\"path\": \"a.rs\""), ToolInput::Malformed { .. }));
    }

    #[test]
    fn arguments_are_malformed_when_nested_deeper_than_the_journal_allows() {
        let nested = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        assert!(matches!(ToolInput::parse(&nested(MAX_DEPTH)), ToolInput::Object(_)));
        assert!(matches!(ToolInput::parse(&nested(MAX_DEPTH + 1)), ToolInput::Malformed { .. }));
    }

    #[test]
    fn arguments_nested_ten_thousand_deep_are_malformed_and_do_not_overflow() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(matches!(ToolInput::parse(&format!("{{\"a\":{deep}}}")), ToolInput::Malformed { .. }));
    }
}
