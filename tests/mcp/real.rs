//! Servers by other authors, from package registries. `FLEDGE_TEST_MCP` names the folder into which
//! `install.sh` installed them. If it is not set, the tests report that and skip.

use super::scene::place;
use crate::support::{Need, must_be_gone};
use fledge::mcp::{McpAnswer, McpServers, ServerConfig};
use fledge::process::sandbox::{Sandbox, SandboxChoice};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The running servers in the best available sandbox.
struct Real {
    servers: McpServers,
    folder: tempfile::TempDir,
}

fn installed() -> Option<PathBuf> {
    let folder = std::env::var("FLEDGE_TEST_MCP").ok().map(|folder| PathBuf::from(folder).canonicalize().unwrap());
    if folder.is_none() {
        Need::McpServers.lacks("FLEDGE_TEST_MCP names no folder with MCP servers");
    }
    folder
}

impl Real {
    async fn new(name: &str, command: &[&str]) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_fledge"));
        let sandbox =
            Sandbox::find(SandboxChoice::Auto, Some(program), "/usr/bin:/bin").await.unwrap_or_else(|_| Sandbox::off());
        let folder = crate::support::temp_dir();
        let mut place = place(folder.path(), sandbox);
        place.env[0].1 = std::env::var("PATH").unwrap();
        place.rules.read_only.extend(installed()); // the checkout may be in a home, which is hidden
        let command = command.iter().map(|part| (*part).to_owned()).collect();
        Self { servers: McpServers::new(vec![ServerConfig::program(name, command)], place), folder }
    }

    async fn names(&self) -> Vec<String> {
        let offer = self.servers.offer(&CancellationToken::new()).await.unwrap();
        assert_eq!(offer.warnings, Vec::<String>::new());
        offer.tools.into_iter().map(|tool| tool.name).collect()
    }

    async fn call(&self, tool: &str, input: Value) -> (String, bool) {
        match self.servers.call(tool, input, &CancellationToken::new()).await {
            McpAnswer::Said { text, is_error, .. } => (text, is_error),
            McpAnswer::Failed(why) => panic!("{why}"),
        }
    }

    async fn end(self) {
        self.servers.close().await;
        must_be_gone(&self.folder.path().display().to_string());
    }
}

#[tokio::test]
async fn the_reference_server_of_everything() {
    let Some(at) = installed() else { return };
    let script = at.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let real = Real::new("all", &["node", &script.display().to_string(), "stdio"]).await;
    let names = real.names().await;
    assert!(names.contains(&"mcp-all-echo".to_owned()), "{names:?}");
    let (text, is_error) = real.call("mcp-all-echo", json!({ "message": "hello" })).await;
    assert!(text.contains("hello") && !is_error, "{text}");
    let (text, is_error) = real.call("mcp-all-echo", json!({ "message": 5 })).await;
    assert!(is_error, "{text}");
    let image = names.iter().find(|name| name.contains("mage")).unwrap();
    let (text, _) = real.call(image, json!({})).await;
    assert!(text.contains("[an image, image/png, about "), "{text}");
    real.end().await;
}

#[tokio::test]
async fn the_reference_server_of_files() {
    let Some(at) = installed() else { return };
    let script = at.join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    let real = Real::new("files", &["node", &script.display().to_string(), "."]).await;
    let inside = real.folder.path().join("workspace/a.txt");
    let (text, is_error) =
        real.call("mcp-files-write_file", json!({ "path": inside.display().to_string(), "content": "one" })).await;
    assert!(!is_error, "{text}");
    assert_eq!(std::fs::read_to_string(&inside).unwrap(), "one");
    let (text, is_error) = real.call("mcp-files-read_text_file", json!({ "path": "/etc/hostname" })).await;
    assert!(is_error, "{text}");
    real.servers.close().await;
    let (text, is_error) = real.call("mcp-files-read_text_file", json!({ "path": inside.display().to_string() })).await;
    assert!(text.starts_with("one") && !is_error, "{text}");
    real.end().await;
}

#[tokio::test]
async fn the_reference_server_of_time_in_python() {
    let Some(at) = installed() else { return };
    let script = at.join("venv/bin/mcp-server-time");
    let real = Real::new("time", &[&script.display().to_string(), "--local-timezone", "UTC"]).await;
    assert_eq!(real.names().await, ["mcp-time-get_current_time", "mcp-time-convert_time"]);
    let input = json!({ "source_timezone": "UTC", "time": "16:30", "target_timezone": "Asia/Tokyo" });
    let (text, is_error) = real.call("mcp-time-convert_time", input).await;
    assert!(text.contains("T01:30:00+09:00") && !is_error, "{text}");
    let (text, is_error) = real.call("mcp-time-get_current_time", json!({ "timezone": "No/Where" })).await;
    assert!(is_error, "{text}");
    real.end().await;
}
