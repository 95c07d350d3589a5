//! The configuration of servers and the place where they work, as plain data.

use super::catalog::prefix;
use crate::limits::MCP_TIMEOUT;
use crate::process::sandbox::{PathRules, Sandbox};
use crate::process::{Invocation, outside};
use crate::task::Tier;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The variables that a server inherits from the environment of tools. `*` matches the rest of a
/// name.
const SHORT_LIST: [&str; 10] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR"];

/// A server of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// The name of the server, which is part of the names of its tools.
    pub name: String,
    /// The way to reach the server.
    pub reach: ServerTransport,
    /// A variable that the environment or the headers refer to and that is not set. The server is
    /// not started without it.
    pub lacks: Option<String>,
    /// The time limit of one call.
    pub timeout: Duration,
    /// The lowest tier of tasks that may use the tools of this server.
    pub tier: Tier,
    /// True if the server runs in the sandbox of the run. Only the user's own configuration may
    /// turn this off.
    pub is_walled: bool,
    /// True if the server reaches the network from the sandbox.
    pub network: bool,
    /// True if the run fails when the server does not start.
    pub required: bool,
}

/// The way to reach a server.
#[derive(Clone, PartialEq, Eq)]
pub enum ServerTransport {
    /// fledge starts the server and talks to it through its standard streams.
    Program {
        /// The program and its arguments; never empty.
        command: Vec<String>,
        /// Variables of the server, in addition to the few that every server inherits.
        env: Vec<(String, String)>,
    },
    /// The server runs elsewhere and speaks streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, String)>,
    },
}

/// The place where the servers of a run work.
#[derive(Debug, Clone)]
pub struct ServerPlace {
    /// The folder in which servers start.
    pub dir: PathBuf,
    /// The environment of tools, of which servers inherit a few variables.
    pub env: Vec<(String, String)>,
    /// The sandbox of the run.
    pub sandbox: Sandbox,
    /// The access that the sandbox grants. Each server has its own setting for the network.
    pub rules: PathRules,
}

impl ServerConfig {
    /// Creates a server that is a program, with default settings.
    pub fn program(name: impl Into<String>, command: Vec<String>) -> Self {
        Self::new(name.into(), ServerTransport::Program { command, env: Vec::new() })
    }

    /// Creates a server at an address, with default settings.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::new(name.into(), ServerTransport::Http { url: url.into(), headers: Vec::new() })
    }

    fn new(name: String, reach: ServerTransport) -> Self {
        let (lacks, tier, is_walled) = (None, Tier::Tool, true);
        Self { name, reach, lacks, timeout: MCP_TIMEOUT, tier, is_walled, network: false, required: false }
    }

    /// Returns the prefix of the names of all its tools.
    pub fn prefix(&self) -> String {
        prefix(&self.name)
    }
}

impl ServerPlace {
    /// Builds the invocation of a server's program. A privileged server starts in `/`, and its
    /// search path omits folders in the workspace, because the agent could have written programs
    /// there.
    ///
    /// # Errors
    /// A message, if the command of a privileged server names a part of the workspace.
    pub(super) fn invocation(
        &self,
        server: &ServerConfig,
        command: &[String],
        env: &[(String, String)],
    ) -> Result<Invocation, String> {
        let search_path = self.env.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path);
        if let Some(why) = server.trespass(&self.dir, search_path) {
            return Err(why);
        }
        let has_powers = server.has_powers();
        let is_listed = |name: &str| {
            SHORT_LIST
                .iter()
                .any(|listed| listed.strip_suffix('*').map_or(*listed == name, |beginning| name.starts_with(beginning)))
        };
        let listed = self.env.iter().filter(|(name, _)| is_listed(name));
        let (program, args) = command
            .split_first()
            .map_or((String::new(), Vec::new()), |(program, args)| (program.clone(), args.to_vec()));
        let mut env: Vec<(String, String)> = listed.chain(env).cloned().collect();
        if has_powers {
            let paths = env.iter_mut().filter(|(name, _)| name == "PATH");
            paths.for_each(|(_, path)| *path = outside(path, &self.dir));
        }
        let inner = Invocation {
            program,
            args,
            dir: if has_powers { "/".into() } else { self.dir.clone() },
            env: env.into(),
            timeout: None,
            grace: Duration::ZERO,
            linger: Duration::ZERO,
            log: None,
            log_limit: 0,
        };
        Ok(inner)
    }

    /// Returns the access that the sandbox grants to a server.
    pub(super) fn rules(&self, server: &ServerConfig) -> PathRules {
        PathRules { network: server.network, ..self.rules.clone() }
    }
}

impl fmt::Debug for ServerTransport {
    /// Omits values that may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |pairs: &[(String, String)]| pairs.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        match self {
            Self::Program { command, env } => {
                f.debug_struct("Program").field("command", command).field("env", &names(env)).finish()
            }
            Self::Http { url, headers } => {
                let host = url.split('/').nth(2).unwrap_or_default(); // the rest may contain a token
                f.debug_struct("Http").field("host", &host).field("headers", &names(headers)).finish()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Variables;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.into(), value.into())
    }

    #[test]
    fn a_server_has_a_few_variables_and_what_it_is_given_and_nothing_else() {
        let place = ServerPlace {
            dir: "/w".into(),
            env: vec![pair("PATH", "/bin"), pair("LC_ALL", "C"), pair("GOPATH", "/go"), pair("HOME", "/h")],
            sandbox: Sandbox::off(),
            rules: PathRules::default(),
        };
        let server = ServerConfig::program("docs", vec!["node".into(), "a.js".into()]);
        let command = ["node".to_owned(), "a.js".to_owned()];
        let invocation = place.invocation(&server, &command, &[pair("HOME", "/x")]).unwrap();
        assert_eq!((invocation.program.as_str(), invocation.args.as_slice()), ("node", ["a.js".to_owned()].as_slice()));
        assert_eq!(invocation.env, Variables::new([pair("PATH", "/bin"), pair("LC_ALL", "C"), pair("HOME", "/x")]));
    }

    #[test]
    fn outside_of_the_wall_nothing_starts_that_the_agent_could_have_written() {
        let env = vec![pair("PATH", "/w/bin:/bin")];
        let place = ServerPlace { dir: "/w".into(), env, sandbox: Sandbox::off(), rules: PathRules::default() };
        let started = |server: &ServerConfig| {
            let ServerTransport::Program { command, env } = &server.reach else { unreachable!() };
            place.invocation(server, command, env)
        };
        let free = ServerConfig { is_walled: false, ..ServerConfig::program("docs", vec!["node".into()]) };
        let open = ServerConfig { network: true, ..ServerConfig::program("docs", vec!["node".into()]) };
        for server in [&free, &open] {
            let started = started(server).unwrap();
            assert_eq!((started.dir, started.env.get("PATH")), ("/".into(), Some("/bin")));
        }
        let command = vec!["node".into(), "/w/server.js".into()];
        let refused = ServerConfig { is_walled: false, ..ServerConfig::program("docs", command.clone()) };
        let refused = started(&refused).unwrap_err();
        assert!(refused.contains("the agent can write `/w/server.js`"), "{refused}");
        let plain = started(&ServerConfig::program("docs", command)).unwrap();
        assert_eq!((plain.dir, plain.env.get("PATH")), ("/w".into(), Some("/w/bin:/bin")));
    }

    #[test]
    fn what_may_be_secret_is_not_printed() {
        let mut server = ServerConfig::http("docs", "https://docs.example/mcp");
        server.reach = ServerTransport::Http {
            url: "https://docs.example/s3cret/mcp?key=s3cret".into(),
            headers: vec![pair("Authorization", "Bearer s3cret")],
        };
        let shown = format!("{server:?}");
        assert!(
            shown.contains("Authorization") && shown.contains("docs.example") && !shown.contains("s3cret"),
            "{shown}"
        );
    }
}
