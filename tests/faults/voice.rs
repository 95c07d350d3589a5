//! Answers, errors and whole responses in each of the four wire formats, as their documentation
//! defines them.

use crate::faults::server::Act;
use fledge::provider::WireFormat;
use serde_json::{Value, json};

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Anthropic,
    Chat,
    Responses,
    Ollama,
}

pub(crate) const WIRES: [Wire; 4] = [Wire::Anthropic, Wire::Chat, Wire::Responses, Wire::Ollama];

/// An answer of a model.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) thinking: &'static str,
    pub(crate) text: String,
    /// Id, name and arguments of each call; the arguments as text.
    pub(crate) calls: Vec<(String, String, String)>,
    pub(crate) stop: Stop,
    /// Input and output tokens, which may be any JSON value; `None` if the answer omits them.
    pub(crate) usage: Option<(Value, Value)>,
}

/// The reason why an answer stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    End,
    Tools,
    Length,
    Refusal,
    Pause,
    Window,
}

/// Returns an answer with this text that ends the turn.
pub(crate) fn say(text: &str) -> Answer {
    let usage = Some((json!(100), json!(10)));
    Answer { thinking: "", text: text.into(), calls: Vec::new(), stop: Stop::End, usage }
}

/// Returns an answer that calls a tool with these arguments.
pub(crate) fn call(name: &str, arguments: &str) -> Answer {
    Answer { stop: Stop::Tools, ..say("") }.and("call_1", name, arguments)
}

/// Returns an answer that writes a file.
pub(crate) fn write(path: &str) -> Answer {
    call("files-write", &json!({"path": path, "content": "1\n"}).to_string())
}

impl Answer {
    pub(crate) fn and(mut self, id: &str, name: &str, arguments: &str) -> Self {
        self.calls.push((id.into(), name.into(), arguments.into()));
        self
    }

    pub(crate) fn stopping(self, stop: Stop) -> Self {
        Self { stop, ..self }
    }

    pub(crate) fn thinking(self, thinking: &'static str) -> Self {
        Self { thinking, ..self }
    }

    pub(crate) fn using(self, usage: Option<(Value, Value)>) -> Self {
        Self { usage, ..self }
    }
}

impl Wire {
    pub(crate) fn kind(self) -> WireFormat {
        match self {
            Self::Anthropic => WireFormat::Anthropic,
            Self::Chat => WireFormat::OpenAi,
            Self::Responses => WireFormat::OpenAiResponses,
            Self::Ollama => WireFormat::Ollama,
        }
    }

    /// Returns the name in the head of the table.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Anthropic => "Anthropic",
            Self::Chat => "Chat Completions",
            Self::Responses => "Responses",
            Self::Ollama => "Ollama",
        }
    }

    /// Returns the head of a response that streams until it is closed.
    pub(crate) fn head(self) -> String {
        let kind = if self == Self::Ollama { "application/x-ndjson" } else { "text/event-stream" };
        format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n")
    }

    /// Returns a response with these bytes as its stream.
    pub(crate) fn streams(self, body: impl AsRef<[u8]>) -> Act {
        Act::Send([self.head().as_bytes(), body.as_ref()].concat())
    }

    /// Returns a complete answer.
    pub(crate) fn whole(self, answer: &Answer) -> Vec<Act> {
        vec![self.streams(self.frames(answer).concat())]
    }

    /// Returns the events of an answer, each with its terminator. The last event ends the answer.
    pub(crate) fn frames(self, answer: &Answer) -> Vec<String> {
        match self {
            Self::Anthropic => anthropic(answer).iter().map(|event| self.frame(event)).collect(),
            Self::Chat => {
                let done = "data: [DONE]\n\n".to_owned();
                chat(answer).iter().map(|event| self.frame(event)).chain([done]).collect()
            }
            Self::Responses => responses(answer).iter().map(|event| self.frame(event)).collect(),
            Self::Ollama => ollama(answer),
        }
    }

    /// Returns one event.
    pub(crate) fn frame(self, event: &Value) -> String {
        match (self, event["type"].as_str()) {
            (Self::Ollama, _) => format!("{event}\n"),
            (Self::Anthropic | Self::Chat | Self::Responses, Some(name)) => format!("event: {name}\ndata: {event}\n\n"),
            (Self::Anthropic | Self::Chat | Self::Responses, None) => format!("data: {event}\n\n"),
        }
    }

    /// Returns an error as this API words it.
    pub(crate) fn complaint(self, kind: &str, message: &str) -> Value {
        match self {
            Self::Anthropic => json!({"type": "error", "error": {"type": kind, "message": message}}),
            Self::Chat | Self::Responses => json!({"error": {"type": kind, "code": kind, "message": message}}),
            Self::Ollama => json!({ "error": message }),
        }
    }

    /// Returns an error inside a stream.
    pub(crate) fn complains(self, kind: &str, message: &str) -> String {
        self.frame(&match self {
            Self::Responses => json!({"type": "error", "code": kind, "message": message}),
            Self::Anthropic | Self::Chat | Self::Ollama => self.complaint(kind, message),
        })
    }

    /// Returns an event without progress.
    pub(crate) fn ping(self) -> String {
        self.frame(&match self {
            Self::Anthropic => json!({"type": "ping"}),
            Self::Chat => json!({"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": null}]}),
            Self::Responses => json!({"type": "response.in_progress", "response": {}}),
            Self::Ollama => json!({"model": "m", "message": {"role": "assistant", "content": ""}, "done": false}),
        })
    }
}

/// Returns an error response.
pub(crate) fn status(code: u16, headers: &[(&str, &str)], body: impl AsRef<str>) -> Vec<Act> {
    let body = body.as_ref();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "HTTP/1.1 {code} No\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    vec![Act::Send([head.as_bytes(), body.as_bytes()].concat())]
}

fn anthropic(answer: &Answer) -> Vec<Value> {
    let mut usage = json!({});
    if let Some((input, output)) = &answer.usage {
        usage = json!({"input_tokens": input, "output_tokens": output});
    }
    let mut all = vec![json!({"type": "message_start", "message": {"model": "scripted", "usage": usage}})];
    let mut index = 0;
    let mut block = |block: Value, delta: Value| {
        all.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        all.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        all.push(json!({"type": "content_block_stop", "index": index}));
        index += 1;
    };
    if !answer.thinking.is_empty() {
        let delta = json!({"type": "thinking_delta", "thinking": answer.thinking});
        block(json!({"type": "thinking", "thinking": ""}), delta);
    }
    if !answer.text.is_empty() {
        block(json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": answer.text}));
    }
    for (id, name, arguments) in &answer.calls {
        let delta = json!({"type": "input_json_delta", "partial_json": arguments});
        block(json!({"type": "tool_use", "id": id, "name": name, "input": {}}), delta);
    }
    let stop = match answer.stop {
        Stop::End => "end_turn",
        Stop::Tools => "tool_use",
        Stop::Length => "max_tokens",
        Stop::Refusal => "refusal",
        Stop::Pause => "pause_turn",
        Stop::Window => "model_context_window_exceeded",
    };
    all.push(json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {}}));
    all.push(json!({"type": "message_stop"}));
    all
}

fn chat(answer: &Answer) -> Vec<Value> {
    let chunk =
        |delta: Value| json!({"model": "scripted", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let mut all = vec![chunk(json!({"role": "assistant", "content": ""}))];
    if !answer.thinking.is_empty() {
        all.push(chunk(json!({"reasoning_content": answer.thinking})));
    }
    if !answer.text.is_empty() {
        all.push(chunk(json!({"content": answer.text})));
    }
    for (place, (id, name, arguments)) in answer.calls.iter().enumerate() {
        let head = json!({"index": place, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
        all.push(chunk(json!({"tool_calls": [head]})));
        all.push(chunk(json!({"tool_calls": [{"index": place, "function": {"arguments": arguments}}]})));
    }
    let stop = match answer.stop {
        Stop::End | Stop::Pause => "stop",
        Stop::Tools => "tool_calls",
        Stop::Length | Stop::Window => "length",
        Stop::Refusal => "content_filter",
    };
    all.push(json!({"model": "scripted", "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]}));
    if let Some((input, output)) = &answer.usage {
        all.push(json!({"choices": [], "usage": {"prompt_tokens": input, "completion_tokens": output}}));
    }
    all
}

fn responses(answer: &Answer) -> Vec<Value> {
    let mut all = vec![json!({"type": "response.created", "response": {"model": "scripted"}})];
    let mut index = 0;
    let mut item = |first: Value, piece: (&str, &str), last: Value| {
        all.push(json!({"type": "response.output_item.added", "output_index": index, "item": first}));
        all.push(json!({"type": format!("response.{}.delta", piece.0), "output_index": index, "delta": piece.1}));
        all.push(json!({"type": "response.output_item.done", "output_index": index, "item": last}));
        index += 1;
    };
    if !answer.thinking.is_empty() {
        let last =
            json!({"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": answer.thinking}]});
        item(json!({"type": "reasoning", "id": "r", "summary": []}), ("reasoning_summary_text", answer.thinking), last);
    }
    if !answer.text.is_empty() {
        let last = json!({"type": "message", "content": [{"type": "output_text", "text": answer.text}]});
        item(json!({"type": "message", "content": []}), ("output_text", &answer.text), last);
    }
    for (id, name, arguments) in &answer.calls {
        let call =
            |arguments: &str| json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments});
        item(call(""), ("function_call_arguments", arguments), call(arguments));
    }
    let mut response = json!({"model": "scripted"});
    if let Some((input, output)) = &answer.usage {
        response["usage"] = json!({"input_tokens": input, "output_tokens": output});
    }
    let incomplete = match answer.stop {
        Stop::End | Stop::Tools | Stop::Pause => None,
        Stop::Length | Stop::Window => Some("max_output_tokens"),
        Stop::Refusal => Some("content_filter"),
    };
    if let Some(reason) = incomplete {
        response["incomplete_details"] = json!({ "reason": reason });
    }
    let end = if incomplete.is_none() { "response.completed" } else { "response.incomplete" };
    all.push(json!({"type": end, "response": response}));
    all
}

fn ollama(answer: &Answer) -> Vec<String> {
    let line = |message: &str| format!("{{\"model\":\"scripted\",\"message\":{message},\"done\":false}}\n");
    let mut all = vec![line(&json!({"role": "assistant", "content": ""}).to_string())];
    if !answer.thinking.is_empty() {
        all.push(line(&json!({"content": "", "thinking": answer.thinking}).to_string()));
    }
    if !answer.text.is_empty() {
        all.push(line(&json!({"content": answer.text}).to_string()));
    }
    for (id, name, arguments) in &answer.calls {
        // Raw text, since a case may need arguments that are not valid JSON. Arguments without the
        // form of an object go as a JSON string.
        let is_object = arguments.starts_with('{') && arguments.ends_with('}');
        let arguments = if is_object { arguments.clone() } else { json!(arguments).to_string() };
        let (id, name) = (json!(id), json!(name));
        let call = format!("{{\"id\":{id},\"function\":{{\"name\":{name},\"arguments\":{arguments}}}}}");
        all.push(line(&format!("{{\"content\":\"\",\"tool_calls\":[{call}]}}")));
    }
    let stop = if matches!(answer.stop, Stop::Length | Stop::Window) { "length" } else { "stop" };
    let mut last = json!({"model": "scripted", "message": {"content": ""}, "done": true, "done_reason": stop});
    if let Some((input, output)) = &answer.usage {
        (last["prompt_eval_count"], last["eval_count"]) = (input.clone(), output.clone());
    }
    all.push(format!("{last}\n"));
    all
}
