//! The decoder of a streamed answer of Chat Completions. `[DONE]` ends the answer, and only after a
//! finish reason.
//!
//! The decoder is strict, except where servers are known to differ without loss:
//!
//! - ids and names only in a call's first piece, and calls that are not split
//! - calls without an index or with repeated indices
//! - usage in any chunk
//! - a missing `[DONE]`, or a missing finish reason of complete calls; both, if the answer has only
//!   calls

use super::body::{EXTRA, REASONING};
use crate::{
    chat::{Block, Delta, ModelError, Reply, Spent, StopReason, ToolCall, ToolInput, Usage, is_shallow},
    provider::{
        DeltaSink,
        api_error::ApiErrorText,
        codec::{Decoder, EventProgress, count, json_of, protocol, text},
    },
};
use serde_json::{Value, json};

/// The range of a first call's index. Bedrock gateways count the blocks of the answer, so thoughts
/// or a text before the call make its index 1.
const FIRST_INDEX: i64 = -1;
const LAST_FIRST_INDEX: i64 = 1;

/// An answer under way.
#[derive(Debug)]
pub(super) struct ChatStream {
    /// The turn's number, for the ids of calls that have none.
    turn: u64,
    model: String,
    /// The index of the first call. Some gateways also count the blocks before it.
    first_index: i64,
    thinking: String,
    /// True if some of the reasoning arrived in the field that is sent back.
    wanted: bool,
    text: String,
    /// True if some of the text was a refusal.
    refused: bool,
    /// The calls under way. The finish reason moves them to `done`.
    calls: Vec<Piece>,
    done: Vec<(ToolCall, Option<Value>)>,
    stop: Option<StopReason>,
    /// True if the server left out the finish reason.
    lacks_reason: bool,
    usage: Option<Usage>,
}

/// A tool call under way.
#[derive(Debug, Default)]
struct Piece {
    index: u64,
    id: String,
    name: String,
    arguments: String,
    /// Data that the server wants back with the call (Gemini's thought signature).
    extra: Option<Value>,
}

impl Decoder for ChatStream {
    fn feed(&mut self, event: &str, deltas: DeltaSink<'_>) -> Result<EventProgress, ModelError> {
        if event.trim() == "[DONE]" {
            return self.end(deltas);
        }
        let chunk = json_of(event)?;
        if text(&chunk, "object") == "error" {
            return Err(ApiErrorText::from_value(&chunk).in_stream()); // older servers of vLLM
        }
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(ApiErrorText::from_value(error).in_stream());
        }
        if self.model.is_empty() {
            self.model = text(&chunk, "model").to_owned();
        }
        let mut progress = false;
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = read_usage(usage);
            progress = true;
        }
        for choice in chunk["choices"].as_array().into_iter().flatten() {
            if choice["index"].as_u64().is_some_and(|index| index != 0) {
                return Err(protocol("unexpected second choice"));
            }
            progress |= self.extend(&choice["delta"], deltas)?;
            progress |= self.finish(text(choice, "finish_reason"), deltas)?;
        }
        Ok(if progress { EventProgress::Progress } else { EventProgress::Idle })
    }

    fn close(&mut self, deltas: DeltaSink<'_>) -> Result<Option<Reply>, ModelError> {
        if self.text.is_empty() {
            self.finish_calls(deltas)?; // without any end marker, only calls are provably complete
        }
        let stop = self.stop;
        Ok(stop.map(|stop| Reply { lacks_end: true, ..self.reply(stop) }))
    }

    fn spent(&self) -> Spent {
        let called = self.calls.iter().map(|call| call.arguments.len()).sum::<usize>();
        let bytes = (self.text.len() + self.thinking.len() + called) as u64;
        Spent { model: self.model.clone(), usage: self.usage.clone(), bytes, ..Spent::default() }
    }
}

impl ChatStream {
    /// Creates an answer before its first chunk.
    pub(super) fn new(turn: u64) -> Self {
        Self {
            turn,
            model: String::new(),
            first_index: 0,
            thinking: String::new(),
            wanted: false,
            text: String::new(),
            refused: false,
            calls: Vec::new(),
            done: Vec::new(),
            stop: None,
            lacks_reason: false,
            usage: None,
        }
    }

    /// Adds the pieces of one chunk. Returns true if it had any.
    fn extend(&mut self, delta: &Value, deltas: DeltaSink<'_>) -> Result<bool, ModelError> {
        let wanted = text(delta, REASONING);
        self.wanted |= !wanted.is_empty();
        let reasoning = if wanted.is_empty() { text(delta, "reasoning") } else { wanted };
        let (parts, refusal) = (parts(&delta["content"])?, text(delta, "refusal"));
        let calls = delta["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_empty = parts.iter().all(|part| part.text.is_empty());
        if is_empty && [reasoning, refusal].iter().all(|text| text.is_empty()) && calls.is_empty() {
            return Ok(false);
        }
        if self.stop.is_some() {
            return Err(protocol("the answer continues after its finish reason"));
        }
        self.refused |= !refusal.is_empty();
        let around = [Part { text: reasoning, is_thought: true }, Part { text: refusal, is_thought: false }];
        let [first, last] = around;
        for Part { text, is_thought } in [first].into_iter().chain(parts).chain([last]) {
            match (text.is_empty(), is_thought) {
                (true, _) => {}
                (false, true) => {
                    self.thinking.push_str(text);
                    deltas(Delta::Thinking(text.to_owned()));
                }
                (false, false) => {
                    self.text.push_str(text);
                    deltas(Delta::Text(text.to_owned()));
                }
            }
        }
        for call in calls {
            self.gather(call)?;
        }
        Ok(true)
    }

    fn gather(&mut self, call: &Value) -> Result<(), ModelError> {
        let (id, function) = (text(call, "id"), &call["function"]);
        let name = text(function, "name");
        let arguments = match &function["arguments"] {
            Value::Null => String::new(),
            Value::String(piece) => piece.clone(),
            whole => whole.to_string(), // some servers send the object itself
        };
        let next = self.calls.iter().map(|known| known.index + 1).max().unwrap_or(0);
        if let (true, Some(first @ FIRST_INDEX..=LAST_FIRST_INDEX)) = (self.calls.is_empty(), call["index"].as_i64())
            && !id.is_empty()
            && !name.is_empty()
        {
            self.first_index = first;
        }
        let index = match &call["index"] {
            // Without an index, a piece with a new id begins a call. Any other piece continues the
            // last call.
            Value::Null if self.calls.last().is_none_or(|last| !id.is_empty() && last.id != id) => next,
            Value::Null => next - 1,
            index => index
                .as_i64()
                .and_then(|index| u64::try_from(index.checked_sub(self.first_index)?).ok())
                .filter(|index| *index <= next)
                .ok_or_else(|| protocol(format!("tool call {index} is out of order")))?,
        };
        // Some servers send complete calls, all with one index. Then either the ids differ, or both
        // pieces have complete arguments.
        let is_another = |known: &Piece| match (id.is_empty(), known.id.is_empty()) {
            (false, false) => known.id != id,
            (true, _) => !name.is_empty() && is_object(&arguments) && is_object(&known.arguments),
            (false, true) => false,
        };
        let same = |known: &Piece| known.index == index && !is_another(known);
        let position = match self.calls.iter().rposition(same) {
            Some(position) => position,
            None => {
                self.calls.push(Piece { index, ..Piece::default() });
                self.calls.len() - 1
            }
        };
        let known = &mut self.calls[position];
        if known.name.is_empty() {
            known.name = name.to_owned();
        } else if !name.is_empty() && known.name != name {
            return Err(protocol(format!("tool call {index} changes its name")));
        }
        if known.id.is_empty() {
            known.id = id.to_owned();
        }
        if let Some(extra) = call.get(EXTRA).filter(|extra| extra.is_object() && is_shallow(extra)) {
            known.extra = Some(extra.clone());
        }
        known.arguments.push_str(&arguments);
        Ok(())
    }

    /// Processes the finish reason, if there is one. The arguments of all calls are complete then.
    fn finish(&mut self, reason: &str, deltas: DeltaSink<'_>) -> Result<bool, ModelError> {
        let stop = match reason {
            "" => return Ok(false),
            "content_filter" => StopReason::Refusal,
            "length" | "max_tokens" | "model_length" => StopReason::OutputLimit,
            "stop" | "tool_calls" | "function_call" if self.refused => StopReason::Refusal,
            // The last four come from text-generation servers and gateways.
            "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn" => StopReason::EndTurn,
            "tool_calls" | "function_call" => StopReason::ToolUse,
            other => return Err(protocol(format!("unknown finish reason `{other}`"))),
        };
        match self.stop {
            Some(known) if known == stop => return Ok(false), // repeated beside the usage
            Some(_) => return Err(protocol("two finish reasons")),
            None => self.stop = Some(stop),
        }
        for piece in std::mem::take(&mut self.calls) {
            let id = if piece.id.is_empty() { self.made_id() } else { piece.id };
            let call = ToolCall { id, name: piece.name, input: ToolInput::parse(&piece.arguments) };
            deltas(Delta::ToolCall(call.clone()));
            self.done.push((call, piece.extra));
        }
        Ok(true)
    }

    /// Creates an id for a call that has none. The turn's number makes it unique across turns.
    fn made_id(&self) -> String {
        format!("call_{}_{}", self.turn, self.done.len() + 1)
    }

    /// Supplies the finish reason at the end of an answer with calls. Calls are provably complete
    /// without one; a text is not.
    fn finish_calls(&mut self, deltas: DeltaSink<'_>) -> Result<(), ModelError> {
        let is_whole = |call: &Piece| !call.name.is_empty() && is_object(&call.arguments);
        if self.stop.is_none() && !self.calls.is_empty() && self.calls.iter().all(is_whole) {
            self.lacks_reason = self.finish("tool_calls", deltas)?;
        }
        Ok(())
    }

    /// Ends the answer at `[DONE]`.
    fn end(&mut self, deltas: DeltaSink<'_>) -> Result<EventProgress, ModelError> {
        self.finish_calls(deltas)?;
        let stop = self.stop.ok_or_else(|| protocol("[DONE] without a finish reason"))?;
        Ok(EventProgress::Done(Box::new(self.reply(stop))))
    }

    /// Takes the content gathered so far as a reply.
    fn reply(&mut self, stop: StopReason) -> Reply {
        let mut content = Vec::new();
        if !self.thinking.is_empty() {
            let opaque = self.wanted.then(|| json!({"field": REASONING}));
            content.push(Block::Thinking { text: std::mem::take(&mut self.thinking), opaque });
        }
        if !self.text.is_empty() {
            content.push(Block::Text { text: std::mem::take(&mut self.text) });
        }
        for (call, extra) in self.done.drain(..) {
            content.push(Block::ToolUse(call));
            content.extend(extra.map(|extra| Block::Opaque { value: json!({ (EXTRA): extra }) }));
        }
        let (usage, model) = (self.usage.take(), std::mem::take(&mut self.model));
        Reply { content, stop, usage, model, lacks_end: self.lacks_reason }
    }
}

/// Returns true if the arguments are a complete JSON object.
fn is_object(arguments: &str) -> bool {
    arguments.trim_start().starts_with('{') && matches!(ToolInput::parse(arguments), ToolInput::Object(_))
}

/// A piece of text or reasoning.
struct Part<'v> {
    text: &'v str,
    is_thought: bool,
}

/// Splits the content into parts. It is a text, or a list of parts that may contain thoughts
/// (Mistral's reasoning models).
fn parts(content: &Value) -> Result<Vec<Part<'_>>, ModelError> {
    let part = |part| match text(part, "type") {
        "text" => Ok(vec![Part { text: text(part, "text"), is_thought: false }]),
        "thinking" => Ok(match &part["thinking"] {
            Value::Array(thoughts) => {
                thoughts.iter().map(|thought| Part { text: text(thought, "text"), is_thought: true }).collect()
            }
            _ => vec![Part { text: text(part, "thinking"), is_thought: true }],
        }),
        other => Err(protocol(format!("a content part has the unknown type `{other}`"))),
    };
    match content {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![Part { text, is_thought: false }]),
        Value::Array(all) => Ok(all.iter().map(part).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect()),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => Err(protocol("the content is neither text nor parts")),
    }
}

fn read_usage(usage: &Value) -> Option<Usage> {
    let input = count(usage, "prompt_tokens")?;
    let usage = Usage {
        input_tokens: input,
        output_tokens: count(usage, "completion_tokens")?,
        cached_tokens: count(&usage["prompt_tokens_details"], "cached_tokens")?.min(input),
        reasoning_tokens: count(&usage["completion_tokens_details"], "reasoning_tokens")?,
        ..Usage::default()
    };
    (input > 0).then_some(usage)
}
