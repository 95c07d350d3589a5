//! Helpers for all unit tests: the timeout of waits, samples, temporary folders, HTTP servers and a
//! step report.

#[path = "../tests/support/authority.rs"]
mod authority;

pub(crate) use authority::Secured;

use crate::verdict::{StepReport, StepStatus};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The timeout of each wait for an event. It only ends a hang: no busy machine is that slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Picks one of every [`step`] cases of a long test, by `FLEDGE_TEST_SEED`, else by the process id.
/// A test that fails shows the seed.
#[expect(clippy::disallowed_methods, reason = "the seed of a test is set from outside")]
pub(crate) fn drawn<T>(cases: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let given = std::env::var("FLEDGE_TEST_SEED").ok();
    let by_process = || std::process::id() as usize;
    let seed = given.map_or_else(by_process, |seed| seed.parse().expect("FLEDGE_TEST_SEED is a whole number"));
    eprintln!("drawn by FLEDGE_TEST_SEED={seed}");
    cases.skip(seed % step()).step_by(step())
}

/// Returns the distance between two tested cases: 6, or 1 with `FLEDGE_TEST_ALL=1`.
#[expect(clippy::disallowed_methods, reason = "the size of a sample is set from outside")]
pub(crate) fn step() -> usize {
    if std::env::var("FLEDGE_TEST_ALL").is_ok_and(|all| all == "1") { 1 } else { 6 }
}

/// Returns a variable of the environment, or an empty text.
#[expect(clippy::disallowed_methods, reason = "tests find programs as the user does")]
pub(crate) fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// Returns a new folder that is removed on drop. It is in `TMPDIR` if that is set, else in memory
/// if 1 GiB is free there, else in the system's temporary folder.
#[expect(clippy::disallowed_methods, reason = "the place of a test is set from outside")]
pub(crate) fn temp_dir() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let has_room =
        || rustix::fs::statvfs(memory).is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) >= 1 << 30);
    let in_memory = (std::env::var_os("TMPDIR").is_none() && has_room()).then(|| tempfile::tempdir_in(memory));
    in_memory.and_then(Result::ok).unwrap_or_else(|| tempfile::tempdir().unwrap())
}

/// Returns the report of step `test` of lane `verify`, without a log.
pub(crate) fn step_report(command: &str, status: StepStatus, excerpt: &str) -> StepReport {
    StepReport {
        lane: "verify".into(),
        step: "test".into(),
        command: command.into(),
        status,
        tries: 1,
        exit_code: (status == StepStatus::Failed).then_some(1),
        signal: None,
        duration_ms: 0,
        log: None,
        excerpt: excerpt.into(),
        note: String::new(),
        tests: None,
    }
}

/// An action on a connection, after the server has read the request.
#[derive(Debug, Clone)]
pub(crate) enum ServerAct {
    /// Sends these bytes, in one write.
    Send(String),
    /// Sends these bytes repeatedly until the client hangs up.
    Flood(String),
    /// Reads another request.
    Read,
    /// Waits until the client hangs up.
    Stall,
    /// Breaks the connection with a reset.
    Reset,
}

/// A server that plays one script per connection, then refuses further connections.
#[derive(Debug)]
pub(crate) struct ScriptedServer {
    address: SocketAddr,
    requests: UnboundedReceiver<String>,
    stalls: UnboundedReceiver<()>,
    hang_ups: UnboundedReceiver<()>,
}

/// The channels to which the server's threads report.
#[derive(Clone)]
struct Reports {
    request: UnboundedSender<String>,
    stall: UnboundedSender<()>,
    hang_up: UnboundedSender<()>,
}

impl ScriptedServer {
    /// Starts the server.
    pub(crate) fn start(scripts: impl IntoIterator<Item = Vec<ServerAct>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ((request, requests), (stall, stalls), (hang_up, hang_ups)) =
            (unbounded_channel(), unbounded_channel(), unbounded_channel());
        let reports = Reports { request, stall, hang_up };
        let scripts: Vec<Vec<ServerAct>> = scripts.into_iter().collect();
        thread::spawn(move || {
            for script in scripts {
                let Ok((socket, _)) = listener.accept() else { return };
                let reports = reports.clone();
                thread::spawn(move || play(socket, script, &reports));
            }
        });
        Self { address, requests, stalls, hang_ups }
    }

    /// Returns the server's URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the raw requests since the last call.
    pub(crate) fn requests(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.requests.try_recv().ok()).collect()
    }

    /// Waits for a request and returns it.
    pub(crate) async fn asked(&mut self) -> String {
        self.requests.recv().await.unwrap()
    }

    /// Waits until a script stalls. Everything before the stall has been sent.
    pub(crate) async fn stalled(&mut self) {
        self.stalls.recv().await.unwrap();
    }

    /// Waits until a client has hung up on a stalled or flooding connection.
    pub(crate) async fn hung_up(&mut self) {
        let gone = tokio::time::timeout(PATIENCE, self.hang_ups.recv()).await;
        assert_eq!(gone, Ok(Some(())), "the client holds on to the connection");
    }
}

fn play(mut socket: TcpStream, script: Vec<ServerAct>, reports: &Reports) {
    let Reports { request, stall, hang_up } = reports;
    // Closing a socket with unread bytes resets the connection, so a script with a reset leaves
    // some bytes.
    let leave = usize::from(script.iter().any(|act| matches!(act, ServerAct::Reset)));
    let Some(text) = read_request(&mut socket, leave) else { return };
    let _gone = request.send(text);
    for act in script {
        match act {
            ServerAct::Send(bytes) => drop(socket.write_all(bytes.as_bytes())),
            ServerAct::Flood(bytes) => {
                while socket.write_all(bytes.as_bytes()).is_ok() {}
                let _gone = hang_up.send(());
            }
            ServerAct::Read => {
                let Some(text) = read_request(&mut socket, 0) else { return };
                let _gone = request.send(text);
            }
            ServerAct::Stall => {
                let _gone = stall.send(());
                let _ = socket.read(&mut [0]);
                let _gone = hang_up.send(());
            }
            ServerAct::Reset => return,
        }
    }
    let _ = socket.shutdown(Shutdown::Both);
}

/// Reads a request up to `leave` bytes of its body.
fn read_request(socket: &mut TcpStream, leave: usize) -> Option<String> {
    let mut reader = BufReader::with_capacity(1, socket);
    let (mut text, mut length) = (String::new(), 0);
    loop {
        let start = text.len();
        reader.read_line(&mut text).ok()?;
        match text[start..].trim_end().to_ascii_lowercase().split_once(": ") {
            Some(("content-length", bytes)) => length = bytes.parse().ok()?,
            Some(_) => {}
            None if text[start..].trim().is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; length - leave];
    reader.read_exact(&mut body).ok()?;
    Some(text + &String::from_utf8_lossy(&body))
}
