//! The turns of a scripted model, and their wire formats: the documented events of Anthropic
//! Messages and chunks of OpenAI Chat Completions.

use serde_json::{Value, json};

/// A turn of a script.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    text: String,
    /// Tool names and their arguments as text.
    calls: Vec<(String, String)>,
    usage: (u64, u64),
    refuses: bool,
    pub(super) end: End,
    /// True if the model repeats this turn from then on.
    pub(super) always: bool,
}

/// The end of a turn.
#[derive(Debug, Clone)]
pub(super) enum End {
    /// The whole answer comes.
    Whole,
    /// The whole answer comes, byte by byte.
    Dripping,
    /// The connection closes before the end of the answer.
    BreaksOff,
    /// The answer stops, and the connection stays open.
    Hangs,
    /// No headers come, and the connection stays open.
    HangsAtOnce,
    /// A status other than 200, with these headers.
    Status(u16, Vec<(String, String)>),
}

/// Returns a turn with a text that ends the work.
pub(crate) fn say(text: &str) -> Turn {
    Turn { text: text.into(), calls: Vec::new(), usage: (100, 10), refuses: false, end: End::Whole, always: false }
}

/// Returns a turn that calls a tool.
pub(crate) fn call(tool: &str, arguments: Value) -> Turn {
    say("").also(tool, arguments)
}

/// Returns a turn that calls a tool with arguments that are not JSON.
pub(crate) fn garbled(tool: &str) -> Turn {
    Turn { calls: vec![(tool.into(), "{\"path\": oops".into())], ..say("") }
}

/// Returns an empty turn.
pub(crate) fn nothing() -> Turn {
    say("")
}

/// Returns a turn that refuses.
pub(crate) fn refuse(text: &str) -> Turn {
    Turn { refuses: true, ..say(text) }
}

/// Returns a turn that never answers.
pub(crate) fn hang() -> Turn {
    Turn { end: End::HangsAtOnce, ..say("") }
}

/// Returns a turn that answers with an HTTP status.
pub(crate) fn status(code: u16) -> Turn {
    Turn { end: End::Status(code, Vec::new()), ..say("") }
}

impl Turn {
    /// Adds a call of a tool.
    pub(crate) fn also(mut self, tool: &str, arguments: Value) -> Self {
        self.calls.push((tool.into(), arguments.to_string()));
        self
    }

    /// Adds a text before the tool calls.
    pub(crate) fn saying(self, text: &str) -> Self {
        Self { text: text.into(), ..self }
    }

    /// Sets the input and output tokens.
    pub(crate) fn using(self, input: u64, output: u64) -> Self {
        Self { usage: (input, output), ..self }
    }

    /// Adds a header to a status.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        if let End::Status(_, headers) = &mut self.end {
            headers.push((name.into(), value.into()));
        }
        self
    }

    /// Sends the answer byte by byte.
    pub(crate) fn dripping(self) -> Self {
        Self { end: End::Dripping, ..self }
    }

    /// Closes the connection before the end of the answer.
    pub(crate) fn breaking_off(self) -> Self {
        Self { end: End::BreaksOff, ..self }
    }

    /// Stops before the end of the answer and keeps the connection open.
    pub(crate) fn hanging(self) -> Self {
        Self { end: End::Hangs, ..self }
    }

    /// Repeats the turn from then on.
    pub(crate) fn always(self) -> Self {
        Self { always: true, ..self }
    }
}

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Anthropic,
    OpenAi,
}

impl Dialect {
    /// Returns the format for the path of a request.
    pub(super) fn of(path: &str) -> Option<Self> {
        match path {
            "/v1/messages" => Some(Self::Anthropic),
            "/v1/chat/completions" => Some(Self::OpenAi),
            _ => None,
        }
    }

    /// Returns the frames of a turn, one event each: those of the answer, then those that end it.
    /// `number` is the number of the turn.
    pub(super) fn frames(self, turn: &Turn, number: usize) -> (Vec<String>, Vec<String>) {
        match self {
            Self::Anthropic => anthropic(turn, number),
            Self::OpenAi => openai(turn, number),
        }
    }

    /// Returns an error in the form of this API.
    pub(super) fn complaint(self, status: u16) -> String {
        let kind = match status {
            401 => "authentication_error",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        let error = json!({"type": kind, "message": format!("scripted {status}")});
        match self {
            Self::Anthropic => json!({"type": "error", "error": error}).to_string(),
            Self::OpenAi => json!({ "error": error }).to_string(),
        }
    }
}

/// Returns the id of the tool call at this place of this turn.
fn id(number: usize, place: usize) -> String {
    format!("call_{number}_{place}")
}

/// Cuts a text into small pieces, between characters.
fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(7).map(|piece| piece.iter().collect()).collect()
}

fn anthropic(turn: &Turn, number: usize) -> (Vec<String>, Vec<String>) {
    let event = |value: Value| format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default());
    let (input, output) = turn.usage;
    let message = json!({
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "scripted-claude", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": input, "output_tokens": 1},
    });
    let mut body = vec![event(json!({"type": "message_start", "message": message})), event(json!({"type": "ping"}))];
    let mut index = 0;
    let mut block = |block: Value, deltas: Vec<Value>| {
        body.push(event(json!({"type": "content_block_start", "index": index, "content_block": block})));
        let delta = |delta| event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        body.extend(deltas.into_iter().map(delta));
        body.push(event(json!({"type": "content_block_stop", "index": index})));
        index += 1;
    };
    if !turn.text.is_empty() {
        let delta = |text| json!({"type": "text_delta", "text": text});
        block(json!({"type": "text", "text": ""}), pieces(&turn.text).into_iter().map(delta).collect());
    }
    for (place, (name, arguments)) in turn.calls.iter().enumerate() {
        let delta = |json| json!({"type": "input_json_delta", "partial_json": json});
        let start = json!({"type": "tool_use", "id": id(number, place), "name": name, "input": {}});
        block(start, pieces(arguments).into_iter().map(delta).collect());
    }
    let stop = match (turn.refuses, turn.calls.is_empty()) {
        (true, _) => "refusal",
        (false, true) => "end_turn",
        (false, false) => "tool_use",
    };
    let delta = json!({"stop_reason": stop, "stop_sequence": null});
    let end = json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": output}});
    (body, vec![event(end), event(json!({"type": "message_stop"}))])
}

fn openai(turn: &Turn, number: usize) -> (Vec<String>, Vec<String>) {
    let chunk = |choices: Value, usage: Value| {
        let value = json!({
            "id": format!("chatcmpl-{number}"), "object": "chat.completion.chunk", "created": 1, "model": "scripted-gpt",
            "choices": choices, "usage": usage,
        });
        format!("data: {value}\n\n")
    };
    let delta = |delta: Value| {
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": null, "logprobs": null}]), json!(null))
    };
    let mut body = vec![delta(json!({"role": "assistant", "content": null}))];
    let member = if turn.refuses { "refusal" } else { "content" };
    body.extend(pieces(&turn.text).into_iter().map(|text| delta(json!({ (member): text }))));
    for (place, (name, arguments)) in turn.calls.iter().enumerate() {
        let head = json!({"index": place, "id": id(number, place), "type": "function", "function": {"name": name, "arguments": ""}});
        body.push(delta(json!({"tool_calls": [head]})));
        let piece = |text| delta(json!({"tool_calls": [{"index": place, "function": {"arguments": text}}]}));
        body.extend(pieces(arguments).into_iter().map(piece));
    }
    let reason = if turn.calls.is_empty() { "stop" } else { "tool_calls" };
    let (input, output) = turn.usage;
    let usage = json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
    let end = vec![
        chunk(json!([{"index": 0, "delta": {}, "finish_reason": reason, "logprobs": null}]), json!(null)),
        chunk(json!([]), usage),
        "data: [DONE]\n\n".to_owned(),
    ];
    (body, end)
}
