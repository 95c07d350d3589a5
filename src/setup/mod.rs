//! The settings of runs and the texts of tasks, made of the configuration and the environment.

mod secrets;

pub use secrets::secrets;

use crate::config::{self, EnvTemplate, EnvironmentLayer, McpAt, McpServer, ProjectConfig};
use crate::driver::{DriverSettings, MemorySettings, RunHook, project_of};
use crate::duration::milliseconds;
use crate::limits::{HOOK_TIMEOUT, MCP_TIMEOUT};
use crate::mcp::{ServerConfig, ServerTransport};
use crate::store::{Store, StoreError};
use crate::task::Task;
use crate::tool::LateSecrets;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A workspace with its state folder and configuration.
#[derive(Debug, Clone, Copy)]
pub struct ProjectContext<'p> {
    /// The folder that an agent may change.
    pub workspace: &'p Path,
    /// The folder for journals and reports.
    pub state_dir: &'p Path,
    /// The configuration of the project.
    pub set: &'p ProjectConfig,
}

impl ProjectContext<'_> {
    /// Opens the store of the project.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub fn store(&self) -> Result<Store, StoreError> {
        Store::open(self.state_dir, &self.project())
    }

    /// Returns the project of the workspace.
    pub fn project(&self) -> PathBuf {
        project_of(self.state_dir, self.workspace)
    }

    /// Returns the settings of a run without its models, as the configuration and the environment
    /// have them. `late` adds secrets that are fetched later.
    pub fn settings(&self, environment: &EnvironmentLayer, late: &LateSecrets) -> DriverSettings {
        let set = self.set;
        DriverSettings {
            project: Some(self.project()),
            env: environment.child_env().into_iter().collect(),
            step_env: environment.step_env().into_iter().collect(),
            protect: set.protect.clone(),
            mcp: servers(set, environment),
            memory: Some(memory_terms(set)),
            secrets: secrets(environment, set, late),
            baseline: set.baseline.unwrap_or_default(),
            sandbox: set.sandbox,
            network: set.network,
            limits: set.limits,
            hooks: hooks(set),
            helper: environment.program().map(Path::to_owned),
            ..DriverSettings::new(self.workspace, self.state_dir)
        }
    }
}

/// Hides the secrets in a task. The model then gets the text that is stored and shown.
pub fn mask_task(mut task: Task, set: &ProjectConfig, environment: &EnvironmentLayer) -> Task {
    let mask = secrets(environment, set, &LateSecrets::default());
    (task.title, task.prompt) = (mask.masked(&task.title), mask.masked(&task.prompt));
    task
}

/// Returns the commands to run after every turn that may have changed files.
fn hooks(set: &ProjectConfig) -> Vec<RunHook> {
    let hook = |hook: &config::HookConfig| RunHook {
        name: hook.name.clone(),
        run: hook.run.clone(),
        timeout: hook.timeout.unwrap_or(HOOK_TIMEOUT),
        tell_model: hook.tell_model,
    };
    set.hooks.iter().map(hook).collect()
}

/// Returns the MCP servers that tasks may name, with the current values of their variables.
fn servers(set: &ProjectConfig, environment: &EnvironmentLayer) -> Vec<ServerConfig> {
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
pub fn memory_terms(set: &ProjectConfig) -> MemorySettings {
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
