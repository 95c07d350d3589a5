//! Protection of privileged servers against the agent. A server is privileged if it has variables
//! from its configuration, reaches the network, or runs outside the sandbox. The agent must not be
//! able to rewrite a server with these powers. So its program, and everything that starts with it,
//! come from outside the workspace, and it does not start in the workspace.

use super::server::{ServerConfig, ServerTransport};
use crate::process::outside;
use crate::workspace::AtomicOutput;
use std::path::{Path, PathBuf};

/// Variables that determine which code is loaded.
const LOADERS: [&str; 14] = [
    "BASH_ENV",
    "BUN_OPTIONS",
    "CLASSPATH",
    "DENO_DIR",
    "ENV",
    "GEM_PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERL5LIB",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
];

impl ServerConfig {
    /// Returns whether the server has privileges that the agent lacks: variables that may hold
    /// secrets, the network, or no sandbox.
    pub fn has_powers(&self) -> bool {
        match &self.reach {
            ServerTransport::Program { env, .. } => !self.is_walled || self.network || !env.is_empty(),
            ServerTransport::Http { .. } => false,
        }
    }

    /// Returns why a privileged server must not be started: the part of its command that the agent
    /// could have written. `workspace` is the folder in which the agent works.
    pub fn trespass(&self, workspace: &Path, search_path: &str) -> Option<String> {
        let ServerTransport::Program { command, env } = &self.reach else { return None };
        if !self.has_powers() {
            return None;
        }
        let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let own_path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
        let search_path = outside(own_path.unwrap_or(search_path), &workspace);
        let found = command.first().filter(|program| !program.contains('/')).and_then(|program| {
            search_path.split(':').map(|folder| Path::new(folder).join(program)).find(|path| path.is_file())
        });
        let found = found.filter(|path| is_below(path, &workspace)).map(|path| path.display().to_string());
        let loaded = env.iter().filter(|(name, _)| LOADERS.contains(&name.as_str())).map(|(_, value)| value);
        let mut words = command.iter().chain(loaded);
        let part = found.or_else(|| words.find_map(|word| part_below(word, &workspace)))?;
        Some(format!(
            "{}, and the agent can write `{part}`: keep it outside the workspace, and use its absolute path",
            self.power()
        ))
    }

    /// Describes the privilege of the server.
    fn power(&self) -> &'static str {
        match (self.is_walled, self.network) {
            (false, _) => "it runs outside the sandbox",
            (true, true) => "it reaches the network",
            (true, false) => "it is given variables (`env`)",
        }
    }
}

/// Finds the part of a word in a command that leads into the workspace: the word itself, or a path
/// in it.
fn part_below(word: &str, workspace: &Path) -> Option<String> {
    let ends = |letter: char| letter.is_whitespace() || "=:;,'\"`(){}<>|&@".contains(letter);
    let parts = [word].into_iter().chain(word.split(ends)).filter(|part| !part.is_empty());
    let leads = |part: &&str| {
        let path = Path::new(part);
        match path.is_absolute() {
            true => is_below(path, workspace),
            // The server starts elsewhere, but the author of this path meant a file in the
            // workspace, even if it does not exist yet.
            false => part.contains('/') && is_program(part) || workspace.join(path).is_file(),
        }
    };
    parts.into_iter().find(leads).map(str::to_owned)
}

/// Returns whether a relative path starts at the current folder and is not the name of a package.
fn is_program(part: &str) -> bool {
    part.starts_with("./") || part.starts_with("../")
}

/// Returns whether a path leads into a folder, or through a link in the folder.
fn is_below(path: &Path, folder: &Path) -> bool {
    let plain: PathBuf = path.components().collect();
    plain.starts_with(folder) || AtomicOutput::find(path, folder).map_or(true, |found| found.path().starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_server_with_powers_takes_nothing_from_the_workspace_whatever_way_leads_there() {
        let root = crate::test_support::temp_dir();
        let root = root.path().canonicalize().unwrap();
        let (work, other) = (root.join("work"), root.join("other"));
        for folder in [&work, &other] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("server.py"), "").unwrap();
        }
        symlink(work.join("server.py"), other.join("link.py")).unwrap();
        symlink(&other, work.join("out")).unwrap();
        fs::create_dir(work.join("bin")).unwrap();
        fs::write(work.join("bin/srv"), "").unwrap();
        symlink(work.join("bin/srv"), other.join("srv")).unwrap();
        let (w, o) = (work.display(), other.display());
        let path = format!("{w}/bin:{o}:/usr/bin");
        let commands = [
            (vec![format!("{w}/server.py")], true),
            (vec!["python3".into(), format!("{w}/server.py")], true),
            (vec!["python3".into(), "server.py".into()], true),
            (vec!["./run".into()], true),
            (vec!["node".into(), "--require=./hook.js".into()], true),
            (vec!["node".into(), format!("--import=file://{w}/x.mjs")], true),
            (vec!["/bin/sh".into(), "-c".into(), format!("cd /; exec {w}/new-one --all")], true),
            (vec!["python3".into(), format!("{o}/link.py")], true),
            (vec!["python3".into(), format!("{o}/../work/server.py")], true),
            (vec!["python3".into(), format!("{w}/out/server.py")], true),
            (vec!["srv".into()], true),
            (vec!["python3".into(), format!("{o}/server.py"), "--all".into()], false),
            (vec!["npx".into(), "@scope/some-server".into()], false),
            (vec!["docs-server".into(), "https://docs.example/x".into()], false),
        ];
        let env =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let server = |command: &[String], pairs: &[(&str, &str)]| {
            let reach = ServerTransport::Program { command: command.to_vec(), env: env(pairs) };
            ServerConfig { reach, ..ServerConfig::program("t", Vec::new()) }
        };
        for (command, is_refused) in &commands {
            let plain = server(command, &[]);
            assert_eq!(plain.trespass(&work, &path), None, "{command:?}");
            let (open, free) =
                (ServerConfig { network: true, ..plain.clone() }, ServerConfig { is_walled: false, ..plain });
            for (powerful, why) in [
                (server(command, &[("TOKEN", "x")]), "it is given variables (`env`), and the agent can write"),
                (open, "it reaches the network, and the agent can write"),
                (free, "it runs outside the sandbox, and the agent can write"),
            ] {
                let message = powerful.trespass(&work, &path);
                assert_eq!(message.is_some(), *is_refused, "{command:?}: {message:?}");
                assert!(message.is_none_or(|message| message.starts_with(why)), "{command:?}");
            }
        }
        let loads = [("PYTHONPATH", work.display().to_string()), ("NODE_OPTIONS", format!("--require {w}/a.js"))];
        for (name, value) in loads {
            assert!(server(&["node".into()], &[(name, &value)]).trespass(&work, &path).is_some(), "{name}");
        }
        assert_eq!(server(&["node".into()], &[("DOCS_DIR", &format!("{w}/docs"))]).trespass(&work, &path), None);
    }
}
