//! The environment, captured once, and only here. Other code uses [`EnvironmentLayer`], which tests
//! build from pairs.
#![expect(clippy::disallowed_methods, reason = "the room that reads the environment")]

use super::ConfigError;
use crate::process::{has_password, is_secret};
use crate::yaml::nearest;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The prefix of fledge's own variables.
const OWN_PREFIX: &str = "FLEDGE_";
/// The variables that fledge reads, without the prefix.
const READ: [&str; 7] = ["LOG", "MODEL", "NON_INTERACTIVE", "SERVE_TOKEN", "STATE_DIR", "SYNC", "SYNC_TOKEN"];
/// The variables that fledge sets for programs that it starts, which may be fledge itself.
const SET_FOR_CHILDREN: [&str; 16] = [
    "CHANGED",
    "DELIVERY",
    "GIT_READS",
    "GIT_SAYS",
    "HEALTH",
    "HEALTH_WAS",
    "HOLDOUT",
    "MONITOR",
    "MONITOR_NAME",
    "RUN",
    "SINCE",
    "STEP",
    "TOOLS",
    "TREE_AFTER",
    "TREE_BEFORE",
    "TURN",
];

/// All variables of this process at its start. An empty one counts as not set; one that is not
/// Unicode is left out. Debug output shows only names.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EnvironmentLayer {
    vars: BTreeMap<String, String>,
    /// The path of this program.
    program: Option<PathBuf>,
    /// True if the operator trusts the current project.
    trusts_project: bool,
}

impl EnvironmentLayer {
    /// Reads the environment of this process.
    pub fn capture() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self { program: std::env::current_exe().ok(), ..Self::from_vars(std::env::vars_os().filter_map(text)) }
    }

    /// Creates an environment of these variables.
    pub fn from_vars<N: Into<String>, V: Into<String>>(vars: impl IntoIterator<Item = (N, V)>) -> Self {
        let vars = vars.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { vars, program: None, trusts_project: false }
    }

    /// Returns this environment, with or without trust in the current project.
    #[must_use]
    pub fn trusting_project(self, trusts_project: bool) -> Self {
        Self { trusts_project, ..self }
    }

    /// Returns true if the project's own files may set everything.
    pub fn trusts_project(&self) -> bool {
        self.trusts_project
    }

    /// Returns the path of this program, which also runs in sandboxes; `None` if it is unknown.
    pub fn program(&self) -> Option<&Path> {
        self.program.as_deref()
    }

    /// Returns all variables, unchanged, for the conditions of lanes that are run by hand.
    pub fn all(&self) -> &BTreeMap<String, String> {
        &self.vars
    }

    /// Returns a variable's value without blanks around it: keys from files often end in a line
    /// break.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// Returns variables that resemble fledge's own and are unknown, each with the one that was
    /// most likely meant. Other variables with the prefix may belong to other programs.
    pub fn misspelt(&self) -> Vec<(String, String)> {
        let own = |name: &String| Some((name.clone(), name.strip_prefix(OWN_PREFIX)?.to_owned()));
        let meant = |(name, rest): (String, String)| {
            let is_set_by_us = SET_FOR_CHILDREN.contains(&rest.as_str());
            let begins = |known: &&&str| known.strip_prefix(rest.as_str()).is_some_and(|rest| rest.starts_with('_'));
            let known = nearest(&rest, READ.iter().copied()).or_else(|| READ.iter().find(begins).copied());
            let known = known.filter(|known| *known != rest && !is_set_by_us)?;
            Some((name, format!("{OWN_PREFIX}{known}")))
        };
        self.vars.keys().filter_map(own).filter_map(meant).collect()
    }

    /// Reads a variable that means yes or no; not set means no.
    ///
    /// # Errors
    /// [`ConfigError::Variable`] if it means neither.
    pub fn flag(&self, name: &str) -> Result<bool, ConfigError> {
        match self.get(name).map(str::to_lowercase).as_deref() {
            None | Some("0" | "false" | "no") => Ok(false),
            Some("1" | "true" | "yes") => Ok(true),
            Some(other) => {
                let why = format!("expected `1` or `0`, found `{}`", crate::yaml::excerpt(other));
                Err(ConfigError::Variable { name: name.into(), why })
            }
        }
    }

    /// Resolves a path of the configuration: `~/` means the home folder.
    pub fn path(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), self.get("HOME")) {
            (Ok(below), Some(home)) => Path::new(home).join(below),
            (Ok(_) | Err(_), _) => path.to_owned(),
        }
    }

    /// Returns all variables that are secret by their name or by a password in a URL, with their
    /// values.
    pub fn secrets(&self) -> impl Iterator<Item = (&str, &str)> {
        let secret = self.vars.iter().filter(|(name, value)| is_secret(name) || has_password(value));
        secret.map(|(name, value)| (name.as_str(), value.trim()))
    }

    /// Returns the folder of fledge's state, an absolute path: `FLEDGE_STATE_DIR`, which may be
    /// relative to the current folder, else a folder below `XDG_STATE_HOME` or `HOME`.
    ///
    /// # Errors
    /// [`ConfigError::NoStateDir`] if none of the three is set, [`ConfigError::Variable`] if there
    /// is no current folder.
    pub fn state_dir(&self) -> Result<PathBuf, ConfigError> {
        const OWN: &str = "FLEDGE_STATE_DIR";
        match self.get(OWN) {
            Some(own) => std::path::absolute(own).map_err(|error| ConfigError::Variable {
                name: OWN.into(),
                why: format!("cannot resolve the relative path: {error}"),
            }),
            None => self.below("XDG_STATE_HOME", ".local/state").ok_or(ConfigError::NoStateDir),
        }
    }

    /// Returns the path of the user's configuration file, which may not exist.
    pub fn user_config(&self) -> Option<PathBuf> {
        Some(self.below("XDG_CONFIG_HOME", ".config")?.join("config.yaml"))
    }

    /// Returns fledge's folder below a folder of the XDG specification, or below its default in
    /// `HOME`. The specification forbids relative folders, so they count as not set.
    fn below(&self, variable: &str, default: &str) -> Option<PathBuf> {
        let absolute = |name| self.get(name).map(Path::new).filter(|path| path.is_absolute());
        let folder = absolute(variable).map(Path::to_path_buf);
        Some(folder.or_else(|| Some(absolute("HOME")?.join(default)))?.join("fledge"))
    }

    /// Returns the environment of the agent's commands: the variables that programs and toolchains
    /// need, without secrets. Colours and pagers are off.
    pub fn child_env(&self) -> BTreeMap<String, String> {
        let kept = |(name, value): &(&String, &String)| {
            is_for_children(name) && !is_secret(name) && !has_password(value) && !leads_to_jobserver(value)
        };
        without_terminal(self.vars.iter().filter(kept))
    }

    /// Returns the environment of programs that fledge runs for the user: all variables. Colours
    /// and pagers are off.
    pub fn hand_env(&self) -> BTreeMap<String, String> {
        without_terminal(self.vars.iter())
    }

    /// Returns the environment of lanes that the user runs by hand: all variables, unchanged.
    pub fn own_env(&self) -> BTreeMap<String, String> {
        with_path(self.vars.iter())
    }

    /// Returns the environment of a gate's steps: all variables but those of
    /// [`Self::kept_from_steps`].
    pub fn step_env(&self) -> BTreeMap<String, String> {
        with_path(self.vars.iter().filter(|(name, value)| !is_kept_from_steps(name, value)))
    }

    /// Returns the names of the variables that a gate's steps do not get: secrets, and those of
    /// this terminal or this process.
    pub fn kept_from_steps(&self) -> impl Iterator<Item = &str> {
        self.vars.iter().filter(|(name, value)| is_kept_from_steps(name, value)).map(|(name, _)| name.as_str())
    }
}

impl fmt::Debug for EnvironmentLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.vars.keys().map(|name| (name, "***"))).finish()
    }
}

/// Copies variables, and adds a search path where none exists.
fn with_path<'v>(vars: impl Iterator<Item = (&'v String, &'v String)>) -> BTreeMap<String, String> {
    let mut vars: BTreeMap<String, String> = vars.map(|(name, value)| (name.clone(), value.clone())).collect();
    vars.entry("PATH".into()).or_insert_with(|| "/usr/local/bin:/usr/bin:/bin".into());
    vars
}

/// Copies variables, and adds those that switch off colours, pagers and questions.
fn without_terminal<'v>(vars: impl Iterator<Item = (&'v String, &'v String)>) -> BTreeMap<String, String> {
    let mut vars = with_path(vars);
    let plain =
        [("NO_COLOR", "1"), ("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];
    vars.extend(plain.map(|(name, value)| (name.to_owned(), value.to_owned())));
    vars
}

/// The variables that agents' commands get, by name; a `*` matches any ending.
const FOR_CHILDREN: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "CI",
    "SOURCE_DATE_EPOCH",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "LD_LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "MAKEFLAGS",
    // proxies and certificates
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    // authors of commits
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    // toolchains
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_JOBS",
    "CARGO_NET_OFFLINE",
    "RUSTUP_AUTO_INSTALL",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUSTFLAGS",
    "RUST_BACKTRACE",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "GOFLAGS",
    "GOPROXY",
    "GOTOOLCHAIN",
    "JAVA_HOME",
    "GRADLE_USER_HOME",
    "MAVEN_HOME",
    "M2_HOME",
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "NVM_DIR",
    "NODE_PATH",
    "NPM_CONFIG_CACHE",
    "npm_config_cache",
    "PNPM_HOME",
    "VOLTA_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "PYENV_ROOT",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "UV_CACHE_DIR",
    "PIP_CACHE_DIR",
    "POETRY_HOME",
    "GEM_HOME",
    "GEM_PATH",
    "BUNDLE_PATH",
    "MIX_HOME",
    "HEX_HOME",
    "PUB_CACHE",
    "ELM_HOME",
    "RBENV_ROOT",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "MISE_DATA_DIR",
    "DOTNET_ROOT",
    "NUGET_PACKAGES",
    "DEVELOPER_DIR",
    "SDKROOT",
];

/// The variables besides secrets that steps do not get, by name; a `*` matches any ending.
const NOT_FOR_STEPS: &[&str] = &[
    // the shell that fledge was started from
    "_",
    "PWD",
    "OLDPWD",
    "SHLVL",
    // fledge itself
    "FLEDGE_*",
    // another repository, index or configuration of git
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_CONFIG*",
    // code that every program or shell would load
    "LD_PRELOAD",
    "LD_AUDIT",
    "BASH_ENV",
    "ENV",
    // access to programs of the operator's session
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "GPG_AGENT_INFO",
    "GPG_TTY",
    "DBUS_*",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_*",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "TMUX*",
    "STY",
    // the npm script that started fledge
    "INIT_CWD",
    "npm_lifecycle_*",
    "npm_package_*",
    // what cargo sets for the program that `cargo run` starts
    "CARGO_MANIFEST_*",
    "CARGO_PKG_*",
    "CARGO_BIN_*",
];

fn is_for_children(name: &str) -> bool {
    is_listed(FOR_CHILDREN, name)
}

fn is_kept_from_steps(name: &str, value: &str) -> bool {
    is_secret(name) || has_password(value) || is_listed(NOT_FOR_STEPS, name) || leads_to_jobserver(value)
}

/// Returns true if a value of `MAKEFLAGS` and the like names the pipe of the `make` that started
/// fledge. The pipe is closed in rooms, so builds there would wait for it or run one job at a time.
fn leads_to_jobserver(value: &str) -> bool {
    value.contains("--jobserver-auth=") || value.contains("--jobserver-fds=")
}

fn is_listed(list: &[&str], name: &str) -> bool {
    list.iter().any(|known| known.strip_suffix('*').map_or(*known == name, |start| name.starts_with(start)))
}
