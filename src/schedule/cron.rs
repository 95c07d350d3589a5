//! What a cron expression means in a zone whose clocks change.
//!
//! As in Vixie's cron: where hour and minute are named, each moment of the wall clock is due once. What a gap skips is due at its end, what a
//! fold shows twice the first time. Where one of them is a `*`, it is due as time passes, and the wall clock only shows which times these are.

use croner::Cron;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// No fold is longer than this.
const LONGEST_FOLD: SignedDuration = SignedDuration::from_hours(3);

/// A cron expression in its zone.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Calendar {
    cron: Cron,
    zone: TimeZone,
    /// Whether hour and minute are named.
    is_fixed: bool,
}

impl Calendar {
    /// An expression as it was read from this text.
    pub(super) fn new(cron: Cron, text: &str, zone: TimeZone) -> Self {
        let is_wild = text.eq_ignore_ascii_case("@hourly") || text.split(' ').take(2).any(|field| field.contains('*'));
        Self { cron, zone, is_fixed: !is_wild }
    }

    pub(super) fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// The first moment after this one.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let from = after.to_zoned(self.zone.clone());
        if !self.is_fixed {
            let found = self.cron.find_next_occurrence(&from, false).ok()?.timestamp();
            return (found > after).then_some(found);
        }
        // Times of the wall clock up to this one come no later than now: the order of the two is the same.
        let mut civil = from.datetime();
        loop {
            civil = self.cron.find_next_occurrence(&civil, false).ok()?;
            let found = self.moment(civil)?;
            if found > after {
                return Some(found);
            }
        }
    }

    /// The last moment that is not after this one, which is a whole second.
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

    /// When the wall clock shows this for the first time, or is past it.
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
