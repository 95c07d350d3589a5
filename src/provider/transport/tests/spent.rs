//! Tests of the use of failed turns, and of answers that are not streamed.

use super::*;
use crate::chat::Usage;

#[tokio::test]
async fn an_answer_that_breaks_off_says_what_it_has_used_and_a_refusal_has_used_nothing() {
    let (kind, answer, _) = &ANSWERS[0];
    let usage = Usage { input_tokens: 5, output_tokens: 2, ..Usage::default() };
    let counted = Spent { model: "m".into(), usage: Some(usage), bytes: 6, ..Spent::default() };
    let error = failure(kind.clone(), vec![send(&[EVENTS, answer])]).await;
    assert_eq!(error.spent, Some(Box::new(counted)));
    for (kind, answer, _) in &ANSWERS[1..3] {
        let received = Spent { model: "m".into(), usage: None, bytes: 6, ..Spent::default() };
        assert_eq!(failure(kind.clone(), vec![send(&[EVENTS, answer]), Reset]).await.spent, Some(Box::new(received)));
    }
    assert_eq!(failure(WireFormat::OpenAi, vec![Reset]).await.spent, Some(Box::default()), "who knows");
    let refused = "HTTP/1.1 500 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    assert_eq!(failure(WireFormat::OpenAi, vec![send(&[refused])]).await.spent, None);
}

#[tokio::test]
async fn what_a_provider_counts_first_is_told_while_the_answer_comes() {
    let (kind, answer, _) = &ANSWERS[0];
    let (start, _) = answer.split_at(answer.find("data: {\"type\":\"content_block_start").unwrap());
    let server = ScriptedServer::start([vec![send(&[EVENTS, start]), Stall]]);
    let (reported, counted) = (Mutex::new(Vec::new()), tokio::sync::Notify::new());
    let sink = |delta| {
        if let Delta::Spent(spent) = delta {
            let input = spent.usage.map(|usage| usage.input_tokens);
            reported.lock().unwrap().push(input);
            input.iter().for_each(|_| counted.notify_one());
        }
    };
    let (model, request) = (provider(kind.clone(), &server), request());
    tokio::select! {
        end = model.complete(&request, &sink) => panic!("{end:?}"),
        () = counted.notified() => {}
    }
    assert_eq!(reported.into_inner().unwrap(), [None, Some(5)]);
}

#[tokio::test]
async fn an_answer_that_comes_whole_is_taken_and_an_error_in_it_is_named() {
    let whole = |body: &str| {
        let length = body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: {length}");
        vec![Send(format!("{head}\r\nconnection: close\r\n\r\n{body}"))]
    };
    for (kind, body) in [
        (
            WireFormat::Anthropic,
            r#"{"model":"m","content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"1","name":"t","input":{"a":1}}],
                "stop_reason":"tool_use","usage":{"input_tokens":7,"output_tokens":2}}"#,
        ),
        (
            WireFormat::OpenAi,
            r#"{"model":"m","choices":[{"message":{"content":"hi","tool_calls":[{"id":"1","type":"function",
                "function":{"name":"t","arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}],
                "usage":{"prompt_tokens":7,"completion_tokens":2}}"#,
        ),
        (
            WireFormat::OpenAiResponses,
            r#"{"model":"m","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]},
                {"type":"function_call","call_id":"1","name":"t","arguments":"{\"a\":1}"}],
                "usage":{"input_tokens":7,"output_tokens":2}}"#,
        ),
        (
            WireFormat::Ollama,
            r#"{"model":"m","message":{"content":"hi","tool_calls":[{"id":"1","function":{"name":"t","arguments":{"a":1}}}]},
                "done":true,"done_reason":"stop","prompt_eval_count":7,"eval_count":2}"#,
        ),
    ] {
        let server = ScriptedServer::start([whole(body)]);
        let reply = ask(provider(kind.clone(), &server).as_ref()).await.1.unwrap();
        let calls: Vec<_> = reply.tool_calls().map(|call| (call.id.as_str(), call.input.to_value())).collect();
        assert_eq!((reply.text().as_str(), calls), ("hi", vec![("1", serde_json::json!({"a": 1}))]), "{kind:?}");
        assert_eq!(reply.usage.map(|usage| usage.total()), Some(9), "{kind:?}");
        let error =
            failure(kind.clone(), whole(r#"{"error":{"type":"insufficient_quota","message":"pay first"}}"#)).await;
        assert_eq!(error.fault, ModelErrorKind::Quota, "{error}");
        let error = failure(kind.clone(), whole(r#"{"hello":"world"}"#)).await;
        assert_eq!(error.fault, ModelErrorKind::Protocol, "{error}");
        let error = failure(kind, whole(r#"{"hello":"#)).await;
        assert!(error.message.contains("got invalid JSON"), "{error}");
    }
}
