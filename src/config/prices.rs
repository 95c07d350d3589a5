//! The prices and windows of common models, as their providers publish them. There is one table,
//! with the day on which it was read. The configuration of a model overrides it.
//!
//! Sources: <https://platform.claude.com/docs/en/about-claude/pricing> and
//! <https://developers.openai.com/api/docs/pricing>, standard processing, with Anthropic's cache
//! writes for five minutes.

use super::ProviderKind;
use crate::chat::Price;
use crate::yaml::nearest;

/// The day on which the table was read.
pub const PRICES_READ: &str = "2026-11-22";

/// The published data of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedPrice {
    /// The provider's name of the model. A name with a date behind it means the same model.
    pub model: &'static str,
    /// The maximum number of tokens of a conversation at `price`.
    pub window: u64,
    /// The price of tokens within that window.
    pub price: Price,
    /// The price of all tokens of a longer conversation; `None` if it cannot be longer.
    beyond: Option<Price>,
}

impl PublishedPrice {
    /// Returns the maximum number of tokens of one answer, if that is published and more than the
    /// default request.
    pub fn largest_output(&self) -> Option<u64> {
        let name = self.model;
        let is_older = ["claude-opus-4-1", "claude-3"].iter().any(|older| name.starts_with(older));
        (name.starts_with("claude") && !is_older).then_some(64_000).or((name == "claude-opus-4-1").then_some(32_000))
    }

    /// Returns the price for conversations of up to this many tokens. It is never less than the
    /// provider charges.
    pub fn price_up_to(&self, window: u64) -> Price {
        self.beyond.filter(|_| window > self.window).unwrap_or(self.price)
    }
}

/// The name; thousands of tokens; then cents per million tokens: read, written, read from the
/// cache, written to the cache.
type Row = (&'static str, u64, [f64; 4]);

/// Most of Anthropic's newest models have a window of a million tokens, all at the same price.
const ANTHROPIC: &[Row] = &[
    ("claude-fable-5-1", 1000, [1000.0, 5000.0, 25.0, 1250.0]),
    ("claude-fable-5", 1000, [1000.0, 5000.0, 100.0, 1250.0]),
    ("claude-opus-5-5", 1000, [400.0, 2000.0, 20.0, 500.0]),
    ("claude-opus-5", 1000, [500.0, 2500.0, 50.0, 625.0]),
    ("claude-opus-4-8", 1000, [500.0, 2500.0, 50.0, 625.0]),
    ("claude-opus-4-7", 1000, [500.0, 2500.0, 50.0, 625.0]),
    ("claude-opus-4-6", 1000, [500.0, 2500.0, 50.0, 625.0]),
    ("claude-opus-4-5", 200, [500.0, 2500.0, 50.0, 625.0]),
    ("claude-opus-4-1", 200, [1500.0, 7500.0, 150.0, 1875.0]),
    ("claude-sonnet-5-5", 1000, [200.0, 1000.0, 10.0, 250.0]),
    ("claude-sonnet-5", 1000, [200.0, 1000.0, 20.0, 250.0]),
    ("claude-sonnet-4-6", 1000, [300.0, 1500.0, 30.0, 375.0]),
    ("claude-sonnet-4-5", 200, [300.0, 1500.0, 30.0, 375.0]),
    ("claude-sonnet-4", 200, [300.0, 1500.0, 30.0, 375.0]),
    ("claude-haiku-5-5", 100, [10.0, 50.0, 1.0, 12.5]),
    ("claude-haiku-4-5", 200, [100.0, 500.0, 10.0, 125.0]),
    ("claude-3-5-haiku", 200, [80.0, 400.0, 8.0, 100.0]),
];
const OPENAI: &[Row] = &[
    ("gpt-6.2-astra", 272, [800.0, 4000.0, 40.0, 1000.0]),
    ("gpt-6.2-sol", 272, [200.0, 1000.0, 20.0, 250.0]),
    ("gpt-6.1-sol", 272, [200.0, 1000.0, 10.0, 250.0]),
    ("gpt-6.1-terra", 272, [100.0, 500.0, 5.0, 125.0]),
    ("gpt-6-astra", 272, [1000.0, 5000.0, 100.0, 1250.0]),
    ("gpt-6-sol", 272, [200.0, 1000.0, 20.0, 250.0]),
    ("gpt-6-luna", 272, [10.0, 50.0, 1.0, 12.5]),
    ("gpt-5.6-sol", 272, [400.0, 2000.0, 40.0, 500.0]),
    ("gpt-5.6-terra", 272, [200.0, 1200.0, 20.0, 250.0]),
    ("gpt-5.6-luna", 272, [20.0, 120.0, 2.0, 25.0]),
    ("gpt-5.5", 272, [500.0, 3000.0, 50.0, 500.0]),
    ("gpt-5.4", 272, [250.0, 1500.0, 25.0, 250.0]),
    ("gpt-5.4-mini", 272, [75.0, 450.0, 7.5, 75.0]),
    ("gpt-5.4-nano", 272, [20.0, 125.0, 2.0, 20.0]),
    ("gpt-5.3-codex", 400, [175.0, 1400.0, 17.5, 175.0]),
    ("gpt-5.2", 400, [175.0, 1400.0, 17.5, 175.0]),
    ("gpt-5.1", 400, [125.0, 1000.0, 12.5, 125.0]),
    ("gpt-5", 400, [125.0, 1000.0, 12.5, 125.0]),
    ("gpt-5-codex", 400, [125.0, 1000.0, 12.5, 125.0]),
    ("gpt-5-mini", 400, [25.0, 200.0, 2.5, 25.0]),
    ("gpt-5-nano", 400, [5.0, 40.0, 0.5, 5.0]),
    ("gpt-4.1", 1047, [200.0, 800.0, 50.0, 200.0]),
    ("o3", 200, [200.0, 800.0, 50.0, 200.0]),
    ("o4-mini", 200, [110.0, 440.0, 27.5, 110.0]),
];

/// Returns the published data of a model, by its provider's name for it.
pub fn published(provider: ProviderKind, model: &str) -> Option<PublishedPrice> {
    let own = |name: &str| model.strip_prefix(name).is_some_and(is_date);
    rows(provider).iter().find(|(name, ..)| own(name)).map(|row| read(provider, row))
}

/// Returns the model of the table that an unknown name most likely means. A name that differs only
/// in numbers is taken for that of a newer model.
pub fn near_published(provider: ProviderKind, model: &str) -> Option<&'static str> {
    const MOST_SLIPS: usize = 2;
    let words = |name: &str| name.chars().filter(char::is_ascii_alphabetic).collect::<String>();
    let near = nearest(model, rows(provider).iter().map(|(name, ..)| *name))?;
    let is_slip = words(near) != words(model) && strsim::osa_distance(near, model) <= MOST_SLIPS;
    (is_slip && published(provider, model).is_none()).then_some(near)
}

/// Returns all of a provider's models in the table.
pub fn all_published(provider: ProviderKind) -> impl Iterator<Item = PublishedPrice> {
    rows(provider).iter().map(move |row| read(provider, row))
}

fn rows(provider: ProviderKind) -> &'static [Row] {
    match provider {
        ProviderKind::Anthropic => ANTHROPIC,
        ProviderKind::OpenAi | ProviderKind::OpenAiResponses => OPENAI,
        ProviderKind::Ollama | ProviderKind::Cassette => &[],
    }
}

/// Returns true for an empty text, and for a date behind a name: `-20250929`, `-2025-08-07`,
/// `-latest`.
fn is_date(rest: &str) -> bool {
    let digits = |text: &str| text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
    rest.is_empty() || rest == "-latest" || rest.strip_prefix('-').is_some_and(|date| digits(&date.replace('-', "")))
}

/// Reads a row. Past 272,000 tokens, OpenAI charges twice as much for input and half as much again
/// for output. Past 100,000 tokens, Anthropic charges five times as much for its smallest model.
fn read(provider: ProviderKind, (model, thousands, cents): &Row) -> PublishedPrice {
    let price = |[input, output]: [f64; 2]| {
        let micros = |cents: f64, factor: f64| (cents * factor * 10_000.0).round() as u64;
        Price {
            input: micros(cents[0], input),
            output: micros(cents[1], output),
            cached_input: micros(cents[2], input),
            cache_write: micros(cents[3], input),
        }
    };
    let beyond = match (provider, thousands) {
        (ProviderKind::OpenAi | ProviderKind::OpenAiResponses, 272) => Some([2.0, 1.5]),
        (ProviderKind::Anthropic, 100) => Some([5.0, 5.0]),
        _ => None,
    };
    PublishedPrice { model, window: thousands * 1000, price: price([1.0, 1.0]), beyond: beyond.map(price) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const ALL: [ProviderKind; 2] = [ProviderKind::Anthropic, ProviderKind::OpenAi];

    #[test]
    fn a_slip_of_the_pen_is_near_a_model_and_a_newer_number_is_not() {
        let near = |model| near_published(ProviderKind::Anthropic, model);
        assert_eq!(near("claude-sonet-4-5"), Some("claude-sonnet-4-5"));
        assert_eq!(["claude-sonnet-4-5", "claude-sonnet-9", "claude-sonnet-4-5-20250929", "nova"].map(near), [None; 4]);
        assert_eq!(near_published(ProviderKind::OpenAi, "gpt-5-mni"), Some("gpt-5-mini"));
    }

    #[test]
    fn a_model_is_known_by_its_name_and_with_a_date_behind_it_and_by_no_other() {
        let name = |provider, model| published(provider, model).map(|found| found.model);
        let cases = [
            (ProviderKind::Anthropic, "claude-sonnet-4-5", Some("claude-sonnet-4-5")),
            (ProviderKind::Anthropic, "claude-sonnet-4-5-20250929", Some("claude-sonnet-4-5")),
            (ProviderKind::Anthropic, "claude-sonnet-4-20250514", Some("claude-sonnet-4")),
            (ProviderKind::OpenAiResponses, "gpt-5-2025-08-07", Some("gpt-5")),
            (ProviderKind::OpenAi, "gpt-5-mini", Some("gpt-5-mini")),
            (ProviderKind::OpenAi, "gpt-5-pro", None),
            (ProviderKind::OpenAi, "claude-sonnet-4-5", None),
            (ProviderKind::Ollama, "gpt-5", None),
        ];
        assert_eq!(cases.map(|(provider, model, _)| name(provider, model)), cases.map(|(.., wanted)| wanted));
    }

    #[test]
    fn every_price_of_the_table_is_a_price() {
        for provider in ALL {
            let mut names = BTreeSet::new();
            for PublishedPrice { model, window, price, beyond } in all_published(provider) {
                let Price { input, output, cached_input, cache_write } = price;
                assert!(names.insert(model), "{model} stands there twice");
                assert!(window >= 100_000, "{model}");
                assert!(0 < cached_input && cached_input < input && input <= cache_write && input < output, "{model}");
                assert!(beyond.is_none_or(|beyond| beyond.input > input && beyond.output > output), "{model}");
            }
        }
    }

    #[test]
    fn a_longer_conversation_is_charged_what_it_costs() {
        let luna = published(ProviderKind::OpenAi, "gpt-6-luna").unwrap();
        assert_eq!(luna.price, Price { input: 100_000, output: 500_000, cached_input: 10_000, cache_write: 125_000 });
        assert_eq!((luna.price_up_to(luna.window), luna.price_up_to(1_000_000).output), (luna.price, 750_000));
        let haiku = published(ProviderKind::Anthropic, "claude-haiku-5-5").unwrap();
        assert_eq!(haiku.price_up_to(200_000).input, 500_000);
    }
}
