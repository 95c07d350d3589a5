//! What every wire format over HTTP must say of itself, and the few rules they share. A dialect knows bytes and words; it
//! never waits.

use super::{DeltaSink, Endpoint, Request, Secret, framing::Form};
use crate::chat::{Block, Message, ModelError, ModelFault, Reply, Spent, ToolInput, ToolResult};
use serde_json::{Map, Value};
use std::fmt;

/// One wire format.
pub(super) trait Dialect: fmt::Debug + Send + Sync {
    /// The provider's name, as [`super::Kind::name`] has it.
    fn name(&self) -> &'static str;

    /// The provider's own address.
    fn own_base(&self) -> &'static str;

    /// Whether the provider's own address demands a key.
    fn wants_key(&self) -> bool {
        true
    }

    /// The path to ask, when the base URL has this path (without a slash at its end).
    fn path(&self, base: &str) -> String;

    /// The headers that every request has.
    fn headers(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// The header that carries the key.
    fn key_header(&self, key: &Secret) -> (&'static str, String) {
        ("authorization", format!("Bearer {}", key.reveal()))
    }

    /// The request's body. The same conversation gives the same bytes, so that a provider's cache knows it again.
    fn body(&self, endpoint: &Endpoint, request: &Request) -> Value;

    /// How the answer is divided into events.
    fn form(&self) -> Form {
        Form::Events
    }

    /// The events by which a stream would have said what came as one JSON value; none where that is no answer.
    fn events_of(&self, whole: &Value) -> Vec<String>;

    /// A decoder for the answer of a turn, whose number keeps made ids apart from those of other turns.
    fn decoder(&self, turn: u64) -> Box<dyn Decoder>;
}

/// Turns the events of one answer into a reply. Strict: what does not follow the protocol is an error, never skipped.
pub(super) trait Decoder: fmt::Debug + Send {
    /// Takes the data of the next event.
    fn feed(&mut self, event: &str, deltas: DeltaSink<'_>) -> Result<Pulse, ModelError>;

    /// Returns the answer if it is complete and only the protocol's end is missing. Called once, when the body has ended as
    /// it should: some servers leave out their last line.
    fn close(&mut self) -> Option<Reply> {
        None
    }

    /// What the answer has used so far, as far as the provider has said it.
    fn spent(&self) -> Spent;
}

/// What an event did for the answer.
#[derive(Debug, PartialEq)]
pub(super) enum Pulse {
    /// Nothing: a ping, or something unknown.
    Idle,
    /// It brought it on.
    Progress,
    /// It ended it.
    Done(Box<Reply>),
}

/// An answer that breaks the protocol.
pub(super) fn protocol(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelFault::Protocol, message)
}

/// The JSON of an event.
pub(super) fn json_of(event: &str) -> Result<Value, ModelError> {
    let value: Value =
        serde_json::from_str(event).map_err(|error| protocol(format!("an event is not JSON: {error}")))?;
    if value.is_object() { Ok(value) } else { Err(protocol("an event is not a JSON object")) }
}

/// A text member of a JSON object; empty when it is missing, null or something else.
pub(super) fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// A token count of a usage object: zero when it is missing, `None` when it cannot be true.
pub(super) fn count(usage: &Value, member: &str) -> Option<u64> {
    token_count(usage.get(member).unwrap_or(&Value::Null))
}

/// The same of the member itself.
pub(super) fn token_count(value: &Value) -> Option<u64> {
    /// More than any one call can cost.
    const ABSURD: u64 = 1_000_000_000;
    match value {
        Value::Null => Some(0),
        value => value.as_u64().filter(|tokens| *tokens < ABSURD),
    }
}

/// A tool's name as providers accept it in a conversation: a model may have made one up that they would refuse.
pub(super) fn wire_name(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let name: String = name.chars().take(64).map(allowed).collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

/// A call's arguments as they go back into the conversation: always an object, which is all that providers accept.
pub(super) fn wire_input(input: &ToolInput) -> Value {
    match input {
        ToolInput::Object(value) => value.clone(),
        ToolInput::Malformed { text, .. } => {
            Value::Object(Map::from_iter([("unparsed".to_owned(), Value::String(text.clone()))]))
        }
    }
}

/// The request for a model that takes no pictures: a word stands where one would be shown.
pub(super) fn without_images(request: &Request) -> Request {
    const UNSEEN: &str = "[a picture, which you cannot see]";
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
    Request { messages: request.messages.iter().map(message).collect(), ..request.clone() }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{
        chat::{Delta, Image, Role, ToolCall, ToolSpec},
        provider::{Effort, Kind},
    };
    use serde_json::json;
    use std::sync::Mutex;

    /// Feeds the data of events to a decoder until it is done or fails: what it streamed, and how it ended (`Ok(None)`: not).
    pub(crate) fn decode<S: AsRef<str>>(
        decoder: &mut dyn Decoder,
        events: &[S],
    ) -> (Vec<Delta>, Result<Option<Reply>, ModelError>) {
        let streamed = Mutex::new(Vec::new());
        let sink = |delta| streamed.lock().unwrap().push(delta);
        let mut end = Ok(None);
        for data in events {
            match decoder.feed(data.as_ref(), &sink) {
                Ok(Pulse::Idle | Pulse::Progress) => continue,
                Ok(Pulse::Done(reply)) => end = Ok(Some(*reply)),
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

    /// A run of some turns, with everything that a conversation can have.
    fn conversation(turns: usize) -> Request {
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
        Request {
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
        let unseen = "[a picture, which you cannot see]";
        let told = Block::ToolResult(ToolResult::text("c", format!("a.png\n{unseen}"), false));
        assert_eq!(*without_images(&request).messages, [message(vec![told, Block::Text { text: unseen.into() }])]);
    }

    #[test]
    fn what_is_sent_of_a_turn_is_the_beginning_of_what_is_sent_of_the_next() {
        let dialects: [(Kind, &dyn Dialect, &str); 4] = [
            (Kind::Anthropic, &crate::provider::anthropic::Messages, "messages"),
            (Kind::OpenAi, &crate::provider::openai_chat::ChatCompletions, "messages"),
            (Kind::OpenAiResponses, &crate::provider::openai_responses::Responses, "input"),
            (Kind::Ollama, &crate::provider::ollama::Chat, "messages"),
        ];
        for (kind, dialect, member) in dialects {
            let base_url = Some("http://127.0.0.1".into());
            let endpoint = Endpoint { base_url, reasoning: Some(Effort::High), ..Endpoint::new(kind, "m") };
            // The marks for Anthropic's cache wander; they are no part of what is cached.
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
