//! When something is due: an interval, or a cron expression in a named time zone, with what that means on the nights when clocks change. Pure:
//! every question comes with its moment.
//!
//! An interval counts from 1970 in UTC, whoever asks and whenever they began, so that a moment that is due has the same name for everybody and
//! after every restart. What a cron expression means when clocks change is what Vixie's cron made usual: at a fixed time of day it is due once
//! each day, right after the gap where the clock skips that time, and the first time where the clock shows it twice; with a `*` for the
//! hour or the minute it is due as time passes, so not within a gap, and in both hours of a fold.

mod cron;
mod due;
mod fault;
mod jitter;
mod zone;

pub use due::Due;
pub use fault::ScheduleFault;
pub use jitter::jitter;

use crate::duration::{parse_duration, show_duration};
use cron::Calendar;
use croner::parser::{CronParser, Seconds, Year};
use jiff::{SignedDuration, Timestamp};
use std::fmt;
use std::time::Duration;

/// The word before an interval, where a schedule is one text.
const EVERY: &str = "every ";
/// The shortest and the longest interval.
const INTERVALS: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(366 * 24 * 60 * 60);
/// Fields of a cron expression.
const FIELDS: usize = 5;
/// Characters of the longest one.
const LONGEST: usize = 200;

/// When something is due, again and again.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    timing: Timing,
    /// As it was written.
    text: String,
}

#[derive(Debug, Clone, PartialEq)]
enum Timing {
    Every(SignedDuration),
    Cron(Box<Calendar>),
}

impl Schedule {
    /// An interval.
    ///
    /// # Errors
    /// When it is shorter than a second, longer than a year, or has a fraction of a second.
    pub fn every(interval: Duration) -> Result<Self, ScheduleFault> {
        let text = show_duration(interval);
        let timing = SignedDuration::try_from(interval).ok().filter(|_| INTERVALS.contains(&interval));
        match timing.filter(|timing| timing.subsec_nanos() == 0) {
            Some(timing) => Ok(Self { timing: Timing::Every(timing), text: format!("{EVERY}{text}") }),
            None => Err(ScheduleFault::Interval { text }),
        }
    }

    /// A cron expression of five fields, or a word for one like `@daily`, in a zone with a name of the IANA's; none is UTC.
    ///
    /// # Errors
    /// When it is none, is never due, or there is no such zone.
    pub fn cron(text: &str, zone: Option<&str>) -> Result<Self, ScheduleFault> {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let wrong = |why: String| ScheduleFault::Cron { text: text.chars().take(LONGEST).collect(), why };
        if text.len() > LONGEST {
            return Err(wrong("it is too long".into()));
        }
        let fields = text.split(' ').filter(|field| !field.is_empty()).count();
        if text.eq_ignore_ascii_case("@reboot") {
            return Err(wrong("it names no time".into()));
        }
        if fields != FIELDS && !text.starts_with('@') {
            let has = if fields == 1 { "1 field".into() } else { format!("{fields} fields") };
            return Err(wrong(format!("it has {has}, and not five: minute, hour, day, month, weekday")));
        }
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron = parser.parse(&text).map_err(|error| wrong(fault::said(&error)))?;
        let zone = zone::named(zone.unwrap_or("UTC"))?;
        let timing = Timing::Cron(Box::new(Calendar::new(cron, &text, zone)));
        let schedule = Self { timing, text: text.clone() };
        match schedule.next(Timestamp::UNIX_EPOCH) {
            Some(_) => Ok(schedule),
            None => Err(ScheduleFault::Never { text }),
        }
    }

    /// Either of them as one text: `every 30m`, or a cron expression.
    ///
    /// # Errors
    /// As those of [`Schedule::every`] and [`Schedule::cron`]; also for an interval with a zone, which it has no use for.
    pub fn parse(text: &str, zone: Option<&str>) -> Result<Self, ScheduleFault> {
        let Some(interval) = text.trim().strip_prefix(EVERY) else { return Self::cron(text, zone) };
        if zone.is_some_and(|zone| zone != "UTC") {
            return Err(ScheduleFault::ZoneOfInterval { text: text.trim().into() });
        }
        let unread = |why| ScheduleFault::Unread { why };
        Self::every(parse_duration(interval.trim()).map_err(unread)?)
    }

    /// As one text, which [`Schedule::parse`] reads.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name of its zone.
    pub fn zone(&self) -> &str {
        match &self.timing {
            Timing::Every(_) => "UTC",
            Timing::Cron(calendar) => calendar.zone().iana_name().unwrap_or("UTC"),
        }
    }

    /// The first moment after this one at which it is due; `None` where time ends before.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.timing {
            Timing::Every(interval) => Self::step(after, *interval, 1),
            Timing::Cron(calendar) => calendar.next(after),
        }
    }

    /// The last moment, this one included, at which it was due; `None` where time began after it.
    pub fn latest(&self, at: Timestamp) -> Option<Timestamp> {
        match &self.timing {
            Timing::Every(interval) => Self::step(at, *interval, 0),
            Timing::Cron(calendar) => {
                let second = at.as_second() - i64::from(at.subsec_nanosecond() < 0); // which goes with the sign of the time
                calendar.latest(Timestamp::from_second(second).ok()?)
            }
        }
    }

    /// The last moment before this one at which it was due.
    pub fn previous(&self, before: Timestamp) -> Option<Timestamp> {
        self.latest(before.checked_sub(SignedDuration::from_nanos(1)).ok()?)
    }

    /// So many intervals after the one in which a moment is.
    fn step(at: Timestamp, interval: SignedDuration, steps: i64) -> Option<Timestamp> {
        let seconds = interval.as_secs();
        let from = at.as_second() - i64::from(at.subsec_nanosecond() < 0); // which goes with the sign of the time
        let number = from.div_euclid(seconds).checked_add(steps)?;
        Timestamp::from_second(number.checked_mul(seconds)?).ok()
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.timing, self.zone()) {
            (Timing::Every(_), _) | (Timing::Cron(_), "UTC") => f.write_str(&self.text),
            (Timing::Cron(_), zone) => write!(f, "{} {zone}", self.text),
        }
    }
}

#[cfg(test)]
mod tests;
