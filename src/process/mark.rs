//! The number that everything a step starts inherits, and by which it is found again, whatever it does to its session, parents and
//! files: in the environment, and as a limit that nothing enforces. The last six digits count the steps of a process, and those
//! before them are its own.

use super::census;
use rustix::process::Pid;
use std::fs;
use std::process::Child;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

/// How many steps have a number of their own.
const STEPS: u64 = 1_000_000;

/// The number of this process itself: none, unless it runs inside a step.
static OWN: LazyLock<Option<u64>> = LazyLock::new(own_limit);

/// This process's own part of the numbers it gives. Below that of its own number, since a limit can only be lowered.
pub(super) static FAMILY: LazyLock<u64> = LazyLock::new(|| {
    let top = OWN.map(|own| own / STEPS).filter(|top| *top > 1).unwrap_or(1_000_000_000_000);
    let chance = Uuid::now_v7().as_u128() as u64; // the random half
    top - 1 - chance % (top / 2)
});

/// A word of letters and digits that nobody can know before.
pub fn unforeseen() -> String {
    Uuid::now_v7().simple().to_string()
}

/// `NAME=number` for the environment of a step. The name is random, so that no program knows by it
/// that it is judged.
pub(super) fn variable(number: u64) -> String {
    let (chance, letters) = (Uuid::now_v7().into_bytes(), b"ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    let name: String =
        chance[8..15].iter().map(|byte| char::from(letters[usize::from(*byte) % letters.len()])).collect();
    format!("{name}_ID={number}")
}

/// A number for another step.
pub(super) fn next() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    *FAMILY * STEPS + COUNT.fetch_add(1, Ordering::Relaxed) % STEPS
}

/// What a process has inherited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    current: Option<u64>,
    /// What another thread starts in the moment in which this process bears a step's number has this as it was.
    maximum: Option<u64>,
}

impl Mark {
    /// Whether it comes from this step, or from something else that was started at the same moment.
    pub(super) fn may_be(self, number: u64) -> bool {
        self.current == Some(number)
    }

    /// Whether it comes from this step.
    pub(super) fn is(self, number: u64) -> bool {
        self.maximum == Some(number)
    }

    /// Whether it is one that this process has not: then it comes from some step.
    pub(super) fn is_foreign(self) -> bool {
        self.current.is_some() && self.current != *OWN
    }
}

/// Whether the process was started with this text, `NAME=value`, in its environment.
pub(super) fn has_variable(pid: i32, variable: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
}

/// The number of a process. `None` when it is gone or the system has no such thing.
pub(super) fn of(pid: i32) -> Option<Mark> {
    let limits = census::read(&format!("/proc/{pid}/limits"))?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    let mut numbers = line.split_ascii_whitespace().map(|number| number.parse().ok());
    Some(Mark { current: numbers.next()?, maximum: numbers.next()? })
}

#[cfg(target_os = "linux")]
fn own_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Locks).current
}

#[cfg(not(target_os = "linux"))]
fn own_limit() -> Option<u64> {
    None
}

/// Starts a process with this number, as the limit on file locks, which no kernel since Linux 2.4 enforces (getrlimit(2),
/// `RLIMIT_LOCKS`); only a privileged process can raise it. A process can fork before anybody can change it from outside, so for
/// the moment of the start this process bears the number itself.
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

/// Gives a child that is no step a number that is no step's.
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
