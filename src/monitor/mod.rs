//! What is expected to happen regularly, what was heard of it, and how healthy that makes it. Pure: check-ins and a moment in, health and the
//! check-ins that the system adds by itself out.
//!
//! Each moment at which something is due is met by one check-in at most, and each that was not met within the margin is missed, once: whatever
//! was heard twice, in the wrong order or after the clock was set is weighed by the moment that it belongs to.

mod expected;
mod judge;
mod slug;

pub use expected::expected;
pub use judge::{Judgement, Missed, Seen, TimedOut, judge};
pub use slug::{Slug, SlugFault};

use crate::schedule::Schedule;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How late something may be, where nothing else is said.
pub const USUAL_MARGIN: Duration = Duration::from_secs(5 * 60);
/// The shortest and the longest margin.
pub const MARGINS: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(24 * 60 * 60);
/// The longest time that a run of something may be given.
pub const LONGEST_RUN: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// What is expected.
#[derive(Debug, Clone, PartialEq)]
pub struct Monitor {
    /// The name that it goes by.
    pub slug: Slug,
    /// When it is.
    pub schedule: Schedule,
    /// How long after it is due something may begin.
    pub margin: Duration,
    /// How long it may then take; `None`: as long as it likes.
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
            /// Its word.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The one of a word.
            pub fn of(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

words! {
    /// What a check-in says.
    Status {
        /// It has begun.
        InProgress "in_progress"
        /// It has ended well.
        Ok "ok"
        /// It has ended, and not well.
        Error "error"
        /// It did not come.
        Missed "missed"
        /// It did not end in its time.
        Timeout "timeout"
    }
}

words! {
    /// Who says it.
    Source {
        /// Whoever does the work.
        Client "client"
        /// A scheduled task of this project.
        Task "task"
        /// Whoever waits for it.
        System "system"
    }
}

words! {
    /// How it is with a monitor.
    Health {
        /// Nothing is wrong.
        Healthy "healthy"
        /// Half of its margin is over, and nothing was heard.
        Late "late"
        /// It did not come.
        Missed "missed"
        /// It ended in an error.
        Failing "failing"
        /// It did not end in its time.
        TimedOut "timed_out"
    }
}

impl Health {
    /// What a check-in makes of it: `late` is no state of its own, but what waiting makes of `healthy`.
    #[must_use]
    pub fn after(self, status: Status) -> Self {
        match (status, self) {
            (Status::Ok, _) | (Status::InProgress, Self::Missed | Self::Late | Self::Healthy) => Self::Healthy,
            (Status::InProgress, Self::Failing | Self::TimedOut) => self, // until it has ended well
            (Status::Error, _) => Self::Failing,
            (Status::Missed, _) => Self::Missed,
            (Status::Timeout, _) => Self::TimedOut,
        }
    }
}

/// How it was with a monitor when it was last looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// What check-ins have made of it.
    pub base: Health,
    /// The same, and what waiting has.
    pub health: Health,
    /// Since when it is so.
    pub since: Timestamp,
    /// Until when every moment that was due has been weighed.
    pub weighed: Timestamp,
}

impl Standing {
    /// That of one of which nothing was heard, and nothing is expected before now.
    pub fn new(now: Timestamp) -> Self {
        Self { base: Health::Healthy, health: Health::Healthy, since: now, weighed: now }
    }

    /// With this health from now on, where it is another one.
    #[must_use]
    pub fn with(self, health: Health, now: Timestamp) -> Self {
        Self { health, since: if health == self.health { self.since } else { now }, ..self }
    }
}

#[cfg(test)]
mod tests;
