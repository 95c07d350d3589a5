//! The limit on open files, which bounds how many programs this process can run at a time.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};
use std::sync::OnceLock;

/// Files that one program needs: its pipe, its log, and files open for a moment while it starts and
/// ends.
const EACH: u64 = 4;
/// Files that this process has open besides those.
const OTHERS: u64 = 64;

/// The limit before it was raised.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Raises this process's limit on open files, to run this many programs at a time. Returns for how
/// many there is room, at least one. Started programs get the old limit back a moment after their
/// start.
pub fn room_for(programs: usize) -> usize {
    let wanted = OTHERS + EACH.saturating_mul(programs as u64);
    let now = getrlimit(Resource::Nofile);
    let limit = raise_limit(now, wanted).unwrap_or(u64::MAX);
    let most = usize::try_from(limit.saturating_sub(OTHERS) / EACH).unwrap_or(usize::MAX).max(1);
    if most < programs {
        tracing::warn!(
            "running {most} programs at a time, not {programs}: the limit on open files is {limit} (`ulimit -Hn`)"
        );
    }
    most.min(programs)
}

/// Raises this process's limit on open files to what fledge needs before it starts a program.
///
/// # Errors
/// If the system allows fewer: how many files it allows, and how many fledge needs.
pub fn ensure_open_files() -> Result<(), TooFewOpenFiles> {
    match raise_limit(getrlimit(Resource::Nofile), OTHERS) {
        Some(limit) if limit < OTHERS => Err(TooFewOpenFiles { limit }),
        _ => Ok(()),
    }
}

/// The limit on open files is too low for fledge itself.
#[derive(Debug, thiserror::Error)]
#[error("this process may have {limit} files open at a time, and fledge needs {OTHERS}")]
pub struct TooFewOpenFiles {
    limit: u64,
}

/// Raises the limit to `wanted`, or as near to it as the system allows. Returns the resulting
/// limit, or `None` if none exists.
fn raise_limit(now: Rlimit, wanted: u64) -> Option<u64> {
    let current = now.current?;
    let raised = now.maximum.map_or(wanted, |maximum| wanted.min(maximum));
    // Only on Linux can the old limit be restored in started programs.
    if raised <= current
        || !cfg!(target_os = "linux")
        || setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..now }).is_err()
    {
        return Some(current);
    }
    BEFORE.get_or_init(|| now);
    Some(raised)
}

/// Restores the old limit in a program that was started.
pub(super) fn give_back(program: Pid) {
    #[cfg(target_os = "linux")]
    if let Some(before) = BEFORE.get() {
        let _it_is_not_ours_any_more = rustix::process::prlimit(Some(program), Resource::Nofile, *before);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = program;
}
