//! What the configuration gives to every run beside its task: the MCP servers that tasks name, and the hooks.

use crate::config::{self, Environment, McpAt, McpServer, Woven};
use crate::driver::Hook;
use crate::limits::{HOOK_TIMEOUT, MCP_TIMEOUT};
use crate::mcp::{Reach, Server};
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

/// The servers that tasks may name, with what the variables have by now that they name.
pub(super) fn servers(set: &config::Settings, environment: &Environment) -> Vec<Server> {
    let server = |(name, server): (&String, &McpServer)| {
        let (texts, command) = match &server.at {
            McpAt::Command { command, env } => (env, Ok(command.clone())),
            McpAt::Url { url, headers } => (headers, Err(url.clone())),
        };
        let (filled, lacks) = filled(texts, environment);
        Server {
            name: name.clone(),
            reach: match command {
                Ok(command) => Reach::Program { command, env: filled },
                Err(url) => Reach::Http { url, headers: filled },
            },
            lacks,
            timeout: server.timeout.unwrap_or(MCP_TIMEOUT),
            tier: server.tier,
            is_walled: server.walled,
            network: server.network,
            required: server.required,
        }
    };
    set.mcp.iter().map(server).collect()
}

/// Texts with their variables filled in, and the first variable that is not set.
fn filled(texts: &BTreeMap<String, Woven>, environment: &Environment) -> (Vec<(String, String)>, Option<String>) {
    let (mut all, mut lacks) = (Vec::new(), None);
    for (name, woven) in texts {
        match woven.filled(|variable| environment.get(variable)) {
            Ok(text) => all.push((name.clone(), text.reveal().to_owned())),
            Err(variable) => lacks = lacks.or_else(|| Some(variable.to_owned())),
        }
    }
    (all, lacks)
}
