//! Tests of many clients at once: the server limits their number, and none blocks the others beyond
//! its time limit.

use crate::server::http::support::{Place, TOKEN};
use crate::support::{PATIENCE, note, until};
use std::fs;
use std::net::TcpStream;
use std::time::Duration;

/// The numbers of connections that are opened, and that stay open.
const COMING: usize = 10_000;
const STAYING: usize = 600;
/// The maximum number of open files of the server: its connections, and its own files.
const MOST: usize = 256 + 64;
/// The maximum additional memory that the server may use, in KiB.
const MORE_MEMORY: u64 = 64 * 1024;

#[test]
fn ten_thousand_connections_have_no_more_than_their_places_and_go_with_their_time() {
    long_test!();
    let place = Place::new();
    let server = place.serve(&["--request-timeout", "2s"]);
    assert_eq!(server.get("/healthz").status, 200);
    let pid = server.pid().as_raw_nonzero().get();
    let memory = |pid: i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap().to_owned();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    let files = || fs::read_dir(format!("/proc/{pid}/fd")).map(Iterator::count);
    if files().is_err() {
        note("skipped: how many files a crowded server has open, which only root sees");
    }
    let (before, mut staying, mut most) = (memory(pid), Vec::new(), 0);
    for number in 0..COMING {
        let came = TcpStream::connect_timeout(&server.address, PATIENCE).unwrap();
        if number % (COMING / STAYING) == 0 {
            staying.push(came);
            most = most.max(files().unwrap_or(0));
            // Gives the server time to accept. Otherwise the backlog of the system fills, and later
            // connections wait for seconds.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    assert!(most <= MOST, "{most} files are open");
    assert!(memory(pid) < before + MORE_MEMORY, "{} KiB, and {before} before", memory(pid));
    until("a server that answers again", || server.get("/healthz").status == 200);
    drop(staying);
    let (code, log) = server.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn a_hundred_requests_in_one_go_are_answered_one_after_the_other() {
    use std::io::{Read, Write};
    let place = Place::new();
    let server = place.serve(&[]);
    let head = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\n", server.address);
    let all = format!("{head}\r\n").repeat(99) + &format!("{head}Connection: close\r\n\r\n");
    let mut socket = server.connect();
    socket.write_all(all.as_bytes()).unwrap();
    let mut answers = String::new();
    socket.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 100);
}
