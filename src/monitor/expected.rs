//! Which moment a check-in belongs to.

use super::Monitor;
use jiff::{SignedDuration, Timestamp};

/// How much too early somebody may come whose clock is ahead of ours.
const EARLY: SignedDuration = SignedDuration::from_secs(30);

/// The moment that a check-in meets which begins now: the last one that was due, or one that is due at once, where none has met it and
/// its margin is not over. Never two for one, so that who comes later than usual does not meet tomorrow's moment.
pub fn expected(monitor: &Monitor, now: Timestamp, is_met: impl Fn(Timestamp) -> bool) -> Option<Timestamp> {
    let soon = now.checked_add(EARLY).ok()?;
    let mut due = monitor.schedule.latest(soon)?;
    while due > now {
        let before = monitor.schedule.previous(due)?;
        if due.duration_since(now) <= due.duration_since(before) / 2 {
            break;
        }
        due = before;
    }
    let until = due.checked_add(monitor.margin).ok()?;
    (now <= until && !is_met(due)).then_some(due)
}
