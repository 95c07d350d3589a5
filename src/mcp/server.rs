//! Which servers there are, and where they work: plain data, as the configuration says it.

use crate::limits::MCP_TIMEOUT;
use crate::process::wall::{Holes, Wall};
use crate::process::{Invocation, outside};
use crate::task::Tier;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a server has of the environment of tools, beside what it is given; `*` stands for the rest of a name.
const SHORT_LIST: [&str; 10] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR"];

/// A server of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its name, which is part of its tools' names.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
    /// The longest that one call may take.
    pub timeout: Duration,
    /// The lowest tier whose tasks may have its tools.
    pub tier: Tier,
    /// Whether it stands behind the wall of the run. Only the user's own configuration may say no.
    pub is_walled: bool,
    /// Whether it reaches the network from behind it.
    pub network: bool,
    /// Whether there is no run without it.
    pub required: bool,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Reach {
    /// It is started, and spoken with by its standard streams.
    Program {
        /// The program and its arguments; never empty.
        command: Vec<String>,
        /// Its environment, beside the few variables that every server has.
        env: Vec<(String, String)>,
    },
    /// It is there already, by streamable HTTP.
    Http {
        /// Its address.
        url: String,
        /// What every request has with it.
        headers: Vec<(String, String)>,
    },
}

/// Where the servers of a run work.
#[derive(Debug, Clone)]
pub struct Place {
    /// The folder that they start in.
    pub dir: PathBuf,
    /// The environment of tools, of which they get a few variables.
    pub env: Vec<(String, String)>,
    /// The wall of the run.
    pub wall: Wall,
    /// What it lets through; whether that includes the network says each server.
    pub holes: Holes,
}

impl Server {
    /// A server that is a program, with every default.
    pub fn program(name: impl Into<String>, command: Vec<String>) -> Self {
        Self::new(name.into(), Reach::Program { command, env: Vec::new() })
    }

    /// A server at an address, with every default.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::new(name.into(), Reach::Http { url: url.into(), headers: Vec::new() })
    }

    /// What may be a secret in it: values of variables and headers, and of these also the last word alone.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let (values, headers) = match &self.reach {
            Reach::Program { env, .. } => (env, false),
            Reach::Http { headers, .. } => (headers, true),
        };
        values.iter().flat_map(move |(_, value)| {
            [Some(value.as_str()), value.rsplit(' ').next().filter(|_| headers)].into_iter().flatten()
        })
    }

    fn new(name: String, reach: Reach) -> Self {
        Self { name, reach, timeout: MCP_TIMEOUT, tier: Tier::Tool, is_walled: true, network: false, required: false }
    }
}

impl Place {
    /// A server's program as it is started here, in the wall or without. Outside of the wall it starts elsewhere than in the folder, and nothing that lies there is
    /// looked up for it: the agent could have written that.
    ///
    /// # Errors
    /// When its command names something in the folder all the same.
    pub(super) fn invocation(
        &self,
        server: &Server,
        command: &[String],
        env: &[(String, String)],
    ) -> Result<Invocation, String> {
        let is_here = |part: &&String| Path::new(part).starts_with(&self.dir);
        if let Some(part) = command.iter().find(is_here).filter(|_| !server.is_walled) {
            return Err(format!("it stands outside the sandbox, and the agent can write `{part}`: keep it elsewhere"));
        }
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
        if !server.is_walled {
            let paths = env.iter_mut().filter(|(name, _)| name == "PATH");
            paths.for_each(|(_, path)| *path = outside(path, &self.dir));
        }
        let inner = Invocation {
            program,
            args,
            dir: if server.is_walled { self.dir.clone() } else { "/".into() },
            env: env.into(),
            timeout: None,
            grace: Duration::ZERO,
            linger: Duration::ZERO,
            log: None,
            log_limit: 0,
        };
        Ok(inner)
    }

    /// What the wall around a server lets through.
    pub(super) fn holes(&self, server: &Server) -> Holes {
        Holes { network: server.network, ..self.holes.clone() }
    }
}

impl fmt::Debug for Reach {
    /// Without values that may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |pairs: &[(String, String)]| pairs.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        match self {
            Self::Program { command, env } => {
                f.debug_struct("Program").field("command", command).field("env", &names(env)).finish()
            }
            Self::Http { url, headers } => {
                f.debug_struct("Http").field("url", url).field("headers", &names(headers)).finish()
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
        let place = Place {
            dir: "/".into(),
            env: vec![pair("PATH", "/bin"), pair("LC_ALL", "C"), pair("GOPATH", "/go"), pair("HOME", "/h")],
            wall: Wall::off(),
            holes: Holes::default(),
        };
        let server = Server::program("docs", vec!["node".into(), "a.js".into()]);
        let command = ["node".to_owned(), "a.js".to_owned()];
        let invocation = place.invocation(&server, &command, &[pair("HOME", "/x")]).unwrap();
        assert_eq!((invocation.program.as_str(), invocation.args.as_slice()), ("node", ["a.js".to_owned()].as_slice()));
        assert_eq!(invocation.env, Variables::new([pair("PATH", "/bin"), pair("LC_ALL", "C"), pair("HOME", "/x")]));
    }

    #[test]
    fn outside_of_the_wall_nothing_starts_that_the_agent_could_have_written() {
        let env = vec![pair("PATH", "/w/bin:/bin")];
        let place = Place { dir: "/w".into(), env, wall: Wall::off(), holes: Holes::default() };
        let free = Server { is_walled: false, ..Server::program("docs", Vec::new()) };
        let started = place.invocation(&free, &["node".into()], &[]).unwrap();
        assert_eq!((started.dir, started.env.get("PATH")), ("/".into(), Some("/bin")));
        let refused = place.invocation(&free, &["node".into(), "/w/server.js".into()], &[]).unwrap_err();
        assert!(refused.contains("the agent can write `/w/server.js`"), "{refused}");
    }

    #[test]
    fn what_may_be_secret_is_not_printed() {
        let mut server = Server::http("docs", "https://docs.example/mcp");
        server.reach = Reach::Http {
            url: "https://docs.example/mcp".into(),
            headers: vec![pair("Authorization", "Bearer s3cret")],
        };
        let shown = format!("{server:?}");
        assert!(shown.contains("Authorization") && !shown.contains("s3cret"), "{shown}");
        assert_eq!(server.secrets().collect::<Vec<_>>(), ["Bearer s3cret", "s3cret"]);
    }
}
