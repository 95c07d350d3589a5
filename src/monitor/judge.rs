//! The evaluation of a monitor: missed moments, timeouts, and the current health.

use super::{Health, Monitor, MonitorHealth, Status};
use jiff::Timestamp;
use std::collections::BTreeSet;

/// The maximum number of missed moments of one evaluation that get separate check-ins. The moments
/// before them share one check-in.
const NAMED: usize = 50;

/// The check-ins of a monitor that an evaluation needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MonitorHistory {
    /// The moments after [`MonitorHealth::weighed`] that were met or are known to be missed.
    pub known: BTreeSet<Timestamp>,
    /// The check-ins in progress, each with its number and its start.
    pub open: Vec<(i64, Timestamp)>,
}

/// One or more missed moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissedMoments {
    /// The due moment; the last one of several.
    pub due: Timestamp,
    /// The time from which the moment counts as missed.
    pub at: Timestamp,
    /// The number of missed moments.
    pub count: u64,
}

/// A check-in in progress whose work takes too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOut {
    /// The number of the check-in.
    pub no: i64,
    /// The time at which the work exceeded its limit.
    pub at: Timestamp,
}

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The moments missed since the previous evaluation, oldest first.
    pub missed: Vec<MissedMoments>,
    /// The check-ins in progress that exceeded their limit.
    pub timed_out: Vec<TimedOut>,
    /// The new standing.
    pub standing: MonitorHealth,
    /// The next expected moment; in the past if it is late.
    pub next: Option<Timestamp>,
}

/// Evaluates a monitor. After the clock is set back, this evaluates known moments again, which adds
/// nothing to them.
pub fn judge(monitor: &Monitor, standing: MonitorHealth, seen: &MonitorHistory, now: Timestamp) -> Judgement {
    let over = now.checked_sub(monitor.margin).unwrap_or(Timestamp::MIN);
    let missed = missed(monitor, standing.weighed, over, now, seen);
    let timed_out = timed_out(monitor, seen, now);
    let mut events: Vec<(Timestamp, Status)> = missed.iter().map(|one| (one.at, Status::Missed)).collect();
    events.extend(timed_out.iter().map(|one| (one.at, Status::Timeout)));
    events.sort();
    let base = events.iter().fold(standing.base, |health, (_, status)| health.after(*status));
    let weighed = if standing.weighed > now { now } else { standing.weighed.max(over) };
    let waiting = monitor.schedule.due(weighed, now, NAMED).newest.into_iter().find(|due| !seen.known.contains(due));
    let is_late = waiting.is_some_and(|due| now.duration_since(due).unsigned_abs() > monitor.margin / 2);
    let health = if base == Health::Healthy && is_late { Health::Late } else { base };
    let mut next = waiting.or_else(|| monitor.schedule.next(now));
    if next.is_some_and(|next| seen.known.contains(&next)) {
        next = next.and_then(|next| monitor.schedule.next(next)); // the check-in came a little early
    }
    Judgement { missed, timed_out, standing: MonitorHealth { base, weighed, ..standing.with(health, now) }, next }
}

fn missed(
    monitor: &Monitor,
    from: Timestamp,
    over: Timestamp,
    now: Timestamp,
    seen: &MonitorHistory,
) -> Vec<MissedMoments> {
    let due = monitor.schedule.due(from, over, NAMED);
    let at = |due: Timestamp| due.checked_add(monitor.margin).unwrap_or(now).min(now);
    let first = due.newest.first().copied();
    let since_then = |first: Timestamp| seen.known.range(from..first).filter(|known| **known > from).count() as u64;
    let known_before = first.filter(|first| *first > from).map_or(0, since_then);
    let before = |due: &Timestamp| monitor.schedule.previous(*due);
    let mut unknown =
        std::iter::successors(first.as_ref().and_then(before), before).filter(|due| !seen.known.contains(due));
    let together = unknown.next().filter(|_| due.earlier > known_before);
    let together =
        together.map(|before| MissedMoments { due: before, at: at(before), count: due.earlier - known_before });
    let each = due.newest.into_iter().filter(|due| !seen.known.contains(due));
    together.into_iter().chain(each.map(|due| MissedMoments { due, at: at(due), count: 1 })).collect()
}

fn timed_out(monitor: &Monitor, seen: &MonitorHistory, now: Timestamp) -> Vec<TimedOut> {
    let Some(most) = monitor.max_runtime else { return Vec::new() };
    let ends = |since: Timestamp| since.checked_add(most).unwrap_or(Timestamp::MAX);
    seen.open.iter().map(|(no, since)| TimedOut { no: *no, at: ends(*since) }).filter(|one| one.at <= now).collect()
}
