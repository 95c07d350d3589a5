//! A running server, and requests to it as bytes.

pub(crate) use crate::server::serving::Serving as Server;
use crate::support::{PATIENCE, read_some, record_time};
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The token of servers that get a token.
pub(crate) const TOKEN: &str = "t0ken-of-the-tests-0123456789";

/// A folder with a project and a state folder.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        record_time();
        let folder = crate::support::temp_dir();
        ["project", "home", "state"].iter().for_each(|name| fs::create_dir(folder.path().join(name)).unwrap());
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the program in the project with these arguments and this environment.
    pub(crate) fn fledge(&self, args: &[&str], env: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fledge"));
        command.args(args).current_dir(self.path().join("project")).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.path().join("home"));
        command.env("FLEDGE_STATE_DIR", self.path().join("state")).envs(env.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program. Returns its exit code and output, with `PLACE` for the path of the folder.
    pub(crate) fn says(&self, args: &[&str], env: &[(&str, &str)]) -> String {
        let Output { status, stdout, stderr } = self.fledge(args, env).output().unwrap();
        let text = |bytes: &[u8]| self.masked(&String::from_utf8_lossy(bytes));
        format!("exit {}\n{}{}", status.code().unwrap_or(-1), text(&stdout), text(&stderr))
    }

    pub(crate) fn masked(&self, text: &str) -> String {
        let real = self.path().canonicalize().unwrap();
        text.replace(&real.display().to_string(), "PLACE").replace(&self.path().display().to_string(), "PLACE")
    }

    /// Starts a server at a free port, with the token of the tests.
    pub(crate) fn serve(&self, args: &[&str]) -> Server {
        self.serve_with(args, &[("FLEDGE_SERVE_TOKEN", TOKEN)])
    }

    pub(crate) fn serve_with(&self, args: &[&str], env: &[(&str, &str)]) -> Server {
        let anywhere: &[&str] = if args.contains(&"--listen") { &[] } else { &["--listen", "127.0.0.1:0"] };
        let args = [&["serve"], anywhere, args].concat();
        Server::start(self.fledge(&args, env))
    }

    /// Returns all files, except those of browser sessions and the side files of the database.
    pub(crate) fn things(&self) -> Vec<PathBuf> {
        fn below(folder: &Path, all: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    below(&path, all);
                }
                all.push(path);
            }
        }
        let mut all = Vec::new();
        below(self.path(), &mut all);
        let is_passing = |path: &PathBuf| {
            let text = path.display().to_string();
            ["/links/", "/sessions/", "-wal", "-shm", "-journal"].iter().any(|part| text.contains(part))
        };
        all.retain(|path| !is_passing(path));
        all.sort();
        all
    }
}

impl Server {
    pub(crate) fn connect(&self) -> TcpStream {
        let socket = TcpStream::connect_timeout(&self.address, PATIENCE).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    /// Sends bytes, and reads one answer.
    pub(crate) fn ask(&self, request: &[u8]) -> Answer {
        let mut socket = self.connect();
        let mut asking = socket.try_clone().unwrap();
        let request = request.to_vec();
        // A thread sends, since the server may answer and close the connection before it has read
        // all bytes.
        let sending = std::thread::spawn(move || asking.write_all(&request));
        let answer = Answer::read(&mut socket);
        let _nobody_takes_more = socket.shutdown(std::net::Shutdown::Both);
        let _it_was_cut_off = sending.join().unwrap();
        answer
    }

    /// Sends a GET request with the token.
    pub(crate) fn get(&self, path: &str) -> Answer {
        let address = self.address;
        self.ask(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n").as_bytes())
    }

    /// Enters by the code of a link.
    pub(crate) fn enter(&self, code: &str) -> Answer {
        self.ask(format!("GET /enter?code={code} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address).as_bytes())
    }

    /// Sends a GET request with a cookie.
    pub(crate) fn with_cookie(&self, cookie: &str) -> Answer {
        let request = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\n\r\n", self.address);
        self.ask(request.as_bytes())
    }
}

/// The answer to a request.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// 0 if the connection was closed without an answer.
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn read(socket: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        let end = |bytes: &[u8]| bytes.windows(4).position(|four| four == b"\r\n\r\n");
        loop {
            let at = end(&bytes);
            let text = String::from_utf8_lossy(&bytes[..at.unwrap_or(0)]).into_owned();
            let length = text.to_ascii_lowercase();
            let length = length.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
            let is_whole = at.is_some_and(|at| bytes.len() - at - 4 >= length.unwrap_or(usize::MAX - at - 4));
            let count = if is_whole { 0 } else { read_some(socket, &mut buffer) };
            bytes.extend(&buffer[..count]);
            if count == 0 {
                let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
                let body = at.map_or_else(String::new, |at| String::from_utf8_lossy(&bytes[at + 4..]).into_owned());
                return Self { status, head: text, body };
            }
        }
    }

    /// Returns the value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let pairs = self.head.lines().filter_map(|line| line.split_once(": "));
        pairs.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    /// Returns the cookie of the answer, in the form in which a browser sends it.
    pub(crate) fn cookie(&self) -> String {
        self.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
    }
}
