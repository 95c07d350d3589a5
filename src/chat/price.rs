//! The price of a model's tokens, and the cost of a number of tokens.

use super::Usage;
use serde::{Deserialize, Serialize};

/// The price of a model's tokens, in millionths of a US dollar per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// Input tokens that no cache served.
    pub input: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// Input tokens that the provider's cache served.
    pub cached_input: u64,
    /// Input tokens that were written to the provider's cache.
    pub cache_write: u64,
}

impl Price {
    /// Returns the cost of some tokens, in millionths of a US dollar. It rounds up, so a budget is
    /// never charged less than the bill.
    pub fn cost_micros(&self, usage: &Usage) -> u64 {
        let plain = usage.input_tokens.saturating_sub(usage.cached_tokens).saturating_sub(usage.cache_write_tokens);
        let parts = [
            (plain, self.input),
            (usage.cached_tokens, self.cached_input),
            (usage.cache_write_tokens, self.cache_write),
            (usage.output_tokens, self.output),
        ];
        let total: u128 = parts.iter().map(|(tokens, price)| u128::from(*tokens) * u128::from(*price)).sum();
        u64::try_from(total.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// Formats millionths of a US dollar for people: `$0.0123`.
pub fn money(micros: u64) -> String {
    format!("${}.{:04}", micros / 1_000_000, micros % 1_000_000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_are_part_of_the_input_and_cost_their_own_price() {
        let price = Price { input: 3_000_000, output: 15_000_000, cached_input: 300_000, cache_write: 3_750_000 };
        let usage = Usage {
            input_tokens: 10_000,
            output_tokens: 1_000,
            cached_tokens: 6_000,
            cache_write_tokens: 1_000,
            ..Usage::default()
        };
        assert_eq!(price.cost_micros(&usage), 9_000 + 1_800 + 3_750 + 15_000);
    }

    #[test]
    fn a_part_of_a_millionth_is_charged_whole() {
        let price = Price { input: 1, ..Price::default() };
        assert_eq!(price.cost_micros(&Usage { input_tokens: 1, ..Usage::default() }), 1);
    }
}
