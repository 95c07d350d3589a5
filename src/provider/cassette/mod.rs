//! A model that plays written turns: for tests, demos and work without a network. It counts no time and makes no request.
//!
//! ```yaml
//! name: fix-bug                       # optional, for people
//! window: 200000                      # optional: the tokens of the model's window; also max_output, and compact_at in percents
//! turns:
//!   - thinking: "Let me see."         # optional
//!     text: "I'll look at the code."  # streamed word by word
//!     tools:                          # optional; ids are made (call_<turn>_<n>) unless `id` gives one
//!       - { name: files-read, input: { path: src/lib.rs } }   # a text as input is taken as the raw arguments
//!     expect:                         # optional: what was said to the model since its last answer
//!       contains: ["2 tests failed"]
//!       tool_result: ok               # all results are ok; `error`: at least one is not
//!     usage: { input: 1200, output: 80 }   # optional; unknown when left out; also cached_input, cache_write, reasoning
//!     stop: end_turn                  # optional: end_turn, tool_use, output_limit, refusal, pause
//!     model: claude-sonnet-4-5        # optional: who has said it, as the report is to name it
//!   - content: [{ text: a }, { tool: { name: files-list } }, { text: b }]   # for another order than thinking, text, tools
//!   - fault: { kind: busy, message: "overloaded", retry_after: 2s, times: 2 }   # acted out so often; then the next turn
//!     text: "half of an"              # optional: what comes before the fault; also thinking, tools, content, usage and model
//!   - summary: true                   # for who asks for a summary of the conversation, and passed over by everybody else
//!     text: "Current state: …"
//!   - hang: true                      # never answers; asked again, the next turn
//! ```
//!
//! A turn with `of: "1"` is for the run's first sub-agent, one with `of: "1.2"` for the second one of that; one without it for the run
//! itself. Each agent has the turns that are for it and no others, so that any number of them may ask at the same time.
//!
//! A cassette without turns for summaries gives the next turn to who asks for one.
//!
//! Turns are played in order, one for each question. A cassette whose first question is for a later turn of a run (one that is
//! resumed) begins there: faults and hangs count as no turn.

mod recording;
mod script;

pub use recording::Recording;

use super::{Completion, DeltaSink, Provider, ProviderError, Request, SUMMARISER};
use crate::chat::{Block, Delta, Message, ModelError, ModelFault, Reply, Role, Spent};
use crate::yaml::Problems;
use script::{Act, Expect, Fault, ResultKind, Turn};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The recording and how far it was played, for one agent of a run.
#[derive(Debug)]
pub struct Cassette {
    reel: Arc<Reel>,
    /// The path of the sub-agent; empty for the run itself.
    of: String,
}

/// The recording, for all of them.
#[derive(Debug)]
struct Reel {
    name: String,
    /// By the agent whose they are.
    turns: BTreeMap<String, Vec<Turn>>,
    bounds: Bounds,
    /// How far each has come that has asked.
    cursors: Mutex<BTreeMap<String, Cursor>>,
}

/// What bounded the model of a recording: a conversation that was shortened is shortened at the same places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The tokens of its window.
    pub window: Option<u64>,
    /// The most tokens of an answer, where that was set.
    pub max_output: Option<u64>,
    /// Percents of the window at which the conversation was shortened.
    pub compact_at: Option<u64>,
}

/// Where a cassette stands.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    said: Place,
    summed_up: Place,
}

/// A place in a cassette.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// The index of the turn to play.
    turn: usize,
    /// How often that turn's fault was acted out.
    faults: u64,
}

impl Cassette {
    /// Reads a cassette; `name` is its path as the model's name has it.
    ///
    /// # Errors
    /// When the text is not a cassette, with line and column where the YAML parser knows them.
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

    async fn play(&self, request: &Request, deltas: DeltaSink<'_>) -> Result<Reply, ModelError> {
        let turn = self.next(request)?;
        deltas(Delta::Spent(Spent::default()));
        match &turn.act {
            Act::Hang => std::future::pending().await,
            Act::Fault(said, Fault { kind, message, retry_after_ms, spent, .. }) => {
                stream(said, deltas).await;
                let (message, spent) = (message.clone(), spent.clone().map(Box::new));
                Err(ModelError { fault: *kind, message, retry_after_ms: *retry_after_ms, spent })
            }
            Act::Reply(reply) => {
                stream(&reply.content, deltas).await;
                Ok(reply.clone())
            }
        }
    }

    /// The turn to play now; the cursor goes past it, so that two questions never get one turn.
    fn next(&self, request: &Request) -> Result<&Turn, ModelError> {
        let mut cursors = self.lock();
        let cursor = cursors.entry(self.of.clone()).or_insert_with(|| {
            let said = Place { turn: self.after_replies(request.turn.saturating_sub(1)), faults: 0 };
            Cursor { said, ..Cursor::default() }
        });
        let has_summaries = self.turns().iter().any(|turn| turn.is_summary);
        let is_summary = has_summaries && request.system.starts_with(SUMMARISER);
        // Summaries that nobody has asked for are passed over.
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
            self.wrong(format!("there are {turns} turns{whose}, and turn {number} was asked for with: {head}"))
        })?;
        if let Some(missing) = turn.expect.as_ref().and_then(|expect| missing(expect, asked)) {
            return Err(self.wrong(format!("turn {number}{whose} expects {missing}; asked with: {}", head_of(asked))));
        }
        at.faults += 1;
        let played_out = match &turn.act {
            Act::Fault(_, fault) => at.faults >= fault.times,
            Act::Hang | Act::Reply(_) => true,
        };
        if played_out {
            *at = Place { turn: number, faults: 0 };
        }
        Ok(turn)
    }

    /// The index behind the first `count` replies.
    fn after_replies(&self, count: u64) -> usize {
        let mut replies = 0;
        let turns = self.turns();
        turns
            .iter()
            .position(|turn| {
                let found = replies == count;
                replies += u64::from(!turn.is_summary && matches!(turn.act, Act::Reply(_)));
                found
            })
            .unwrap_or(turns.len())
    }

    fn turns(&self) -> &[Turn] {
        self.reel.turns.get(&self.of).map(Vec::as_slice).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Cursor>> {
        self.reel.cursors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wrong(&self, what: String) -> ModelError {
        ModelError::new(ModelFault::BadRequest, format!("{}: {what}", self.name()))
    }
}

impl Provider for Cassette {
    fn name(&self) -> String {
        format!("cassette/{}", self.reel.name)
    }

    fn complete<'a>(&'a self, request: &'a Request, deltas: DeltaSink<'a>) -> Completion<'a> {
        Box::pin(self.play(request, deltas))
    }

    fn bounds(&self) -> Option<Bounds> {
        Some(self.reel.bounds)
    }

    fn for_child(&self, path: &str) -> Option<Arc<dyn Provider>> {
        Some(Arc::new(Self { reel: Arc::clone(&self.reel), of: path.to_owned() }))
    }
}

/// Streams an answer word by word, letting others run in between, as a network would.
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

/// What was said to the model since it last spoke.
fn since_last_answer(messages: &[Message]) -> &[Message] {
    let answered = messages.iter().rposition(|message| message.role == Role::Assistant);
    &messages[answered.map_or(0, |last| last + 1)..]
}

/// What of the expectation is not met, if anything.
fn missing(expect: &Expect, asked: &[Message]) -> Option<String> {
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

/// The beginning of what was asked, for a message of one line.
fn head_of(asked: &[Message]) -> String {
    let text: String = texts(asked).collect::<Vec<_>>().join(" ");
    format!("{:?}", text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(120).collect::<String>())
}

#[cfg(test)]
mod tests;
