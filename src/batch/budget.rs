//! Money of a batch. A run reserves a share when it begins and releases the unused part when it
//! ends. So the shares of all runs together never exceed the limit. Pure.

use super::job_scheduler::JobSlot;
use std::collections::BTreeMap;

/// A money limit, with the amounts spent and reserved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BatchBudget {
    /// The limit, in millionths of a US dollar; `None` for no limit.
    limit: Option<u64>,
    spent: u64,
    aside: u64,
}

impl BatchBudget {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self { limit, spent: 0, aside: 0 }
    }

    /// Reserves the share of one of `of` runs that might begin now: an equal part, but at most its
    /// `own` limit. Returns `None` if nothing is left, and `Some(None)` if there is no limit.
    pub(super) fn reserve(&mut self, of: usize, own: Option<u64>) -> Option<Option<u64>> {
        let Some(free) = self.free() else { return Some(own) };
        if free == 0 {
            return None;
        }
        let share = (free / u64::try_from(of.max(1)).unwrap_or(u64::MAX)).max(1).min(own.unwrap_or(u64::MAX));
        self.aside = self.aside.saturating_add(share);
        Some(Some(share))
    }

    /// Returns the amount neither spent nor reserved; `None` for no limit.
    fn free(&self) -> Option<u64> {
        Some(self.limit?.saturating_sub(self.spent).saturating_sub(self.aside))
    }

    /// Releases the reserve of a run that ended, and books its cost.
    pub(super) fn settle(&mut self, aside: u64, spent: u64) {
        if self.limit.is_some() {
            self.aside = self.aside.saturating_sub(aside);
        }
        self.spend(spent);
    }

    /// Books an amount as spent.
    pub(super) fn spend(&mut self, spent: u64) {
        self.spent = self.spent.saturating_add(spent);
    }
}

/// The money of a batch and of each race. The candidates of a race share the money of one task.
#[derive(Debug)]
pub(super) struct BudgetPool {
    whole: BatchBudget,
    races: BTreeMap<usize, BatchBudget>,
}

impl BudgetPool {
    pub(super) fn new(limit: Option<u64>, seats: &[JobSlot]) -> Self {
        let races = seats.iter().filter_map(|seat| Some((seat.race?, BatchBudget::new(Some(seat.usd_micros?)))));
        Self { whole: BatchBudget::new(limit), races: races.collect() }
    }

    /// Reserves a share as [`BatchBudget::reserve`] does. In a race, the job gets the share of one
    /// of `rivals` candidates.
    pub(super) fn reserve(&mut self, seat: &JobSlot, of: usize, rivals: usize) -> Option<Option<u64>> {
        let Some(race) = seat.race.and_then(|race| self.races.get_mut(&race)) else {
            return self.whole.reserve(of, seat.usd_micros);
        };
        let own = race.reserve(rivals, None)?;
        let share = self.whole.reserve(of, own);
        let unused = own.unwrap_or(0).saturating_sub(share.flatten().unwrap_or(0));
        race.settle(unused, 0);
        share
    }

    /// Releases the reserve of a run that ended, and books its cost.
    pub(super) fn settle(&mut self, race: Option<usize>, aside: u64, spent: u64) {
        self.whole.settle(aside, spent);
        if let Some(race) = race.and_then(|race| self.races.get_mut(&race)) {
            race.settle(aside, spent);
        }
    }

    /// Books an amount as spent.
    pub(super) fn spend(&mut self, race: Option<usize>, spent: u64) {
        self.settle(race, 0, spent);
    }

    /// Returns true if nothing is left of a race's own money.
    pub(super) fn is_race_dry(&self, race: Option<usize>) -> bool {
        race.and_then(|race| self.races.get(&race)).is_some_and(|purse| purse.free() == Some(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_have_the_money_of_one_task_together() {
        let candidate = JobSlot { race: Some(0), usd_micros: Some(90), ..JobSlot::default() };
        let seats = [candidate.clone(), candidate.clone(), candidate.clone()];
        let mut purses = BudgetPool::new(Some(50), &seats);
        assert_eq!(purses.reserve(&candidate, 1, 3), Some(Some(30)));
        assert_eq!(purses.reserve(&candidate, 1, 2), Some(Some(20)), "no more than the batch has");
        assert_eq!(purses.reserve(&candidate, 1, 1), None);
        assert!(!purses.is_race_dry(Some(0)), "it is the batch's that is dry");
        let mut purses = BudgetPool::new(None, &seats);
        assert_eq!(purses.reserve(&candidate, 1, 3), Some(Some(30)));
        purses.settle(Some(0), 30, 80);
        assert_eq!(purses.reserve(&candidate, 1, 2), Some(Some(5)));
        assert_eq!(purses.reserve(&candidate, 1, 1), Some(Some(5)));
        assert!(purses.reserve(&candidate, 1, 1).is_none() && purses.is_race_dry(Some(0)));
    }

    #[test]
    fn shares_are_equal_and_what_was_not_used_is_there_again() {
        let mut purse = BatchBudget::new(Some(100));
        assert_eq!(
            [purse.reserve(4, None), purse.reserve(3, None), purse.reserve(2, Some(5))],
            [Some(Some(25)), Some(Some(25)), Some(Some(5))]
        );
        assert_eq!(purse.reserve(1, None), Some(Some(45)));
        assert_eq!(purse.reserve(1, None), None, "all of it is set aside");
        purse.settle(25, 10);
        assert_eq!(purse.reserve(1, None), Some(Some(15)));
        purse.settle(15, 20); // an estimate was too low
        purse.settle(45, 0);
        assert_eq!(purse.reserve(1, None), Some(Some(40)));
    }

    #[test]
    fn without_a_bound_each_has_its_own() {
        let mut purse = BatchBudget::new(None);
        assert_eq!([purse.reserve(1, None), purse.reserve(1, Some(7))], [Some(None), Some(Some(7))]);
    }
}
