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
    reserved: u64,
}

impl BatchBudget {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self { limit, spent: 0, reserved: 0 }
    }

    /// Reserves the share of one of `of` runs that might begin now: an equal part, but at most its
    /// `own` limit. Returns `None` if nothing is left, and `Some(None)` if no limit exists.
    pub(super) fn reserve(&mut self, of: usize, own: Option<u64>) -> Option<Option<u64>> {
        let Some(free) = self.free() else { return Some(own) };
        if free == 0 {
            return None;
        }
        let share = (free / u64::try_from(of.max(1)).unwrap_or(u64::MAX)).max(1).min(own.unwrap_or(u64::MAX));
        self.reserved = self.reserved.saturating_add(share);
        Some(Some(share))
    }

    /// Returns the amount neither spent nor reserved; `None` for no limit.
    fn free(&self) -> Option<u64> {
        Some(self.limit?.saturating_sub(self.spent).saturating_sub(self.reserved))
    }

    /// Releases the reserve of a run that ended, and books its cost.
    pub(super) fn settle_reserve(&mut self, reserved: u64, spent: u64) {
        if self.limit.is_some() {
            self.reserved = self.reserved.saturating_sub(reserved);
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
    pub(super) fn new(limit: Option<u64>, slots: &[JobSlot]) -> Self {
        let races = slots.iter().filter_map(|slot| Some((slot.race?, BatchBudget::new(Some(slot.usd_micros?)))));
        Self { whole: BatchBudget::new(limit), races: races.collect() }
    }

    /// Reserves a share as [`BatchBudget::reserve`] does. In a race, the job gets the share of one
    /// of `rivals` candidates.
    pub(super) fn reserve(&mut self, slot: &JobSlot, of: usize, rivals: usize) -> Option<Option<u64>> {
        let Some(race) = slot.race.and_then(|race| self.races.get_mut(&race)) else {
            return self.whole.reserve(of, slot.usd_micros);
        };
        let own = race.reserve(rivals, None)?;
        let share = self.whole.reserve(of, own);
        let unused = own.unwrap_or(0).saturating_sub(share.flatten().unwrap_or(0));
        race.settle_reserve(unused, 0);
        share
    }

    /// Releases the reserve of a run that ended, and books its cost.
    pub(super) fn settle_reserve(&mut self, race: Option<usize>, reserved: u64, spent: u64) {
        self.whole.settle_reserve(reserved, spent);
        if let Some(race) = race.and_then(|race| self.races.get_mut(&race)) {
            race.settle_reserve(reserved, spent);
        }
    }

    /// Books an amount as spent.
    pub(super) fn spend(&mut self, race: Option<usize>, spent: u64) {
        self.settle_reserve(race, 0, spent);
    }

    /// Returns true if nothing is left of a race's own money.
    pub(super) fn is_race_dry(&self, race: Option<usize>) -> bool {
        race.and_then(|race| self.races.get(&race)).is_some_and(|budget| budget.free() == Some(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_have_the_money_of_one_task_together() {
        let candidate = JobSlot { race: Some(0), usd_micros: Some(90), ..JobSlot::default() };
        let slots = [candidate.clone(), candidate.clone(), candidate.clone()];
        let mut budgets = BudgetPool::new(Some(50), &slots);
        assert_eq!(budgets.reserve(&candidate, 1, 3), Some(Some(30)));
        assert_eq!(budgets.reserve(&candidate, 1, 2), Some(Some(20)), "no more than the batch has");
        assert_eq!(budgets.reserve(&candidate, 1, 1), None);
        assert!(!budgets.is_race_dry(Some(0)), "it is the batch's that is dry");
        let mut budgets = BudgetPool::new(None, &slots);
        assert_eq!(budgets.reserve(&candidate, 1, 3), Some(Some(30)));
        budgets.settle_reserve(Some(0), 30, 80);
        assert_eq!(budgets.reserve(&candidate, 1, 2), Some(Some(5)));
        assert_eq!(budgets.reserve(&candidate, 1, 1), Some(Some(5)));
        assert!(budgets.reserve(&candidate, 1, 1).is_none() && budgets.is_race_dry(Some(0)));
    }

    #[test]
    fn shares_are_equal_and_what_was_not_used_is_there_again() {
        let mut budget = BatchBudget::new(Some(100));
        assert_eq!(
            [budget.reserve(4, None), budget.reserve(3, None), budget.reserve(2, Some(5))],
            [Some(Some(25)), Some(Some(25)), Some(Some(5))]
        );
        assert_eq!(budget.reserve(1, None), Some(Some(45)));
        assert_eq!(budget.reserve(1, None), None, "all of it is set aside");
        budget.settle_reserve(25, 10);
        assert_eq!(budget.reserve(1, None), Some(Some(15)));
        budget.settle_reserve(15, 20); // an estimate was too low
        budget.settle_reserve(45, 0);
        assert_eq!(budget.reserve(1, None), Some(Some(40)));
    }

    #[test]
    fn without_a_bound_each_has_its_own() {
        let mut budget = BatchBudget::new(None);
        assert_eq!([budget.reserve(1, None), budget.reserve(1, Some(7))], [Some(None), Some(Some(7))]);
    }
}
