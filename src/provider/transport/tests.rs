//! Tests of turns over real sockets: the error of each fault, the number of requests, and that no
//! key appears in an error.

use super::super::{Endpoint, ModelRequest, Provider, ProviderError, Secret, TurnTimeouts, WireFormat, connect};
use crate::chat::{Delta, Message, ModelError, ModelErrorKind, Reply, Spent};
use crate::test_support::{
    ScriptedServer,
    ServerAct::{self, Flood, Read, Reset, Send, Stall},
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

mod ends;
mod settings;
mod spent;

const KEY: &str = "sk-canary-0123456789";
const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n\r\n";
const PING: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
/// An answer in each dialect, split before its end marker.
const ANSWERS: [(WireFormat, &str, &str); 4] = [
    (
        WireFormat::Anthropic,
        concat!(
            "data: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n",
            "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
            "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"h\u{e9}llo\"}}\n\n",
            "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
        ),
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    ),
    (
        WireFormat::OpenAi,
        concat!(
            "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"h\u{e9}llo\"}}]}\n\n",
            "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        ),
        "data: [DONE]\n\n",
    ),
    (
        WireFormat::OpenAiResponses,
        concat!(
            "data: {\"type\":\"response.created\",\"response\":{\"model\":\"m\"}}\n\n",
            "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\"}}\n\n",
            "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"h\u{e9}llo\"}\n\n",
            "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"message\",\"content\":[{\"text\":\"h\u{e9}llo\"}]}}\n\n",
        ),
        "data: {\"type\":\"response.completed\",\"response\":{}}\n\n",
    ),
    (
        WireFormat::Ollama,
        "{\"model\":\"m\",\"message\":{\"content\":\"h\u{e9}llo\"},\"done\":false}\n",
        "{\"model\":\"m\",\"message\":{},\"done\":true,\"done_reason\":\"stop\"}\n",
    ),
];

/// Returns the head of an answer in a dialect.
fn head(kind: &WireFormat) -> String {
    let lines = *kind == WireFormat::Ollama;
    if lines { EVENTS.replace("text/event-stream; charset=utf-8", "application/x-ndjson") } else { EVENTS.into() }
}

fn send(parts: &[&str]) -> ServerAct {
    Send(parts.concat())
}

fn provider(kind: WireFormat, server: &ScriptedServer) -> Arc<dyn Provider> {
    let mut endpoint = Endpoint::new(kind, "m");
    endpoint.base_url = Some(server.url());
    endpoint.key = Some(Secret::new(KEY));
    connect(endpoint).unwrap()
}

fn request() -> ModelRequest {
    ModelRequest {
        system: "s".into(),
        messages: [Message::user("hi")].into(),
        tools: [].into(),
        turn: 1,
        max_output: None,
    }
}

async fn ask(provider: &dyn Provider) -> (Vec<Delta>, Result<Reply, ModelError>) {
    let streamed = Mutex::new(Vec::new());
    let end = provider.complete(&request(), &|delta| streamed.lock().unwrap().push(delta)).await;
    let mut streamed = streamed.into_inner().unwrap();
    assert_eq!(streamed.first(), Some(&Delta::Spent(Spent::default())), "that the request is on its way");
    streamed.retain(|delta| !matches!(delta, Delta::Spent(_)));
    (streamed, end)
}

/// Returns the error of a script in one dialect. Checks that it cost one request and shows no key.
async fn failure(kind: WireFormat, script: Vec<ServerAct>) -> ModelError {
    let mut server = ScriptedServer::start([script]);
    let error = ask(provider(kind, &server).as_ref()).await.1.unwrap_err();
    assert_eq!(server.requests().len(), 1, "{error}");
    assert!(!error.message.contains("canary") && error.message.len() <= 300, "{error}");
    error
}

#[tokio::test]
async fn an_answer_in_the_smallest_pieces_is_whole_in_every_dialect() {
    for (kind, answer, end) in ANSWERS {
        let bytes = [answer, end].concat();
        let pieces = bytes.split_inclusive(|_| true).map(|piece| send(&[piece]));
        let mut server = ScriptedServer::start([std::iter::once(send(&[&head(&kind)])).chain(pieces).collect()]);
        let (deltas, reply) = ask(provider(kind, &server).as_ref()).await;
        assert_eq!((deltas, reply.unwrap().text()), (vec![Delta::Text("héllo".into())], "héllo".to_owned()));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn the_end_of_the_answer_ends_the_turn_though_the_server_stays() {
    for (kind, answer, end) in ANSWERS {
        let mut server = ScriptedServer::start([vec![send(&[&head(&kind), answer, end]), Stall]]);
        assert_eq!(ask(provider(kind, &server).as_ref()).await.1.unwrap().text(), "héllo");
        server.hung_up().await;
    }
}

#[tokio::test]
async fn a_finished_answer_leaves_its_connection_to_the_next_turn() {
    for (kind, answer, end) in ANSWERS {
        let head = head(&kind).replace("connection: close", "transfer-encoding: chunked");
        let chunk = format!("{:x}\r\n{answer}{end}\r\n", answer.len() + end.len());
        let turn = [send(&[&head, &chunk]), send(&["0\r\n\r\n"])];
        let mut server = ScriptedServer::start([[&turn[..], &[Read], &turn[..]].concat()]);
        let model = provider(kind, &server);
        for _ in 0..2 {
            assert_eq!(ask(model.as_ref()).await.1.unwrap().text(), "héllo");
        }
        assert_eq!(server.requests().len(), 2);
    }
}

#[tokio::test]
async fn the_last_event_may_lack_its_blank_line() {
    for (kind, answer, end) in ANSWERS {
        let server = ScriptedServer::start([vec![send(&[&head(&kind), answer, end.trim_end()])]]);
        assert_eq!(ask(provider(kind, &server).as_ref()).await.1.unwrap().text(), "héllo");
    }
}

#[tokio::test]
async fn a_request_carries_key_and_headers_and_goes_to_the_right_path() {
    for (kind, path, header) in [
        (WireFormat::Anthropic, "/v1/messages", format!("x-api-key: {KEY}")),
        (WireFormat::OpenAi, "/chat/completions", format!("authorization: Bearer {KEY}")),
        (WireFormat::OpenAiResponses, "/responses", format!("authorization: Bearer {KEY}")),
        (WireFormat::Ollama, "/api/chat", format!("authorization: Bearer {KEY}")),
    ] {
        let mut server = ScriptedServer::start([vec![]]);
        ask(provider(kind, &server).as_ref()).await.1.unwrap_err();
        let request = server.requests().pop().unwrap();
        assert!(request.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{request}");
        assert!(request.contains(&header) && request.contains("\"stream\":true"), "{request}");
    }
}

#[tokio::test]
async fn a_clean_end_before_the_protocols_end_is_no_success() {
    for (kind, answer, end) in ANSWERS {
        for cut in
            [String::new(), answer[..answer.len() - 9].to_owned(), answer.to_owned(), [answer, &end[..9]].concat()]
        {
            assert_eq!(
                failure(kind.clone(), vec![send(&[&head(&kind), &cut])]).await.fault,
                ModelErrorKind::Network,
                "{cut}"
            );
        }
    }
}

#[tokio::test]
async fn a_connection_that_breaks_is_a_network_fault() {
    for (kind, answer, _) in ANSWERS {
        assert_eq!(failure(kind.clone(), vec![Reset]).await.fault, ModelErrorKind::Network);
        assert_eq!(
            failure(kind.clone(), vec![send(&[&head(&kind), answer]), Reset]).await.fault,
            ModelErrorKind::Network
        );
        assert_eq!(failure(kind, vec![]).await.fault, ModelErrorKind::Network);
    }
}

#[tokio::test]
async fn nobody_listening_is_a_network_fault_that_names_the_host() {
    let mut endpoint = Endpoint::new(WireFormat::OpenAi, "m");
    // The port is fixed, because another test's server may have taken a port that was free a moment
    // ago.
    endpoint.base_url = Some("http://127.0.0.1:9".into());
    endpoint.key = Some(Secret::new(KEY));
    let error = ask(connect(endpoint).unwrap().as_ref()).await.1.unwrap_err();
    let message = "openai/m: cannot connect to 127.0.0.1:9: Connection refused (os error 111) \
        (no server listens there: start it, e.g. `llama-server --port 9 -m MODEL.gguf`, or correct `base_url`)";
    assert_eq!(error, ModelError::new(ModelErrorKind::Network, message));
}

#[test]
fn the_port_tells_which_server_is_to_be_started() {
    for (port, is_ollama, start) in [
        (11434, true, " with `ollama serve`"),
        (11434, false, " with `ollama serve`"),
        (9, true, " with `OLLAMA_HOST=127.0.0.1:9 ollama serve`"),
        (1234, false, ", e.g. `lms server start`"),
        (8000, false, ", e.g. `vllm serve m`"),
        (9, false, ", e.g. `llama-server --port 9 -m MODEL.gguf`"),
    ] {
        assert_eq!(super::start_command(port, is_ollama, "m"), start, "{port}");
    }
}

#[tokio::test]
async fn every_clock_ends_a_turn_and_the_connection_with_it() {
    let (kind, answer, _) = &ANSWERS[0];
    let (start, _) = answer.split_at(answer.find("data: {\"type\":\"content_block_stop").unwrap());
    let drip =
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n";
    let (default, minute) = (TurnTimeouts::default(), Duration::from_secs(60));
    let (first_byte, idle) = (TurnTimeouts { first_byte: minute, ..default }, TurnTimeouts { idle: minute, ..default });
    for (clocks, script, message) in [
        (first_byte, vec![Stall], "no answer within 60s (a slow model needs more in `timeouts.first_byte`)"),
        (
            idle,
            vec![send(&[EVENTS, start]), Stall],
            "the stream sent nothing new for 60s (a slow model needs more in `timeouts.idle`)",
        ),
        (
            idle,
            vec![send(&[EVENTS, start]), Flood(PING.into())],
            "the stream sent nothing new for 60s (a slow model needs more in `timeouts.idle`)",
        ),
        (
            TurnTimeouts { turn: minute, ..default },
            vec![send(&[EVENTS, start]), Flood(drip.into())],
            "the turn took longer than 60s (a slow model needs more in `timeouts.turn`)",
        ),
    ] {
        let (is_silent, mut server) = (script.len() == 1, ScriptedServer::start([script]));
        let mut endpoint = Endpoint::new(kind.clone(), "m");
        (endpoint.base_url, endpoint.clocks) = (Some(format!("{}/v1/", server.url())), clocks);
        let (model, request, streaming) = (connect(endpoint).unwrap(), request(), tokio::sync::Notify::new());
        let sink = |delta| {
            if matches!(delta, Delta::Text(_)) {
                streaming.notify_one();
            }
        };
        // The clock jumps a minute once the script stalls or the stream has begun.
        let clock = async {
            match is_silent {
                true => server.stalled().await,
                false => streaming.notified().await,
            }
            tokio::time::pause();
            tokio::time::advance(minute).await;
            std::future::pending::<()>().await
        };
        let end = tokio::select! { end = model.complete(&request, &sink) => end, () = clock => unreachable!() };
        let error = end.unwrap_err();
        assert_eq!((error.fault, error.message), (ModelErrorKind::Network, format!("anthropic/m: {message}")));
        assert!(error.spent.is_some(), "who was at work is paid");
        tokio::time::resume();
        server.hung_up().await;
    }
}

#[tokio::test]
async fn dropping_a_turn_closes_its_connection() {
    let (kind, answer, _) = &ANSWERS[1];
    let request = request();

    let mut server = ScriptedServer::start([vec![Stall]]);
    let model = provider(kind.clone(), &server);
    tokio::select! {
        end = model.complete(&request, &|_| ()) => panic!("{end:?}"),
        _request = server.asked() => {}
    }
    server.hung_up().await;

    let mut server = ScriptedServer::start([vec![send(&[EVENTS, answer]), Stall]]);
    let (model, streaming) = (provider(kind.clone(), &server), tokio::sync::Notify::new());
    let sink = |delta| match delta {
        Delta::Spent(_) => {} // before the request goes out
        _ => streaming.notify_one(),
    };
    tokio::select! {
        end = model.complete(&request, &sink) => panic!("{end:?}"),
        () = streaming.notified() => {}
    }
    server.hung_up().await;
}

#[tokio::test]
async fn a_refusal_is_classed_and_the_key_it_echoes_is_scrubbed() {
    let answer = |head: &str, body: &str| {
        let length = body.len();
        vec![Send(format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"))]
    };
    let error = |text: &str| format!(r#"{{"error":{{"type":"some_error","message":"{text}"}}}}"#);
    let busy =
        |message: &str, retry_after_ms| ModelError { retry_after_ms, ..ModelError::new(ModelErrorKind::Busy, message) };
    for (script, wanted) in [
        (
            answer("401 Unauthorized", &error(&format!("wrong {KEY}"))),
            ModelError::new(ModelErrorKind::Auth, "openai/m: 401 wrong *** (check the key)"),
        ),
        (
            answer("404 Not Found", &error("no model m")),
            ModelError::new(
                ModelErrorKind::NotFound,
                "openai/m: 404 no model m (check the model's name and the base URL)",
            ),
        ),
        (answer("429 Slow\r\nretry-after: 2", &error("slow")), busy("openai/m: 429 slow", Some(2000))),
        (answer("529 Busy", &error("Overloaded")), busy("openai/m: 529 Overloaded", None)),
        (answer("503 Down", "<html>\r\n <b>down</b>"), busy("openai/m: 503 down", None)),
        (
            answer("307 Elsewhere\r\nlocation: http://127.0.0.1:1/", ""),
            ModelError::new(ModelErrorKind::BadRequest, "openai/m: 307 redirect not followed"),
        ),
        (
            answer("200 OK\r\ncontent-type: text/html", "<html>"),
            ModelError::new(ModelErrorKind::Protocol, "openai/m: expected an event stream, got `text/html`")
                .after(Spent::default()),
        ),
        (
            answer("200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip", "x"),
            ModelError::new(
                ModelErrorKind::Protocol,
                "openai/m: the answer is compressed with `gzip`, which was not requested",
            )
            .after(Spent::default()),
        ),
    ] {
        assert_eq!(failure(WireFormat::OpenAi, script).await, wanted);
    }
}

#[tokio::test]
async fn an_endless_complaint_is_cut_and_a_key_cut_with_it_too() {
    let head = "HTTP/1.1 500 Oops\r\nconnection: close\r\n\r\n";
    let error = failure(WireFormat::Anthropic, vec![send(&[head]), Flood(format!("{} {KEY}", " ".repeat(4080)))]).await;
    assert_eq!(error, ModelError::new(ModelErrorKind::Busy, "anthropic/m: 500 ***"));
}

#[tokio::test]
async fn an_answer_over_its_cap_is_a_protocol_fault() {
    let mut server = ScriptedServer::start([vec![send(&[EVENTS]), Flood(": a comment\n".repeat(1000))]]);
    let mut endpoint = Endpoint::new(WireFormat::OpenAi, "m");
    (endpoint.base_url, endpoint.max_response) = (Some(server.url()), 1_000_000);
    let error = ask(connect(endpoint).unwrap().as_ref()).await.1.unwrap_err();
    let message = "openai/m: the answer has more than 1000000 bytes";
    assert_eq!(error, ModelError::new(ModelErrorKind::Protocol, message).after(Spent::default()));
    server.hung_up().await;
}

#[test]
fn an_endpoint_that_cannot_work_is_refused_before_anything_is_sent() {
    let refused = |change: &dyn Fn(&mut Endpoint)| {
        let mut endpoint = Endpoint::new(WireFormat::OpenAi, "m");
        endpoint.base_url = Some("http://127.0.0.1:1".into());
        change(&mut endpoint);
        connect(endpoint).unwrap_err()
    };
    let base = |url: &'static str| move |endpoint: &mut Endpoint| endpoint.base_url = Some(url.into());
    assert!(matches!(refused(&|endpoint| endpoint.base_url = None), ProviderError::MissingKey { provider: "openai" }));
    assert!(matches!(refused(&base("ftp://x")), ProviderError::BadAddress { .. }));
    assert!(matches!(refused(&base("http://u:p@x")), ProviderError::BadAddress { .. }));
    assert!(matches!(refused(&|endpoint| endpoint.key = Some(Secret::new("a\nb"))), ProviderError::BadKey { .. }));
    let header = ("a b".to_owned(), Secret::new("c"));
    assert!(matches!(refused(&|endpoint| endpoint.headers = vec![header.clone()]), ProviderError::BadHeader { .. }));
}
