//! A served project, its server, and requests to it.

use crate::server::serving::Serving;
use crate::support::{KEY, Model, git, needs};
use crate::support::{PATIENCE, must_fit_closed, record_time};
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const TOKEN: &str = "t0ken-of-the-tests-0123456789";

/// A project under git, whose gate wants the file `done`.
pub(crate) struct Site {
    folder: TempDir,
    env: Vec<(String, String)>,
}

impl Site {
    pub(crate) fn new() -> Self {
        record_time();
        let folder = crate::support::temp_dir();
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

    /// Makes a project that uses this model as Anthropic's.
    pub(crate) fn with(model: &Model) -> Self {
        let mut site = Self::new();
        site.env = vec![("ANTHROPIC_BASE_URL".into(), model.url()), ("ANTHROPIC_API_KEY".into(), KEY.into())];
        site
    }

    /// Starts a server with a further variable. Later servers do not have the variable.
    #[cfg(debug_assertions)]
    pub(crate) fn serve_with(&self, (name, value): (&str, &str), args: &[&str]) -> Server {
        let mut site = self.serving(args);
        site.env(name, value);
        Server::start(site)
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

    /// Returns the program in the project.
    pub(crate) fn fledge(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fledge"));
        command.args(args).current_dir(self.project()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.path().join("home"));
        command.env("FLEDGE_STATE_DIR", self.path().join("state")).env("FLEDGE_SERVE_TOKEN", TOKEN);
        command.envs(self.env.iter().cloned()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns the JSON output of a command.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.fledge(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Starts a server of the project.
    pub(crate) fn serve(&self, args: &[&str]) -> Server {
        Server::start(self.serving(args))
    }

    /// Returns the command of a server of the project.
    fn serving(&self, args: &[&str]) -> Command {
        self.fledge(&[&["serve", "--listen", "127.0.0.1:0", "--no-link"], args].concat())
    }
}

/// A running server with a client of its API, which is killed when it is dropped.
pub(crate) struct Server {
    serving: Serving,
    pub(crate) url: String,
    pub(crate) client: Client,
}

impl Server {
    /// Starts a server by this command.
    fn start(command: Command) -> Self {
        let serving = Serving::start(command);
        let url = format!("http://{}", serving.address);
        let _once_is_enough = rustls::crypto::ring::default_provider().install_default();
        let headers = [("authorization".parse().unwrap(), format!("Bearer {TOKEN}").parse().unwrap())];
        // The server closes idle connections, on a busy machine just as the client reuses one.
        let client = Client::builder().no_proxy().pool_max_idle_per_host(0);
        let client = client.default_headers(headers.into_iter().collect()).build().unwrap();
        Self { serving, url, client }
    }

    /// Asks a server whose runs are held to stop. Lets the runs continue once the server knows, and
    /// waits until it has stopped.
    #[cfg(debug_assertions)]
    pub(crate) fn asked_to_stop(self, held: fs::File) {
        rustix::process::kill_process(self.serving.pid(), rustix::process::Signal::TERM).unwrap();
        self.serving.says("stopping within");
        drop(held);
        let (code, log) = self.serving.ended();
        assert_eq!(code, Some(0), "{log}");
    }

    pub(crate) fn log(&self) -> String {
        self.serving.log()
    }

    /// Kills the server: SIGKILL.
    pub(crate) fn kill(self) {
        drop(self.serving);
    }

    /// Asks the server to stop, and waits until it has. Returns how long that took.
    pub(crate) fn stop(self) -> Duration {
        let begun = Instant::now();
        let (code, log) = self.serving.stop();
        assert_eq!(code, Some(0), "{log}");
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

    /// Insists that the server's description of the API has a refusal of this POST, with all of its
    /// fields.
    pub(crate) async fn must_describe(&self, path: &str, status: StatusCode, problem: &Value) {
        let (_, document) = self.get("/openapi.json").await;
        let answers = &document["paths"][path]["post"]["responses"];
        let answer = answers.get(status.as_str()).unwrap_or(&document["components"]["responses"]["Problem"]);
        let mut schema = answer["content"]["application/problem+json"]["schema"].clone();
        schema["components"] = document["components"].clone();
        must_fit_closed(schema, problem);
    }

    /// Submits the text of a task. Returns the id of its run.
    pub(crate) async fn submit(&self, task: &str) -> String {
        let (status, run) = self.post("/v1/runs", json!({ "task": task })).await;
        assert_eq!((status.as_u16(), &run["state"]), (201, &json!("queued")), "{run}");
        run["id"].as_str().unwrap().to_owned()
    }

    /// Waits until `holds` is true for a run. Returns the run.
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

    /// Follows a run from after this event.
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

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Heard {
    pub(crate) id: String,
    /// The name of the event; `None` for an event of the run.
    pub(crate) name: Option<String>,
    pub(crate) data: Value,
}

impl Heard {
    /// Returns the number of the event in the journal; `None` for a piece.
    pub(crate) fn kept(&self) -> Option<u64> {
        let pieces = ["text", "thinking", "tool_call", "tool_output", "lane_step"];
        self.id.parse().ok().filter(|_| pieces.iter().all(|piece| self.data["type"] != *piece))
    }
}

impl Stream {
    /// Returns the next event, or `None` once the stream has ended or broken off.
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
            let chunk = tokio::time::timeout(PATIENCE, self.response.chunk()).await.expect("no further event arrives");
            self.text.push_str(std::str::from_utf8(&chunk.ok()??).unwrap());
        }
    }

    /// Returns all events until the end.
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
