//! A provider that takes its answers from a YAML file, a cassette: recorded or written by hand. For
//! tests, demos and work without a network. It uses neither clock nor network, so a replay always
//! gives the same answers.
//!
//! ```yaml
//! name: fix-bug                       # optional, for people
//! window: 200000                      # optional: the model's context window, in tokens
//!                                     # also: max_output (tokens) and compact_at (percent)
//! turns:
//!   - thinking: "Let me see."         # optional
//!     text: "I'll look at the code."  # streamed word by word
//!     tools:                          # optional; the id is call_<turn>_<n> unless `id` is given
//!       # A string as `input` is the argument text as the model sent it; fledge parses it as JSON.
//!       - { name: files-read, input: { path: src/lib.rs } }
//!     expect:                         # optional: content of the messages since the last answer
//!       contains: ["2 tests failed"]
//!       tool_result: ok               # all results are ok; `error`: at least one is not
//!     # optional, unknown by default; also cached_input, cache_write, reasoning
//!     usage: { input: 1200, output: 80 }
//!     stop: end_turn                  # optional: end_turn, tool_use, output_limit, refusal, pause
//!     model: claude-sonnet-4-5        # optional: the model's name in the report
//!   # `content` allows another order than thinking, text, tools.
//!   - content: [{ text: a }, { tool: { name: files-list } }, { text: b }]
//!   # The fault occurs `times` times; then the next turn follows.
//!   - fault: { kind: busy, message: "overloaded", retry_after: 2s, times: 2 }
//!     # optional: the partial answer; also thinking, tools, content, usage and model
//!     text: "half of an"
//!   # Answers only the request for a summary with which fledge shortens a conversation; other
//!   # requests skip this turn.
//!   - summary: true
//!     text: "Current state: …"
//!   - hang: true                      # never answers; the next request gets the next turn
//! ```
//!
//! A turn with `of: "1"` belongs to the run's first sub-agent, and a turn with `of: "1.2"`
//! belongs to the second sub-agent that this sub-agent started. A turn without `of` belongs to the
//! run itself. Each agent plays only its turns, so any number of agents may ask concurrently.
//!
//! If a cassette has no summary turns, a request for a summary gets the next turn.
//!
//! Turns are played in order, one per request. After a resume, playback skips the answers that the
//! run already has: one entry of `turns` for each earlier turn of the run. Entries with `fault`,
//! `hang` or `summary` are not counted for this.

mod recording;
mod script;

pub use recording::Recording;

use super::{DeltaSink, ModelRequest, PendingReply, Provider, ProviderError, SUMMARISER, announce};
use crate::chat::{Block, Delta, Message, ModelError, ModelErrorKind, Reply, Role};
use crate::yaml::Problems;
use script::{ResultKind, ScriptAct, ScriptExpect, ScriptFault, ScriptTurn};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The recording and the playback position, for one agent of a run.
#[derive(Debug)]
pub struct Cassette {
    reel: Arc<Reel>,
    /// The path of the sub-agent; empty for the run itself.
    of: String,
}

/// The recording, shared by all agents of the run.
#[derive(Debug)]
struct Reel {
    name: String,
    /// The turns by agent.
    turns: BTreeMap<String, Vec<ScriptTurn>>,
    bounds: CassetteBounds,
    /// The playback position of each agent that has asked.
    cursors: Mutex<BTreeMap<String, Cursor>>,
}

/// The limits of the recorded model. With the same limits, replay compacts the conversation at the
/// same places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CassetteBounds {
    /// The context window, in tokens.
    pub window: Option<u64>,
    /// The token limit of an answer, if one was set.
    pub max_output: Option<u64>,
    /// The percentage of the window at which the conversation was compacted.
    pub compact_at: Option<u64>,
}

/// The playback position of one agent.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    said: Place,
    summed_up: Place,
}

/// A position in a cassette.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// The index of the turn to play.
    turn: usize,
    /// The number of times that this turn's fault was played.
    faults: u64,
}

impl Cassette {
    /// Parses a cassette; `name` is its path as it appears in the model's name.
    ///
    /// # Errors
    /// If the text is not a cassette. The error has line and column if the YAML parser knows them.
    pub fn parse(text: &str, name: &str) -> Result<Self, ProviderError> {
        let (bounds, turns) = script::parse(text, name).map_err(|problem| {
            let problems = Problems::from(problem).seen_in(text);
            ProviderError::BadCassette { name: name.to_owned(), problems }
        })?;
        let mut reel = Reel { name: name.to_owned(), turns: BTreeMap::new(), bounds, cursors: Mutex::default() };
        for (of, turn) in turns {
            reel.turns.entry(of).or_default().push(turn);
        }
        Ok(Self { reel: Arc::new(reel), of: String::new() })
    }

    async fn play(&self, request: &ModelRequest, deltas: DeltaSink<'_>) -> Result<Reply, ModelError> {
        let turn = self.next(request)?;
        announce(deltas).await;
        match &turn.act {
            ScriptAct::Hang => std::future::pending().await,
            ScriptAct::Fault(said, ScriptFault { kind, message, retry_after_ms, spent, .. }) => {
                stream(said, deltas).await;
                let (message, spent) = (message.clone(), spent.clone().map(Box::new));
                Err(ModelError { fault: *kind, message, retry_after_ms: *retry_after_ms, spent })
            }
            ScriptAct::Reply(reply) => {
                stream(&reply.content, deltas).await;
                Ok(reply.clone())
            }
        }
    }

    /// Returns the turn to play now and moves the cursor past it, so two requests never get the
    /// same turn.
    fn next(&self, request: &ModelRequest) -> Result<&ScriptTurn, ModelError> {
        let mut cursors = self.lock();
        let cursor = cursors.entry(self.of.clone()).or_insert_with(|| {
            let said = Place { turn: self.after_replies(request.turn.saturating_sub(1)), faults: 0 };
            Cursor { said, ..Cursor::default() }
        });
        let has_summaries = self.turns().iter().any(|turn| turn.is_summary);
        let is_summary = has_summaries && request.system.starts_with(SUMMARISER);
        // Skip recorded summaries that no request asked for.
        let from = if is_summary { cursor.said.turn.max(cursor.summed_up.turn) } else { cursor.said.turn };
        let at = if is_summary { &mut cursor.summed_up } else { &mut cursor.said };
        let next = self.turns().iter().skip(from).position(|turn| turn.is_summary == is_summary);
        let next = next.map_or(self.turns().len(), |ahead| from + ahead);
        if next != at.turn {
            *at = Place { turn: next, faults: 0 };
        }
        let number = at.turn + 1;
        let asked = since_last_answer(&request.messages);
        let whose = if self.of.is_empty() { String::new() } else { format!(" of sub-agent {}", self.of) };
        let turn = self.turns().get(at.turn).ok_or_else(|| {
            let (turns, head) = (self.turns().len(), head_of(asked));
            self.wrong(format!(
                "turn {number}{whose} is missing: the cassette has {turns} (add the answer under `turns:`, or \
                 record the run anew with `--record FILE`); asked with: {head}"
            ))
        })?;
        if let Some(missing) = turn.expect.as_ref().and_then(|expect| missing(expect, asked)) {
            return Err(self.wrong(format!("turn {number}{whose} expects {missing}; asked with: {}", head_of(asked))));
        }
        at.faults += 1;
        let played_out = match &turn.act {
            ScriptAct::Fault(_, fault) => at.faults >= fault.times,
            ScriptAct::Hang | ScriptAct::Reply(_) => true,
        };
        if played_out {
            *at = Place { turn: number, faults: 0 };
        }
        Ok(turn)
    }

    /// Returns the index of the turn after the first `count` replies.
    fn after_replies(&self, count: u64) -> usize {
        let mut replies = 0;
        let turns = self.turns();
        turns
            .iter()
            .position(|turn| {
                let found = replies == count;
                replies += u64::from(!turn.is_summary && matches!(turn.act, ScriptAct::Reply(_)));
                found
            })
            .unwrap_or(turns.len())
    }

    fn turns(&self) -> &[ScriptTurn] {
        self.reel.turns.get(&self.of).map(Vec::as_slice).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Cursor>> {
        self.reel.cursors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wrong(&self, what: String) -> ModelError {
        ModelError::new(ModelErrorKind::BadRequest, format!("{}: {what}", self.name()))
    }
}

impl Provider for Cassette {
    fn name(&self) -> String {
        format!("cassette/{}", self.reel.name)
    }

    fn complete<'a>(&'a self, request: &'a ModelRequest, deltas: DeltaSink<'a>) -> PendingReply<'a> {
        Box::pin(self.play(request, deltas))
    }

    fn bounds(&self) -> Option<CassetteBounds> {
        Some(self.reel.bounds)
    }

    fn for_child(&self, path: &str) -> Option<Arc<dyn Provider>> {
        Some(Arc::new(Self { reel: Arc::clone(&self.reel), of: path.to_owned() }))
    }
}

/// Sends an answer to `deltas`: text and thinking word by word, each tool call as a whole, other
/// blocks not at all. Yields after each word, so that other tasks can run, as they can while a real
/// provider streams.
async fn stream(content: &[Block], deltas: DeltaSink<'_>) {
    for block in content {
        let (text, delta): (&str, fn(String) -> Delta) = match block {
            Block::Text { text } => (text, Delta::Text),
            Block::Thinking { text, .. } => (text, Delta::Thinking),
            Block::ToolUse(call) => {
                deltas(Delta::ToolCall(call.clone()));
                continue;
            }
            Block::Image(_) | Block::ToolResult(_) | Block::Opaque { .. } => continue,
        };
        for word in text.split_inclusive(' ') {
            deltas(delta(word.to_owned()));
            tokio::task::yield_now().await;
        }
    }
}

/// Returns the messages after the last answer of the model.
fn since_last_answer(messages: &[Message]) -> &[Message] {
    let answered = messages.iter().rposition(|message| message.role == Role::Assistant);
    &messages[answered.map_or(0, |last| last + 1)..]
}

/// Describes the part of an expectation that is not met, if any.
fn missing(expect: &ScriptExpect, asked: &[Message]) -> Option<String> {
    if let Some(text) = expect.contains.iter().find(|text| !texts(asked).any(|said| said.contains(text.as_str()))) {
        return Some(format!("the text {text:?}"));
    }
    let mut results = asked.iter().flat_map(|message| &message.content).filter_map(|block| match block {
        Block::ToolResult(result) => Some(result.is_error),
        Block::Text { .. } | Block::Thinking { .. } | Block::Image(_) | Block::ToolUse(_) | Block::Opaque { .. } => {
            None
        }
    });
    match expect.tool_result? {
        ResultKind::Error => (!results.any(|failed| failed)).then(|| "a tool result that is an error".to_owned()),
        ResultKind::Ok => (results.next() != Some(false) || results.any(|failed| failed))
            .then(|| "tool results without an error".to_owned()),
    }
}

fn texts(asked: &[Message]) -> impl Iterator<Item = &str> {
    asked.iter().flat_map(|message| &message.content).filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        Block::ToolResult(result) => Some(result.content.as_str()),
        Block::Thinking { .. } | Block::Image(_) | Block::ToolUse(_) | Block::Opaque { .. } => None,
    })
}

/// Returns the beginning of the messages, for a one-line error.
fn head_of(asked: &[Message]) -> String {
    let text: String = texts(asked).collect::<Vec<_>>().join(" ");
    format!("{:?}", text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(120).collect::<String>())
}

#[cfg(test)]
mod tests;
