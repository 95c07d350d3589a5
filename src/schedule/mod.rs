//! Schedules: intervals, and cron expressions in a named time zone, with rules for nights when
//! clocks change. This module is pure: each query takes its moment as an argument.
//!
//! Intervals count from 1970 in UTC, independent of the caller and of the time of its start. So due
//! moments are the same for every process and after every restart. Cron expressions follow Vixie
//! cron when clocks change. A fixed time of day is due once each day: right after the gap if the
//! clock skips that time, and the first time if the clock shows it twice. An expression with a `*`
//! for the hour or the minute follows elapsed time: it is not due within a gap, and it is due in
//! both hours of a fold.

mod cron;
mod due;
mod error;
mod zone;

pub use due::{DueMoments, jitter};
pub use error::ScheduleError;

use crate::duration::{parse_duration, show_duration};
use cron::Calendar;
use croner::parser::{CronParser, Seconds, Year};
use jiff::{SignedDuration, Timestamp};
use std::fmt;
use std::time::Duration;

/// The prefix of an interval in the text form of a schedule.
const EVERY: &str = "every ";
/// The shortest and the longest interval.
const INTERVALS: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(366 * 24 * 60 * 60);
/// The number of fields of a cron expression.
const FIELDS: usize = 5;
/// The length of the longest cron expression, in bytes.
const LONGEST: usize = 200;

/// A recurring schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    timing: Timing,
    /// The text form, which [`Schedule::parse`] reads.
    text: String,
}

#[derive(Debug, Clone, PartialEq)]
enum Timing {
    Every(SignedDuration),
    Cron(Box<Calendar>),
}

impl Schedule {
    /// Creates a schedule with an interval.
    ///
    /// # Errors
    /// When the interval is shorter than a second, longer than 366 days, or has a fraction of a
    /// second.
    pub fn every(interval: Duration) -> Result<Self, ScheduleError> {
        let text = show_duration(interval);
        let timing = SignedDuration::try_from(interval).ok().filter(|_| INTERVALS.contains(&interval));
        match timing.filter(|timing| timing.subsec_nanos() == 0) {
            Some(timing) => Ok(Self { timing: Timing::Every(timing), text: format!("{EVERY}{text}") }),
            None => Err(ScheduleError::Interval { text }),
        }
    }

    /// Creates a schedule from a cron expression of five fields, or from a word such as `@daily`.
    /// `zone` is the IANA name of a time zone; the default is UTC.
    ///
    /// # Errors
    /// When the expression is invalid or never due, or the time zone does not exist.
    pub fn cron(text: &str, zone: Option<&str>) -> Result<Self, ScheduleError> {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let wrong = |why: String| ScheduleError::Cron { text: text.chars().take(LONGEST).collect(), why };
        if text.len() > LONGEST {
            return Err(wrong("too long".into()));
        }
        let fields = text.split(' ').filter(|field| !field.is_empty()).count();
        if text.eq_ignore_ascii_case("@reboot") {
            return Err(wrong("names no time".into()));
        }
        if fields != FIELDS && !text.starts_with('@') {
            let has = if fields == 1 { "1 field".into() } else { format!("{fields} fields") };
            return Err(wrong(format!("expected five fields (minute, hour, day, month, weekday), found {has}")));
        }
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron = parser.parse(&text).map_err(|error| wrong(error::cron_error_text(&error)))?;
        let zone = zone::named(zone.unwrap_or("UTC"))?;
        let timing = Timing::Cron(Box::new(Calendar::new(cron, &text, zone)));
        let schedule = Self { timing, text: text.clone() };
        match schedule.next(Timestamp::UNIX_EPOCH) {
            Some(_) => Ok(schedule),
            None => Err(ScheduleError::Never { text }),
        }
    }

    /// Parses either form: `every 30m`, or a cron expression.
    ///
    /// # Errors
    /// The errors of [`Schedule::every`] and [`Schedule::cron`]; also an interval that is not a
    /// duration, or one with a time zone other than UTC.
    pub fn parse(text: &str, zone: Option<&str>) -> Result<Self, ScheduleError> {
        let Some(interval) = text.trim().strip_prefix(EVERY) else { return Self::cron(text, zone) };
        if zone.is_some_and(|zone| zone != "UTC") {
            return Err(ScheduleError::ZoneOfInterval { text: text.trim().into() });
        }
        let fault = |why: &str| why.split(": ").next().unwrap_or(why).to_owned(); // the hint is another text
        let unread = |why: String| ScheduleError::Unread { why: fault(&why) };
        Self::every(parse_duration(interval.trim()).map_err(unread)?)
    }

    /// Returns the text form, which [`Schedule::parse`] reads.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the name of the time zone.
    pub fn zone(&self) -> &str {
        match &self.timing {
            Timing::Every(_) => "UTC",
            Timing::Cron(calendar) => calendar.zone().iana_name().unwrap_or("UTC"),
        }
    }

    /// Returns the first due moment after `after`, or `None` if time ends before it.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.timing {
            Timing::Every(interval) => Self::step(after, *interval, 1),
            Timing::Cron(calendar) => calendar.next(after),
        }
    }

    /// Returns the last due moment up to and including `at`, or `None` if time begins after it.
    pub fn latest(&self, at: Timestamp) -> Option<Timestamp> {
        match &self.timing {
            Timing::Every(interval) => Self::step(at, *interval, 0),
            Timing::Cron(calendar) => {
                let second = at.as_second() - i64::from(at.subsec_nanosecond() < 0); // rounds down: before 1970, the fraction is negative
                calendar.latest(Timestamp::from_second(second).ok()?)
            }
        }
    }

    /// Returns the last due moment before `before`.
    pub fn previous(&self, before: Timestamp) -> Option<Timestamp> {
        self.latest(before.checked_sub(SignedDuration::from_nanos(1)).ok()?)
    }

    /// Returns the start of the interval that is `steps` after the one that contains `at`.
    fn step(at: Timestamp, interval: SignedDuration, steps: i64) -> Option<Timestamp> {
        let seconds = interval.as_secs();
        let from = at.as_second() - i64::from(at.subsec_nanosecond() < 0); // rounds down: before 1970, the fraction is negative
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
