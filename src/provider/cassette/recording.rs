//! The writer of cassettes: it records the answers of models in the format that
//! [`Cassette`](super::Cassette) reads.

use super::CassetteBounds;
use crate::chat::{Block, ModelError, ModelErrorKind, Reply, Spent, StopReason, ToolCall, ToolInput, Usage};
use serde::Serialize;
use serde_json::Value;

/// The recorded turns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recording {
    bounds: CassetteBounds,
    turns: Vec<Taken>,
    /// The path of the sub-agent whose turns are recorded; `None` for the run itself.
    of: Option<String>,
}

impl Recording {
    /// Sets the agent of the following turns by its path; `None` selects the run itself.
    pub fn set_agent(&mut self, of: Option<&str>) {
        self.of = of.map(str::to_owned);
    }

    /// Records a complete answer. Opaque data is left out, because a cassette does not need it
    /// back.
    pub fn reply(&mut self, reply: &Reply) {
        let taken = Taken {
            usage: reply.usage.as_ref().map(Tokens::from_usage),
            stop: Some(reply.stop),
            model: Some(reply.model.clone()),
            ..self.taken(&reply.content)
        };
        self.turns.push(taken);
    }

    /// Sets the limits of the model.
    pub fn within(&mut self, bounds: CassetteBounds) {
        self.bounds = bounds;
    }

    /// Marks the last turn as the answer to a request for a summary.
    pub fn was_summary(&mut self) {
        if let Some(last) = self.turns.last_mut() {
            last.summary = true;
        }
    }

    /// Creates a turn with this content.
    fn taken(&self, content: &[Block]) -> Taken {
        let mut taken = Taken { of: self.of.clone(), ..Taken::default() };
        let blocks: Vec<RecordedBlock> = content.iter().filter_map(RecordedBlock::from_block).collect();
        if is_plain(&blocks) {
            for block in blocks {
                match block {
                    RecordedBlock::Thinking { thinking } => taken.thinking = Some(thinking),
                    RecordedBlock::Text { text } => taken.text = Some(text),
                    RecordedBlock::Tool { tool } => taken.tools.push(tool),
                }
            }
        } else {
            taken.content = blocks;
        }
        taken
    }

    /// Records a failed call, with the partial answer before the failure.
    pub fn fault(&mut self, error: &ModelError) {
        let ModelError { fault: kind, message, retry_after_ms, spent } = error.clone();
        let retry_after = retry_after_ms.map(|wait| format!("{wait}ms"));
        let fault = Some(Broken { kind, message, retry_after, bytes: spent.as_ref().map(|spent| spent.bytes) });
        let Spent { model, usage, partial, .. } = *spent.unwrap_or_default();
        let (usage, model) = (usage.as_ref().map(Tokens::from_usage), Some(model).filter(|model| !model.is_empty()));
        self.turns.push(Taken { fault, usage, model, ..self.taken(&partial) });
    }

    /// Returns the number of turns.
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    /// Returns true if no turn is recorded.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Returns the cassette as YAML, with a name for people.
    ///
    /// # Errors
    /// If the recording cannot be written as YAML.
    pub fn to_yaml(&self, name: &str) -> Result<String, serde_yaml::Error> {
        let CassetteBounds { window, max_output, compact_at } = self.bounds;
        serde_yaml::to_string(&Script { name, window, max_output, compact_at, turns: &self.turns })
    }
}

#[derive(Serialize)]
struct Script<'s> {
    name: &'s str,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compact_at: Option<u64>,
    turns: &'s [Taken],
}

/// A recorded turn, with the keys that the parser reads.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Taken {
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    summary: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    content: Vec<RecordedBlock>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Tokens>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<StopReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<Broken>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
enum RecordedBlock {
    Thinking { thinking: String },
    Text { text: String },
    Tool { tool: Tool },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Tool {
    id: String,
    name: String,
    input: Value,
    /// The parse error of malformed arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Broken {
    kind: ModelErrorKind,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Tokens {
    input: u64,
    output: u64,
    #[serde(skip_serializing_if = "is_zero")]
    cached_input: u64,
    #[serde(skip_serializing_if = "is_zero")]
    cache_write: u64,
    #[serde(skip_serializing_if = "is_zero")]
    reasoning: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Tokens {
    fn from_usage(usage: &Usage) -> Self {
        Self {
            input: usage.input_tokens,
            output: usage.output_tokens,
            cached_input: usage.cached_tokens,
            cache_write: usage.cache_write_tokens,
            reasoning: usage.reasoning_tokens,
        }
    }
}

impl RecordedBlock {
    fn from_block(block: &Block) -> Option<Self> {
        match block {
            Block::Thinking { text, .. } => Some(Self::Thinking { thinking: text.clone() }),
            Block::Text { text } => Some(Self::Text { text: text.clone() }),
            Block::ToolUse(call) => Some(Self::Tool { tool: Tool::from_call(call) }),
            Block::Image(_) | Block::ToolResult(_) | Block::Opaque { .. } => None,
        }
    }
}

impl Tool {
    fn from_call(call: &ToolCall) -> Self {
        let error = match &call.input {
            ToolInput::Object(_) => None,
            ToolInput::Malformed { error, .. } => Some(error.clone()),
        };
        Self { id: call.id.clone(), name: call.name.clone(), input: call.input.to_value(), error }
    }
}

/// Returns true if the short form can express the content: at most one thought, then at most one
/// text, then calls.
fn is_plain(blocks: &[RecordedBlock]) -> bool {
    let rank = |block: &RecordedBlock| match block {
        RecordedBlock::Thinking { .. } => 0,
        RecordedBlock::Text { .. } => 1,
        RecordedBlock::Tool { .. } => 2,
    };
    blocks.windows(2).all(|pair| rank(&pair[0]) < rank(&pair[1]) || rank(&pair[0]) == 2 && rank(&pair[1]) == 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::Delta;
    use crate::provider::{Cassette, ModelRequest, Provider};
    use serde_json::json;

    fn call(name: &str, input: ToolInput) -> Block {
        Block::ToolUse(ToolCall { id: format!("id-{name}"), name: name.into(), input })
    }

    fn text(text: &str) -> Block {
        Block::Text { text: text.into() }
    }

    async fn played(recording: &Recording, turns: usize) -> Vec<Result<Reply, ModelError>> {
        let cassette = Cassette::parse(&recording.to_yaml("a run").unwrap(), "tape.yaml").unwrap();
        let request =
            ModelRequest { system: String::new(), messages: [].into(), tools: [].into(), turn: 1, max_output: None };
        let mut all = Vec::new();
        for _ in 0..turns {
            all.push(cassette.complete(&request, &|_| {}).await);
        }
        all
    }

    #[tokio::test]
    async fn what_is_recorded_is_played_again_as_it_was_whatever_is_in_it() {
        let odd: String =
            (0..0x3000_u32).chain([0xfeff, 0xfffd, 0x1f600, 0x10ffff]).filter_map(char::from_u32).collect();
        let usage = Usage {
            input_tokens: 9,
            output_tokens: 8,
            cached_tokens: 7,
            cache_write_tokens: 6,
            reasoning_tokens: 5,
            ..Usage::default()
        };
        let reply = |content: Vec<Block>, stop| Reply {
            content,
            stop,
            usage: Some(usage.clone()),
            model: "m-1".into(),
            lacks_end: false,
        };
        let odd_input =
            json!({ "a": [1, -2.5, 1e300, null, true, u64::MAX], "no": { "": odd }, "y": "~", "1": "0x10" });
        let replies = [
            reply(
                vec![
                    Block::Thinking { text: "hm\n\n  so: ".into(), opaque: None },
                    text("  # not a comment\n---\n- x\t\n"),
                    call("a", ToolInput::Object(odd_input)),
                    call("b", ToolInput::Object(json!({}))),
                ],
                StopReason::ToolUse,
            ),
            reply(vec![text(&odd), call("c", ToolInput::parse("{\"path\": oops")), text("")], StopReason::ToolUse),
            reply(vec![call("d", ToolInput::parse(&format!("{{\"long\": {}", "x".repeat(400))))], StopReason::ToolUse),
            reply(vec![], StopReason::EndTurn),
            Reply { usage: None, ..reply(vec![text("null")], StopReason::Refusal) },
        ];
        let faults = [
            ModelError {
                fault: ModelErrorKind::Busy,
                message: "later: \"now\"".into(),
                retry_after_ms: Some(1500),
                spent: None,
            },
            ModelError::network("gone"),
        ];
        let mut recording = Recording::default();
        recording.reply(&replies[0]);
        faults.iter().for_each(|fault| recording.fault(fault));
        replies[1..].iter().for_each(|reply| recording.reply(reply));
        let mut wanted = vec![Ok(replies[0].clone())];
        wanted.extend(faults.map(Err));
        wanted.extend(replies[1..].iter().cloned().map(Ok));
        assert_eq!(played(&recording, 7).await, wanted);
    }

    #[tokio::test]
    async fn what_was_said_before_a_failure_is_played_again_with_what_it_used() {
        let spent = |blocks: Vec<Block>, bytes| Spent {
            model: "m-1".into(),
            usage: Some(Usage { input_tokens: 9, output_tokens: 2, ..Usage::default() }),
            bytes,
            partial: blocks.into(),
        };
        let blocks = vec![
            Block::Thinking { text: "hm ".into(), opaque: None },
            text("a b"),
            call("c", ToolInput::parse("{}")),
            text("d"),
        ];
        let faults = [
            ModelError::network("cut").after(spent(blocks.clone(), 40)),
            ModelError::network("cut at once").after(Spent::default()),
            ModelError::network("refused"),
        ];
        let mut recording = Recording::default();
        faults.iter().for_each(|fault| recording.fault(fault));
        let cassette = Cassette::parse(&recording.to_yaml("a run").unwrap(), "tape.yaml").unwrap();
        let request =
            ModelRequest { system: String::new(), messages: [].into(), tools: [].into(), turn: 1, max_output: None };
        for fault in &faults {
            let received = std::sync::Mutex::new(String::new());
            let set_agent = |delta: Delta| match delta {
                Delta::Text(piece) | Delta::Thinking(piece) => received.lock().unwrap().push_str(&piece),
                Delta::ToolCall(call) => received.lock().unwrap().push_str(&call.name),
                Delta::Spent(_) => {}
            };
            let played = cassette.complete(&request, &set_agent).await.unwrap_err();
            let mut wanted = fault.clone();
            let was_said = wanted.spent.as_mut().map(|spent| std::mem::take(&mut spent.partial)).unwrap_or_default();
            assert_eq!(
                (played, received.lock().unwrap().as_str()),
                (wanted, if was_said.is_empty() { "" } else { "hm a bcd" })
            );
        }
    }

    #[test]
    fn a_recording_reads_like_a_cassette_that_is_written_by_hand() {
        let mut recording = Recording::default();
        recording.reply(&Reply {
            content: vec![text("I'll look.\nNow."), call("files-read", ToolInput::Object(json!({ "path": "a.rs" })))],
            stop: StopReason::ToolUse,
            usage: Some(Usage { input_tokens: 10, output_tokens: 2, ..Usage::default() }),
            model: "m".into(),
            lacks_end: false,
        });
        let yaml = "name: a run\nturns:\n- text: |-\n    I'll look.\n    Now.\n  tools:\n  - id: id-files-read\n    name: files-read\n    \
            input:\n      path: a.rs\n  usage:\n    input: 10\n    output: 2\n  stop: tool_use\n  model: m\n";
        assert_eq!(recording.to_yaml("a run").unwrap(), yaml);
    }
}
