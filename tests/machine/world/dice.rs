//! Chance with a name: the same seed throws the same numbers, on every machine.

/// SplitMix64 (Steele, Lea and Flood, 2014).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to but not `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.throw() % end.max(1)
    }

    /// True so many times in a thousand.
    pub(crate) fn chance(&mut self, in_a_thousand: u64) -> bool {
        self.below(1000) < in_a_thousand
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// An index, each as likely as its weight.
    pub(crate) fn weigh(&mut self, weights: &[u64]) -> usize {
        let mut at = self.below(weights.iter().sum());
        let lands = |weight: &u64| {
            let here = at < *weight;
            at = at.saturating_sub(*weight);
            here
        };
        weights.iter().position(lands).unwrap_or(0)
    }
}
