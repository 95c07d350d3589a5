//! A workspace with the MCP server of these tests, and its processes.

use crate::support::{Need, PATIENCE, must_be_gone, record_time};
use fledge::mcp::{McpAnswer, McpOffer, McpServers, ServerConfig, ServerPlace, ServerTransport};
use fledge::process::sandbox::{PathRules, Sandbox, SandboxChoice};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

pub(crate) const PYTHON: &str = "/usr/bin/python3";
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");

/// Servers in a temporary folder.
pub(crate) struct Scene {
    pub(crate) folder: TempDir,
    pub(crate) servers: McpServers,
}

/// Returns the configuration of the test server `t` with this kind of misbehavior. The server logs
/// its input.
pub(crate) fn server(folder: &Path, mode: &str) -> ServerConfig {
    let notes = folder.join("notes").display().to_string();
    let script = folder.join("server.py");
    fs::copy(SERVER, &script).unwrap();
    let command = [PYTHON, &script.display().to_string(), mode, &notes].map(str::to_owned);
    ServerConfig { timeout: PATIENCE, ..ServerConfig::program("t", command.into()) }
}

/// Returns a place for servers: a workspace in this folder.
pub(crate) fn place(folder: &Path, sandbox: Sandbox) -> ServerPlace {
    let dir = folder.join("workspace");
    fs::create_dir_all(&dir).unwrap();
    let mut rules = PathRules::of_workspace(&dir);
    rules.writable.push(folder.to_owned());
    let env = [("PATH", "/usr/bin:/bin"), ("HOME", "/nowhere"), ("NOT_FOR_SERVERS", "1")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    ServerPlace { dir, env, sandbox, rules }
}

impl Scene {
    pub(crate) fn new(mode: &str) -> Self {
        Self::with(mode, |server| server)
    }

    pub(crate) fn with(mode: &str, change: impl FnOnce(ServerConfig) -> ServerConfig) -> Self {
        record_time();
        let folder = crate::support::temp_dir();
        let server = change(server(folder.path(), mode));
        let servers = McpServers::new(vec![server], place(folder.path(), Sandbox::off()));
        Self { folder, servers }
    }

    /// Starts a scene in a sandbox; `None` if no sandbox is available.
    pub(crate) async fn behind_a_wall(change: impl FnOnce(ServerConfig) -> ServerConfig) -> Option<Self> {
        let program = Path::new(env!("CARGO_BIN_EXE_fledge"));
        let sandbox = match Sandbox::find(SandboxChoice::Auto, Some(program), "/usr/bin:/bin").await {
            Ok(sandbox) => sandbox,
            Err(fault) => {
                Need::Sandbox.lacks(&format!("no sandbox works here: {fault}"));
                return None;
            }
        };
        let folder = crate::support::temp_dir();
        let server = change(server(folder.path(), "good"));
        let servers = McpServers::new(vec![server], place(folder.path(), sandbox));
        Some(Self { folder, servers })
    }

    pub(crate) async fn offer(&self) -> McpOffer {
        self.servers.offer(&CancellationToken::new()).await.unwrap()
    }

    /// Returns the names of the available tools without their prefix.
    pub(crate) async fn names(&self) -> Vec<String> {
        let tools = self.offer().await.tools;
        tools.iter().map(|tool| tool.name.strip_prefix("mcp-t-").unwrap().to_owned()).collect()
    }

    pub(crate) async fn call(&self, tool: &str, text: &str) -> McpAnswer {
        let input: Value = json!({ "text": text });
        self.servers.call(&format!("mcp-t-{tool}"), input, &CancellationToken::new()).await
    }

    /// Returns the reason why a call had no answer.
    pub(crate) async fn why(&self, tool: &str, text: &str) -> String {
        match self.call(tool, text).await {
            McpAnswer::Failed(why) => why,
            said @ McpAnswer::Said { .. } => panic!("{said:?}"),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the server's log of its input.
    pub(crate) fn notes(&self) -> String {
        fs::read_to_string(self.path("notes")).unwrap_or_default()
    }

    /// Asserts that no process of the server is alive.
    #[track_caller]
    pub(crate) fn must_be_gone(&self) {
        must_be_gone(&self.folder.path().display().to_string());
    }
}

/// Returns the expected answer of the server.
pub(crate) fn said(text: &str, is_error: bool) -> McpAnswer {
    McpAnswer::Said { server: "t".into(), text: text.into(), is_error }
}

/// Returns a number that no other test uses for its sleeps.
pub(crate) fn unique() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}.{}", 700_000 + std::process::id() % 90_000, NEXT.fetch_add(1, Ordering::Relaxed) + 1)
}

/// The test server over HTTP. Dropping it ends the server.
pub(crate) struct Http {
    child: std::process::Child,
    pub(crate) port: u16,
}

impl Http {
    pub(crate) fn new(folder: &Path, mode: &str) -> Self {
        use std::io::{BufRead as _, BufReader};
        use std::process::{Command, Stdio};
        let notes = folder.join("notes");
        let mut command = Command::new(PYTHON);
        command.args([SERVER, mode]).arg(notes).env("HTTP_MODE", "1").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap() }
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _it_has_ended = self.child.kill();
        let _it_has_ended = self.child.wait();
    }
}

/// Returns a scene whose server is reached over HTTP.
pub(crate) fn by_http(mode: &str) -> (Http, Scene) {
    let mut http = None;
    let scene = Scene::with(mode, |server| {
        let ServerTransport::Program { command, .. } = &server.reach else { unreachable!() };
        let started = Http::new(Path::new(&command[3]).parent().unwrap(), mode);
        let url = format!("http://127.0.0.1:{}/mcp", started.port);
        http = Some(started);
        let headers = vec![("Authorization".into(), "Bearer abc".into())];
        ServerConfig { reach: ServerTransport::Http { url, headers }, ..server }
    });
    (http.unwrap(), scene)
}
