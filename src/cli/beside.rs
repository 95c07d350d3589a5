//! What the configuration gives to every run beside its task: the MCP servers that tasks name.

use crate::config::{self, McpAt, McpServer};
use crate::limits::MCP_TIMEOUT;
use crate::mcp::{Reach, Server};
use crate::provider::Secret;
use std::collections::BTreeMap;

/// The servers that tasks may name.
pub(super) fn servers(set: &config::Settings) -> Vec<Server> {
    let revealed = |secrets: &BTreeMap<String, Secret>| {
        secrets.iter().map(|(name, secret)| (name.clone(), secret.reveal().to_owned())).collect()
    };
    let server = |(name, server): (&String, &McpServer)| Server {
        name: name.clone(),
        reach: match &server.at {
            McpAt::Command { command, env } => Reach::Program { command: command.clone(), env: revealed(env) },
            McpAt::Url { url, headers } => Reach::Http { url: url.clone(), headers: revealed(headers) },
        },
        timeout: server.timeout.unwrap_or(MCP_TIMEOUT),
        tier: server.tier,
        is_walled: server.walled,
        network: server.network,
        required: server.required,
    };
    set.mcp.iter().map(server).collect()
}
