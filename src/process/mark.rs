//! Marks: the numbers by which fledge finds everything that a step starts, even a process that
//! changes its session, parent or files. Processes inherit the mark in the environment, and as a
//! resource limit that the kernel does not enforce. The last six digits of a mark count the steps
//! of a fledge process, and the digits before them belong to that process.

use super::census;
use rustix::process::Pid;
use std::fs;
use std::process::Child;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

/// The number of different marks that one process gives.
const STEPS: u64 = 1_000_000;

/// The mark of this process itself. `None` unless it runs inside a step.
static OWN: LazyLock<Option<u64>> = LazyLock::new(own_limit);

/// The leading part of the marks that this process gives. It is below that of this process's own
/// mark, since a limit can only be lowered.
pub(super) static FAMILY: LazyLock<u64> = LazyLock::new(|| {
    let top = OWN.map(|own| own / STEPS).filter(|top| *top > 1).unwrap_or(1_000_000_000_000);
    let chance = Uuid::now_v7().as_u128() as u64; // the random half
    top - 1 - chance % (top / 2)
});

/// Returns a random word of letters and digits that a program cannot guess.
pub fn unforeseen() -> String {
    Uuid::now_v7().simple().to_string()
}

/// Returns `NAME=number` for the environment of a step. The name is random, so a program cannot
/// tell by it that fledge judges it.
pub(super) fn variable(number: u64) -> String {
    let (chance, letters) = (Uuid::now_v7().into_bytes(), b"ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    let name: String =
        chance[8..15].iter().map(|byte| char::from(letters[usize::from(*byte) % letters.len()])).collect();
    format!("{name}_ID={number}")
}

/// Returns the mark for another step.
pub(super) fn next() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    *FAMILY * STEPS + COUNT.fetch_add(1, Ordering::Relaxed) % STEPS
}

/// The mark that a process has inherited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessMark {
    current: Option<u64>,
    /// The hard limit. It has no mark in a process that another thread starts while this process
    /// bears a step's mark.
    maximum: Option<u64>,
}

impl ProcessMark {
    /// Returns whether the process is from this step, or was started by another thread at the same
    /// moment.
    pub(super) fn may_be(self, number: u64) -> bool {
        self.current == Some(number)
    }

    /// Returns whether the process is from this step.
    pub(super) fn is(self, number: u64) -> bool {
        self.maximum == Some(number)
    }

    /// Returns whether the mark differs from that of this process. Then the process is from some
    /// step.
    pub(super) fn is_foreign(self) -> bool {
        self.current.is_some() && self.current != *OWN
    }
}

/// Returns whether the process was started with this text, `NAME=value`, in its environment.
pub(super) fn has_variable(pid: i32, variable: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
}

/// Returns the mark of a process. `None` if the process is gone, or the system has no such limit.
pub(super) fn of_process(pid: i32) -> Option<ProcessMark> {
    let limits = census::read(&format!("/proc/{pid}/limits"))?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    let mut numbers = line.split_ascii_whitespace().map(|number| number.parse().ok());
    Some(ProcessMark { current: numbers.next()?, maximum: numbers.next()? })
}

#[cfg(target_os = "linux")]
fn own_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Locks).current
}

#[cfg(not(target_os = "linux"))]
fn own_limit() -> Option<u64> {
    None
}

/// Starts a process with this mark, as the limit on file locks. No kernel since Linux 2.4 enforces
/// that limit (getrlimit(2), `RLIMIT_LOCKS`), and only a privileged process can raise it. A process
/// can fork before it can be marked from outside. So this process bears the mark itself during the
/// start.
#[cfg(target_os = "linux")]
pub(super) fn start<T>(number: u64, start: impl FnOnce() -> T, pid: fn(&T) -> Option<Pid>) -> T {
    use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
    static MAXIMUM: LazyLock<Option<u64>> = LazyLock::new(|| getrlimit(Resource::Locks).maximum);
    let own = *OWN;
    let bearing = |current| prlimit(None, Resource::Locks, Rlimit { current, maximum: *MAXIMUM });
    if let Err(error) = bearing(Some(number)) {
        tracing::debug!(%error, "cannot mark a step; a process that leaves its session and environment may be missed");
        return start();
    }
    let started = start();
    let _ = bearing(own);
    if let Some(pid) = pid(&started) {
        lower(pid, number);
    }
    started
}

#[cfg(not(target_os = "linux"))]
pub(super) fn start<T>(_: u64, start: impl FnOnce() -> T, _: fn(&T) -> Option<Pid>) -> T {
    start()
}

/// Gives a child that belongs to no step a mark that no step has.
pub(super) fn rename(child: &Child) {
    #[cfg(target_os = "linux")]
    lower(Pid::from_child(child), *FAMILY);
    #[cfg(not(target_os = "linux"))]
    let _ = child;
}

#[cfg(target_os = "linux")]
fn lower(pid: Pid, number: u64) {
    use rustix::process::{Resource, Rlimit, prlimit};
    let limit = Rlimit { current: Some(number), maximum: Some(number) };
    let _it_is_not_ours_any_more = prlimit(Some(pid), Resource::Locks, limit);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_steps_differ_and_are_this_process_s_own_digits_and_six_more() {
        let (one, other) = (next(), next());
        assert_ne!(one, other);
        assert_eq!((one / STEPS, other / STEPS), (*FAMILY, *FAMILY));
        assert!(OWN.is_none_or(|own| one < own && other < own));
    }
}
