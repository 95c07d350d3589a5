//! Ways to a model that an endpoint has for itself: certificates that only it trusts, and a proxy.

use super::super::{
    Endpoint, Kind, ProviderError, Request, Secret, connect,
    scripted::{Act, Scripted},
};
use crate::chat::{Message, ModelFault, Reply};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::Arc,
    thread,
};

const CA: &[u8] = include_bytes!("../../../tests/fixtures/tls/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../../tests/fixtures/tls/server.pem");
const KEY: &[u8] = include_bytes!("../../../tests/fixtures/tls/server.key");
const ANSWER: &str = concat!(
    "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\nconnection: close\r\n\r\n",
    "{\"model\":\"m\",\"message\":{\"content\":\"hello\"},\"done\":true,\"done_reason\":\"stop\"}\n",
);

async fn ask(endpoint: Endpoint) -> Result<Reply, crate::chat::ModelError> {
    let request = Request {
        system: String::new(),
        messages: [Message::user("hi")].into(),
        tools: [].into(),
        turn: 1,
        max_output: None,
    };
    connect(endpoint).unwrap().complete(&request, &|_| ()).await
}

/// A server with a certificate that only our own authority has signed; it answers everything, whatever is asked.
fn tls_server() -> String {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), socket);
            if stream.read(&mut [0; 16 * 1024]).is_ok() {
                let _gone = stream.write_all(ANSWER.as_bytes());
                stream.conn.send_close_notify();
                let _gone = stream.flush();
            }
        }
    });
    url
}

#[tokio::test]
async fn certificates_of_an_endpoint_are_trusted_by_it_alone() {
    let base_url = Some(tls_server());
    let stranger = Endpoint { base_url, ..Endpoint::new(Kind::Ollama, "m") };
    let friend = Endpoint { ca_file: Some(CA.to_vec()), ..stranger.clone() };
    assert_eq!(ask(friend).await.unwrap().text(), "hello");
    let error = ask(stranger).await.unwrap_err();
    assert!(error.fault == ModelFault::Network && error.message.contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_proxy_of_an_endpoint_is_asked_for_it_alone_and_its_password_is_shown_to_nobody() {
    let mut proxy =
        Scripted::start([vec![Act::Send(ANSWER.into())], vec![Act::Send("HTTP/1.1 407 No\r\n\r\n".into())]]);
    let url = proxy.url().replace("http://", "http://user:canary-77@");
    let mut endpoint = Endpoint::new(Kind::Ollama, "m");
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
        let mut endpoint = Endpoint::new(Kind::Ollama, "m");
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
