//! Helpers for all unit tests: the timeout of waits, samples, temporary folders, HTTP servers and a
//! step report.

#[path = "../tests/support/authority.rs"]
mod authority;
mod scripted;

pub(crate) use authority::Secured;
pub(crate) use scripted::{ScriptedServer, ServerAct};

use crate::verdict::{StepReport, StepStatus};
use std::path::Path;
use std::time::Duration;

/// The timeout of each wait for an event. It only ends a hang: no busy machine is that slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Picks one of every [`step`] cases of a long test. The offset comes from `FLEDGE_TEST_SEED`, else
/// from the process id.
#[expect(clippy::disallowed_methods, reason = "the seed of a test is set from outside")]
pub(crate) fn drawn<T>(cases: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let given = std::env::var("FLEDGE_TEST_SEED").ok().and_then(|seed| seed.parse::<usize>().ok());
    let seed = given.unwrap_or_else(|| std::process::id() as usize);
    cases.skip(seed % step()).step_by(step())
}

/// Returns the distance between two tested cases: 3, or 1 with `FLEDGE_TEST_ALL=1`.
#[expect(clippy::disallowed_methods, reason = "the size of a sample is set from outside")]
pub(crate) fn step() -> usize {
    if std::env::var("FLEDGE_TEST_ALL").is_ok_and(|all| all == "1") { 1 } else { 3 }
}

/// Returns a new folder that is removed on drop. It is in `TMPDIR` if that is set, else in memory
/// if 1 GiB is free there, else in the system's temporary folder.
#[expect(clippy::disallowed_methods, reason = "the place of a test is set from outside")]
pub(crate) fn temp_dir() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let has_room =
        || rustix::fs::statvfs(memory).is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) >= 1 << 30);
    let in_memory = (std::env::var_os("TMPDIR").is_none() && has_room()).then(|| tempfile::tempdir_in(memory));
    in_memory.and_then(Result::ok).unwrap_or_else(|| tempfile::tempdir().unwrap())
}

/// Returns the report of step `test` of lane `verify`, without a log.
pub(crate) fn step_report(command: &str, status: StepStatus, excerpt: &str) -> StepReport {
    StepReport {
        lane: "verify".into(),
        step: "test".into(),
        command: command.into(),
        status,
        tries: 1,
        exit_code: (status == StepStatus::Failed).then_some(1),
        signal: None,
        duration_ms: 0,
        log: None,
        excerpt: excerpt.into(),
        note: String::new(),
        tests: None,
    }
}
