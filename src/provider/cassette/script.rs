//! The parser of cassettes: it turns YAML into checked turns.

use super::CassetteBounds;
use crate::{
    chat::{Block, ModelErrorKind, Reply, Spent, StopReason, ToolCall, ToolInput, Usage, text_of},
    limits::MAX_CASSETTE,
    yaml::{FilePlace, Problem, YamlValue, meant, parse as parse_places},
};
use jiff::SignedDuration;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value as Json;

/// One turn: the expected request, and the action to play.
#[derive(Debug)]
pub(super) struct ScriptTurn {
    /// True if the turn answers only requests for a summary of the conversation.
    pub(super) is_summary: bool,
    pub(super) expect: Option<ScriptExpect>,
    pub(super) act: ScriptAct,
}

/// The action of a turn.
#[derive(Debug)]
pub(super) enum ScriptAct {
    Reply(Reply),
    /// A partial answer, then a failure.
    Fault(Vec<Block>, ScriptFault),
    Hang,
}

/// A failure to play.
#[derive(Debug)]
pub(super) struct ScriptFault {
    pub(super) kind: ModelErrorKind,
    pub(super) message: String,
    pub(super) retry_after_ms: Option<u64>,
    pub(super) times: u64,
    /// The use of the failed call; `None` if the request was refused.
    pub(super) spent: Option<Spent>,
}

/// The expected content of the messages after the model's last answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptExpect {
    #[serde(default)]
    pub(super) contains: Vec<String>,
    pub(super) tool_result: Option<ResultKind>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ResultKind {
    Ok,
    Error,
}

/// Parses a cassette. Returns the limits of its model, and each turn with the path of its
/// sub-agent, which is empty for the run itself.
pub(super) fn parse(text: &str, name: &str) -> Result<(CassetteBounds, Vec<(String, ScriptTurn)>), Problem> {
    if text.len() > MAX_CASSETTE {
        return Err(Problem::of_file(format!("too large: {} bytes, at most {MAX_CASSETTE} are allowed", text.len())));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        let empty = Problem::of_file("the file is empty: expected a cassette");
        return Err(empty.hint("write e.g. `turns: [{ text: Done. }]`, or record a run with `--record FILE`"));
    }
    // The untyped parse rejects duplicate keys, which the typed parse would not notice.
    serde_yaml::from_str::<serde_yaml::Value>(text)
        .map_err(|error| not_yaml(text).unwrap_or_else(|| problem(error)))?;
    let script: RawScript = serde_yaml::from_str(text).map_err(problem)?;
    let RawScript { window, max_output, compact_at, turns, .. } = script;
    for (key, zero) in [("window", window == Some(0)), ("max_output", max_output == Some(0))] {
        if zero {
            return Err(Problem::of_file(format!("invalid `{key}: 0`: expected at least 1")));
        }
    }
    if let Some(percent) = compact_at.filter(|percent| !(1..=100).contains(percent)) {
        return Err(Problem::of_file(format!("invalid `compact_at: {percent}`: expected a percentage from 1 to 100")));
    }
    let wrong = |number: usize, what: String| {
        let problem = Problem::of_file(format!("turn {number}: {what}"));
        Problem { place: place_of(text, number), ..problem }
    };
    let turn = |(number, turn): (usize, RawTurn)| turn.check(number, name).map_err(|what| wrong(number, what));
    let turns = (1..).zip(turns).map(turn).collect::<Result<_, Problem>>()?;
    Ok((CassetteBounds { window, max_output, compact_at }, turns))
}

/// Returns the problem of a text that is not YAML. fledge's own parser locates its beginning more
/// precisely than serde_yaml.
fn not_yaml(text: &str) -> Option<Problem> {
    parse_places(text, 1).err().filter(|problem| problem.message.starts_with("not YAML"))
}

/// Converts a parser error, with its position and a suggestion for a misspelt word. The parser
/// lists the known words after an unknown one, each in backquotes.
fn problem(error: serde_yaml::Error) -> Problem {
    let text = error.to_string();
    let at = error.location().map(|at| FilePlace { line: at.line(), column: at.column() });
    let end = at.map(|FilePlace { line, column }| format!(" at line {line} column {column}")).unwrap_or_default();
    let message = text.strip_suffix(&end).unwrap_or(&text).to_owned();
    let unknown = text.find("unknown field `").or_else(|| text.find("unknown variant `"));
    let mut words = unknown.map_or("", |at| &text[at..]).split('`').skip(1).step_by(2);
    let hint = words.next().and_then(|word| meant(word, words));
    Problem { place: at, hint, ..Problem::of_file(message) }
}

/// Returns the position of a turn, unless the cassette is larger than the files that people write.
fn place_of(text: &str, number: usize) -> Option<FilePlace> {
    let YamlValue::Map(entries) = parse_places(text, 1).ok()?.value else { return None };
    let (_, turns) = entries.into_iter().find(|(key, _)| key.text == "turns")?;
    let YamlValue::List(turns) = turns.value else { return None };
    turns.get(number.checked_sub(1)?).map(|turn| turn.place)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScript {
    /// A name for people; not used.
    #[serde(default, rename = "name")]
    _name: Option<IgnoredAny>,
    window: Option<u64>,
    max_output: Option<u64>,
    compact_at: Option<u64>,
    turns: Vec<RawTurn>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTurn {
    text: Option<String>,
    thinking: Option<String>,
    #[serde(default)]
    tools: Vec<RawTool>,
    #[serde(default)]
    content: Vec<RawBlock>,
    model: Option<String>,
    expect: Option<ScriptExpect>,
    usage: Option<RawUsage>,
    stop: Option<StopReason>,
    fault: Option<RawFault>,
    #[serde(default)]
    hang: bool,
    #[serde(default)]
    summary: bool,
    of: Option<Json>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTool {
    id: Option<String>,
    name: String,
    #[serde(default)]
    input: Json,
    /// The error to report for malformed arguments; `input` is then passed on unparsed.
    error: Option<String>,
}

/// A block with exactly one of the three keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBlock {
    thinking: Option<String>,
    text: Option<String>,
    tool: Option<RawTool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawUsage {
    input: u64,
    output: u64,
    #[serde(default)]
    cached_input: u64,
    #[serde(default)]
    cache_write: u64,
    #[serde(default)]
    reasoning: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFault {
    kind: ModelErrorKind,
    message: Option<String>,
    retry_after: Option<String>,
    times: Option<u64>,
    /// The number of bytes of the answer that had arrived; by default the length of the recorded
    /// text. 0 means that the model was at work but had sent nothing.
    bytes: Option<u64>,
}

impl RawTurn {
    fn check(self, number: usize, name: &str) -> Result<(String, ScriptTurn), String> {
        let wrong = str::to_owned;
        let of = self.of.as_ref().map(path).transpose()?.unwrap_or_default();
        let speaks = self.text.is_some() || self.thinking.is_some() || !self.tools.is_empty();
        let replies = self.usage.is_some() || self.stop.is_some() || self.model.is_some() || !self.content.is_empty();
        if !self.content.is_empty() && speaks {
            return Err(wrong("`content` cannot be combined with `thinking`, `text` or `tools`"));
        }
        let mut content = spoken(self.thinking, self.text);
        content.extend((1..).zip(self.tools).map(|(call, tool)| Block::ToolUse(tool.call(number, call))));
        for (place, block) in (1..).zip(self.content) {
            content.push(block.check(number, place)?);
        }
        let usage = self.usage.map(RawUsage::tokens);
        let act = match (self.hang, self.fault) {
            (true, None) if !speaks && !replies => ScriptAct::Hang,
            (true, _) => return Err(wrong("`hang` can only be combined with `expect`")),
            (false, Some(_)) if self.stop.is_some() => return Err(wrong("`fault` cannot be combined with `stop`")),
            (false, Some(fault)) => {
                let fault = fault.check(&content, (self.model, usage))?;
                ScriptAct::Fault(content, fault)
            }
            (false, None) if !speaks && !replies => {
                return Err(wrong("nothing to answer: give `text`, `tools`, `fault` or `hang`"));
            }
            (false, None) => {
                let calls = content.iter().any(|block| matches!(block, Block::ToolUse(_)));
                let stop = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
                let model = self.model.unwrap_or_else(|| name.to_owned());
                ScriptAct::Reply(Reply { content, stop: self.stop.unwrap_or(stop), usage, model, lacks_end: false })
            }
        };
        Ok((of, ScriptTurn { is_summary: self.summary, expect: self.expect, act }))
    }
}

/// Parses the path of a sub-agent. The YAML number `1` is a valid path. `1.10` is rejected as a
/// number, because YAML does not keep how it was written.
fn path(of: &Json) -> Result<String, String> {
    let text = match (of.as_str(), of.as_u64()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(number)) => number.to_string(),
        (None, None) => return Err(format!("`of: {of}` is not text: put the path in quotes, e.g. \"1.2\"")),
    };
    let is_number = |part: &str| part.parse::<u64>().is_ok_and(|number| number > 0 && !part.starts_with(['0', '+']));
    if text.split('.').all(is_number) {
        return Ok(text);
    }
    Err(format!("invalid sub-agent path `of: {text}`: expected \"1\", or \"1.2\" for the second child of the first"))
}

impl RawTool {
    fn call(self, turn: usize, number: usize) -> ToolCall {
        let input = match self.input {
            Json::String(text) => match self.error {
                Some(error) => ToolInput::Malformed { text, error },
                None => ToolInput::parse(&text),
            },
            Json::Null => ToolInput::parse(""),
            object @ Json::Object(_) => ToolInput::Object(object),
            other => ToolInput::parse(&other.to_string()),
        };
        ToolCall { id: self.id.unwrap_or_else(|| format!("call_{turn}_{number}")), name: self.name, input }
    }
}

impl RawBlock {
    fn check(self, turn: usize, place: usize) -> Result<Block, String> {
        match (self.thinking, self.text, self.tool) {
            (Some(text), None, None) => Ok(Block::Thinking { text, opaque: None }),
            (None, Some(text), None) => Ok(Block::Text { text }),
            (None, None, Some(tool)) => Ok(Block::ToolUse(tool.call(turn, place))),
            _ => Err(format!("content {place} must be one of `thinking`, `text` and `tool`")),
        }
    }
}

impl RawUsage {
    fn tokens(self) -> Usage {
        Usage {
            input_tokens: self.input,
            output_tokens: self.output,
            cached_tokens: self.cached_input,
            cache_write_tokens: self.cache_write,
            reasoning_tokens: self.reasoning,
            ..Usage::default()
        }
    }
}

impl RawFault {
    /// Checks the fault together with the partial answer, the model and the token counts. Without
    /// any of these the fault is a refused request.
    fn check(self, partial: &[Block], (model, usage): (Option<String>, Option<Usage>)) -> Result<ScriptFault, String> {
        let is_begun = self.bytes.is_some() || !partial.is_empty() || usage.is_some();
        let bytes = self.bytes.unwrap_or_else(|| text_of(partial).len() as u64);
        let spent = is_begun.then(|| Spent { model: model.unwrap_or_default(), usage, bytes, ..Spent::default() });
        let retry_after_ms = match self.retry_after {
            None => None,
            Some(text) => {
                let wait: Option<SignedDuration> = text.parse().ok();
                let wait = wait.and_then(|wait| u64::try_from(wait.as_millis()).ok());
                Some(wait.ok_or_else(|| format!("invalid `retry_after: {text}`: expected e.g. 2s or 500ms"))?)
            }
        };
        let times = self.times.unwrap_or(1);
        if times == 0 {
            return Err("invalid `times: 0`: expected at least 1".to_owned());
        }
        let message = self.message.unwrap_or_else(|| "simulated by the cassette".to_owned());
        Ok(ScriptFault { kind: self.kind, message, retry_after_ms, times, spent })
    }
}

fn spoken(thinking: Option<String>, text: Option<String>) -> Vec<Block> {
    let thinking = thinking.map(|text| Block::Thinking { text, opaque: None });
    thinking.into_iter().chain(text.map(|text| Block::Text { text })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_cassette_is_refused_with_the_place() {
        let cases = [
            ("turns:\n  - text: a\n    txt: b\n", "turns[0]: unknown field `txt`"),
            ("turns:\n  - { fault: { kind: tired } }", "2:"),
            ("turns:\n  - { tools: [{ name: x, input: { a: 1, a: 2 } }] }", "2:"),
            ("turns:\n  - { text: a, content: [{ text: b }] }", "turn 1: `content` cannot be combined with"),
            ("turns:\n  - { content: [{ text: a, thinking: b }] }", "turn 1: content 1 must be one of"),
            ("turns:\n  - {}", "turn 1: nothing to answer"),
            ("window: 0\nturns: []", "invalid `window: 0`: expected at least 1"),
            ("compact_at: 101\nturns: []", "invalid `compact_at: 101`"),
            ("turns:\n  - { hang: true, text: a }", "turn 1: `hang` can only be combined with"),
            ("turns:\n  - { fault: { kind: busy }, stop: pause }", "turn 1: `fault` cannot be combined with `stop`"),
            ("turns:\n  - { fault: { kind: busy, times: 0 } }", "turn 1: invalid `times: 0`"),
            ("turns:\n  - { fault: { kind: busy, retry_after: soon } }", "turn 1: invalid `retry_after: soon`"),
            ("turns:\n  - { of: 1.2, text: a }", "turn 1: `of: 1.2` is not text: put the path in quotes"),
            ("turns:\n  - { of: '1.', text: a }", "turn 1: invalid sub-agent path `of: 1.`"),
            ("turns:\n  - { of: 0, text: a }", "turn 1: invalid sub-agent path `of: 0`"),
            ("turn: []", "(did you mean `turns`?)"),
            ("turns:\n  - tools: [{ nme: a }]\n", "turns[0].tools[0]: unknown field `nme`"),
            ("turns:\n  - tools: [{ nme: a }]\n", "(did you mean `name`?)"),
            ("turns:\n  - { text: a, stop: end_trun }\n", "(did you mean `end_turn`?)"),
        ];
        for (text, wanted) in cases {
            let found = parse(text, "c").unwrap_err().to_string();
            assert!(found.contains(wanted), "{text}: {found}");
        }
    }

    #[test]
    fn a_turn_that_makes_no_sense_is_named_with_the_place_where_it_begins() {
        let found = parse("name: x\nturns:\n  - text: a\n  - { hang: true, text: a }\n", "c").unwrap_err();
        assert_eq!(found.to_string(), "4:5: turn 2: `hang` can only be combined with `expect`");
        let found = parse("turns:\n  - text: a\n    txt: b\n", "c").unwrap_err();
        assert_eq!(
            (found.place, found.message.starts_with("turns[0]: unknown")),
            (Some(FilePlace { line: 3, column: 5 }), true)
        );
        assert!(!found.message.contains("line 3"), "{found}");
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_cassette() {
        assert_eq!(parse("\u{feff}name: x\nturns: []\n", "c").unwrap().1.len(), 0);
    }
}
