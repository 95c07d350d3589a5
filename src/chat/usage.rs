//! Token counts and costs of model calls.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The use of model calls. Counts are tokens; they never decrease within a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Tokens that the model read, cached tokens included.
    pub input_tokens: u64,
    /// Tokens that the model wrote, reasoning included.
    pub output_tokens: u64,
    /// The part of the input that came from the provider's cache.
    pub cached_tokens: u64,
    /// The part of the input that was written to the provider's cache.
    pub cache_write_tokens: u64,
    /// The part of the output that was reasoning.
    pub reasoning_tokens: u64,
    /// The part of input and output that no provider counted. It is an estimate from the bytes sent
    /// and received, or the maximum that the call could use.
    pub estimated_tokens: u64,
    /// The cost in millionths of a US dollar, if it is known.
    pub cost_micros: Option<u64>,
}

impl Usage {
    /// Returns the sum of input and output.
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Adds the use of another call. The cost stays unknown until one call with a known cost is
    /// added.
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

/// The use of each model of a run, by the name that its provider gives it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ModelUsage {
    /// Number of model calls that are paid for: calls with an answer, and calls that failed after
    /// their provider began to work.
    pub requests: u64,
    /// The sum over all models.
    pub total: Usage,
    /// The use by model name.
    pub by_model: BTreeMap<String, Usage>,
}

impl ModelUsage {
    /// Adds one call.
    pub fn add(&mut self, model: &str, usage: &Usage) {
        self.requests = self.requests.saturating_add(1);
        self.total.add(usage);
        self.by_model.entry(model.to_owned()).or_default().add(usage);
    }

    /// Returns the models without a known price if other models of the total have one. The total
    /// cost is then only a lower bound.
    pub fn unpriced(&self) -> Vec<&str> {
        let is_unpriced =
            |usage: &Usage| usage.cost_micros.is_none() && usage.total() > 0 && self.total.cost_micros.is_some();
        self.by_model.iter().filter(|(_, usage)| is_unpriced(usage)).map(|(model, _)| model.as_str()).collect()
    }
}
