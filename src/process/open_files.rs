//! How many files this process may have open, which bounds how many programs it can run at a time.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};
use std::sync::OnceLock;

/// What one program takes: its pipe, its log, and what is open for a moment when it starts and ends.
const EACH: u64 = 4;
/// What this process has open beside them.
const OTHERS: u64 = 64;

/// The limit as it was before it was raised.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Makes room for this many programs at a time, by raising the limit on open files for this process alone; gives for how many there
/// is room, one at least. Programs that are started have the limit as it was, from a moment after their start.
pub fn room_for(programs: usize) -> usize {
    let wanted = OTHERS + EACH.saturating_mul(programs as u64);
    let now = getrlimit(Resource::Nofile);
    let limit = raise(now, wanted).unwrap_or(u64::MAX);
    let most = usize::try_from(limit.saturating_sub(OTHERS) / EACH).unwrap_or(usize::MAX).max(1);
    if most < programs {
        tracing::warn!(
            "{most} programs at a time and not {programs}: no more than {limit} files may be open (`ulimit -Hn`)"
        );
    }
    most.min(programs)
}

/// Has the limit be what is wanted, or as near to that as the system allows; gives what it is then, and `None` where there is none.
fn raise(now: Rlimit, wanted: u64) -> Option<u64> {
    let current = now.current?;
    let raised = now.maximum.map_or(wanted, |maximum| wanted.min(maximum));
    // Only where it can be put back in what is started.
    if raised <= current
        || !cfg!(target_os = "linux")
        || setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..now }).is_err()
    {
        return Some(current);
    }
    BEFORE.get_or_init(|| now);
    Some(raised)
}

/// Gives a program that was started the limit as it was.
pub(super) fn give_back(program: Pid) {
    #[cfg(target_os = "linux")]
    if let Some(before) = BEFORE.get() {
        let _it_is_not_ours_any_more = rustix::process::prlimit(Some(program), Resource::Nofile, *before);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = program;
}
