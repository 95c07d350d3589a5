//! Settings of a run that come from the configuration and not from the task: hooks, MCP servers and
//! memory.

use crate::config::{self, EnvTemplate, EnvironmentLayer, McpAt, McpServer};
use crate::driver::{MemorySettings, RunHook};
use crate::duration::milliseconds;
use crate::limits::{HOOK_TIMEOUT, MCP_TIMEOUT};
use crate::mcp::{ServerConfig, ServerTransport};
use std::collections::BTreeMap;

/// Returns the commands to run after every turn that may have changed files.
pub(super) fn hooks(set: &config::ProjectConfig) -> Vec<RunHook> {
    let hook = |hook: &config::HookConfig| RunHook {
        name: hook.name.clone(),
        run: hook.run.clone(),
        timeout: hook.timeout.unwrap_or(HOOK_TIMEOUT),
        tell_model: hook.tell_model,
    };
    set.hooks.iter().map(hook).collect()
}

/// Returns the MCP servers that tasks may name, with the current values of their variables.
pub(super) fn servers(set: &config::ProjectConfig, environment: &EnvironmentLayer) -> Vec<ServerConfig> {
    let server = |(name, server): (&String, &McpServer)| {
        let (texts, command) = match &server.at {
            McpAt::Command { command, env } => (env, Ok(command.clone())),
            McpAt::Url { url, headers } => (headers, Err(url.clone())),
        };
        let (filled, lacks) = filled(texts, environment);
        ServerConfig {
            name: name.clone(),
            reach: match command {
                Ok(command) => ServerTransport::Program { command, env: filled },
                Err(url) => ServerTransport::Http { url, headers: filled },
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

/// Returns the configured terms of memory.
pub(super) fn memory_terms(set: &config::ProjectConfig) -> MemorySettings {
    let terms = MemorySettings::default();
    let ttl_ms = set.ephemeral_ttl.map(milliseconds);
    MemorySettings {
        ephemeral_ttl_ms: ttl_ms.unwrap_or(terms.ephemeral_ttl_ms),
        recall_tokens: set.recall_tokens.unwrap_or(terms.recall_tokens),
    }
}

/// Returns the texts with their variables filled in, and the first variable that is not set.
fn filled(
    texts: &BTreeMap<String, EnvTemplate>,
    environment: &EnvironmentLayer,
) -> (Vec<(String, String)>, Option<String>) {
    let (mut all, mut lacks) = (Vec::new(), None);
    for (name, woven) in texts {
        match woven.filled(|variable| environment.get(variable)) {
            Ok(text) => all.push((name.clone(), text.reveal().to_owned())),
            Err(variable) => lacks = lacks.or_else(|| Some(variable.to_owned())),
        }
    }
    (all, lacks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_server_has_what_its_variables_have_and_knows_which_one_is_not_set() {
        let folder = crate::test_support::temp_dir();
        fs::create_dir(folder.path().join("fledge")).unwrap();
        let config = "mcp:\n  a: { command: [srv], env: { T: '${OWN_TOKEN}', U: plain } }\n  \
            b: { url: 'https://mcp.example', headers: { Authorization: 'Bearer ${GONE}', x-a: '${OWN_TOKEN}' } }\n";
        fs::write(folder.path().join("fledge/config.yaml"), config).unwrap();
        let home = folder.path().display().to_string();
        let environment = EnvironmentLayer::from_vars([("XDG_CONFIG_HOME", home.as_str()), ("OWN_TOKEN", "t-1")]);
        let all = servers(&config::load(&environment, folder.path()).unwrap(), &environment);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let program =
            ServerTransport::Program { command: vec!["srv".into()], env: vec![pair("T", "t-1"), pair("U", "plain")] };
        let address = ServerTransport::Http { url: "https://mcp.example".into(), headers: vec![pair("x-a", "t-1")] };
        assert_eq!(all.iter().map(|server| &server.reach).collect::<Vec<_>>(), [&program, &address]);
        assert_eq!(all.iter().map(|server| server.lacks.as_deref()).collect::<Vec<_>>(), [None, Some("GONE")]);
    }
}
