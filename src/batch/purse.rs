//! The money of a batch. A run has a share of it set aside when it begins, and what it has not used is there again when it ends: so all of
//! them together spend no more than there is. Pure.

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
        let Some(limit) = self.limit else { return Some(own) };
        let free = limit.saturating_sub(self.spent).saturating_sub(self.aside);
        if free == 0 {
            return None;
        }
        let share = (free / u64::try_from(of.max(1)).unwrap_or(u64::MAX)).max(1).min(own.unwrap_or(u64::MAX));
        self.aside = self.aside.saturating_add(share);
        Some(Some(share))
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

#[cfg(test)]
mod tests {
    use super::*;

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
