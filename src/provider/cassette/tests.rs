//! Tests of playback: the turns that each agent and request gets.

use super::*;
use crate::chat::{Spent, StopReason, ToolCall, ToolInput, ToolResult, Usage};
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

fn request(turn: u64, messages: Vec<Message>) -> ModelRequest {
    ModelRequest { system: String::new(), messages: messages.into(), tools: [].into(), turn, max_output: None }
}

fn results(content: &str, is_error: bool) -> Vec<Message> {
    let result = ToolResult::text("call_1_1", content, is_error);
    let answer = Message::assistant(vec![Block::Text { text: "2 tests failed".into() }]);
    vec![Message::user("go"), answer, Message { role: Role::User, content: vec![Block::ToolResult(result)] }]
}

async fn ask(cassette: &Cassette, request: &ModelRequest) -> (Vec<Delta>, Result<Reply, ModelError>) {
    let streamed = Mutex::new(Vec::new());
    let end = cassette.complete(request, &|delta| streamed.lock().unwrap().push(delta)).await;
    let mut streamed = streamed.into_inner().unwrap();
    streamed.retain(|delta| !matches!(delta, Delta::Spent(_)));
    (streamed, end)
}

#[tokio::test]
async fn recorded_summaries_answer_only_summary_requests_and_others_skip_them() {
    let yaml = "window: 9\nturns: [{ text: a }, { text: S1, summary: true }, { text: b }, { text: S2, summary: true }, { text: c }]";
    let tape = Cassette::parse(yaml, "t").unwrap();
    assert_eq!(tape.bounds(), Some(CassetteBounds { window: Some(9), ..CassetteBounds::default() }));
    let summing = ModelRequest { system: format!("{SUMMARISER} …"), ..request(1, vec![]) };
    let output = async |request: &ModelRequest| match ask(&tape, request).await.1 {
        Ok(reply) => reply.text(),
        Err(error) => error.message,
    };
    assert_eq!(output(&request(1, vec![])).await, "a");
    assert_eq!(output(&request(2, vec![])).await, "b");
    assert_eq!(output(&summing).await, "S2");
    assert!(output(&summing).await.contains("turn 6 is missing"));
    assert_eq!(output(&request(3, vec![])).await, "c");
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
            lacks_end: false,
        }
    );
}

#[tokio::test]
async fn a_fault_is_acted_out_as_often_as_it_says() {
    let cassette = Cassette::parse(FIX, "fix.yaml").unwrap();
    ask(&cassette, &request(1, vec![])).await.1.unwrap();
    let busy = ModelError {
        fault: ModelErrorKind::Busy,
        message: "overloaded".into(),
        retry_after_ms: Some(2000),
        spent: Some(Box::new(Spent { bytes: 7, ..Spent::default() })),
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
            ModelErrorKind::BadRequest,
            r#"cassette/c.yaml: turn 2 is missing: the cassette has 1 (add the answer under `turns:`, or record the run anew with `--record FILE`); asked with: "and now?""#
        )
    );
}

#[tokio::test(start_paused = true)]
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
    let output = async |provider: &dyn Provider, turn| {
        provider.complete(&request(turn, vec![]), &|_| {}).await.map(|reply| reply.text())
    };
    let (second, deep) = (child("2"), child("1").for_child("1.1").unwrap());
    assert_eq!(output(&*second, 1).await.unwrap(), "second");
    assert_eq!(output(&cassette, 1).await.unwrap(), "mine");
    assert_eq!(output(&*deep, 1).await.unwrap(), "deep");
    assert_eq!(output(&*child("2"), 2).await.unwrap(), "again");
    assert_eq!(output(&cassette, 2).await.unwrap(), "mine too");
    assert_eq!(
        output(&*deep, 2).await.unwrap_err().message,
        r#"cassette/c.yaml: turn 2 of sub-agent 1.1 is missing: the cassette has 1 (add the answer under `turns:`, or record the run anew with `--record FILE`); asked with: """#
    );
}
