//! `fledge models list`: each model with its price, context size, key, and the origin of these
//! values. Sends no request.

use super::super::connect::key_of;
use super::super::failure::CliError;
use super::super::output::{no_output, print_data, print_json};
use super::super::paint::{self, Tone};
use super::super::steps::StyledLine;
use super::MODELS_SCHEMA_VERSION;
use crate::chat::Price;
use crate::config::{self, EnvironmentLayer, ModelSettings, ProviderKind, all_published, auto_name};
use crate::task::Tier;
use serde_json::{Value, json};

/// A row of the list.
struct ModelRow<'s> {
    name: String,
    model: ModelSettings,
    is_default: bool,
    environment: &'s EnvironmentLayer,
}

/// Lists the models; returns the exit code.
pub(super) fn list(set: &config::ProjectConfig, environment: &EnvironmentLayer, as_json: bool) -> Result<u8, CliError> {
    let default = auto_name(set, Tier::Code, environment).ok();
    let row = |name: String, model| ModelRow { is_default: default == Some(&name), name, model, environment };
    let mut rows: Vec<ModelRow<'_>> = set.models.iter().map(|(name, model)| row(name.clone(), model.clone())).collect();
    for provider in [ProviderKind::Anthropic, ProviderKind::OpenAi] {
        rows.extend(all_published(provider).map(|known| {
            let name = format!("{}/{}", provider.name(), known.model);
            row(name, ModelSettings::new(provider, known.model, "built in"))
        }));
    }
    if as_json {
        let models: Vec<Value> = rows.iter().map(ModelRow::as_json).collect();
        let all = json!({ "schema_version": MODELS_SCHEMA_VERSION, "default": default, "models": models });
        print_json(&all.to_string()).map_err(no_output)?;
    } else {
        let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        let lines: Vec<StyledLine> = rows.iter().map(|row| row.line(width)).collect();
        print_data(&paint::page(&lines)).map_err(no_output)?;
    }
    Ok(0)
}

impl ModelRow<'_> {
    fn line(&self, width: usize) -> StyledLine {
        let (mark, own) = (if self.is_default { "* " } else { "  " }, &self.model);
        let tier = own.tier.map_or("-", Tier::name);
        let window = own.window().map_or("?".into(), tokens);
        let (price, from) = match own.price() {
            Some((price, from)) => (format!("{} / {}", dollars(price.input), dollars(price.output)), from),
            None => ("?".into(), "no price: set `price: { input: …, output: … }`".into()),
        };
        let about = format!("  {tier:<4}  {window:>6}  {price:>14}  {:<9}  ", self.key().0);
        let whose = if own.origin == "built in" { from } else { format!("{}, price {from}", own.origin) };
        vec![
            (Tone::Good, mark.to_owned()),
            (Tone::Strong, format!("{:<width$}", self.name)),
            (Tone::Plain, about),
            (Tone::Faint, whose),
        ]
    }

    fn as_json(&self) -> Value {
        let own = &self.model;
        let price = own.price().map(|(price, from)| {
            let Price { input, output, cached_input, cache_write } = price;
            let usd = |micros: u64| micros as f64 / 1e6;
            json!({
                "input": usd(input), "output": usd(output), "cached_input": usd(cached_input), "cache_write": usd(cache_write), "from": from,
            })
        });
        let (key, place) = self.key();
        json!({
            "name": self.name,
            "provider": own.provider.name(),
            "model": own.model,
            "default": self.is_default,
            "tier": own.tier.map(Tier::name),
            "max_context_tokens": own.window(),
            "price": price,
            "key": key,
            "key_place": place,
            "from": own.origin,
        })
    }

    fn key(&self) -> (&'static str, Option<String>) {
        key_of(&self.model, self.environment)
    }
}

/// Formats US dollars without trailing zeros.
fn dollars(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    format!("${}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats a number of tokens: `200k`, `1M`.
fn tokens(count: u64) -> String {
    match count {
        1_000_000.. if count.is_multiple_of(100_000) => format!("{}M", count as f64 / 1e6),
        1_000.. => format!("{}k", count / 1000),
        _ => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_and_sizes_are_short_and_exact() {
        assert_eq!([3_000_000, 250_000, 12_500, 0, 15].map(dollars), ["$3", "$0.25", "$0.0125", "$0", "$0.000015"]);
        assert_eq!([200_000, 1_000_000, 1_500_000, 1_047_576, 512].map(tokens), ["200k", "1M", "1.5M", "1047k", "512"]);
    }
}
