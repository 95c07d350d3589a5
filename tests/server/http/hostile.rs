//! Tests of hostile requests: each gets its expected status, has no effect, and leaves a working
//! server.

use crate::server::http::rows::{self, Row};
use crate::server::http::support::{Answer, Place, Server, TOKEN};
use crate::support::read_some;
use std::io::{Read, Write};
use std::time::Duration;

#[test]
fn what_means_no_good_is_answered_as_the_table_says_and_has_done_nothing() {
    long_test!();
    let place = Place::new();
    let server = place.serve(&[]);
    let cookie = server.enter(&server.code).cookie();
    let link = place.fledge(&["serve", "link"], &[]).output().unwrap();
    let link = String::from_utf8(link.stdout).unwrap();
    let link = link.trim().rsplit_once("code=").unwrap().1.to_owned();
    let known = Known { cookie: &cookie, link: &link };
    assert_eq!(server.get("/healthz").status, 200);
    let before = place.things();
    let mut wrong = Vec::new();
    let rows = rows::all();
    assert!(rows.len() >= 100, "{}", rows.len());
    for row in &rows {
        let answer = server.ask(&known.filled(&server, row));
        if !row.answers.contains(&answer.status) {
            wrong.push(format!("{}: {} and not {:?}\n  {}", row.name, answer.status, row.answers, answer.body));
        }
        wrong.extend(unproper(&answer).map(|why| format!("{}: {why}\n{}\n{}", row.name, answer.head, answer.body)));
        let after = server.get("/healthz").status;
        if after != 200 {
            wrong.push(format!("{}: then the server answers with {after}", row.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(place.things(), before, "something was done");
    // No request without access has used the link.
    assert_eq!(server.enter(&link).status, 303);
    assert_eq!(server.with_cookie(&cookie).status, 200, "the session was ended by another site");
    let (code, log) = server.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("panicked"), "{log}");
    assert!(!log.contains(TOKEN), "{log}");
}

/// The values that replace the placeholders in requests.
struct Known<'k> {
    cookie: &'k str,
    link: &'k str,
}

impl Known<'_> {
    fn filled(&self, server: &Server, row: &Row) -> Vec<u8> {
        let port = server.address.port().to_string();
        let session = self.cookie.split_once('=').unwrap().1;
        let words = [
            ("{H}", format!("Host: {}", server.address)),
            ("{Z}", server.address.to_string()),
            ("{A}", format!("Authorization: Bearer {TOKEN}")),
            ("{T}", TOKEN.to_owned()),
            ("{C}", format!("Cookie: {}", self.cookie)),
            ("{K}", session.to_owned()),
            ("{L}", self.link.to_owned()),
            ("{U}", server.code.clone()),
            ("{P}", port),
        ];
        words
            .iter()
            .fold(row.request.clone(), |request, (word, text)| replaced(&request, word.as_bytes(), text.as_bytes()))
    }
}

fn replaced(bytes: &[u8], word: &[u8], text: &[u8]) -> Vec<u8> {
    let (mut made, mut rest) = (Vec::new(), bytes);
    while let Some(at) = rest.windows(word.len()).position(|part| part == word) {
        made.extend(&rest[..at]);
        made.extend(text);
        rest = &rest[at + word.len()..];
    }
    made.extend(rest);
    made
}

/// Returns a required header that the answer of a handler lacks. The parser answers invalid HTTP
/// without a body.
fn unproper(answer: &Answer) -> Option<String> {
    let headers = [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        ("cross-origin-resource-policy", "same-origin"),
    ];
    if answer.status == 0 || answer.header("content-length") == Some("0") && answer.header("content-type").is_none() {
        return None;
    }
    if let Some((name, _)) = headers.iter().find(|(name, value)| answer.header(name) != Some(value)) {
        return Some(format!("no {name}"));
    }
    if answer.header("access-control-allow-origin").is_some() {
        return Some("other sites are let in".into());
    }
    let is_problem = answer.header("content-type") == Some("application/problem+json");
    (answer.status >= 400 && !is_problem).then(|| "no problem details".into())
}

#[test]
fn a_refusal_says_what_it_is_as_problem_details() {
    let place = Place::new();
    let server = place.serve(&[]);
    let answer = server.get("/nothing/here?token=secret");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    insta::assert_snapshot!(answer.body);
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\nAccept: text/html\r\n\r\n", server.address);
    let locked = server.ask(request.as_bytes());
    assert_eq!((locked.status, locked.header("content-type")), (401, Some("text/html; charset=utf-8")));
    assert!(locked.body.contains("fledge serve link"), "{}", locked.body);
}

#[test]
fn every_request_of_a_connection_needs_the_token() {
    let place = Place::new();
    let server = place.serve(&[]);
    let host = server.address;
    let mut socket = server.connect();
    let first = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    let second = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    socket.write_all(format!("{first}{second}").as_bytes()).unwrap();
    let mut all = String::new();
    socket.read_to_string(&mut all).unwrap();
    let statuses: Vec<&str> = all.split("HTTP/1.1 ").skip(1).map(|rest| &rest[..3]).collect();
    assert_eq!(statuses, ["200", "401"]);
    // A request hidden in the body of another one is read as a body, or as a request without a
    // token.
    let hidden = "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n";
    let head = format!("POST /leave HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n");
    let length = hidden.len() + 5;
    let both = format!("{head}Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}");
    let mut socket = server.connect();
    socket.write_all(both.as_bytes()).unwrap();
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    let mut all = String::new();
    let _it_may_be_cut_off = socket.read_to_string(&mut all);
    assert!(!all.contains("\"openapi\""), "{all}");
}

#[test]
fn who_is_too_slow_is_cut_off() {
    let place = Place::new();
    let server = place.serve(&["--request-timeout", "1s"]);
    let host = server.address;
    let head = format!("POST /leave HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n");
    let slow = [
        String::new(),
        "GET /healthz HTTP/1.1\r\nX: ".to_owned(),
        format!("{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"),
        format!("{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\nx"),
    ];
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let all: Vec<_> = slow.iter().map(|begin| scope.spawn(|| trickled(&server, begin))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(answers[2..], [408, 408]);
    assert!(answers[..2].iter().all(|status| [0, 408].contains(status)), "{answers:?}");
    // The server also closes an idle connection.
    let mut socket = server.connect();
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    assert_eq!(Answer::read(&mut socket).status, 200);
    assert_eq!(read_some(&mut socket, &mut [0; 1]), 0);
    assert_eq!(server.get("/healthz").status, 200);
}

/// Sends a text, and then single bytes at intervals, until the server answers or closes. Returns
/// the status.
fn trickled(server: &Server, begin: &str) -> u16 {
    let mut socket = server.connect();
    socket.write_all(begin.as_bytes()).unwrap();
    let mut sending = socket.try_clone().unwrap();
    let trickle = std::thread::spawn(move || {
        // The socket has a time limit for each write.
        while sending.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(50)); // slower than the server permits
        }
    });
    let answer = Answer::read(&mut socket);
    let _it_is_closed = socket.shutdown(std::net::Shutdown::Both);
    trickle.join().unwrap();
    answer.status
}
