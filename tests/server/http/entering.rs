//! Tests of browser sessions: a link works once, and its session outlives the server but not the
//! token.

use crate::server::http::support::{Place, TOKEN};

#[test]
fn a_link_lets_a_browser_in_once_and_its_session_outlives_the_server() {
    let place = Place::new();
    let server = place.serve(&[]);
    let port = server.address.port();
    let entered = server.enter(&server.code);
    assert_eq!((entered.status, entered.header("location")), (303, Some("/")));
    let set = entered.header("set-cookie").unwrap();
    assert!(set.starts_with(&format!("fledge-{port}=")), "{set}");
    assert!(set.ends_with("; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000"), "{set}");
    assert_eq!(server.enter(&server.code).status, 403);
    let cookie = entered.cookie();
    assert_eq!(server.with_cookie(&cookie).status, 200);
    assert_eq!(server.stop().0, Some(0));
    let listen = format!("127.0.0.1:{port}");
    let again = place.serve(&["--listen", &listen]);
    assert_eq!(again.with_cookie(&cookie).status, 200);
    again.stop();
    let other = place.serve_with(&["--listen", &listen], &[("FLEDGE_SERVE_TOKEN", "another-token-0123456789")]);
    assert_eq!(other.with_cookie(&cookie).status, 401, "a session of an older token");
    assert_eq!(other.get("/healthz").status, 401, "an older token");
}

#[test]
fn a_used_link_lets_who_has_a_session_in_and_shows_everyone_else_the_command() {
    let place = Place::new();
    let server = place.serve(&[]);
    let cookie = server.enter(&server.code).cookie();
    let ask = |path: &str, host: &str, more: &str| {
        server.ask(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/html\r\n{more}\r\n").as_bytes())
    };
    let (link, own) = (format!("/enter?code={}", server.code), server.address.to_string());
    let entered = ask(&link, &own, &format!("Cookie: {cookie}\r\n"));
    assert_eq!((entered.status, entered.header("location"), entered.header("set-cookie")), (303, Some("/"), None));
    let guessed = ask(&link, &own, &format!("Cookie: fledge-{}=AAAAAAAAAAAAAAAA\r\n", server.address.port()));
    assert_eq!(guessed.status, 403);
    assert!(guessed.body.contains("This link no longer works"), "{}", guessed.body);
    let locked = ask("/", &own, "");
    assert_eq!(locked.status, 401);
    assert!(locked.body.contains("fledge serve link -C /"), "{}", locked.body);
    let policy = locked.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert_eq!(server.stop().0, Some(0));
    let proxied = place.serve(&["--host", "build.example"]);
    let locked = proxied.ask(b"GET / HTTP/1.1\r\nHost: build.example\r\nAccept: text/html\r\n\r\n");
    assert_eq!(locked.status, 401);
    assert!(!locked.body.contains("-C /"), "other machines must not see the folder: {}", locked.body);
}

#[test]
fn our_own_page_may_end_its_session() {
    long_test!();
    let place = Place::new();
    let server = place.serve(&[]);
    let (host, cookie) = (server.address, server.enter(&server.code).cookie());
    let head = format!("POST /leave HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nContent-Length: 0\r\n");
    let left = server.ask(format!("{head}Origin: http://{host}\r\nSec-Fetch-Site: same-origin\r\n\r\n").as_bytes());
    assert_eq!(left.status, 204);
    assert!(left.header("set-cookie").unwrap().ends_with("Max-Age=0"), "{}", left.head);
    assert_eq!(server.with_cookie(&cookie).status, 401);
}

#[test]
fn a_server_goes_by_the_names_that_it_is_given() {
    let place = Place::new();
    let server = place.serve(&["--host", "build.example"]);
    let ask = |host: &str| {
        let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nAuthorization: bearer {TOKEN}\r\n\r\n");
        server.ask(request.as_bytes()).status
    };
    let port = server.address.port();
    let hosts = ["build.example", "build.example:443", &format!("localhost:{port}"), "other.example"];
    assert_eq!(hosts.map(ask), [200, 200, 200, 421]);
}
