//! Tests of the start and stop of a server, and of its errors at the start.

use crate::server::http::support::{Place, TOKEN};
use crate::support::{SOON, read_some};
use rustix::process::{Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

#[test]
fn every_path_takes_the_methods_that_the_document_names_and_no_other() {
    let place = Place::new();
    let server = place.serve(&[]);
    let document: serde_json::Value = serde_json::from_str(&server.get("/openapi.json").body).unwrap();
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() > 15, "{paths:#?}");
    for (path, operations) in paths {
        let described: BTreeSet<String> =
            operations.as_object().unwrap().keys().map(|name| name.to_uppercase()).collect();
        let names = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
        let (address, path) = (server.address, names.collect::<Vec<_>>().join("/"));
        let request = format!(
            "PATCH {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 0\r\n\r\n"
        );
        let answer = server.ask(request.as_bytes());
        let taken = answer.header("allow").unwrap_or_else(|| panic!("{path}: {} {}", answer.status, answer.head));
        let taken: BTreeSet<String> =
            taken.split(',').map(|name| name.trim().to_owned()).filter(|name| name != "HEAD").collect();
        assert_eq!((answer.status, taken), (405, described), "{path}");
    }
}

#[test]
fn what_keeps_a_server_from_starting_is_said_with_what_to_do() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let (taken, port) = (taken.local_addr().unwrap().to_string(), taken);
    let in_use = place.says(&["serve", "--listen", &taken], &[]).replace(&taken, "ADDRESS");
    let token = place.path().join("token");
    fs::write(&token, "short\n").unwrap();
    let token = token.display().to_string();
    let said = [
        in_use,
        place.says(&["serve", "--listen", "0.0.0.0:0"], &[]),
        place.says(&["serve", "--listen", "127.0.0.1"], &[]),
        place.says(&["serve", "--listen", "192.0.2.1:0", "--allow-public"], &[]),
        place.says(&["serve", "--token-file", &token], &[]),
        place.says(&["serve", "--token-file", "../nowhere"], &[]),
        place.says(&["serve", "--token-file", "token"], &[]),
        place.says(&["serve"], &[("FLEDGE_SERVE_TOKEN", "with blanks in it, which no header takes")]),
        place.says(&["serve", "-C", "nowhere"], &[]),
        place.says(&["serve", "link"], &[]),
    ];
    drop(port);
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn a_token_that_others_may_read_is_not_used() {
    let place = Place::new();
    let server = place.serve_with(&[], &[]);
    let token = place.things().into_iter().find(|path| path.ends_with("serve/token")).unwrap();
    assert_eq!(fs::metadata(&token).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&token).unwrap();
    let request =
        format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n", server.address, text.trim());
    assert_eq!(server.ask(request.as_bytes()).status, 200);
    server.stop();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o640)).unwrap();
    let said = place.says(&["serve", "--listen", "127.0.0.1:0"], &[]);
    assert!(said.starts_with("exit 2\n") && said.contains("others can read the file (mode 640)"), "{said}");
    // A token file that the user names may be mounted with this mode, so the server accepts it with
    // a warning.
    let given = place.path().join("given");
    fs::write(&given, format!("{TOKEN}\n")).unwrap();
    fs::set_permissions(&given, fs::Permissions::from_mode(0o644)).unwrap();
    let server = place.serve_with(&["--token-file", &given.display().to_string()], &[]);
    assert_eq!(server.get("/healthz").status, 200);
    server.says("others can read the token in");
}

#[test]
fn a_project_has_one_server_and_the_next_is_told_which() {
    let place = Place::new();
    let server = place.serve(&[]);
    let said = place.says(&["serve", "--listen", "127.0.0.1:0"], &[]);
    let pid = server.pid().as_raw_nonzero().get();
    assert!(said.starts_with("exit 2\nerror: another server already serves this project: process "), "{said}");
    assert!(
        said.contains(&format!("process {pid} on ")) && said.contains(&format!("http://{}", server.address)),
        "{said}"
    );
    assert_eq!(server.get("/healthz").status, 200);
    drop(server); // kills the server
    place.serve(&[]);
}

#[test]
fn a_server_without_a_link_prints_none() {
    let place = Place::new();
    let server = place.serve(&["--no-link"]);
    assert_eq!(server.code, "");
    assert_eq!(server.get("/healthz").status, 200);
    let links = place.path().join("state");
    let found = walkdir::WalkDir::new(links)
        .into_iter()
        .flatten()
        .filter(|entry| entry.path().parent().is_some_and(|folder| folder.ends_with("links")));
    assert_eq!(found.count(), 0);
}

#[test]
fn a_signal_lets_a_request_under_way_be_answered_and_a_second_one_does_not_wait() {
    let place = Place::new();
    let server = place.serve(&["--grace", "30s"]);
    let (host, pid) = (server.address, server.pid());
    let mut idle = server.connect();
    let mut asking = server.connect();
    let head = format!("POST /leave HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n");
    let head = format!("{head}Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    asking.write_all(head.as_bytes()).unwrap();
    let mut go_on = [0; 25];
    asking.read_exact(&mut go_on).unwrap();
    assert!(go_on.starts_with(b"HTTP/1.1 100"), "it waits for the body now");
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(read_some(&mut idle, &mut [0; 1]), 0, "an idle connection is closed");
    asking.write_all(b"{}").unwrap();
    let mut answer = String::new();
    asking.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    let (code, log) = server.ended();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("stopping within 30s; a second signal ends at once"), "{log}");

    let server = place.serve(&["--grace", "10m"]);
    let mut asking = server.connect();
    asking.write_all(head.replace(&host.to_string(), &server.address.to_string()).as_bytes()).unwrap();
    asking.read_exact(&mut go_on).unwrap();
    kill_process(server.pid(), Signal::INT).unwrap();
    server.says("stopping within 10m");
    let begun = Instant::now();
    kill_process(server.pid(), Signal::INT).unwrap();
    assert_eq!(server.ended().0, Some(130));
    assert!(begun.elapsed() < SOON);
}

#[test]
fn what_does_not_end_within_the_grace_is_cut_off() {
    let place = Place::new();
    let server = place.serve(&["--grace", "1s", "--request-timeout", "10m"]);
    let mut asking = server.connect();
    let head = format!("POST /leave HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\n", server.address);
    asking.write_all(format!("{head}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n").as_bytes()).unwrap();
    asking.read_exact(&mut [0; 25]).unwrap();
    let begun = Instant::now();
    let (code, log) = server.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("some requests were not answered within the grace period"), "{log}");
    assert!(begun.elapsed() < SOON);
}

#[test]
fn streams_end_with_a_comment_when_the_server_stops() {
    let place = Place::new();
    let server = place.serve(&[]);
    let mut socket = server.connect();
    let head = format!("GET /v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n", server.address);
    socket.write_all(head.as_bytes()).unwrap();
    let mut begun = [0; 15];
    socket.read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200 OK");
    kill_process(server.pid(), Signal::TERM).unwrap();
    let mut rest = String::new();
    socket.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("content-type: text/event-stream") && rest.contains(": the server is stopping\n"), "{rest}");
    assert!(rest.ends_with("0\r\n\r\n"), "the stream is whole: {rest}");
    assert_eq!(server.ended().0, Some(0));
}
