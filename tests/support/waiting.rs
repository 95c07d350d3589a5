//! Waiting for events: one limit for all tests, which only bounds a hang.

use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};

/// The limit on each wait for an event. Even a busy machine needs far less.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// The limit on immediate actions: more than a busy machine needs, and less than any sleep, pause
/// or time limit in the tests that a wrong ending would wait for. `benches/` measure real times.
pub(crate) const SOON: Duration = Duration::from_secs(40);

/// The pause between two checks.
const TICK: Duration = Duration::from_millis(5);

/// Waits until this holds.
///
/// # Panics
///
/// After [`PATIENCE`], with the name of what was waited for.
#[track_caller]
pub(crate) fn until(what: &str, holds: impl FnMut() -> bool) {
    assert!(becomes(holds), "waited for {PATIENCE:?} in vain: {what}");
}

/// Waits until this holds; returns false after [`PATIENCE`].
pub(crate) fn becomes(holds: impl FnMut() -> bool) -> bool {
    becomes_by(TICK, holds)
}

/// Waits until this holds, with another pause between two checks, for checks that cost more.
/// Returns false after [`PATIENCE`].
pub(crate) fn becomes_by(tick: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let late = Instant::now() + PATIENCE;
    while !holds() {
        if Instant::now() > late {
            return false;
        }
        std::thread::sleep(tick);
    }
    true
}

/// Waits until this holds, while other tasks of the test go on.
///
/// # Panics
///
/// After [`PATIENCE`], with the name of what was waited for.
pub(crate) async fn until_async(what: &str, mut holds: impl FnMut() -> bool) {
    let late = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < late, "waited for {PATIENCE:?} in vain: {what}");
        tokio::time::sleep(TICK).await;
    }
}

/// Reads the next bytes. Returns 0 at the end and after an error. Continues after a signal: a
/// socket with a time limit stops reading when a child of another test ends.
pub(crate) fn read_some(from: &mut impl Read, into: &mut [u8]) -> usize {
    loop {
        match from.read(into) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read.unwrap_or(0),
        }
    }
}
