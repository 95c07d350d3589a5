//! One HTTP exchange on loopback, over its own connection.

use crate::support::PATIENCE;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Sends a request, with a JSON body unless it is null. Returns the status and the JSON of the
/// answer, or null if it has none.
pub(crate) fn exchange(to: SocketAddr, method: &str, path: &str, token: Option<&str>, body: &Value) -> (u16, Value) {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {to}\r\n{token}Content-Type: application/json\r\n");
    let rest = format!("Content-Length: {}\r\nConnection: close\r\n\r\n{text}", text.len());
    (&stream).write_all(format!("{head}{rest}").as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let (mut status, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "{method} {path}: the answer breaks off");
        if status == 0 {
            status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        }
        let Some((name, value)) = line.split_once(':') else {
            if line.trim().is_empty() {
                break;
            }
            continue;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut text = vec![0; length];
    reader.read_exact(&mut text).unwrap();
    (status, serde_json::from_slice(&text).unwrap_or(Value::Null))
}
