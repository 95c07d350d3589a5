//! What the configuration gives to every run beside its task: the MCP servers that tasks name, and the hooks.

use crate::config::{self, McpAt, McpServer};
use crate::driver::Hook;
use crate::limits::{HOOK_TIMEOUT, MCP_TIMEOUT};
use crate::mcp::{Reach, Server};
use crate::provider::Secret;
use std::collections::BTreeMap;

/// The commands that follow every turn in which something may have changed.
pub(super) fn hooks(set: &config::Settings) -> Vec<Hook> {
    let hook = |hook: &config::Hook| Hook {
        name: hook.name.clone(),
        run: hook.run.clone(),
        timeout: hook.timeout.unwrap_or(HOOK_TIMEOUT),
        tell_model: hook.tell_model,
    };
    set.hooks.iter().map(hook).collect()
}

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
