//! A project that is served, its server, and requests to it.

use crate::support::{KEY, Model, git, needs};
use reqwest::{Client, Response, StatusCode};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take before it counts as stuck.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
const TOKEN: &str = "t0ken-of-the-tests-0123456789";

/// A project under git, whose gate wants the file `done`.
pub(crate) struct Site {
    folder: TempDir,
    env: Vec<(String, String)>,
}

impl Site {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        ["project/lanes", "project/tasks", "home", "state"]
            .iter()
            .for_each(|name| fs::create_dir_all(folder.path().join(name)).unwrap());
        let site = Self { folder, env: Vec::new() };
        site.file("lanes/verify.yaml", &needs("done"));
        git(&site.project(), &["init", "--quiet", "--initial-branch=main"]);
        git(&site.project(), &["config", "user.name", "Tester"]);
        git(&site.project(), &["config", "user.email", "tester@example.invalid"]);
        site.commit();
        site
    }

    /// With this model, as Anthropic's.
    pub(crate) fn with(model: &Model) -> Self {
        let mut site = Self::new();
        site.env = vec![("ANTHROPIC_BASE_URL".into(), model.url()), ("ANTHROPIC_API_KEY".into(), KEY.into())];
        site
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.path().join("project")
    }

    pub(crate) fn file(&self, path: &str, text: &str) {
        fs::write(self.project().join(path), text).unwrap();
    }

    pub(crate) fn commit(&self) {
        git(&self.project(), &["add", "--all"]);
        git(&self.project(), &["commit", "--quiet", "--message", "Files"]);
    }

    /// The program in the project.
    pub(crate) fn fledge(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fledge"));
        command.args(args).current_dir(self.project()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.path().join("home"));
        command.env("FLEDGE_STATE_DIR", self.path().join("state")).env("FLEDGE_SERVE_TOKEN", TOKEN);
        command.envs(self.env.iter().cloned()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// What a verb prints as JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.fledge(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Serves it.
    pub(crate) fn serve(&self, args: &[&str]) -> Server {
        let args = [&["serve", "--listen", "127.0.0.1:0", "--no-link"], args].concat();
        let mut child = self.fledge(&args).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (log, mut stderr): (Arc<Mutex<String>>, _) = (Arc::default(), child.stderr.take().unwrap());
        let said = Arc::clone(&log);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut bytes) {
                said.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        let mut first = String::new();
        stdout.read_line(&mut first).unwrap();
        let Some((_, address)) = first.trim().rsplit_once("http://") else {
            panic!("no server: {first}{}", log.lock().unwrap());
        };
        let url = format!("http://{address}");
        let headers = [("authorization".parse().unwrap(), format!("Bearer {TOKEN}").parse().unwrap())];
        let client = Client::builder().no_proxy().default_headers(headers.into_iter().collect()).build().unwrap();
        Server { child, url, client, log, _stdout: stdout }
    }
}

/// A server that runs; it is killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    pub(crate) client: Client,
    log: Arc<Mutex<String>>,
    _stdout: BufReader<std::process::ChildStdout>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _it_may_have_ended = self.child.kill();
        let _it_may_have_been_waited_for = self.child.wait();
    }
}

impl Server {
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Kills it as nothing else can: SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to stop, and waits until it has; says how long that took.
    pub(crate) fn stop(mut self) -> Duration {
        let begun = Instant::now();
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        while self.child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < PATIENCE, "it does not stop:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
        let code = self.child.wait().unwrap().code();
        assert_eq!(code, Some(0), "{}", self.log());
        begun.elapsed()
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        answer(self.client.get(format!("{}{path}", self.url)).send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        let request = self.client.post(format!("{}{path}", self.url));
        let request = request.header("content-type", "application/json").body(body.to_string());
        answer(request.send().await.unwrap()).await
    }

    /// Submits a task's text; gives its id.
    pub(crate) async fn submit(&self, task: &str) -> String {
        let (status, run) = self.post("/v1/runs", json!({ "task": task })).await;
        assert_eq!((status.as_u16(), &run["state"]), (201, &json!("queued")), "{run}");
        run["id"].as_str().unwrap().to_owned()
    }

    /// Waits until a run is so.
    pub(crate) async fn until(&self, run: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let (_, row) = self.get(&format!("/v1/runs/{run}")).await;
            if holds(&row) {
                return row;
            }
            assert!(begun.elapsed() < PATIENCE, "waited in vain: {row:#}\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn ended(&self, run: &str) -> Value {
        self.until(run, |row| row["state"] == "ended").await
    }

    /// Follows a run from behind this event.
    pub(crate) async fn follow(&self, run: &str, after: Option<&str>) -> Stream {
        let request = self.client.get(format!("{}/v1/runs/{run}/events", self.url));
        let request = after.into_iter().fold(request, |request, after| request.header("last-event-id", after));
        Stream { response: request.send().await.unwrap(), text: String::new() }
    }
}

async fn answer(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// A stream of events.
pub(crate) struct Stream {
    pub(crate) response: Response,
    text: String,
}

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Heard {
    pub(crate) id: String,
    /// Its name; none for an event of the run.
    pub(crate) name: Option<String>,
    pub(crate) data: Value,
}

impl Heard {
    /// The number of an event that the journal has.
    pub(crate) fn kept(&self) -> Option<u64> {
        self.id.parse().ok()
    }
}

impl Stream {
    /// The next event; none where the stream has ended or broken off.
    pub(crate) async fn next(&mut self) -> Option<Heard> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                    line.map(str::to_owned)
                };
                if let (Some(id), Some(data)) = (field("id"), field("data")) {
                    return Some(Heard { id, name: field("event"), data: serde_json::from_str(&data).unwrap() });
                }
            }
            let chunk = tokio::time::timeout(PATIENCE, self.response.chunk()).await.expect("nothing more is said");
            self.text.push_str(std::str::from_utf8(&chunk.ok()??).unwrap());
        }
    }

    /// All until the end.
    pub(crate) async fn all(mut self) -> Vec<Heard> {
        let mut all = Vec::new();
        while let Some(heard) = self.next().await {
            let is_end = heard.name.is_some();
            all.push(heard);
            if is_end {
                break;
            }
        }
        all
    }
}
