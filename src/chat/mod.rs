//! The provider-neutral conversation: messages, tool calls, tool results and model replies.
//!
//! Providers translate to and from their wire formats. Data that a provider must get back unchanged
//! (signatures, encrypted reasoning) is kept as opaque values.

mod error;
mod image;
mod outcome;
mod price;
mod strict;
mod usage;

pub use error::{ModelError, ModelErrorKind, Spent};
pub use image::Image;
pub use outcome::{FileChange, FileChangeKind, OutcomeDetail, ToolOutcome};
pub use price::{Price, money};
pub use strict::strictly;
pub use usage::{ModelUsage, Usage};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The author of a message. The system prompt is not a message; requests carry it separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The author of the task, the feedback of the gate, and tool results.
    User,
    /// The model.
    Assistant,
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The blocks of the message, in order; never empty.
    pub content: Vec<Block>,
}

impl Message {
    /// Creates a user message with one text block.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, content: vec![Block::Text { text: text.into() }] }
    }

    /// Creates a message of the model.
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
    /// The model's reasoning, with the data that its provider wants back.
    Thinking {
        /// The readable part; empty if the provider hides it.
        text: String,
        /// The provider's own data (such as Anthropic's signature), sent back unchanged.
        opaque: Option<Value>,
    },
    /// An image from the user.
    Image(Image),
    /// A tool call by the model.
    ToolUse(ToolCall),
    /// The result of one tool call.
    ToolResult(ToolResult),
    /// A block that only its provider understands, sent back unchanged.
    Opaque {
        /// The block, in the provider's own form.
        value: Value,
    },
}

/// A tool call by the model.
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
    /// Text that is not a JSON object.
    Malformed {
        /// The original text, cut to 300 characters.
        text: String,
        /// The reason why the text is not accepted.
        error: String,
    },
}

impl ToolInput {
    /// Returns the arguments as JSON; malformed arguments become a JSON string of the original
    /// text.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Object(value) => value.clone(),
            Self::Malformed { text, .. } => Value::String(text.clone()),
        }
    }

    /// Parses the arguments of a call.
    ///
    /// Empty text becomes an empty object, because providers send it for tools without parameters.
    /// Anything but one JSON object with unique keys becomes [`Self::Malformed`].
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

/// The deepest nesting of a model's JSON. It is well below the limit of the journal's reader, so
/// every journaled value can be read back.
const MAX_DEPTH: usize = 64;

/// Returns true if a JSON value is nested no deeper than the journal allows.
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

/// Names the kind of a JSON value for an error message.
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

/// The result of one tool call, as the model gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call's id.
    pub id: String,
    /// The text, bounded in size.
    pub content: String,
    /// True if the call failed.
    pub is_error: bool,
    /// Images sent beside the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

impl ToolResult {
    /// Creates a result without images.
    pub fn text(id: impl Into<String>, content: impl Into<String>, is_error: bool) -> Self {
        Self { id: id.into(), content: content.into(), is_error, images: Vec::new() }
    }
}

/// The description of a tool that the model gets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The tool's name.
    pub name: String,
    /// The purpose of the tool, in a sentence or two.
    pub description: String,
    /// The JSON Schema of the arguments: always an object.
    pub schema: Value,
}

/// The reason why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model finished its turn.
    EndTurn,
    /// The model waits for tool results.
    ToolUse,
    /// The answer reached the output limit or the end of the context window.
    OutputLimit,
    /// The model refused, or a content filter stopped the answer.
    Refusal,
    /// The provider asks fledge to send the conversation again so that the model can continue.
    Pause,
}

/// A complete answer of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The blocks of the answer, in order.
    pub content: Vec<Block>,
    /// The reason why the model stopped.
    pub stop: StopReason,
    /// The tokens used; `None` if the provider did not report them.
    pub usage: Option<Usage>,
    /// The model that answered, as the provider names it.
    pub model: String,
    /// True if the server left out the end marker of its protocol. The answer counts because it is
    /// complete without the marker.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_end: bool,
}

impl Reply {
    /// Returns the tool calls of the answer, in order.
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

    /// Returns the joined text of the answer.
    pub fn text(&self) -> String {
        text_of(&self.content)
    }
}

/// Joins the plain text of some blocks.
pub fn text_of(content: &[Block]) -> String {
    let mut joined = String::new();
    for block in content {
        if let Block::Text { text } = block {
            joined.push_str(text);
        }
    }
    joined
}

/// A piece of an answer while it streams. Pieces are for display only; decisions use the complete
/// [`Reply`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delta {
    /// Some text.
    Text(String),
    /// Some reasoning.
    Thinking(String),
    /// A tool call with complete arguments. Every provider sends exactly one for each call of the
    /// reply.
    ToolCall(ToolCall),
    /// The use of the call so far. The first one means that the request has been sent, so the call
    /// may cost money. Each later one of the same call replaces the one before.
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
