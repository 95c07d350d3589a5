//! Tests of an endpoint's own certificates and proxy.

use crate::chat::{Message, ModelErrorKind, Reply};
use crate::provider::{Endpoint, ModelRequest, ProviderError, Secret, WireFormat, connect};
use crate::test_support::{ScriptedServer, Secured, ServerAct};

const ANSWER: &str = concat!(
    "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\nconnection: close\r\n\r\n",
    "{\"model\":\"m\",\"message\":{\"content\":\"hello\"},\"done\":true,\"done_reason\":\"stop\"}\n",
);

async fn ask(endpoint: Endpoint) -> Result<Reply, crate::chat::ModelError> {
    let request = ModelRequest {
        system: String::new(),
        messages: [Message::user("hi")].into(),
        tools: [].into(),
        turn: 1,
        max_output: None,
    };
    connect(endpoint).unwrap().complete(&request, &|_| ()).await
}

#[tokio::test]
async fn certificates_of_an_endpoint_are_trusted_by_it_alone() {
    let server = Secured::new(ANSWER);
    let base_url = Some(server.url());
    let stranger = Endpoint { base_url, ..Endpoint::new(WireFormat::Ollama, "m") };
    let friend = Endpoint { ca_file: Some(server.ca.clone().into_bytes()), ..stranger.clone() };
    assert_eq!((ask(friend).await.unwrap().text(), server.received_requests().len()), ("hello".into(), 1));
    let error = ask(stranger).await.unwrap_err();
    assert!(error.fault == ModelErrorKind::Network && error.message.contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_proxy_of_an_endpoint_is_asked_for_it_alone_and_its_password_is_shown_to_nobody() {
    let mut proxy = ScriptedServer::start([
        vec![ServerAct::Send(ANSWER.into())],
        vec![ServerAct::Send("HTTP/1.1 407 No\r\n\r\n".into())],
    ]);
    let url = proxy.url().replace("http://", "http://user:canary-77@");
    let mut endpoint = Endpoint::new(WireFormat::Ollama, "m");
    endpoint.base_url = Some("http://model.invalid:9".into());
    endpoint.proxy = Some(Secret::new(url));
    assert_eq!(ask(endpoint.clone()).await.unwrap().text(), "hello");
    let request = proxy.requests().pop().unwrap();
    assert!(request.starts_with("POST http://model.invalid:9/api/chat HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("proxy-authorization: Basic dXNlcjpjYW5hcnktNzc="), "{request}");
    let error = ask(endpoint).await.unwrap_err();
    assert!(!error.message.contains("canary"), "{error}");
}

#[test]
fn a_way_that_cannot_be_gone_is_refused_before_anything_is_sent() {
    let refused = |change: &dyn Fn(&mut Endpoint)| {
        let mut endpoint = Endpoint::new(WireFormat::Ollama, "m");
        change(&mut endpoint);
        connect(endpoint).unwrap_err()
    };
    for proxy in ["socks5://127.0.0.1:1", "proxy", ""] {
        let error = refused(&|endpoint| endpoint.proxy = Some(Secret::new(proxy)));
        assert!(matches!(error, ProviderError::BadProxy { provider: "ollama" }), "{proxy}: {error}");
    }
    for pem in [&b"no certificate"[..], b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let error = refused(&|endpoint| endpoint.ca_file = Some(pem.to_vec()));
        assert!(matches!(error, ProviderError::BadCertificates { .. } | ProviderError::Client { .. }), "{error}");
    }
}
