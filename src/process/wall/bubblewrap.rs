//! The wall by bubblewrap: namespaces of its own, the machine read-only, and a mount for every rule.

use super::INSIDE;
use super::holes::{Holes, Rule, Sight, over};
use super::inside::Fence;
use crate::process::Invocation;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// Sockets that are covered one by one.
const MOST_SOCKETS: usize = 256;

/// What unshares users, from the best to the least: which one works is tried, not told from a version.
pub(super) const USERS: [&[&str]; 3] = [
    &["--unshare-user", "--disable-userns"],
    &["--unshare-user"],
    &["--unshare-user-try"], // root, where there are no namespaces of users
];
const ALWAYS: [&str; 15] = [
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
    "--new-session", // nothing can be typed into a terminal
    "--cap-drop",
    "ALL",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
];

/// What is not a process's own below `/proc` and can be written.
const MACHINE: [&str; 9] = [
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/irq",
    "/proc/bus",
    "/proc/fs",
    "/proc/acpi",
    "/proc/scsi",
    "/proc/driver",
    "/proc/mtrr",
];

/// Bubblewrap as it works here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bubblewrap {
    pub(super) program: PathBuf,
    /// One of [`USERS`].
    pub(super) users: &'static [&'static str],
}

/// What it is told.
struct Arguments {
    all: Vec<String>,
    /// Folders that are closed when everything below them is in place.
    closed: Vec<String>,
}

impl Bubblewrap {
    /// The program behind it.
    pub(super) fn around(&self, helper: &Path, holes: &Holes, inner: Invocation) -> Invocation {
        let mut arguments = Arguments { all: Vec::new(), closed: Vec::new() };
        arguments.add(self.users);
        arguments.add(&ALWAYS);
        // Of a fresh /proc, what is the whole machine's: root could write some of it also without rights.
        MACHINE.iter().for_each(|at| arguments.add(&["--ro-bind-try", at, at]));
        if !holes.network {
            arguments.add(&["--unshare-net"]);
        }
        let rules = holes.rules(&inner.env, helper);
        rules.iter().for_each(|rule| arguments.place(rule, holes));
        for socket in sockets().iter().filter(|socket| is_in_sight(socket, &rules)) {
            arguments.add(&["--ro-bind", "/dev/null", &text(socket)]);
        }
        for closed in std::mem::take(&mut arguments.closed) {
            arguments.add(&["--remount-ro", &closed]);
        }
        let fence = Fence::of_namespaces(holes).to_json();
        arguments.add(&["--chdir", &text(&inner.dir), "--", &text(helper), INSIDE, &fence, &inner.program]);
        arguments.all.extend(inner.args);
        let temp = [("TMPDIR".to_owned(), "/tmp".to_owned())];
        let env = inner.env.with(temp.iter().map(|(name, value)| (name, value)));
        Invocation { program: text(&self.program), args: arguments.all, dir: "/".into(), env, ..inner }
    }
}

impl Arguments {
    fn add(&mut self, all: &[&str]) {
        self.all.extend(all.iter().map(|arg| (*arg).to_owned()));
    }

    /// The mount of a rule. What does not exist needs none, unless it may not come to be.
    fn place(&mut self, rule: &Rule, holes: &Holes) {
        let at = text(&rule.at);
        let (exists, is_folder) = (rule.at.exists(), rule.at.is_dir());
        match (rule.sight, &rule.from) {
            (Sight::Writable, Some(from)) => self.add(&["--bind", &text(from), &at]),
            (Sight::ReadOnly, Some(from)) => self.add(&["--ro-bind", &text(from), &at]),
            (Sight::ReadOnly, None) if !exists && holes.read_only.contains(&rule.at) => self.close(at),
            _ if !exists => {}
            (Sight::Writable, None) => self.add(&["--bind", &at, &at]),
            (Sight::ReadOnly, None) => self.add(&["--ro-bind", &at, &at]),
            (Sight::Empty, _) if is_folder => self.add(&["--perms", "0755", "--tmpfs", &at]),
            (Sight::Masked, _) if is_folder => self.close(at),
            (Sight::Empty | Sight::Masked, _) => self.add(&["--ro-bind", "/dev/null", &at]),
        }
    }

    /// An empty folder that stays so.
    fn close(&mut self, at: String) {
        self.add(&["--perms", "0555", "--tmpfs", &at]);
        self.closed.push(at);
    }
}

/// The sockets of this machine that have a place in the file system: no namespace keeps anybody from them.
fn sockets() -> Vec<PathBuf> {
    let list = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let paths = list.lines().skip(1).filter_map(|line| Some(PathBuf::from(format!("/{}", line.split_once(" /")?.1))));
    let is_socket = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket());
    let mut sockets: Vec<PathBuf> = paths.filter(is_socket).filter_map(|path| path.canonicalize().ok()).collect();
    sockets.sort();
    sockets.dedup();
    sockets.truncate(MOST_SOCKETS);
    sockets
}

/// Whether a path is found inside as it is outside.
fn is_in_sight(path: &Path, rules: &[Rule]) -> bool {
    over(rules, path).is_none_or(|rule| match rule.sight {
        Sight::ReadOnly | Sight::Writable => rule.from.is_none() && rule.at.exists(),
        Sight::Empty | Sight::Masked => false,
    })
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
