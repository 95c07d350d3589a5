//! The decoder of a streamed answer of the Responses API. `response.completed` or
//! `response.incomplete` ends the answer. Each complete item must match its pieces: a lost piece is
//! an error.

use super::body::PHASE;
use crate::{
    chat::{Block, Delta, ModelError, Reply, Spent, StopReason, ToolCall, ToolInput, Usage, is_shallow, text_of},
    provider::{
        DeltaSink,
        api_error::ApiErrorText,
        codec::{Decoder, EventProgress, count, json_of, protocol, text},
    },
};
use serde_json::{Value, json};

/// The item types that the decoder understands.
const KNOWN: [&str; 3] = ["message", "reasoning", "function_call"];
/// The size limit of a phase's name, in bytes.
const MAX_PHASE: usize = 64;
/// The separator between two parts of a summary.
const PART: &str = "\n\n";

/// An answer under way.
#[derive(Debug, Default)]
pub(super) struct ResponsesStream {
    /// The model in `response.created`, which must come before all items.
    model: Option<String>,
    /// The items by their index.
    items: Vec<Item>,
    /// True if some of the text was a refusal.
    refused: bool,
    /// The token counts of a failed answer.
    usage: Option<Usage>,
}

#[derive(Debug)]
enum Item {
    /// The text of a message so far.
    Message(String),
    /// The summary of reasoning so far.
    Reasoning(String),
    /// A call with its arguments so far.
    Call { id: String, name: String, arguments: String },
    /// An item that only the provider understands.
    Other,
    /// A complete item: no block, one block, or a block with the data that is sent back with it.
    Done(Vec<Block>),
}

impl Decoder for ResponsesStream {
    fn feed(&mut self, event: &str, deltas: DeltaSink<'_>) -> Result<EventProgress, ModelError> {
        let event = json_of(event)?;
        let kind = event["type"].as_str().ok_or_else(|| protocol("an event has no type"))?;
        match kind {
            "error" => {
                Err(ApiErrorText::from_value(event.get("error").filter(|error| error.is_object()).unwrap_or(&event))
                    .in_stream())
            }
            "response.failed" => {
                self.usage = read_usage(&event["response"]["usage"]);
                Err(ApiErrorText::from_value(&event["response"]["error"]).in_stream())
            }
            "response.created" if self.model.is_some() => Err(protocol("a second response.created")),
            "response.created" => {
                self.model = Some(text(&event["response"], "model").to_owned());
                Ok(EventProgress::Progress)
            }
            "response.queued" | "response.in_progress" => Ok(EventProgress::Idle),
            _ if self.model.is_none() && kind.starts_with("response.") => {
                Err(protocol(format!("{kind} before response.created")))
            }
            "response.output_item.added" => self.start_item(&event),
            "response.output_text.delta" | "response.refusal.delta" => {
                self.say(&event, kind == "response.refusal.delta", deltas)
            }
            "response.reasoning_summary_part.added" => self.think(&event, PART, deltas),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.think(&event, text(&event, "delta"), deltas)
            }
            "response.function_call_arguments.delta" => self.argue(&event),
            "response.output_item.done" => self.close(&event, deltas),
            "response.completed" | "response.incomplete" => {
                self.end(kind == "response.completed", &event["response"], deltas)
            }
            _ => Ok(EventProgress::Idle), // a repetition of streamed pieces, or an event newer than this code
        }
    }

    fn spent(&self) -> Spent {
        let length = |item: &Item| match item {
            Item::Message(said) | Item::Reasoning(said) => said.len(),
            Item::Call { arguments, .. } => arguments.len(),
            Item::Done(blocks) => text_of(blocks).len(),
            Item::Other => 0,
        };
        let bytes = self.items.iter().map(length).sum::<usize>() as u64;
        Spent { model: self.model.clone().unwrap_or_default(), usage: self.usage.clone(), bytes, ..Spent::default() }
    }
}

impl ResponsesStream {
    fn start_item(&mut self, event: &Value) -> Result<EventProgress, ModelError> {
        if event["output_index"].as_u64() != Some(self.items.len() as u64) {
            return Err(protocol(format!("item {} begins out of order", event["output_index"])));
        }
        let item = &event["item"];
        self.items.push(match text(item, "type") {
            "" => return Err(protocol("an item has no type")),
            "message" => Item::Message(String::new()),
            "reasoning" => Item::Reasoning(String::new()),
            "function_call" => match text(item, "call_id") {
                "" => return Err(protocol("a tool call has no id")),
                id => Item::Call { id: id.to_owned(), name: text(item, "name").to_owned(), arguments: String::new() },
            },
            _ => Item::Other,
        });
        Ok(EventProgress::Progress)
    }

    fn say(&mut self, event: &Value, is_refusal: bool, deltas: DeltaSink<'_>) -> Result<EventProgress, ModelError> {
        let (place, piece) = (self.place(event)?, text(event, "delta"));
        self.refused |= is_refusal;
        self.check_order(place)?;
        match &mut self.items[place] {
            Item::Message(said) => Ok(append(said, piece, Delta::Text, deltas)),
            Item::Reasoning(_) | Item::Call { .. } | Item::Other | Item::Done(_) => Err(misplaced(event)),
        }
    }

    fn think(&mut self, event: &Value, piece: &str, deltas: DeltaSink<'_>) -> Result<EventProgress, ModelError> {
        let place = self.place(event)?;
        match &mut self.items[place] {
            Item::Reasoning(thought) if thought.is_empty() && piece == PART => Ok(EventProgress::Progress),
            Item::Reasoning(thought) => Ok(append(thought, piece, Delta::Thinking, deltas)),
            Item::Message(_) | Item::Call { .. } | Item::Other | Item::Done(_) => Err(misplaced(event)),
        }
    }

    fn argue(&mut self, event: &Value) -> Result<EventProgress, ModelError> {
        let place = self.place(event)?;
        match &mut self.items[place] {
            Item::Call { arguments, .. } => arguments.push_str(text(event, "delta")),
            Item::Message(_) | Item::Reasoning(_) | Item::Other | Item::Done(_) => return Err(misplaced(event)),
        }
        Ok(EventProgress::Progress)
    }

    /// Completes an item. Its full content must begin with the pieces that were streamed.
    fn close(&mut self, event: &Value, deltas: DeltaSink<'_>) -> Result<EventProgress, ModelError> {
        let (place, whole) = (self.place(event)?, &event["item"]);
        let lost = || protocol(format!("item {place} differs from its streamed pieces"));
        let blocks = match (std::mem::replace(&mut self.items[place], Item::Done(Vec::new())), text(whole, "type")) {
            (Item::Message(mut said), "message") => {
                let all = self.said_in(whole);
                let rest = all.strip_prefix(said.as_str()).ok_or_else(lost)?;
                if !rest.is_empty() {
                    self.check_order(place)?;
                    append(&mut said, rest, Delta::Text, deltas);
                }
                let phase = phase(whole).filter(|_| !said.is_empty());
                let said = (!said.is_empty()).then_some(Block::Text { text: said });
                said.into_iter().chain(phase).collect()
            }
            (Item::Reasoning(mut thought), "reasoning") => {
                if !is_shallow(whole) {
                    return Err(protocol("an item is nested too deep"));
                }
                if thought.is_empty() {
                    let parts: Vec<&str> =
                        whole["summary"].as_array().into_iter().flatten().map(|part| text(part, "text")).collect();
                    append(&mut thought, &parts.join(PART), Delta::Thinking, deltas);
                }
                vec![Block::Thinking { text: thought, opaque: Some(whole.clone()) }]
            }
            (Item::Call { id, name, arguments }, "function_call") => {
                let all = whole["arguments"].as_str().unwrap_or(&arguments);
                if !all.starts_with(&arguments) || text(whole, "call_id") != id || text(whole, "name") != name {
                    return Err(lost());
                }
                vec![call(id, name, all, deltas)]
            }
            (Item::Other, kind) if !KNOWN.contains(&kind) => Vec::new(),
            (Item::Message(_) | Item::Reasoning(_) | Item::Call { .. } | Item::Other | Item::Done(_), _) => {
                return Err(lost());
            }
        };
        self.items[place] = Item::Done(blocks);
        Ok(EventProgress::Progress)
    }

    fn end(&mut self, is_complete: bool, response: &Value, deltas: DeltaSink<'_>) -> Result<EventProgress, ModelError> {
        if is_complete && self.items.iter().any(|item| !matches!(item, Item::Done(_))) {
            return Err(protocol("response.completed inside an item"));
        }
        let mut content = Vec::new();
        for item in std::mem::take(&mut self.items) {
            match item {
                Item::Done(blocks) => content.extend(blocks),
                Item::Message(said) if said.is_empty() => {}
                Item::Message(said) => content.push(Block::Text { text: said }),
                Item::Reasoning(thought) => content.push(Block::Thinking { text: thought, opaque: None }),
                Item::Call { id, name, arguments } => content.push(call(id, name, &arguments, deltas)),
                Item::Other => {}
            }
        }
        let stop = match (is_complete, text(&response["incomplete_details"], "reason")) {
            (true, _) if self.refused => StopReason::Refusal,
            (true, _) if content.iter().any(|block| matches!(block, Block::ToolUse(_))) => StopReason::ToolUse,
            (true, _) => StopReason::EndTurn,
            (false, "max_output_tokens") => StopReason::OutputLimit,
            (false, "content_filter") => StopReason::Refusal,
            (false, other) => return Err(protocol(format!("incomplete for an unknown reason `{other}`"))),
        };
        let model = Some(text(response, "model")).filter(|model| !model.is_empty()).map(str::to_owned);
        let model = model.or_else(|| self.model.take()).unwrap_or_default();
        Ok(EventProgress::Done(Box::new(Reply {
            content,
            stop,
            usage: read_usage(&response["usage"]),
            model,
            lacks_end: false,
        })))
    }

    /// Returns the position of the event's item, which must not be complete.
    fn place(&self, event: &Value) -> Result<usize, ModelError> {
        let index = event["output_index"].as_u64().and_then(|index| usize::try_from(index).ok());
        let is_open = |place: &usize| self.items.get(*place).is_some_and(|item| !matches!(item, Item::Done(_)));
        index.filter(is_open).ok_or_else(|| protocol(format!("item {} is not open", event["output_index"])))
    }

    /// Checks that text of this item may follow. Interleaved messages would make the streamed text
    /// differ from the reply's text.
    fn check_order(&self, place: usize) -> Result<(), ModelError> {
        let is_text = |block: &Block| matches!(block, Block::Text { .. });
        let is_message = |item: &Item| match item {
            Item::Message(_) => true,
            Item::Done(blocks) => blocks.iter().any(is_text),
            Item::Reasoning(_) | Item::Call { .. } | Item::Other => false,
        };
        match self.items[place + 1..].iter().any(is_message) {
            true => Err(protocol(format!("item {place} continues after the next message began"))),
            false => Ok(()),
        }
    }

    /// Returns the complete text of a message, refusals included.
    fn said_in(&mut self, message: &Value) -> String {
        let mut said = String::new();
        for part in message["content"].as_array().into_iter().flatten() {
            said.push_str(text(part, "text"));
            said.push_str(text(part, "refusal"));
            self.refused |= !text(part, "refusal").is_empty();
        }
        said
    }
}

/// Returns the phase of a message as a block that is sent back, if the message has one.
fn phase(message: &Value) -> Option<Block> {
    let phase = Some(text(message, PHASE)).filter(|phase| !phase.is_empty() && phase.len() <= MAX_PHASE)?;
    Some(Block::Opaque { value: json!({ (PHASE): phase }) })
}

/// Creates and streams a call with complete arguments.
fn call(id: String, name: String, arguments: &str, deltas: DeltaSink<'_>) -> Block {
    let call = ToolCall { id, name, input: ToolInput::parse(arguments) };
    deltas(Delta::ToolCall(call.clone()));
    Block::ToolUse(call)
}

/// Appends a piece to the text and streams it. An empty piece is not progress.
fn append(said: &mut String, piece: &str, delta: fn(String) -> Delta, deltas: DeltaSink<'_>) -> EventProgress {
    if piece.is_empty() {
        return EventProgress::Idle;
    }
    said.push_str(piece);
    deltas(delta(piece.to_owned()));
    EventProgress::Progress
}

fn misplaced(event: &Value) -> ModelError {
    protocol(format!("`{}` does not fit the type of its item", text(event, "type")))
}

fn read_usage(usage: &Value) -> Option<Usage> {
    let input = count(usage, "input_tokens")?;
    let usage = Usage {
        input_tokens: input,
        output_tokens: count(usage, "output_tokens")?,
        cached_tokens: count(&usage["input_tokens_details"], "cached_tokens")?.min(input),
        cache_write_tokens: 0, // the API neither charges for nor reports them
        reasoning_tokens: count(&usage["output_tokens_details"], "reasoning_tokens")?,
        ..Usage::default()
    };
    (input > 0).then_some(usage)
}
