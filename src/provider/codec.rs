//! The interface of all wire formats over HTTP, and the rules that they share. A dialect only
//! converts data; it never waits.

use super::{DeltaSink, Endpoint, ModelRequest, Secret, framing::FramingFormat};
use crate::chat::{Block, Message, ModelError, ModelErrorKind, Reply, Spent, ToolInput, ToolResult};
use serde_json::{Map, Value};
use std::fmt;

/// One wire format.
pub(super) trait Dialect: fmt::Debug + Send + Sync {
    /// Returns the provider's name, equal to [`super::WireFormat::name`].
    fn name(&self) -> &'static str;

    /// Returns the provider's own base URL.
    fn own_base(&self) -> &'static str;

    /// Returns true if the provider's own address demands a key.
    fn wants_key(&self) -> bool {
        true
    }

    /// Returns the request path for a base URL with this path (without a trailing slash).
    fn path(&self, base: &str) -> String;

    /// Returns the headers of every request.
    fn headers(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// Returns the header that carries the key.
    fn key_header(&self, key: &Secret) -> (&'static str, String) {
        ("authorization", format!("Bearer {}", key.reveal()))
    }

    /// Builds the request body. Equal conversations give equal bytes, so the provider's cache
    /// recognizes them.
    fn body(&self, endpoint: &Endpoint, request: &ModelRequest) -> Value;

    /// Returns the way in which the answer is divided into events.
    fn form(&self) -> FramingFormat {
        FramingFormat::Events
    }

    /// Splits a non-streamed JSON answer into the events of the equivalent stream. Returns no
    /// events if the value is not an answer.
    fn events_of(&self, whole: &Value) -> Vec<String>;

    /// Creates a decoder for the answer of a turn. The turn's number makes generated ids unique
    /// across turns.
    fn decoder(&self, turn: u64) -> Box<dyn Decoder>;
}

/// A decoder from the events of one answer to a reply. It is strict: it never skips a violation of
/// the protocol, but returns an error.
pub(super) trait Decoder: fmt::Debug + Send {
    /// Decodes the data of the next event.
    fn feed(&mut self, event: &str, deltas: DeltaSink<'_>) -> Result<EventProgress, ModelError>;

    /// Returns the answer if it is complete and only the end marker of the protocol is missing.
    /// Called once, after the body ended properly: some servers leave out their last line.
    fn close(&mut self, deltas: DeltaSink<'_>) -> Result<Option<Reply>, ModelError> {
        let _needs_its_end_marker = deltas;
        Ok(None)
    }

    /// Returns the use of the answer so far, as far as the provider reported it.
    fn spent(&self) -> Spent;
}

/// The effect of an event on the answer.
#[derive(Debug, PartialEq)]
pub(super) enum EventProgress {
    /// No effect: a ping or an unknown event.
    Idle,
    /// The event extended the answer.
    Progress,
    /// The event ended the answer.
    Done(Box<Reply>),
}

/// Creates the error of an answer that violates the protocol.
pub(super) fn protocol(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Protocol, message)
}

/// Parses the JSON object of an event.
pub(super) fn json_of(event: &str) -> Result<Value, ModelError> {
    let value: Value =
        serde_json::from_str(event).map_err(|error| protocol(format!("an event is not JSON: {error}")))?;
    if value.is_object() { Ok(value) } else { Err(protocol("an event is not a JSON object")) }
}

/// Returns a text member of a JSON object; empty if it is missing, null or not a text.
pub(super) fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a token count of a usage object: zero if it is missing, `None` if the value is invalid
/// or implausible.
pub(super) fn count(usage: &Value, member: &str) -> Option<u64> {
    token_count(usage.get(member).unwrap_or(&Value::Null))
}

/// Like [`count`], for the member's value.
pub(super) fn token_count(value: &Value) -> Option<u64> {
    /// A number above the tokens of any single call.
    const ABSURD: u64 = 1_000_000_000;
    match value {
        Value::Null => Some(0),
        value => value.as_u64().filter(|tokens| *tokens < ABSURD),
    }
}

/// Returns a tool's name in a form that providers accept. A model may have invented a name that
/// they would refuse.
pub(super) fn wire_name(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let name: String = name.chars().take(64).map(allowed).collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

/// Returns a call's arguments for the conversation: always an object, because providers accept
/// nothing else.
pub(super) fn wire_input(input: &ToolInput) -> Value {
    match input {
        ToolInput::Object(value) => value.clone(),
        ToolInput::Malformed { text, .. } => {
            Value::Object(Map::from_iter([("unparsed".to_owned(), Value::String(text.clone()))]))
        }
    }
}

/// Replaces all images of a request with a text, for a model that does not accept images.
pub(super) fn without_images(request: &ModelRequest) -> ModelRequest {
    const UNSEEN: &str = "[an image that you cannot see]";
    let block = |block: &Block| match block {
        Block::Image(_) => Block::Text { text: UNSEEN.into() },
        Block::ToolResult(result) if !result.images.is_empty() => {
            Block::ToolResult(ToolResult::text(&result.id, format!("{}\n{UNSEEN}", result.content), result.is_error))
        }
        Block::Text { .. }
        | Block::Thinking { .. }
        | Block::ToolUse(_)
        | Block::ToolResult(_)
        | Block::Opaque { .. } => block.clone(),
    };
    let message =
        |message: &Message| Message { role: message.role, content: message.content.iter().map(block).collect() };
    ModelRequest { messages: request.messages.iter().map(message).collect(), ..request.clone() }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{
        chat::{Delta, Image, Role, ToolCall, ToolSpec},
        provider::{Effort, WireFormat},
    };
    use serde_json::json;
    use std::sync::Mutex;

    /// Feeds events to a decoder until the answer ends or fails. Returns the streamed deltas and
    /// the end: `Ok(None)` if the answer did not end.
    pub(crate) fn decode<S: AsRef<str>>(
        decoder: &mut dyn Decoder,
        events: &[S],
    ) -> (Vec<Delta>, Result<Option<Reply>, ModelError>) {
        let streamed = Mutex::new(Vec::new());
        let sink = |delta| streamed.lock().unwrap().push(delta);
        let mut end = Ok(None);
        for data in events {
            match decoder.feed(data.as_ref(), &sink) {
                Ok(EventProgress::Idle | EventProgress::Progress) => continue,
                Ok(EventProgress::Done(reply)) => end = Ok(Some(*reply)),
                Err(error) => end = Err(error),
            }
            break;
        }
        (streamed.into_inner().unwrap(), end)
    }

    #[test]
    fn counts_that_cannot_be_true_are_unknown() {
        let usage = json!({"a": 7, "b": -1, "c": 1e300, "d": null, "e": "9", "f": 4_000_000_000_u64});
        let counts = ["a", "b", "c", "d", "e", "f", "g"].map(|member| count(&usage, member));
        assert_eq!(counts, [Some(7), None, None, Some(0), None, None, Some(0)]);
    }

    #[test]
    fn a_name_that_providers_would_refuse_is_mended() {
        assert_eq!(["files-read", "", "rm -rf é"].map(wire_name), ["files-read", "_", "rm_-rf__"]);
    }

    /// Creates a conversation of some turns with all kinds of blocks.
    fn conversation(turns: usize) -> ModelRequest {
        let call = |id: String| {
            Block::ToolUse(ToolCall { id, name: "read".into(), input: ToolInput::parse("{\"b\":1,\"a\":2}") })
        };
        let thought = |opaque| Block::Thinking { text: "hm".into(), opaque: Some(opaque) };
        let mut messages = vec![Message::user("go")];
        for turn in 0..turns {
            messages.push(Message::assistant(vec![
                thought(json!({"signature": "s"})),
                thought(json!({"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"})),
                thought(json!({"field": "reasoning_content"})),
                thought(json!({"field": "thinking"})),
                Block::Text { text: format!("turn {turn}") },
                call(format!("c{turn}")),
            ]));
            let images = vec![Image::new("image/png", b"png")];
            let result = ToolResult { images, ..ToolResult::text(format!("c{turn}"), "ok", turn % 2 == 1) };
            messages.push(Message { role: Role::User, content: vec![Block::ToolResult(result)] });
        }
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
    fn a_model_without_eyes_is_told_that_there_is_a_picture() {
        let shown = Image::new("image/png", b"png");
        let result = ToolResult { images: vec![shown.clone()], ..ToolResult::text("c", "a.png", false) };
        let message = |content| Message { role: Role::User, content };
        let mut request = conversation(0);
        request.messages = [message(vec![Block::ToolResult(result), Block::Image(shown)])].into();
        let unseen = "[an image that you cannot see]";
        let reported = Block::ToolResult(ToolResult::text("c", format!("a.png\n{unseen}"), false));
        assert_eq!(*without_images(&request).messages, [message(vec![reported, Block::Text { text: unseen.into() }])]);
    }

    #[test]
    fn what_is_sent_of_a_turn_is_the_beginning_of_what_is_sent_of_the_next() {
        let dialects: [(WireFormat, &dyn Dialect, &str); 4] = [
            (WireFormat::Anthropic, &crate::provider::anthropic::AnthropicMessages, "messages"),
            (WireFormat::OpenAi, &crate::provider::openai_chat::ChatCompletions, "messages"),
            (WireFormat::OpenAiResponses, &crate::provider::openai_responses::Responses, "input"),
            (WireFormat::Ollama, &crate::provider::ollama::OllamaChat, "messages"),
        ];
        for (kind, dialect, member) in dialects {
            let base_url = Some("http://127.0.0.1".into());
            let endpoint = Endpoint { base_url, reasoning: Some(Effort::High), ..Endpoint::new(kind, "m") };
            // The marks for Anthropic's cache move from turn to turn, and are not part of the
            // cached text.
            let parts = |turns| {
                let mut body = dialect.body(&endpoint, &conversation(turns));
                let messages = body[member].take().to_string().replace(r#""cache_control":{"type":"ephemeral"},"#, "");
                (messages.trim_end_matches(']').to_owned(), body.to_string())
            };
            for turns in 0..4 {
                let ((short, rest), (long, same)) = (parts(turns), parts(turns + 1));
                assert!(long.starts_with(&short) && long.len() > short.len(), "{short}\n{long}");
                assert_eq!(rest, same);
            }
        }
    }
}
