//! Cron expressions in a time zone whose clocks change.
//!
//! As in Vixie cron, if neither the hour nor the minute contains `*`, each time of the wall clock
//! is due once. A time in a gap is due at the end of the gap; a time that occurs twice (a fold) is
//! due the first time. If the hour or the minute contains `*`, the expression follows elapsed time,
//! and the wall clock only decides which moments match.

use croner::Cron;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// An upper bound for the length of a fold.
const LONGEST_FOLD: SignedDuration = SignedDuration::from_hours(3);

/// A cron expression in its time zone.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Calendar {
    cron: Cron,
    zone: TimeZone,
    /// True if neither the hour nor the minute contains a `*`.
    is_fixed: bool,
}

impl Calendar {
    /// Creates a calendar from an expression and the text that it was parsed from.
    pub(super) fn new(cron: Cron, text: &str, zone: TimeZone) -> Self {
        let is_wild = text.eq_ignore_ascii_case("@hourly") || text.split(' ').take(2).any(|field| field.contains('*'));
        Self { cron, zone, is_fixed: !is_wild }
    }

    pub(super) fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Returns the first due moment after `after`.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let from = after.to_zoned(self.zone.clone());
        if !self.is_fixed {
            let found = self.cron.find_next_occurrence(&from, false).ok()?.timestamp();
            return (found > after).then_some(found);
        }
        // `moment` keeps the order of wall-clock times, so no time up to this one maps to a moment
        // after `after`.
        let mut civil = from.datetime();
        loop {
            civil = self.cron.find_next_occurrence(&civil, false).ok()?;
            let found = self.moment(civil)?;
            if found > after {
                return Some(found);
            }
        }
    }

    /// Returns the last due moment up to `at`, which is a whole second.
    pub(super) fn latest(&self, at: Timestamp) -> Option<Timestamp> {
        let from = at.to_zoned(self.zone.clone());
        if !self.is_fixed {
            return self.cron.find_previous_occurrence(&from, true).ok().map(|found| found.timestamp());
        }
        let mut civil = from.datetime().checked_add(LONGEST_FOLD).ok()?;
        loop {
            civil = self.cron.find_previous_occurrence(&civil, false).ok()?;
            let found = self.moment(civil)?;
            if found <= at {
                return Some(found);
            }
        }
    }

    /// Returns the moment at which the wall clock first shows `civil`, or skips past it.
    fn moment(&self, civil: DateTime) -> Option<Timestamp> {
        let found = self.zone.to_ambiguous_zoned(civil);
        match found.offset() {
            AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => {
                found.earlier().ok().map(|found| found.timestamp())
            }
            AmbiguousOffset::Gap { .. } => {
                let inside = found.later().ok()?.timestamp().checked_add(SignedDuration::from_secs(1)).ok()?;
                let end = self.zone.preceding(inside).next()?;
                Some(end.timestamp())
            }
        }
    }
}
