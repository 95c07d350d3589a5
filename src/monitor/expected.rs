//! The due moment that a check-in belongs to.

use super::Monitor;
use jiff::{SignedDuration, Timestamp};

/// The time by which a check-in may be early, because its sender's clock is ahead.
const EARLY: SignedDuration = SignedDuration::from_secs(30);

/// Returns the due moment that a check-in at `now` meets: the last one, or one that is due very
/// soon. Returns `None` if that moment is already met or its margin is over. Two check-ins never
/// meet the same moment, so a late check-in does not meet tomorrow's moment.
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
