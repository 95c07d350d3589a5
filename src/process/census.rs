//! The kernel's list of processes. Signals go exactly to the process that was read, never to a
//! later one with the same number. Without a Linux `/proc` the lists are empty, and only process
//! groups are known.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, waitid};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::sync::LazyLock;

/// One process at the time it was read. `pid` and `started` together identify it for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    /// The start time, in clock ticks since boot.
    pub(super) started: u64,
    pub(super) parent: i32,
    /// The process group.
    pub(super) group: i32,
    pub(super) session: i32,
    /// False for a process that has ended and waits to be reaped.
    pub(super) alive: bool,
    pub(super) threads: u64,
    /// Pages of memory that the process holds, including those it shares with others.
    pub(super) pages: u64,
}

/// The list of this process's children, kept open since each step reads it many times. It is the
/// list of the first thread, to which the kernel gives orphans. `None` if the kernel is built
/// without such lists.
static OWN_CHILDREN: LazyLock<Option<File>> =
    LazyLock::new(|| File::open(format!("/proc/self/task/{}/children", own_pid())).ok());

/// Returns this process.
pub(super) fn own() -> Option<Process> {
    look(own_pid())
}

/// Returns the process with this number.
pub(super) fn look(pid: i32) -> Option<Process> {
    let stat = read(&format!("/proc/{pid}/stat"))?;
    // The second field is the program's name in parentheses. The name may itself contain spaces and
    // parentheses.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let threads: u64 = fields.get(17)?.parse().ok()?;
    Some(Process {
        pid,
        started: fields.get(19)?.parse().ok()?,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        // The kernel also lists a process as a zombie if its first thread has ended while others
        // run.
        alive: !matches!(*fields.first()?, "Z" | "X") || threads > 1,
        threads,
        pages: fields.get(21).and_then(|pages| pages.parse().ok()).unwrap_or(0),
    })
}

/// Returns the text of one of the kernel's small files, at most its first 4096 bytes.
pub(super) fn read(path: &str) -> Option<String> {
    let mut bytes = [0; 4096];
    let count = File::open(path).ok()?.read(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

/// Returns the number of processes and threads of the whole machine.
pub(super) fn threads_of_machine() -> Option<u64> {
    let text = read("/proc/loadavg")?; // proc(5)
    text.split_ascii_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// Returns the numbers of the processes among which orphans of a step are found. These are this
/// process's children if it adopts orphans, else all processes.
pub(super) fn candidates() -> Vec<i32> {
    if !adopt_orphans() {
        return all_processes().map(|process| process.pid).collect();
    }
    let Some(list) = OWN_CHILDREN.as_ref() else {
        return children(own_pid()).iter().map(|process| process.pid).collect();
    };
    let (mut text, mut at) = (Vec::new(), 0);
    let mut piece = [0; 1024];
    while let Ok(count @ 1..) = list.read_at(&mut piece, at) {
        text.extend_from_slice(&piece[..count]);
        at += count as u64;
        if count < piece.len() / 2 {
            break; // a number is much shorter, so this was the end of the list
        }
    }
    numbers(&String::from_utf8_lossy(&text)).collect()
}

/// Returns the children of a process, adopted ones included.
pub(super) fn children(parent: i32) -> Vec<Process> {
    if OWN_CHILDREN.is_none() {
        return all_processes().filter(|process| process.parent == parent).collect();
    }
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    let lists = threads.flatten().map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    lists.flat_map(|list| numbers(&list).filter_map(look).collect::<Vec<_>>()).collect()
}

fn numbers(list: &str) -> impl Iterator<Item = i32> {
    list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok())
}

/// Returns all processes. This takes milliseconds, so it is only a fallback for kernels without
/// lists of children or without subreapers.
fn all_processes() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| look(entry.file_name().to_str()?.parse().ok()?))
}

/// Makes this process adopt the orphans of its descendants. Returns false if the system cannot do
/// that.
pub(super) fn adopt_orphans() -> bool {
    #[cfg(target_os = "linux")]
    static ADOPTS: LazyLock<bool> =
        LazyLock::new(|| rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok());
    #[cfg(not(target_os = "linux"))]
    static ADOPTS: LazyLock<bool> = LazyLock::new(|| false);
    *ADOPTS
}

/// Sends a signal to the process that was read. Without a handle on the process (`pidfd_open`
/// failed), a new process with the same number could get the signal.
pub(super) fn signal(process: &Process, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else { return };
    #[cfg(target_os = "linux")]
    if let Ok(handle) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
        // The handle keeps the process that has the number now. It is the process that was read if
        // both started at the same tick.
        if is_same(process) {
            let _ = rustix::process::pidfd_send_signal(handle, signal);
        }
        return;
    }
    if is_same(process) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Reaps an ended child. Returns true if the child is gone.
pub(super) fn reap(process: &Process) -> bool {
    let Some(pid) = Pid::from_raw(process.pid) else { return true };
    rustix::process::waitpid(Some(pid), WaitOptions::NOHANG).is_ok_and(|ended| ended.is_some())
}

/// Returns whether a child of this process runs. A child that has ended keeps its number until it
/// is reaped.
pub(super) fn runs(child: Pid) -> bool {
    let quietly = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    matches!(waitid(WaitId::Pid(child), quietly), Ok(None))
}

/// Returns whether the number still belongs to the process that was read.
fn is_same(process: &Process) -> bool {
    look(process.pid).is_some_and(|now| now.started == process.started)
}

pub(super) fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_pid()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_the_child_of_its_parent() {
        let me = i32::try_from(std::process::id()).unwrap();
        let found = look(me).unwrap();
        assert!(found.alive && found.started > 0);
        // In a container, the kernel hides the parent of the first process.
        let is_first = found.parent == 0;
        assert!(
            is_first || children(found.parent).iter().any(|child| child.pid == me && child.started == found.started)
        );
        assert!(all_processes().any(|process| process.pid == me));
        assert_eq!(look(i32::MAX), None);
    }
}
