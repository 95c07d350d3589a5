//! A `fledge serve` process: its address, the code of the link that it printed, and its log.

use crate::support::becomes;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command};
use std::sync::{Arc, Mutex};

/// A server, which is killed when it is dropped.
pub(crate) struct Serving {
    child: Child,
    pub(crate) address: SocketAddr,
    /// The code of the link, or an empty text if the server printed none.
    pub(crate) code: String,
    log: Arc<Mutex<String>>,
    /// The thread that reads the log.
    reader: std::thread::JoinHandle<()>,
    _stdout: BufReader<ChildStdout>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _it_may_have_ended = self.child.kill();
        let _it_may_have_been_waited_for = self.child.wait();
    }
}

impl Serving {
    /// Starts `fledge serve` by this command, whose output is piped, and waits until the server
    /// listens.
    ///
    /// # Panics
    ///
    /// Panics with the output of the program if it does not listen.
    pub(crate) fn start(mut command: Command) -> Self {
        let has_link = !command.get_args().any(|arg| arg == "--no-link");
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (log, mut stderr): (Arc<Mutex<String>>, _) = (Arc::default(), child.stderr.take().unwrap());
        let said = Arc::clone(&log);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut bytes) {
                said.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        let mut first = String::new();
        stdout.read_line(&mut first).unwrap();
        let Some((_, address)) = first.trim().rsplit_once("http://") else {
            let _ = child.wait();
            panic!("no server: {first}{}", log.lock().unwrap());
        };
        let address = address.parse().unwrap();
        let mut second = String::new();
        if has_link {
            stdout.read_line(&mut second).unwrap();
        }
        let code = second.trim().rsplit_once("code=").map_or_else(String::new, |(_, code)| code.to_owned());
        Self { child, address, code, log, reader, _stdout: stdout }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until the log has this text.
    pub(crate) fn says(&self, text: &str) {
        assert!(becomes(|| self.log().contains(text)), "it never says {text:?}: {}", self.log());
    }

    /// Asks the server to stop. Returns its exit code and its log.
    pub(crate) fn stop(self) -> (Option<i32>, String) {
        kill_process(self.pid(), Signal::TERM).unwrap();
        self.ended()
    }

    /// Waits for the end of the server. Returns its exit code and its log.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        assert!(becomes(|| self.child.try_wait().unwrap().is_some()), "it does not stop: {}", self.log());
        let code = self.child.wait().unwrap().code();
        becomes(|| self.reader.is_finished()); // the reader thread may still have log lines to read
        (code, self.log())
    }
}
