//! Tokens and money.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What model calls cost. Counts are tokens; they only ever grow within a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Tokens read by the model, cached ones included.
    pub input_tokens: u64,
    /// Tokens written by the model, reasoning included.
    pub output_tokens: u64,
    /// The part of the input that came from the provider's cache.
    pub cached_tokens: u64,
    /// The part of the input that was written to the provider's cache.
    pub cache_write_tokens: u64,
    /// The part of the output that was reasoning.
    pub reasoning_tokens: u64,
    /// The part of input and output that no provider counted: an estimate by the bytes that were sent and heard, or the most that a call could
    /// take.
    #[serde(default)]
    pub estimated_tokens: u64,
    /// The price in millionths of a US dollar, where it is known.
    pub cost_micros: Option<u64>,
}

impl Usage {
    /// Input and output together.
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Adds what another call cost. A price stays unknown until one is known.
    pub fn add(&mut self, other: &Self) {
        let Self { input_tokens, output_tokens, cached_tokens, cache_write_tokens, .. } = other;
        self.input_tokens = self.input_tokens.saturating_add(*input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(*output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(*cached_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(*cache_write_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
        self.estimated_tokens = self.estimated_tokens.saturating_add(other.estimated_tokens);
        self.cost_micros = match (self.cost_micros, other.cost_micros) {
            (None, None) => None,
            (mine, other) => Some(mine.unwrap_or(0).saturating_add(other.unwrap_or(0))),
        };
    }
}

/// What each model of a run cost, by the name its provider gives it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ModelUsage {
    /// Model calls that were paid for: those that were answered, and those that broke off when their provider was at work.
    pub requests: u64,
    /// All of it together.
    pub total: Usage,
    /// By model.
    pub by_model: BTreeMap<String, Usage>,
}

impl ModelUsage {
    /// Books one call.
    pub fn book(&mut self, model: &str, usage: &Usage) {
        self.requests = self.requests.saturating_add(1);
        self.total.add(usage);
        self.by_model.entry(model.to_owned()).or_default().add(usage);
    }

    /// The models whose price is not known, where the total has that of others: it is at least so much, then.
    pub fn unpriced(&self) -> Vec<&str> {
        let is_unpriced =
            |usage: &Usage| usage.cost_micros.is_none() && usage.total() > 0 && self.total.cost_micros.is_some();
        self.by_model.iter().filter(|(_, usage)| is_unpriced(usage)).map(|(model, _)| model.as_str()).collect()
    }
}
