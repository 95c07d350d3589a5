//! Monitors of regular work: expectations, check-ins, and the resulting health. This module is
//! pure: it takes check-ins and a moment, and returns the health and the check-ins that fledge
//! adds.
//!
//! At most one check-in meets each due moment, and a moment that is not met within the margin is
//! missed once. A check-in that arrives twice, in the wrong order or after a clock change counts
//! for the moment that it belongs to.

mod judge;
mod slug;

pub use judge::{Judgement, MissedMoments, MonitorHistory, TimedOut, judge};
pub use slug::{Slug, SlugError};

use crate::schedule::Schedule;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The default margin, by which work may start late.
pub const USUAL_MARGIN: Duration = Duration::from_secs(5 * 60);
/// The shortest and the longest margin.
pub const MARGINS: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(24 * 60 * 60);
/// The largest value of [`Monitor::max_runtime`].
pub const LONGEST_RUN: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The time by which a check-in may be early, because its sender's clock is ahead.
const EARLY: SignedDuration = SignedDuration::from_secs(30);

/// A monitor of regular work.
#[derive(Debug, Clone, PartialEq)]
pub struct Monitor {
    /// The monitor's name.
    pub slug: Slug,
    /// The schedule of the work.
    pub schedule: Schedule,
    /// The time after a due moment within which the work must begin.
    pub margin: Duration,
    /// The longest time that the work may take; `None` means no limit.
    pub max_runtime: Option<Duration>,
}

macro_rules! words {
    ($(#[$says:meta])* $name:ident { $($(#[$one:meta])* $variant:ident $word:literal)* }) => {
        $(#[$says])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$one])* $variant,)* }

        impl $name {
            /// Returns the word for this value.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Returns the value for a word, or `None` if the word is unknown.
            pub fn of(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

words! {
    /// The status of a check-in.
    Status {
        /// The work has begun.
        InProgress "in_progress"
        /// The work has ended successfully.
        Ok "ok"
        /// The work has ended with an error.
        Error "error"
        /// No check-in came in time.
        Missed "missed"
        /// The work did not end in time.
        Timeout "timeout"
    }
}

words! {
    /// A status that a sender may report. fledge itself adds the others.
    ReportedStatus {
        /// The work has begun.
        InProgress "in_progress"
        /// The work has ended successfully.
        Ok "ok"
        /// The work has ended with an error.
        Error "error"
    }
}

impl From<ReportedStatus> for Status {
    fn from(status: ReportedStatus) -> Self {
        match status {
            ReportedStatus::InProgress => Self::InProgress,
            ReportedStatus::Ok => Self::Ok,
            ReportedStatus::Error => Self::Error,
        }
    }
}

words! {
    /// The origin of a check-in.
    Source {
        /// The program that does the work.
        Client "client"
        /// A scheduled task of this project.
        Task "task"
        /// fledge itself, for missed moments and timeouts.
        System "system"
    }
}

words! {
    /// The health of a monitor.
    Health {
        /// Nothing is wrong.
        Healthy "healthy"
        /// Half of the margin has passed without a check-in.
        Late "late"
        /// No check-in came in time.
        Missed "missed"
        /// The work ended with an error.
        Failing "failing"
        /// The work did not end in time.
        TimedOut "timed_out"
    }
}

impl Health {
    /// Returns the health after a check-in. The result is never `Late`, which only marks a healthy
    /// monitor that waits.
    #[must_use]
    pub fn after(self, status: Status) -> Self {
        match (status, self) {
            (Status::Ok, _) | (Status::InProgress, Self::Missed | Self::Late | Self::Healthy) => Self::Healthy,
            (Status::InProgress, Self::Failing | Self::TimedOut) => self, // until the work succeeds
            (Status::Error, _) => Self::Failing,
            (Status::Missed, _) => Self::Missed,
            (Status::Timeout, _) => Self::TimedOut,
        }
    }
}

/// The state of a monitor at its last evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonitorHealth {
    /// The health according to check-ins alone.
    pub base: Health,
    /// The health according to check-ins and lateness.
    pub health: Health,
    /// The time since which `health` has this value.
    pub since: Timestamp,
    /// The time up to which every due moment is evaluated.
    pub weighed: Timestamp,
}

impl MonitorHealth {
    /// Returns the standing of a new monitor, of which nothing is expected before now.
    pub fn new(now: Timestamp) -> Self {
        Self { base: Health::Healthy, health: Health::Healthy, since: now, weighed: now }
    }

    /// Returns the standing with this health. `since` changes only if the health changes.
    #[must_use]
    pub fn with(self, health: Health, now: Timestamp) -> Self {
        Self { health, since: if health == self.health { self.since } else { now }, ..self }
    }
}

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

#[cfg(test)]
mod tests;
