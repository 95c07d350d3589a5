//! The decoder of a streamed answer of the Messages API. It accepts events only in the order that
//! the documentation allows.

use crate::{
    chat::{Block, Delta, ModelError, Reply, Spent, StopReason, ToolCall, ToolInput, Usage, is_shallow},
    provider::{
        DeltaSink,
        api_error::ApiErrorText,
        codec::{Decoder, EventProgress, count, json_of, protocol, text, token_count},
    },
};
use serde_json::{Map, Value, json};

/// An answer under way.
#[derive(Debug, Default)]
pub(super) struct AnthropicStream {
    /// The model in `message_start`, which must be the first event.
    model: Option<String>,
    /// The number of blocks begun, which is also the index that the next block must have.
    begun: u64,
    /// The block that is streaming.
    open: Option<Open>,
    content: Vec<Block>,
    stop: Option<StopReason>,
    /// The newest value of each count; counts in `message_delta` are cumulative.
    usage: Map<String, Value>,
    /// The number of bytes of the answer so far.
    bytes: u64,
}

#[derive(Debug)]
enum Open {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Tool {
        id: String,
        name: String,
        /// The input in the block's first event: complete arguments, from servers that do not
        /// stream them.
        first: Value,
        json: String,
    },
    /// A block of another type. It is dropped (`None`) once a delta continues it.
    Other(Option<Value>),
}

impl Decoder for AnthropicStream {
    fn feed(&mut self, event: &str, deltas: DeltaSink<'_>) -> Result<EventProgress, ModelError> {
        let value = json_of(event)?;
        let kind = value["type"].as_str().ok_or_else(|| protocol("an event has no type"))?;
        match kind {
            "error" => Err(ApiErrorText::from_value(&value["error"]).in_stream()),
            "message_start" => self.start(&value["message"]),
            "content_block_start" | "content_block_delta" | "content_block_stop" | "message_delta" | "message_stop"
                if self.model.is_none() =>
            {
                Err(protocol(format!("{kind} before message_start")))
            }
            "content_block_start" => self.open(&value, deltas),
            "content_block_delta" => self.extend(&value, deltas),
            "content_block_stop" => self.close(&value, deltas),
            "message_delta" => self.note(&value),
            "message_stop" => self.end(),
            _ => Ok(EventProgress::Idle), // a ping or a newer event, which the API documentation says to ignore
        }
    }

    fn close(&mut self, _: DeltaSink<'_>) -> Result<Option<Reply>, ModelError> {
        let stop = self.stop.take().filter(|_| self.open.is_none());
        Ok(stop.map(|stop| Reply { lacks_end: true, ..self.reply(stop) }))
    }

    fn spent(&self) -> Spent {
        let model = self.model.clone().unwrap_or_default();
        Spent { model, usage: read_usage(&self.usage), bytes: self.bytes, ..Spent::default() }
    }
}

impl AnthropicStream {
    fn start(&mut self, message: &Value) -> Result<EventProgress, ModelError> {
        if self.model.is_some() {
            return Err(protocol("a second message_start"));
        }
        self.model = Some(text(message, "model").to_owned());
        self.count_usage(&message["usage"]);
        Ok(EventProgress::Progress)
    }

    fn open(&mut self, event: &Value, deltas: DeltaSink<'_>) -> Result<EventProgress, ModelError> {
        if self.open.is_some() || event["index"].as_u64() != Some(self.begun) {
            return Err(protocol(format!("block {} begins out of order", event["index"])));
        }
        self.begun += 1;
        let block = &event["content_block"];
        self.open = Some(match text(block, "type") {
            "text" => Open::Text(String::new()),
            "thinking" => Open::Thinking { text: String::new(), signature: text(block, "signature").to_owned() },
            "tool_use" => Open::Tool {
                id: text(block, "id").to_owned(),
                name: text(block, "name").to_owned(),
                first: block["input"].clone(),
                json: String::new(),
            },
            "" => return Err(protocol("a block has no type")),
            _ if !is_shallow(block) => return Err(protocol("a block is nested too deep")),
            _ => Open::Other(Some(block.clone())),
        });
        match &mut self.open {
            Some(Open::Text(said)) => say(said, text(block, "text"), Delta::Text, deltas),
            Some(Open::Thinking { text: said, .. }) => say(said, text(block, "thinking"), Delta::Thinking, deltas),
            Some(Open::Tool { id, .. }) if id.is_empty() => return Err(protocol("a tool call has no id")),
            Some(Open::Tool { .. } | Open::Other(_)) | None => EventProgress::Progress,
        };
        Ok(EventProgress::Progress)
    }

    fn extend(&mut self, event: &Value, deltas: DeltaSink<'_>) -> Result<EventProgress, ModelError> {
        let delta = &event["delta"];
        let kind = text(delta, "type");
        let pieces = ["text", "thinking", "partial_json"].map(|member| text(delta, member).len() as u64);
        self.bytes += pieces.iter().sum::<u64>();
        Ok(match (self.current(event)?, kind) {
            (Open::Text(said), "text_delta") => say(said, text(delta, "text"), Delta::Text, deltas),
            (Open::Thinking { text: said, .. }, "thinking_delta") => {
                say(said, text(delta, "thinking"), Delta::Thinking, deltas)
            }
            (Open::Thinking { signature, .. }, "signature_delta") => append(signature, text(delta, "signature")),
            (Open::Tool { json, .. }, "input_json_delta") => append(json, text(delta, "partial_json")),
            // Only the known block types have such deltas, so the type of this block was damaged in
            // transit.
            (Open::Other(_), "text_delta" | "thinking_delta" | "signature_delta") => {
                return Err(protocol(format!("`{kind}` does not fit the type of its block")));
            }
            (Open::Other(whole), _) => {
                *whole = None;
                EventProgress::Progress
            }
            (
                Open::Text(_) | Open::Thinking { .. } | Open::Tool { .. },
                "text_delta" | "thinking_delta" | "signature_delta" | "input_json_delta" | "",
            ) => {
                return Err(protocol(format!("`{kind}` does not fit the type of its block")));
            }
            (Open::Text(_) | Open::Thinking { .. } | Open::Tool { .. }, _) => EventProgress::Idle, // citations and newer deltas
        })
    }

    fn close(&mut self, event: &Value, deltas: DeltaSink<'_>) -> Result<EventProgress, ModelError> {
        self.current(event)?;
        match self.open.take() {
            Some(Open::Text(text)) => self.content.push(Block::Text { text }),
            Some(Open::Thinking { text, signature }) => {
                let opaque = (!signature.is_empty()).then(|| json!({"signature": signature}));
                self.content.push(Block::Thinking { text, opaque });
            }
            Some(Open::Tool { id, name, first, json }) => {
                let input = match first {
                    first @ Value::Object(_) if json.is_empty() => ToolInput::parse(&first.to_string()),
                    _ => ToolInput::parse(&json),
                };
                let call = ToolCall { id, name, input };
                deltas(Delta::ToolCall(call.clone()));
                self.content.push(Block::ToolUse(call));
            }
            // A block that was continued by unknown deltas cannot be rebuilt, and a partial block
            // must not be sent back.
            Some(Open::Other(whole)) => self.content.extend(whole.map(|value| Block::Opaque { value })),
            None => {}
        }
        Ok(EventProgress::Progress)
    }

    /// Returns the open block if the event names it.
    fn current(&mut self, event: &Value) -> Result<&mut Open, ModelError> {
        let newest = event["index"].as_u64().and_then(|index| index.checked_add(1)) == Some(self.begun);
        self.open.as_mut().filter(|_| newest).ok_or_else(|| protocol(format!("block {} is not open", event["index"])))
    }

    fn note(&mut self, event: &Value) -> Result<EventProgress, ModelError> {
        self.count_usage(&event["usage"]);
        self.stop = match text(&event["delta"], "stop_reason") {
            "" => return Ok(EventProgress::Progress),
            "end_turn" | "stop_sequence" => Some(StopReason::EndTurn),
            "tool_use" => Some(StopReason::ToolUse),
            "max_tokens" | "model_context_window_exceeded" => Some(StopReason::OutputLimit),
            "refusal" => Some(StopReason::Refusal),
            "pause_turn" => Some(StopReason::Pause),
            other => return Err(protocol(format!("unknown stop reason `{other}`"))),
        };
        Ok(EventProgress::Progress)
    }

    fn end(&mut self) -> Result<EventProgress, ModelError> {
        if self.open.is_some() {
            return Err(protocol("message_stop inside a block"));
        }
        let stop = self.stop.take().ok_or_else(|| protocol("message_stop without a stop reason"))?;
        Ok(EventProgress::Done(Box::new(self.reply(stop))))
    }

    /// Takes the content gathered so far as a reply.
    fn reply(&mut self, stop: StopReason) -> Reply {
        let (content, model) = (std::mem::take(&mut self.content), self.model.clone().unwrap_or_default());
        Reply { content, stop, usage: read_usage(&self.usage), model, lacks_end: false }
    }

    fn count_usage(&mut self, usage: &Value) {
        for (name, value) in usage.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
            self.usage.insert(name.clone(), value.clone());
        }
    }
}

fn read_usage(counts: &Map<String, Value>) -> Option<Usage> {
    let none = Value::Null;
    let of = |member: &str| counts.get(member).unwrap_or(&none);
    let number = |member: &str| token_count(of(member));
    let (read, written) = (number("cache_read_input_tokens")?, number("cache_creation_input_tokens")?);
    let usage = Usage {
        input_tokens: number("input_tokens")? + read + written,
        output_tokens: number("output_tokens")?,
        cached_tokens: read,
        cache_write_tokens: written,
        reasoning_tokens: count(of("output_tokens_details"), "thinking_tokens")?,
        ..Usage::default()
    };
    (usage.input_tokens > 0).then_some(usage)
}

/// Appends a piece to the text and streams it.
fn say(said: &mut String, piece: &str, delta: fn(String) -> Delta, deltas: DeltaSink<'_>) -> EventProgress {
    if !piece.is_empty() {
        deltas(delta(piece.to_owned()));
    }
    append(said, piece)
}

/// Appends a piece. An empty piece is not progress.
fn append(whole: &mut String, piece: &str) -> EventProgress {
    whole.push_str(piece);
    if piece.is_empty() { EventProgress::Idle } else { EventProgress::Progress }
}
