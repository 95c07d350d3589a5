//! A model that plays written turns: for tests, demos and work without a network. It counts no time and makes no request.
//!
//! ```yaml
//! name: fix-bug                       # optional, for people
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
//!   - hang: true                      # never answers; asked again, the next turn
//! ```
//!
//! A turn with `of: "1"` is for the run's first sub-agent, one with `of: "1.2"` for the second one of that; one without it for the run
//! itself. Each agent has the turns that are for it and no others, so that any number of them may ask at the same time.
//!
//! Turns are played in order, one for each question. A cassette whose first question is for a later turn of a run (one that is
//! resumed) begins there: faults and hangs count as no turn.

mod recording;
mod script;

pub use recording::Recording;

use super::{Completion, DeltaSink, Provider, ProviderError, Request};
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
    /// How far each has come that has asked.
    cursors: Mutex<BTreeMap<String, Cursor>>,
}

/// Where a cassette stands.
#[derive(Debug, Clone, Copy)]
struct Cursor {
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
        let turns = script::parse(text, name).map_err(|problem| {
            let problems = Problems::from(problem).seen_in(text);
            ProviderError::BadCassette { name: name.to_owned(), problems }
        })?;
        let mut reel = Reel { name: name.to_owned(), turns: BTreeMap::new(), cursors: Mutex::default() };
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
                let (message, spent) = (message.clone(), spent.clone());
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
        let at = cursors
            .entry(self.of.clone())
            .or_insert_with(|| Cursor { turn: self.after_replies(request.turn.saturating_sub(1)), faults: 0 });
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
            *at = Cursor { turn: number, faults: 0 };
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
                replies += u64::from(matches!(turn.act, Act::Reply(_)));
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
mod tests {
    use super::*;
    use crate::chat::{StopReason, ToolCall, ToolInput, ToolResult, Usage};
    use serde_json::json;
    use std::time::Duration;

    const FIX: &str = r#"
name: fix
turns:
  - thinking: "Let me see."
    text: "I'll look now."
    tools:
      - { name: files-read, input: { path: a.rs } }
      - { name: shell, input: "{oops", id: mine }
    usage: { input: 1200, output: 80 }
  - fault: { kind: busy, message: overloaded, retry_after: 2s, times: 2 }
    text: half of
  - text: done
    expect: { contains: ["2 tests failed"], tool_result: ok }
"#;

    fn request(turn: u64, messages: Vec<Message>) -> Request {
        Request { system: String::new(), messages: messages.into(), tools: [].into(), turn, max_output: None }
    }

    fn results(content: &str, is_error: bool) -> Vec<Message> {
        let result = ToolResult::text("call_1_1", content, is_error);
        let answer = Message::assistant(vec![Block::Text { text: "2 tests failed".into() }]);
        vec![Message::user("go"), answer, Message { role: Role::User, content: vec![Block::ToolResult(result)] }]
    }

    async fn ask(cassette: &Cassette, request: &Request) -> (Vec<Delta>, Result<Reply, ModelError>) {
        let streamed = Mutex::new(Vec::new());
        let end = cassette.complete(request, &|delta| streamed.lock().unwrap().push(delta)).await;
        let mut streamed = streamed.into_inner().unwrap();
        streamed.retain(|delta| !matches!(delta, Delta::Spent(_)));
        (streamed, end)
    }

    #[tokio::test]
    async fn a_turn_is_streamed_word_by_word_and_then_given_whole() {
        let cassette = Cassette::parse(FIX, "fix.yaml").unwrap();
        let (deltas, end) = ask(&cassette, &request(1, vec![Message::user("go")])).await;
        let read = ToolCall {
            id: "call_1_1".into(),
            name: "files-read".into(),
            input: ToolInput::Object(json!({"path": "a.rs"})),
        };
        let shell = ToolCall { id: "mine".into(), name: "shell".into(), input: ToolInput::parse("{oops") };
        let mut wanted: Vec<Delta> = ["Let ", "me ", "see."].map(|word| Delta::Thinking(word.into())).into();
        wanted.extend(["I'll ", "look ", "now."].map(|word| Delta::Text(word.into())));
        wanted.extend([Delta::ToolCall(read.clone()), Delta::ToolCall(shell.clone())]);
        assert_eq!(deltas, wanted);
        assert_eq!(
            end.unwrap(),
            Reply {
                content: vec![
                    Block::Thinking { text: "Let me see.".into(), opaque: None },
                    Block::Text { text: "I'll look now.".into() },
                    Block::ToolUse(read),
                    Block::ToolUse(shell),
                ],
                stop: StopReason::ToolUse,
                usage: Some(Usage { input_tokens: 1200, output_tokens: 80, ..Usage::default() }),
                model: "fix.yaml".into(),
            }
        );
    }

    #[tokio::test]
    async fn a_fault_is_acted_out_as_often_as_it_says() {
        let cassette = Cassette::parse(FIX, "fix.yaml").unwrap();
        ask(&cassette, &request(1, vec![])).await.1.unwrap();
        let busy = ModelError {
            fault: ModelFault::Busy,
            message: "overloaded".into(),
            retry_after_ms: Some(2000),
            spent: Some(Spent { bytes: 7, ..Spent::default() }),
        };
        let question = request(2, results("2 tests failed", false));
        for _ in 0..2 {
            let half = ["half ", "of"].map(|word| Delta::Text(word.into()));
            assert_eq!(ask(&cassette, &question).await, (half.into(), Err(busy.clone())));
        }
        assert_eq!(ask(&cassette, &question).await.1.unwrap().text(), "done");
    }

    #[tokio::test]
    async fn an_unmet_expectation_names_turn_and_text_and_does_not_move_on() {
        let turns = "turns:\n  - { text: done, expect: { contains: [2 tests failed], tool_result: ok } }";
        let cassette = Cassette::parse(turns, "c.yaml").unwrap();
        let message = async |messages| ask(&cassette, &request(1, messages)).await.1.unwrap_err().message;
        assert_eq!(
            message(results("all\ngood", false)).await,
            r#"cassette/c.yaml: turn 1 expects the text "2 tests failed"; asked with: "all good""#
        );
        assert_eq!(
            message(results("2 tests failed", true)).await,
            r#"cassette/c.yaml: turn 1 expects tool results without an error; asked with: "2 tests failed""#
        );
        assert_eq!(ask(&cassette, &request(1, results("2 tests failed", false))).await.1.unwrap().text(), "done");
    }

    #[tokio::test]
    async fn a_turn_that_is_not_there_is_named_with_what_was_asked() {
        let cassette = Cassette::parse("turns: [{ text: hi }]", "c.yaml").unwrap();
        ask(&cassette, &request(1, vec![])).await.1.unwrap();
        assert_eq!(
            ask(&cassette, &request(2, vec![Message::user("and now?")])).await.1.unwrap_err(),
            ModelError::new(
                ModelFault::BadRequest,
                r#"cassette/c.yaml: there are 1 turns, and turn 2 was asked for with: "and now?""#
            )
        );
    }

    #[tokio::test]
    async fn a_resumed_run_goes_on_behind_the_turns_it_had() {
        let turns = "turns: [{ fault: { kind: network } }, { text: one }, { hang: true }, { text: two }]";
        let cassette = Cassette::parse(turns, "c.yaml").unwrap();
        let question = request(2, vec![]);
        assert!(tokio::time::timeout(Duration::from_millis(10), ask(&cassette, &question)).await.is_err());
        assert_eq!(ask(&cassette, &question).await.1.unwrap().text(), "two");
    }

    #[tokio::test]
    async fn each_agent_of_a_run_is_played_the_turns_that_are_for_it() {
        let turns = "turns:\n  - { text: mine }\n  - { of: '2', text: second }\n  - { of: '1.1', text: deep }\n  - { text: mine too }\n  \
             - { of: 2, text: again }";
        let cassette = Cassette::parse(turns, "c.yaml").unwrap();
        let child = |path: &str| cassette.for_child(path).unwrap();
        let said = async |provider: &dyn Provider, turn| {
            provider.complete(&request(turn, vec![]), &|_| {}).await.map(|reply| reply.text())
        };
        let (second, deep) = (child("2"), child("1").for_child("1.1").unwrap());
        assert_eq!(said(&*second, 1).await.unwrap(), "second");
        assert_eq!(said(&cassette, 1).await.unwrap(), "mine");
        assert_eq!(said(&*deep, 1).await.unwrap(), "deep");
        assert_eq!(said(&*child("2"), 2).await.unwrap(), "again");
        assert_eq!(said(&cassette, 2).await.unwrap(), "mine too");
        assert_eq!(
            said(&*deep, 2).await.unwrap_err().message,
            r#"cassette/c.yaml: there are 1 turns of sub-agent 1.1, and turn 2 was asked for with: """#
        );
    }
}
