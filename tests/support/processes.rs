//! The live processes, from the kernel's list.

use super::becomes;
use rustix::process::Pid;
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns a number of seconds for `sleep` that no other test and no other test run uses. It
/// identifies the processes of a test.
pub(crate) fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("3600.{}{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The number of sleeps that [`fleeing`] leaves.
pub(crate) const WAYS: usize = 6;

/// Returns shell words for each way to leave a step without ending. Each starts a sleep of this
/// many seconds.
pub(crate) fn fleeing(number: &str) -> String {
    [
        "sleep N &",
        "setsid sleep N &",
        "(setsid sh -c 'sleep N & wait' &) ;",
        "sh -c 'trap \"\" TERM HUP; sleep N; true' &",
        "env -i setsid /bin/sh -c '/bin/sleep N; true' &",
        "(env -i setsid /bin/sh -c '/bin/sh -c \"/bin/sleep N; true\" & exit 0' </dev/null >/dev/null 2>&1 &) ;",
    ]
    .join(" ")
    .replace('N', number)
}

/// Returns the command lines of all processes that contain this text. Zombies have no command line.
pub(crate) fn running_with(text: &str) -> Vec<String> {
    everyone().map(|(_, line)| line).filter(|line| line.contains(text)).collect()
}

/// Returns the command lines of the sleeps of this many seconds, without the shells that only
/// mention one.
pub(crate) fn sleepers(number: &str) -> Vec<String> {
    let is_sleep = |line: &str| line.ends_with(&format!("sleep {number} ")) && !line.contains(" -c ");
    everyone().map(|(_, line)| line).filter(|line| is_sleep(line)).collect()
}

/// Returns the pid and command line of each child of a process whose command line has this text.
pub(crate) fn children_with(parent: Pid, text: &str) -> Vec<(i32, String)> {
    let parent = format!("\nPPid:\t{}\n", parent.as_raw_nonzero());
    let is_child = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|s| s.contains(&parent));
    everyone().filter(|(pid, line)| line.contains(text) && is_child(*pid)).collect()
}

fn everyone() -> impl Iterator<Item = (i32, String)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let bytes = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some((pid, String::from_utf8_lossy(&bytes).replace('\0', " ")))
    })
}

/// Waits until no command line has this text, since a killed process needs a moment to end. Panics
/// if one remains.
#[track_caller]
pub(crate) fn must_be_gone(text: &str) {
    assert!(becomes(|| running_with(text).is_empty()), "still alive: {:?}", running_with(text));
}
