//! The replacement for sessions in a build of fledge without the protocol.

use super::catalog::ToolCatalog;
use super::connection::ServerSandbox;
use super::server::ServerConfig;
use serde_json::{Map, Value};

#[derive(Debug)]
pub(super) struct Session {
    pub(super) catalog: ToolCatalog,
}

#[derive(Debug)]
#[expect(dead_code, reason = "nothing is called here")]
pub(super) enum SessionError {
    Refused(String),
    Lost,
}

impl Session {
    #[expect(clippy::unused_async, reason = "with the protocol it waits")]
    pub(super) async fn start(_: &ServerConfig, _: ServerSandbox<'_>) -> Result<Self, String> {
        Err("this fledge is built without MCP".into())
    }

    pub(super) async fn call(&self, _: &str, _: Map<String, Value>) -> Result<(String, bool), SessionError> {
        Err(SessionError::Lost)
    }

    #[expect(clippy::unused_async, reason = "with the protocol it waits")]
    pub(super) async fn answers(&self) -> bool {
        false
    }

    pub(super) fn is_open(&self) -> bool {
        false
    }

    pub(super) fn last_words(&self) -> String {
        String::new()
    }

    pub(super) async fn end(&self) {}
}
