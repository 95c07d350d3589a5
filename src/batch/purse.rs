//! The money of a batch. A run has a share of it set aside when it begins, and what it has not used is there again when it ends: so all of
//! them together spend no more than there is. Pure.

use super::course::Seat;
use std::collections::BTreeMap;

/// What there is, and what of it is spoken for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Purse {
    /// All of it, in millionths of a US dollar; `None`: there is no bound.
    limit: Option<u64>,
    spent: u64,
    aside: u64,
}

impl Purse {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self { limit, spent: 0, aside: 0 }
    }

    /// Sets the share of one of so many runs aside that might begin now: as much as each of the others, and no more than its `own` bound.
    /// Outside `None` says that nothing is left, inside that there is no bound.
    pub(super) fn take(&mut self, of: usize, own: Option<u64>) -> Option<Option<u64>> {
        let Some(free) = self.free() else { return Some(own) };
        if free == 0 {
            return None;
        }
        let share = (free / u64::try_from(of.max(1)).unwrap_or(u64::MAX)).max(1).min(own.unwrap_or(u64::MAX));
        self.aside = self.aside.saturating_add(share);
        Some(Some(share))
    }

    /// What is neither spent nor spoken for; `None`: there is no bound.
    fn free(&self) -> Option<u64> {
        Some(self.limit?.saturating_sub(self.spent).saturating_sub(self.aside))
    }

    /// A run has ended that had so much set aside.
    pub(super) fn settle(&mut self, aside: u64, spent: u64) {
        if self.limit.is_some() {
            self.aside = self.aside.saturating_sub(aside);
        }
        self.spend(spent);
    }

    /// So much was spent already.
    pub(super) fn spend(&mut self, spent: u64) {
        self.spent = self.spent.saturating_add(spent);
    }
}

/// The money of a batch, and in it that of each race, whose candidates have one task's money together.
#[derive(Debug)]
pub(super) struct Purses {
    whole: Purse,
    races: BTreeMap<usize, Purse>,
}

impl Purses {
    pub(super) fn new(limit: Option<u64>, seats: &[Seat]) -> Self {
        let races = seats.iter().filter_map(|seat| Some((seat.race?, Purse::new(Some(seat.usd_micros?)))));
        Self { whole: Purse::new(limit), races: races.collect() }
    }

    /// Sets a share aside as [`Purse::take`] does; of a race's money one of so many rivals.
    pub(super) fn take(&mut self, seat: &Seat, of: usize, rivals: usize) -> Option<Option<u64>> {
        let Some(race) = seat.race.and_then(|race| self.races.get_mut(&race)) else {
            return self.whole.take(of, seat.usd_micros);
        };
        let own = race.take(rivals, None)?;
        let share = self.whole.take(of, own);
        let unused = own.unwrap_or(0).saturating_sub(share.flatten().unwrap_or(0));
        race.settle(unused, 0);
        share
    }

    /// A run has ended that had so much set aside.
    pub(super) fn settle(&mut self, race: Option<usize>, aside: u64, spent: u64) {
        self.whole.settle(aside, spent);
        if let Some(race) = race.and_then(|race| self.races.get_mut(&race)) {
            race.settle(aside, spent);
        }
    }

    /// So much was spent already.
    pub(super) fn spend(&mut self, race: Option<usize>, spent: u64) {
        self.settle(race, 0, spent);
    }

    /// Whether nothing is left of a race's own money.
    pub(super) fn is_race_dry(&self, race: Option<usize>) -> bool {
        race.and_then(|race| self.races.get(&race)).is_some_and(|purse| purse.free() == Some(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_have_the_money_of_one_task_together() {
        let candidate = Seat { race: Some(0), usd_micros: Some(90), ..Seat::default() };
        let seats = [candidate.clone(), candidate.clone(), candidate.clone()];
        let mut purses = Purses::new(Some(50), &seats);
        assert_eq!(purses.take(&candidate, 1, 3), Some(Some(30)));
        assert_eq!(purses.take(&candidate, 1, 2), Some(Some(20)), "no more than the batch has");
        assert_eq!(purses.take(&candidate, 1, 1), None);
        assert!(!purses.is_race_dry(Some(0)), "it is the batch's that is dry");
        let mut purses = Purses::new(None, &seats);
        assert_eq!(purses.take(&candidate, 1, 3), Some(Some(30)));
        purses.settle(Some(0), 30, 80);
        assert_eq!(purses.take(&candidate, 1, 2), Some(Some(5)));
        assert_eq!(purses.take(&candidate, 1, 1), Some(Some(5)));
        assert!(purses.take(&candidate, 1, 1).is_none() && purses.is_race_dry(Some(0)));
    }

    #[test]
    fn shares_are_equal_and_what_was_not_used_is_there_again() {
        let mut purse = Purse::new(Some(100));
        assert_eq!(
            [purse.take(4, None), purse.take(3, None), purse.take(2, Some(5))],
            [Some(Some(25)), Some(Some(25)), Some(Some(5))]
        );
        assert_eq!(purse.take(1, None), Some(Some(45)));
        assert_eq!(purse.take(1, None), None, "all of it is set aside");
        purse.settle(25, 10);
        assert_eq!(purse.take(1, None), Some(Some(15)));
        purse.settle(15, 20); // an estimate was wrong
        purse.settle(45, 0);
        assert_eq!(purse.take(1, None), Some(Some(40)));
    }

    #[test]
    fn without_a_bound_each_has_its_own() {
        let mut purse = Purse::new(None);
        assert_eq!([purse.take(1, None), purse.take(1, Some(7))], [Some(None), Some(Some(7))]);
    }
}
