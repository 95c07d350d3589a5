//! Tests over real sockets: the error of each fault, the number of requests, and that no secret
//! appears in an error.

use super::{Address, HttpClient, HttpError, HttpRequest, HttpResponse, HttpSettings};
use crate::test_support::{PATIENCE, ScriptedServer, Secured, ServerAct};

const TOKEN: &str = "Bearer canary-0123456789";

fn client(url: &str, settings: &HttpSettings) -> HttpClient {
    let address = Address::parse(url).unwrap();
    HttpClient::to(address.join("hook/canary"), settings).unwrap()
}

fn http_request() -> HttpRequest {
    HttpRequest { max_answer: 100, ..HttpRequest::json(b"{\"a\":1}".to_vec()).with("authorization", TOKEN) }
}

async fn failure(script: Vec<ServerAct>, http_request: HttpRequest) -> HttpError {
    let mut server = ScriptedServer::start([script]);
    let error = client(&server.url(), &HttpSettings::default()).send(&http_request).await.unwrap_err();
    judged(error, &mut server)
}

/// Returns the error of a request whose answer stalls. The clock then jumps past the time limit.
async fn late(script: Vec<ServerAct>) -> HttpError {
    let mut server = ScriptedServer::start([script]);
    let (client, http_request) =
        (client(&server.url(), &HttpSettings::default()), HttpRequest { time: PATIENCE, ..http_request() });
    let clock = async {
        server.stalled().await;
        tokio::time::pause();
        std::future::pending::<()>().await
    };
    let end = tokio::select! { end = client.send(&http_request) => end, () = clock => unreachable!() };
    let error = judged(end.unwrap_err(), &mut server);
    tokio::time::resume();
    error
}

/// Checks that a failure cost one request and does not show the secret.
fn judged(error: HttpError, server: &mut ScriptedServer) -> HttpError {
    assert_eq!(server.requests().len(), 1, "{error}");
    assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
    error
}

fn send(text: &str) -> ServerAct {
    ServerAct::Send(text.into())
}

#[tokio::test]
async fn a_request_is_sent_once_and_its_whole_answer_is_returned_for_every_status() {
    let answer = "HTTP/1.1 409 Conflict\r\ncontent-type: Application/Problem+json; charset=x\r\nretry-after: 7\r\ncontent-length: 2\r\n\r\n{}";
    let mut server = ScriptedServer::start([vec![send(answer)]]);
    let found = client(&server.url(), &HttpSettings::default()).send(&http_request()).await.unwrap();
    let content_type = "application/problem+json".to_owned();
    assert_eq!(found, HttpResponse { status: 409, content_type, retry_after: Some(7), body: b"{}".to_vec() });
    let request = server.requests().pop().unwrap();
    assert!(
        request.starts_with("POST /hook/canary HTTP/1.1\r\n") && request.ends_with("\r\n\r\n{\"a\":1}"),
        "{request}"
    );
    for line in ["content-type: application/json", "authorization: Bearer canary-0123456789", "content-length: 7"] {
        assert!(request.contains(line), "{request}");
    }
    assert!(!format!("{:?}", http_request()).contains("canary"));
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let elsewhere = ScriptedServer::start([vec![send("HTTP/1.1 200 OK\r\n\r\n")]]);
    let moved = format!("HTTP/1.1 307 Moved\r\nlocation: {}/canary\r\ncontent-length: 0\r\n\r\n", elsewhere.url());
    let error = failure(vec![ServerAct::Send(moved)], http_request()).await;
    assert!(matches!(error, HttpError::Redirect { status: 307, .. }) && !error.may_pass(), "{error}");
    let mut elsewhere = elsewhere;
    assert_eq!(elsewhere.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn an_answer_is_bounded_in_time_and_in_size() {
    for script in
        [vec![ServerAct::Stall], vec![send("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"), ServerAct::Stall]]
    {
        let error = late(script).await;
        assert!(matches!(error, HttpError::Late { .. }) && error.may_pass(), "{error}");
    }
    let long = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(101));
    let flood = vec![send("HTTP/1.1 200 OK\r\n\r\n"), ServerAct::Flood("x".repeat(4096))];
    for script in [vec![ServerAct::Send(long)], flood] {
        assert!(matches!(failure(script, http_request()).await, HttpError::TooLarge { most: 100, .. }));
    }
    let exact = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(100));
    let server = ScriptedServer::start([vec![ServerAct::Send(exact)]]);
    assert_eq!(client(&server.url(), &HttpSettings::default()).send(&http_request()).await.unwrap().body.len(), 100);
}

#[tokio::test]
async fn what_breaks_off_is_no_answer_and_nothing_is_sent_twice() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";
    for script in [vec![], vec![ServerAct::Reset], vec![send(half)], vec![send("220 smtp.example ESMTP\r\n")]] {
        let error = failure(script, http_request()).await;
        assert!(matches!(error, HttpError::Broken { .. }) && error.may_pass(), "{error}");
    }
    let closed = "http://127.0.0.1:9"; // a port that no test server uses
    let error = client(closed, &HttpSettings::default()).send(&http_request()).await.unwrap_err();
    assert!(matches!(error, HttpError::Unreachable { .. }), "{error}");
    assert!(error.to_string().starts_with(&format!("cannot connect to {closed}: ")), "{error}");
}

#[tokio::test]
async fn certificates_and_a_proxy_are_those_that_are_given() {
    let server = Secured::new("HTTP/1.1 204 No Content\r\n\r\n");
    let friend = HttpSettings { ca_file: Some(server.ca.clone().into_bytes()), ..HttpSettings::default() };
    assert_eq!(client(&server.url(), &friend).send(&http_request()).await.unwrap().status, 204);
    let error = client(&server.url(), &HttpSettings::default()).send(&http_request()).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    let mut proxy = ScriptedServer::start([vec![send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")]]);
    let by = HttpSettings {
        proxy: Some(proxy.url().replace("http://", "http://user:canary-77@")),
        ..HttpSettings::default()
    };
    assert_eq!(client("http://hooks.invalid:9", &by).send(&HttpRequest::question()).await.unwrap().status, 200);
    let request = proxy.requests().pop().unwrap();
    assert!(request.starts_with("GET http://hooks.invalid:9/hook/canary HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("proxy-authorization: Basic dXNlcjpjYW5hcnktNzc="), "{request}");
    assert!(!format!("{by:?}").contains("canary"));
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_before_anything_is() {
    let address = Address::parse("http://127.0.0.1:1").unwrap();
    let refused = |settings: HttpSettings| HttpClient::to(address.clone(), &settings).unwrap_err();
    for proxy in ["socks5://127.0.0.1:1", "proxy", ""] {
        assert!(matches!(
            refused(HttpSettings { proxy: Some(proxy.into()), ..HttpSettings::default() }),
            HttpError::BadProxy
        ));
    }
    let error = refused(HttpSettings { ca_file: Some(b"no certificate".to_vec()), ..HttpSettings::default() });
    assert!(matches!(error, HttpError::BadCertificates), "{error}");
    for (name, value) in [("a b", "x"), ("x-token", "canary\r\nx: y")] {
        let error = client("http://127.0.0.1:1", &HttpSettings::default())
            .send(&http_request().with(name, value))
            .await
            .unwrap_err();
        assert!(matches!(&error, HttpError::BadHeader { header } if header == name), "{error}");
        assert!(!error.to_string().contains("canary"), "{error}");
    }
}
