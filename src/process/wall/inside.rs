//! What a program does to itself behind the wall, before it becomes another one: bounds on what it may use up, system calls that it may not
//! make, and with Landlock the paths that it may reach. None of it can be taken back, by it or by what it starts.

use super::bounds::WallLimits;
use super::holes::{Holes, Rule};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
#[cfg(target_os = "linux")]
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// What is printed before the reason when the program could not be started.
pub(super) const SAYS: &[u8] = b"fledge inside: ";

/// What is to be forbidden: plain data, since it goes through a command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fence {
    /// Whether sockets of other kinds than between programs of this machine can be made.
    pub(super) sockets: bool,
    /// Whether the network can be reached, so that sockets without a path can, too.
    pub(super) network: bool,
    /// Whether sockets with a path cannot be made, since nothing else keeps it from those of the machine.
    pub(super) alone: bool,
    pub(super) limits: WallLimits,
    /// The paths, where there are no mounts.
    pub(super) ground: Option<Vec<Rule>>,
}

/// Why a program did not start behind the wall.
#[derive(Debug, thiserror::Error)]
pub enum InsideFault {
    /// It was told something that is no fence.
    #[error("what is to be forbidden cannot be read: {0}")]
    Fence(#[from] serde_json::Error),
    /// A bound could not be set.
    #[error("cannot limit {what}: {source}")]
    Limit {
        /// What was to be limited.
        what: &'static str,
        /// Why it could not be.
        source: io::Error,
    },
    /// The system has no such thing, or refuses it.
    #[error("{0}")]
    Refused(String),
    /// The program could not be started.
    #[error("{}", super::super::why_not(.program, .source))]
    Program {
        /// The program.
        program: String,
        /// Why not.
        source: io::Error,
    },
}

impl Fence {
    /// What is left to do inside of namespaces.
    pub(super) fn of_namespaces(holes: &Holes, alone: bool) -> Self {
        Self { sockets: true, network: holes.network, alone, limits: holes.limits, ground: None }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() // which is refused when it is read
    }
}

impl InsideFault {
    /// As a shell says it: 127 for a program that is not there, else 126.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Program { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::Program { .. } | Self::Fence(_) | Self::Limit { .. } | Self::Refused(_) => 126,
        }
    }

    /// As it is printed.
    pub fn line(&self) -> String {
        format!("{}{self}", String::from_utf8_lossy(SAYS))
    }
}

/// Becomes a program behind a fence, which is JSON. Comes back only when that fails. For a process with one thread.
#[expect(clippy::disallowed_methods, reason = "this process becomes the program")]
pub fn enter(fence: &str, program: &OsStr, args: &[OsString]) -> InsideFault {
    close_inherited();
    let fenced = serde_json::from_str::<Fence>(fence).map_err(InsideFault::from).and_then(|fence| fence.put_up());
    match fenced {
        Err(fault) => fault,
        Ok(()) => {
            let source = Command::new(program).args(args).exec();
            InsideFault::Program { program: program.to_string_lossy().into_owned(), source }
        }
    }
}

impl Fence {
    fn put_up(&self) -> Result<(), InsideFault> {
        // Where memory is short, the kernel ends what is behind the wall before anything else (proc(5), `oom_score_adj`).
        let _it_may_not_be_there = std::fs::write("/proc/self/oom_score_adj", "1000");
        limit("core files", Resource::Core, Some(0))?;
        // Without a namespace of users the kernel counts all that the user has.
        let others = if self.ground.is_some() { threads_of_user() } else { 0 };
        // A little more than is looked at from outside: who reaches that is ended, and does not only hear that there can be no more.
        let room = |own: u64| own.saturating_add(own / 8 + 64).saturating_add(others);
        limit("processes", Resource::Nproc, self.limits.processes.map(room))?;
        limit("files", Resource::Fsize, self.limits.file_size)?;
        self.forbid()
    }

    #[cfg(target_os = "linux")]
    fn forbid(&self) -> Result<(), InsideFault> {
        // Not even root has a right that the wall does not give; nor does a program get any, once none can be gained.
        let sets = CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        };
        let dropped = set_no_new_privs(true).and_then(|()| set_capabilities(None, sets));
        dropped.map_err(|error| InsideFault::Refused(format!("cannot give up rights: {error}")))?;
        if let Some(ground) = &self.ground {
            super::landlock::restrict(ground, self.network).map_err(InsideFault::Refused)?;
        } else if self.network {
            // Sockets without a path are those of the whole machine then. Where the kernel is too old for that, it is a known hole.
            super::landlock::scope().map_err(InsideFault::Refused)?;
        }
        super::seccomp::forbid(self.sockets, self.alone).map_err(InsideFault::Refused)
    }

    #[cfg(not(target_os = "linux"))]
    fn forbid(&self) -> Result<(), InsideFault> {
        Err(InsideFault::Refused("there is no wall on this system".into()))
    }
}

/// Closes files and pipes that the process that started fledge left open. Programs in the sandbox must
/// not reach them, and could learn from them who started fledge.
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

/// The threads of this process's user, as far as they can be seen.
fn threads_of_user() -> u64 {
    let own = rustix::process::getuid().as_raw().to_string();
    let threads = |process: std::fs::DirEntry| -> Option<u64> {
        let status = std::fs::read_to_string(process.path().join("status")).ok()?;
        let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
        value("Threads:")?.parse().ok().filter(|_| value("Uid:") == Some(&own))
    };
    std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(threads).sum()
}

/// Lowers a bound; one that is lower already stays.
fn limit(what: &'static str, resource: Resource, to: Option<u64>) -> Result<(), InsideFault> {
    let Some(to) = to else { return Ok(()) };
    let now = getrlimit(resource);
    let lower = |old: Option<u64>| Some(old.map_or(to, |old| old.min(to)));
    let limit = Rlimit { current: lower(now.current), maximum: lower(now.maximum) };
    setrlimit(resource, limit).map_err(|source| InsideFault::Limit { what, source: source.into() })
}
