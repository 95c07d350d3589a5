//! Reads the kernel's list of processes, and signals exactly the process that was read, never one that got its number later.
//! Where there is no Linux `/proc` the lists are empty, and only process groups are known.

use rustix::process::{Pid, Signal, WaitOptions};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// One process as it was when it was read. `pid` and `started` together name it for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    /// In clock ticks since boot.
    pub(super) started: u64,
    pub(super) parent: i32,
    pub(super) session: i32,
    /// False for one that has ended and waits to be reaped.
    pub(super) alive: bool,
}

/// Whether the kernel lists the children of a process, which not every one is built to do.
static LISTS_CHILDREN: LazyLock<bool> = LazyLock::new(|| Path::new("/proc/thread-self/children").exists());

/// The process with this number.
pub(super) fn look(pid: i32) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in brackets, and may itself hold spaces and brackets.
    let rest = String::from_utf8_lossy(&stat[stat.iter().rposition(|byte| *byte == b')')? + 1..]).into_owned();
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let threads: u32 = fields.get(17)?.parse().ok()?;
    Some(Process {
        pid,
        started: fields.get(19)?.parse().ok()?,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        // A process whose first thread has ended while others run is listed as a zombie too.
        alive: !matches!(*fields.first()?, "Z" | "X") || threads > 1,
    })
}

/// The children of a process, adopted ones included.
pub(super) fn children(parent: i32) -> Vec<Process> {
    if !*LISTS_CHILDREN {
        return everyone().into_iter().filter(|process| process.parent == parent).collect();
    }
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    threads.flatten().flat_map(|thread| listed(&thread.path().join("children"))).collect()
}

/// The children that a process may have adopted: those of its first thread, which is the one that the kernel gives them to.
pub(super) fn adopted(parent: i32) -> Vec<Process> {
    if *LISTS_CHILDREN {
        listed(Path::new(&format!("/proc/{parent}/task/{parent}/children")))
    } else {
        children(parent)
    }
}

fn listed(list: &Path) -> Vec<Process> {
    let pids = fs::read_to_string(list).unwrap_or_default();
    pids.split_ascii_whitespace().filter_map(|pid| look(pid.parse().ok()?)).collect()
}

/// Every process there is. Costs milliseconds: for kernels that lack the short ways only.
pub(super) fn everyone() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| look(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// Whether the process was started with this text, `NAME=value`, in its environment.
pub(super) fn has_variable(pid: i32, variable: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
}

/// The number that a process has from [`start_marked`], or inherited; `None` when it has none.
pub(super) fn mark_of(pid: i32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?.split_ascii_whitespace().next()?.parse().ok()
}

/// Starts a process with a number that all its descendants inherit, whatever they do to their environment, session, parents and
/// files, and that only a privileged one can take off: the limit on file locks, which no kernel since Linux 2.4 enforces
/// (getrlimit(2), `RLIMIT_LOCKS`). A process can fork before anybody can change it from outside, so for the moment of the start
/// this process bears the number itself; `last` is the one before.
#[cfg(target_os = "linux")]
pub(super) fn start_marked<T>(
    number: u64,
    last: Option<u64>,
    start: impl FnOnce() -> T,
    pid: fn(&T) -> Option<Pid>,
) -> T {
    use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
    let maximum = getrlimit(Resource::Locks).maximum;
    let bearing = |current| prlimit(None, Resource::Locks, Rlimit { current, maximum });
    if let Err(error) = bearing(Some(number)) {
        tracing::debug!(%error, "cannot mark a step; a process that leaves its session and environment may be missed");
        return start();
    }
    let started = start();
    let _ = bearing(last);
    if let Some(pid) = pid(&started) {
        let _ = prlimit(Some(pid), Resource::Locks, Rlimit { current: Some(number), maximum: Some(number) });
    }
    started
}

#[cfg(not(target_os = "linux"))]
pub(super) fn start_marked<T>(_: u64, _: Option<u64>, start: impl FnOnce() -> T, _: fn(&T) -> Option<Pid>) -> T {
    start()
}

/// Has this process adopt what its descendants leave behind. False where the system has no such thing.
pub(super) fn adopt_orphans() -> bool {
    #[cfg(target_os = "linux")]
    static ADOPTS: LazyLock<bool> =
        LazyLock::new(|| rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok());
    #[cfg(not(target_os = "linux"))]
    static ADOPTS: LazyLock<bool> = LazyLock::new(|| false);
    *ADOPTS
}

/// Sends a signal to the process that was read, and to no other.
pub(super) fn signal(process: &Process, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else { return };
    #[cfg(target_os = "linux")]
    if let Ok(handle) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
        // The handle holds on to whoever has the number now; it is the same one if it started at the same tick.
        if is_same(process) {
            let _ = rustix::process::pidfd_send_signal(handle, signal);
        }
        return;
    }
    if is_same(process) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Takes an ended child off the kernel's list. True when it is gone.
pub(super) fn reap(process: &Process) -> bool {
    let Some(pid) = Pid::from_raw(process.pid) else { return true };
    rustix::process::waitpid(Some(pid), WaitOptions::NOHANG).is_ok_and(|ended| ended.is_some())
}

/// Whether the number still belongs to the process that was read.
pub(super) fn is_same(process: &Process) -> bool {
    look(process.pid).is_some_and(|now| now.started == process.started)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_the_child_of_its_parent() {
        let me = i32::try_from(std::process::id()).unwrap();
        let found = look(me).unwrap();
        assert!(found.alive && found.started > 0);
        assert!(children(found.parent).iter().any(|child| child.pid == me && child.started == found.started));
        assert!(everyone().iter().any(|process| process.pid == me));
        assert_eq!(look(i32::MAX), None);
    }
}
