//! Restrictions that a process in the sandbox puts on itself before it becomes the program. They
//! are resource limits, forbidden system calls, and with Landlock the paths that it may reach.
//! Neither it nor what it starts can undo them.

use super::bounds::SandboxLimits;
use super::path_rules::{PathRule, PathRules};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
#[cfg(target_os = "linux")]
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// The prefix of the reason that is printed if the program could not be started.
pub(super) const SAYS: &[u8] = b"fledge inside: ";

/// The restrictions on a program. They are plain data, since they pass through a command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restrictions {
    /// True if the program can make sockets other than Unix sockets.
    pub(super) sockets: bool,
    /// True if it reaches the network. Then it also reaches abstract sockets, which have no path.
    pub(super) network: bool,
    /// True if it cannot make sockets with a path, since nothing else separates it from those of
    /// the machine.
    pub(super) alone: bool,
    pub(super) limits: SandboxLimits,
    /// The rules for paths, if no mounts exist.
    pub(super) path_rules: Option<Vec<PathRule>>,
}

/// The reason why a program did not start in the sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxStartError {
    /// The restrictions cannot be read.
    #[error("cannot read the restrictions of the sandbox: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// A limit could not be set.
    #[error("cannot limit {what}: {source}")]
    Limit {
        /// The limited resource.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The system does not support a restriction, or refuses it.
    #[error("{0}")]
    Refused(String),
    /// The program could not be started.
    #[error("{}", super::super::why_not(.program, .source))]
    Program {
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
}

impl Restrictions {
    /// Returns the restrictions that namespaces do not cover.
    pub(super) fn of_namespaces(rules: &PathRules, alone: bool) -> Self {
        Self { sockets: true, network: rules.network, alone, limits: rules.limits, path_rules: None }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() // an empty text is refused when it is read
    }
}

impl SandboxStartError {
    /// Returns the exit code that a shell would give: 127 for a program that is missing, else 126.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Program { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::Program { .. } | Self::Unreadable(_) | Self::Limit { .. } | Self::Refused(_) => 126,
        }
    }

    /// Returns the line to print.
    pub fn line(&self) -> String {
        format!("{}{self}", String::from_utf8_lossy(SAYS))
    }
}

/// Becomes a program under restrictions, which are given as JSON. Returns only if that fails. For a
/// process with one thread.
#[expect(clippy::disallowed_methods, reason = "this process becomes the program")]
pub fn enter(restrictions: &str, program: &OsStr, args: &[OsString]) -> SandboxStartError {
    close_inherited();
    let read = serde_json::from_str::<Restrictions>(restrictions).map_err(SandboxStartError::from);
    match read.and_then(|restrictions| restrictions.apply()) {
        Err(fault) => fault,
        Ok(()) => {
            let source = Command::new(program).args(args).exec();
            SandboxStartError::Program { program: program.to_string_lossy().into_owned(), source }
        }
    }
}

impl Restrictions {
    fn apply(&self) -> Result<(), SandboxStartError> {
        // If memory is short, the kernel ends programs in the sandbox first (proc(5),
        // `oom_score_adj`).
        let _it_may_not_be_there = std::fs::write("/proc/self/oom_score_adj", "1000");
        limit("core files", Resource::Core, Some(0))?;
        // Without a user namespace, the kernel counts all processes of the user.
        let others = if self.path_rules.is_some() { threads_of_user() } else { 0 };
        // This limit is a little above the one that fledge watches. So fledge ends a program that
        // goes beyond its limit before the kernel merely refuses more processes.
        let room = |own: u64| own.saturating_add(own / 8 + 64).saturating_add(others);
        limit("processes", Resource::Nproc, self.limits.processes.map(room))?;
        limit("files", Resource::Fsize, self.limits.file_size)?;
        self.forbid()
    }

    #[cfg(target_os = "linux")]
    fn forbid(&self) -> Result<(), SandboxStartError> {
        // No program in the sandbox has or can gain a capability, not even as root.
        let sets = CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        };
        let dropped = set_no_new_privs(true).and_then(|()| set_capabilities(None, sets));
        dropped.map_err(|error| SandboxStartError::Refused(format!("cannot drop capabilities: {error}")))?;
        if let Some(rules) = &self.path_rules {
            super::landlock::restrict(rules, self.network).map_err(SandboxStartError::Refused)?;
        } else if self.network {
            // With the network, the sandbox shares the abstract sockets of the whole machine. A
            // kernel that is too old for scopes leaves this known hole open.
            super::landlock::scope().map_err(SandboxStartError::Refused)?;
        }
        super::seccomp::forbid(self.sockets, self.alone).map_err(SandboxStartError::Refused)
    }

    #[cfg(not(target_os = "linux"))]
    fn forbid(&self) -> Result<(), SandboxStartError> {
        Err(SandboxStartError::Refused("this system has no sandbox".into()))
    }
}

/// Closes files and pipes that the parent of fledge left open. Programs in the sandbox must not
/// reach them, and could learn from them what started fledge.
fn close_inherited() {
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        #[cfg(target_os = "linux")]
        let _the_list_itself_is_closed = nix::unistd::close(descriptor);
        #[cfg(not(target_os = "linux"))]
        let _ = descriptor;
    }
}

/// Returns the number of threads of this process's user, as far as they are visible.
fn threads_of_user() -> u64 {
    let own = rustix::process::getuid().as_raw().to_string();
    let threads = |process: std::fs::DirEntry| -> Option<u64> {
        let status = std::fs::read_to_string(process.path().join("status")).ok()?;
        let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
        value("Threads:")?.parse().ok().filter(|_| value("Uid:") == Some(&own))
    };
    std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(threads).sum()
}

/// Lowers a limit. A limit that is already lower stays.
fn limit(what: &'static str, resource: Resource, to: Option<u64>) -> Result<(), SandboxStartError> {
    let Some(to) = to else { return Ok(()) };
    let now = getrlimit(resource);
    let lower = |old: Option<u64>| Some(old.map_or(to, |old| old.min(to)));
    let limit = Rlimit { current: lower(now.current), maximum: lower(now.maximum) };
    setrlimit(resource, limit).map_err(|source| SandboxStartError::Limit { what, source: source.into() })
}
