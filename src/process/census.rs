//! Reads the kernel's list of processes, and signals exactly the process that was read, never one that got its number later.
//! Where there is no Linux `/proc` the lists are empty, and only process groups are known.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, waitid};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::sync::LazyLock;

/// One process as it was when it was read. `pid` and `started` together name it for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    /// In clock ticks since boot.
    pub(super) started: u64,
    pub(super) parent: i32,
    /// Its process group.
    pub(super) group: i32,
    pub(super) session: i32,
    /// False for one that has ended and waits to be reaped.
    pub(super) alive: bool,
    pub(super) threads: u64,
    /// Pages of memory that it holds, also those that it has in common with others.
    pub(super) pages: u64,
}

/// Our own list of children, kept open since it is read many times a step. It is that of the first thread, which is the one that
/// the kernel gives orphans to. `None` where the kernel is not built to keep such lists.
static OWN_CHILDREN: LazyLock<Option<File>> =
    LazyLock::new(|| File::open(format!("/proc/self/task/{}/children", own_pid())).ok());

/// This process.
pub(super) fn own() -> Option<Process> {
    look(own_pid())
}

/// The process with this number.
pub(super) fn look(pid: i32) -> Option<Process> {
    let stat = read(&format!("/proc/{pid}/stat"))?;
    // The second field is the program's name in brackets, and may itself hold spaces and brackets.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let threads: u64 = fields.get(17)?.parse().ok()?;
    Some(Process {
        pid,
        started: fields.get(19)?.parse().ok()?,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        // A process whose first thread has ended while others run is listed as a zombie too.
        alive: !matches!(*fields.first()?, "Z" | "X") || threads > 1,
        threads,
        pages: fields.get(21).and_then(|pages| pages.parse().ok()).unwrap_or(0),
    })
}

/// The text of one of the kernel's small files.
pub(super) fn read(path: &str) -> Option<String> {
    let mut bytes = [0; 4096];
    let count = File::open(path).ok()?.read(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

/// How many processes and threads the whole machine has.
pub(super) fn threads_of_machine() -> Option<u64> {
    let text = read("/proc/loadavg")?; // proc(5)
    text.split_ascii_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// The numbers of the processes that orphans of a step are among: our children where we adopt orphans, everybody elsewhere.
pub(super) fn candidates() -> Vec<i32> {
    if !adopt_orphans() {
        return everyone().map(|process| process.pid).collect();
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
            break; // a number takes much less, so this was all
        }
    }
    numbers(&String::from_utf8_lossy(&text)).collect()
}

/// The children of a process, adopted ones included.
pub(super) fn children(parent: i32) -> Vec<Process> {
    if OWN_CHILDREN.is_none() {
        return everyone().filter(|process| process.parent == parent).collect();
    }
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    let lists = threads.flatten().map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    lists.flat_map(|list| numbers(&list).filter_map(look).collect::<Vec<_>>()).collect()
}

fn numbers(list: &str) -> impl Iterator<Item = i32> {
    list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok())
}

/// Every process there is. Costs milliseconds: for kernels that lack the short ways only.
fn everyone() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| look(entry.file_name().to_str()?.parse().ok()?))
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

/// Whether a child of ours runs. One that has ended stays on the list until it is reaped, and keeps its number so long.
pub(super) fn runs(child: Pid) -> bool {
    let quietly = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    matches!(waitid(WaitId::Pid(child), quietly), Ok(None))
}

/// Whether the number still belongs to the process that was read.
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
        // In a container the first process has a parent that the kernel does not show it.
        let is_first = found.parent == 0;
        assert!(
            is_first || children(found.parent).iter().any(|child| child.pid == me && child.started == found.started)
        );
        assert!(everyone().any(|process| process.pid == me));
        assert_eq!(look(i32::MAX), None);
    }
}
