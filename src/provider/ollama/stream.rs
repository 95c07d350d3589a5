//! The decoder of a streamed answer of Ollama. The line with `done` ends the answer and gives the
//! reason. Tool calls are never split; older servers send them without an id.

use super::body::THINKING;
use crate::{
    chat::{Block, Delta, ModelError, Reply, Spent, StopReason, ToolCall, ToolInput, Usage, strictly},
    provider::{
        DeltaSink,
        api_error::ApiErrorText,
        codec::{Decoder, EventProgress, count, json_of, protocol, text},
    },
};
use serde_json::{Value, json};

/// An answer under way.
#[derive(Debug)]
pub(super) struct OllamaStream {
    /// The turn's number, for the ids of calls that have none.
    turn: u64,
    thinking: String,
    text: String,
    calls: Vec<ToolCall>,
}

impl Decoder for OllamaStream {
    fn feed(&mut self, event: &str, deltas: DeltaSink<'_>) -> Result<EventProgress, ModelError> {
        let line = json_of(event)?;
        if let Some(error) = line.get("error").filter(|error| !error.is_null()) {
            return Err(ApiErrorText::from_value(error).in_stream());
        }
        let (message, done) = (&line["message"], line["done"].as_bool());
        let done = done.filter(|_| message.is_object()).ok_or_else(|| protocol("a line is not part of an answer"))?;
        let mut progress = false;
        for (whole, member, delta) in [
            (&mut self.thinking, "thinking", Delta::Thinking as fn(String) -> Delta),
            (&mut self.text, "content", Delta::Text as fn(String) -> Delta),
        ] {
            let piece = text(message, member);
            if !piece.is_empty() {
                whole.push_str(piece);
                deltas(delta(piece.to_owned()));
                progress = true;
            }
        }
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !calls.is_empty() {
            // Arguments are part of the line and not a text, so the line is checked here for
            // duplicate keys.
            strictly(event).map_err(|error| protocol(format!("a tool call: {error}")))?;
        }
        for call in calls {
            self.push_call(call, deltas);
            progress = true;
        }
        if done {
            return self.end(&line);
        }
        Ok(if progress { EventProgress::Progress } else { EventProgress::Idle })
    }

    fn spent(&self) -> Spent {
        Spent { bytes: (self.text.len() + self.thinking.len()) as u64, ..Spent::default() }
    }
}

impl OllamaStream {
    /// Creates an answer before its first line.
    pub(super) fn new(turn: u64) -> Self {
        Self { turn, thinking: String::new(), text: String::new(), calls: Vec::new() }
    }

    fn push_call(&mut self, call: &Value, deltas: DeltaSink<'_>) {
        let function = &call["function"];
        let id = match text(call, "id") {
            "" => format!("call_{}_{}", self.turn, self.calls.len() + 1),
            id => id.to_owned(),
        };
        let input = match &function["arguments"] {
            Value::Null => ToolInput::parse(""),
            Value::String(arguments) => ToolInput::parse(arguments),
            arguments => ToolInput::parse(&arguments.to_string()),
        };
        let call = ToolCall { id, name: text(function, "name").to_owned(), input };
        deltas(Delta::ToolCall(call.clone()));
        self.calls.push(call);
    }

    fn end(&mut self, line: &Value) -> Result<EventProgress, ModelError> {
        let stop = match text(line, "done_reason") {
            "stop" if self.calls.is_empty() => StopReason::EndTurn,
            "stop" => StopReason::ToolUse,
            "length" => StopReason::OutputLimit,
            other => return Err(protocol(format!("unknown done reason `{other}`"))),
        };
        let mut content = Vec::new();
        if !self.thinking.is_empty() {
            let opaque = Some(json!({"field": THINKING}));
            content.push(Block::Thinking { text: std::mem::take(&mut self.thinking), opaque });
        }
        if !self.text.is_empty() {
            content.push(Block::Text { text: std::mem::take(&mut self.text) });
        }
        content.extend(self.calls.drain(..).map(Block::ToolUse));
        let model = text(line, "model").to_owned();
        Ok(EventProgress::Done(Box::new(Reply { content, stop, usage: read_usage(line), model, lacks_end: false })))
    }
}

/// Reads the token counts. The API counts neither cached tokens nor reasoning.
fn read_usage(line: &Value) -> Option<Usage> {
    let (input_tokens, output_tokens) = (count(line, "prompt_eval_count")?, count(line, "eval_count")?);
    (input_tokens > 0).then(|| Usage { input_tokens, output_tokens, ..Usage::default() })
}
