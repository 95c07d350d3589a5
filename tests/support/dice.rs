//! Random numbers from a seed.

/// A random number generator (SplitMix64, Steele, Lea and Flood, 2014): equal seeds give equal
/// numbers on every machine.
#[derive(Debug, Clone)]
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

    /// Returns a number from 0 to `end`, exclusive; 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.throw() % end.max(1)
    }

    /// Returns an index of a list of `length` items.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }

    /// Returns true with this probability in percent.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns true with this probability in thousandths.
    pub(crate) fn chance(&mut self, in_a_thousand: u64) -> bool {
        self.below(1000) < in_a_thousand
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    /// Returns an index of a list, with the probabilities that these weights give.
    pub(crate) fn weigh(&mut self, weights: &[u64]) -> usize {
        let mut at = self.below(weights.iter().sum());
        let lands = |weight: &u64| {
            let here = at < *weight;
            at = at.saturating_sub(*weight);
            here
        };
        weights.iter().position(lands).unwrap_or(0)
    }

    /// Cuts bytes into up to ten pieces.
    pub(crate) fn cut<'b>(&mut self, bytes: &'b [u8]) -> Vec<&'b [u8]> {
        let mut places: Vec<usize> = (0..self.index(9)).map(|_| self.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
    }
}
