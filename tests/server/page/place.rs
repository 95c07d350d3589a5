//! A project with its own server, and a browser with a session.

use super::wire::exchange;
use super::{Browser, browser};
use crate::server::serving::Serving;
use crate::support::{KEY, Model, git, needs};
use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const TOKEN: &str = "t0ken-of-the-tests-of-the-page";

/// A git repository whose gate wants the file `done`.
pub(crate) struct Place {
    folder: TempDir,
    model: Model,
    server: Option<Serving>,
    /// The link that the browser opened.
    link: String,
    address: SocketAddr,
}

impl Place {
    /// Opens a project with this model, a server, and a browser at its page. Returns `None` if the
    /// machine has no browser.
    pub(crate) fn open(model: Model) -> Option<(Self, Browser)> {
        let browser = browser()?;
        let folder = crate::support::temp_dir();
        ["project/lanes", "home", "state"]
            .iter()
            .for_each(|name| fs::create_dir_all(folder.path().join(name)).unwrap());
        let project = folder.path().join("project");
        fs::write(project.join("lanes/verify.yaml"), needs("done")).unwrap();
        [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-qm", "first"]]
            .iter()
            .for_each(|args| drop(git(&project, args)));
        let mut place =
            Self { folder, model, server: None, link: String::new(), address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let link = place.serve();
        browser.go(&link);
        place.link = link;
        browser.until("document.getElementById('connection').dataset.state === 'live'");
        Some((place, browser))
    }

    /// Starts a server at the address of the previous one. Returns the entry link.
    pub(crate) fn serve(&mut self) -> String {
        let mut command = self.fledge(&["serve", "--listen", &self.address.to_string()]);
        command.env("FLEDGE_SERVE_TOKEN", TOKEN);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let server = Serving::start(command);
        self.address = server.address;
        let link = format!("http://{}/enter?code={}", server.address, server.code);
        self.server = Some(server);
        link
    }

    /// Returns the link that the browser opened. It cannot be used again.
    pub(crate) fn used_link(&self) -> String {
        self.link.clone()
    }

    /// Kills the server.
    pub(crate) fn stop(&mut self) {
        self.server = None;
    }

    /// Returns the program in the project. Of the environment it has only the search path.
    pub(crate) fn fledge(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fledge"));
        command
            .args(args)
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder.path().join("home")).env("FLEDGE_STATE_DIR", self.folder.path().join("state"));
        command.env("ANTHROPIC_BASE_URL", self.model.url()).env("ANTHROPIC_API_KEY", KEY);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Returns the database of the only project.
    pub(crate) fn database(&self) -> PathBuf {
        let mut projects = fs::read_dir(self.folder.path().join("state")).unwrap().map(|entry| entry.unwrap().path());
        projects.find_map(|project| Some(project.join("fledge.db")).filter(|path| path.is_file())).unwrap()
    }

    /// Writes a file of the project.
    pub(crate) fn file(&self, path: impl AsRef<Path>, text: &str) {
        let file = self.project().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Returns an address of the page.
    pub(crate) fn page(&self, hash: &str) -> String {
        format!("http://{}/{hash}", self.address)
    }

    /// Sends a request to the API.
    #[track_caller]
    pub(crate) fn api(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = exchange(self.address, method, path, Some(TOKEN), body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer:#}");
        answer
    }

    /// Submits a task. Returns the id of its run.
    #[track_caller]
    pub(crate) fn begin(&self, task: &str) -> String {
        self.api("POST", "/v1/runs", &json!({ "task": task }))["id"].as_str().unwrap().to_owned()
    }
}
