//! Tests of answers without the last line of their protocol, and the conditions under which they
//! count.

use super::{ANSWERS, ask, failure, head, provider, send};
use crate::chat::ModelErrorKind;
use crate::provider::WireFormat;
use crate::test_support::ScriptedServer;

/// Returns a body in one chunk and, if `ends` is true, the final chunk.
fn chunked(kind: &WireFormat, body: &str, ends: bool) -> String {
    let head = head(kind).replace("connection: close", "transfer-encoding: chunked\r\nconnection: close");
    let last = if ends { "0\r\n\r\n" } else { "" };
    format!("{head}{:x}\r\n{body}\r\n{last}", body.len())
}

/// Returns a body with this number of bytes as its content length.
fn measured(kind: &WireFormat, body: &str, bytes: usize) -> String {
    head(kind).replace("connection: close", &format!("content-length: {bytes}\r\nconnection: close")) + body
}

#[tokio::test]
async fn a_complete_answer_whose_body_ended_as_it_must_counts_without_the_last_line() {
    for (kind, answer, _) in &ANSWERS[..2] {
        let no_blank_line = answer.trim_end();
        for response in
            [chunked(kind, answer, true), chunked(kind, no_blank_line, true), measured(kind, answer, answer.len())]
        {
            let server = ScriptedServer::start([vec![send(&[&response])]]);
            let reply = ask(provider(kind.clone(), &server).as_ref()).await.1.unwrap();
            assert_eq!((reply.text(), reply.lacks_end), ("héllo".to_owned(), true), "{response}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_not_complete_or_whose_body_was_cut_counts_for_nothing() {
    for (kind, answer, _) in &ANSWERS {
        // Without its last event, the answer has no stop reason.
        let events: Vec<&str> = answer.split_inclusive('\n').collect();
        let half = events[..events.len().saturating_sub(2)].concat();
        let mut cuts = vec![
            chunked(kind, &half, true),
            chunked(kind, &answer[..answer.len() - 9], true),
            measured(kind, &half, half.len()),
            chunked(kind, answer, false),
            measured(kind, answer, answer.len() + 1),
        ];
        if matches!(kind, WireFormat::OpenAiResponses | WireFormat::Ollama) {
            cuts.push(chunked(kind, answer, true)); // their last line contains more than the end marker
        }
        for response in cuts {
            let error = failure(kind.clone(), vec![send(&[&response])]).await;
            assert_eq!(error.fault, ModelErrorKind::Network, "{response}: {error}");
        }
    }
}
