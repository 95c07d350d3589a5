//! The parser of the models in a configuration file.

use super::headers::headers;
use super::limits::parse_size;
use super::model::{KeyPlace, ModelSettings, ProviderKind, ToolsMode};
use super::trust::{self, Owner};
use super::url::{is_loopback, proxy_fault, url_fault};
use crate::chat::Price;
use crate::provider::{Effort, Secret, TurnTimeouts};
use crate::task::Tier;
use crate::yaml::{FilePlace, Problem, Problems, TableReader, YamlKey, YamlNode, YamlValue, excerpt};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// The range of the limit on the bytes of one answer.
const LEAST_RESPONSE: u64 = 4_000;
const MOST_RESPONSE: u64 = 1 << 30;

/// The ranges of the limits on the tokens of a conversation, and of one answer.
pub(super) const CONTEXT_TOKENS: RangeInclusive<i64> = 1000..=100_000_000;
pub(super) const OUTPUT_TOKENS: RangeInclusive<i64> = 1..=10_000_000;
/// The ranges of the limits on requests within a minute, and at once.
pub(super) const PER_MINUTE: RangeInclusive<i64> = 1..=1_000_000;
pub(super) const AT_ONCE: RangeInclusive<i64> = 1..=10_000;
/// The words of `reasoning`.
pub(super) const EFFORTS: [(&str, Effort); 3] =
    [("low", Effort::Low), ("medium", Effort::Medium), ("high", Effort::High)];
/// The words of `tools_mode`.
pub(super) const TOOLS_MODES: [(&str, ToolsMode); 2] = [("native", ToolsMode::Native), ("text", ToolsMode::Text)];

/// Parses the map of models; `file` is the name of its file.
pub(super) fn models(
    node: &YamlNode,
    file: &str,
    owner: Owner,
    problems: &mut Problems,
) -> BTreeMap<String, ModelSettings> {
    let YamlValue::Map(entries) = &node.value else {
        let message = format!("expected `models` to be a map from names to models, found {}", node.describe());
        problems.push(Problem::at(node.place, message).hint("write `name: { provider: anthropic, model: … }`"));
        return BTreeMap::new();
    };
    let entry = |(key, node): &(YamlKey, YamlNode)| Some((key.text.clone(), model(key, node, file, owner, problems)?));
    entries.iter().filter_map(entry).collect()
}

fn model(key: &YamlKey, node: &YamlNode, file: &str, owner: Owner, problems: &mut Problems) -> Option<ModelSettings> {
    let name = &key.text;
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) {
        let message = format!("`{}` is not a valid model name", excerpt(name));
        problems.push(Problem::at(key.place, message).hint("use letters, digits, `.`, `_` and `-`"));
    }
    let mut table = TableReader::open(node, &format!("the model `{name}`"), problems)?;
    trust::guard(&table, trust::MODEL, owner, problems);
    let provider = provider(&mut table, key.place, problems);
    if table.place_of("model").is_none() {
        problems.push(
            Problem::at(key.place, format!("the model `{name}` has no `model`")).hint("add the provider's name for it"),
        );
    }
    let id = table.text("model", problems).map(str::to_owned);
    let tokens = |int: Option<i64>| int.and_then(|int| u64::try_from(int).ok());
    let count = |int: Option<i64>| int.and_then(|int| NonZeroU32::new(u32::try_from(int).ok()?));
    let read = ModelSettings {
        base_url: base_url(&mut table, owner, problems),
        key: api_key_source(&mut table, provider, owner, problems),
        tier: table.one_of("tier", &Tier::WORDS, problems),
        price: table.take("price").and_then(|node| price(node, problems)),
        max_context_tokens: tokens(table.int("max_context_tokens", CONTEXT_TOKENS, problems)),
        max_output_tokens: tokens(table.int("max_output_tokens", OUTPUT_TOKENS, problems)),
        per_minute: count(table.int("max_requests_per_minute", PER_MINUTE, problems)),
        at_once: count(table.int("max_concurrent", AT_ONCE, problems)),
        headers: headers(&mut table, problems),
        ca_file: file_of(&mut table, "ca_file", problems),
        proxy: proxy(&mut table, problems),
        reasoning: table.one_of("reasoning", &EFFORTS, problems),
        tools_mode: table.one_of("tools_mode", &TOOLS_MODES, problems).unwrap_or_default(),
        clocks: clocks(&mut table, problems),
        max_response: max_response(&mut table, problems),
        ..ModelSettings::new(provider.unwrap_or(ProviderKind::OpenAi), id.clone().unwrap_or_default(), file)
    };
    table.finish(problems);
    provider.and(id).map(|_| read)
}

fn provider(table: &mut TableReader<'_>, place: FilePlace, problems: &mut Problems) -> Option<ProviderKind> {
    if table.place_of("provider").is_none() {
        problems.push(
            Problem::at(place, "the model has no `provider`").hint("add `provider: anthropic` or `provider: openai`"),
        );
    }
    table.one_of("provider", &ProviderKind::WORDS, problems)
}

fn base_url(table: &mut TableReader<'_>, owner: Owner, problems: &mut Problems) -> Option<String> {
    let url = table.text("base_url", problems)?.to_owned();
    let place = table.take("base_url")?.place;
    if let Some(why) = url_fault(&url) {
        problems.push(Problem::at(place, why).hint("write `https://host/path`"));
    }
    if owner == Owner::Project && !is_loopback(&url) {
        trust::refuse("base_url", place, "could send your key to a server that you did not choose", problems);
    }
    Some(url)
}

/// Parses the source of the model's API key. More than one source is reported as a problem.
fn api_key_source(
    table: &mut TableReader<'_>,
    provider: Option<ProviderKind>,
    owner: Owner,
    problems: &mut Problems,
) -> Option<KeyPlace> {
    let variable = key_variable(table, provider, owner, problems).map(KeyPlace::Variable);
    let file = file_of(table, "api_key_file", problems).map(KeyPlace::File);
    let command = command(table, "api_key_command", "api_key_ttl", problems);
    let mut given =
        ["api_key_env", "api_key_file", "api_key_command"].into_iter().filter_map(|key| table.place_of(key));
    if let Some(second) = given.nth(1) {
        let twice = Problem::at(second, "the API key has more than one source");
        problems.push(twice.hint("keep one of `api_key_env`, `api_key_file` and `api_key_command`"));
    }
    command.or(file).or(variable)
}

/// Parses the program under `key`, which prints a value, and the time under `how_long` for which
/// the value is valid.
pub(super) fn command(
    table: &mut TableReader<'_>,
    key: &str,
    how_long: &str,
    problems: &mut Problems,
) -> Option<KeyPlace> {
    let ttl = table.duration(how_long, problems);
    let command = table.text_or_texts(key, problems).map(|words| {
        let is_text = table.take(key).is_some_and(|node| node.as_text().is_some());
        let shell = |text| ["/bin/sh", "-c", text].map(str::to_owned).to_vec();
        KeyPlace::Command { command: if is_text { shell(&words[0]) } else { words }, ttl }
    });
    if let (Some(place), None) = (table.place_of(how_long), table.place_of(key)) {
        let alone = Problem::at(place, format!("`{how_long}` limits a value from `{key}`, which is missing"));
        problems.push(alone.hint(format!("add `{key}`, or remove `{how_long}`")));
    }
    command
}

/// Parses the time limits of a turn.
fn clocks(table: &mut TableReader<'_>, problems: &mut Problems) -> TurnTimeouts {
    let usual = TurnTimeouts::default();
    let Some(mut table) = table.take("timeouts").and_then(|node| TableReader::open(node, "`timeouts`", problems))
    else {
        return usual;
    };
    let mut clock = |key: &str, usual| {
        let Some(time) = table.duration(key, problems) else { return usual };
        if time.is_zero() {
            let place = table.place_of(key).unwrap_or(table.place);
            let never = Problem::at(place, format!("`{key}` must be longer than zero"));
            problems.push(never.hint("write a time such as `90s`, or remove the key"));
        }
        time
    };
    let clocks = TurnTimeouts {
        first_byte: clock("first_byte", usual.first_byte),
        idle: clock("idle", usual.idle),
        turn: clock("turn", usual.turn),
    };
    table.finish(problems);
    clocks
}

/// Parses the maximum number of bytes of one answer.
fn max_response(table: &mut TableReader<'_>, problems: &mut Problems) -> Option<usize> {
    let text = table.text("max_response", problems)?;
    let place = table.take("max_response")?.place;
    let size = parse_size(text).and_then(|size| match size {
        LEAST_RESPONSE..=MOST_RESPONSE => Ok(size as usize),
        _ => Err(format!("`{text}` is out of range")),
    });
    size.map_err(|why| {
        let wrong = Problem::at(place, format!("`max_response`: {why}"));
        problems.push(wrong.hint("write a size from `4KB` to `1GB`"));
    })
    .ok()
}

fn key_variable(
    table: &mut TableReader<'_>,
    provider: Option<ProviderKind>,
    owner: Owner,
    problems: &mut Problems,
) -> Option<String> {
    let name = table.text("api_key_env", problems)?.to_owned();
    let place = table.take("api_key_env")?.place;
    if !is_variable(&name) {
        let wrong = Problem::at(place, "expected `api_key_env` to name an environment variable");
        problems.push(wrong.hint("never write the key into a file; write the variable's name, e.g. `MY_API_KEY`"));
    }
    let is_foreign = provider.is_some_and(|provider| provider.key_variable() != Some(&name));
    if owner == Owner::Project && is_foreign {
        trust::refuse("api_key_env", place, "could send another of your secrets to the provider", problems);
    }
    Some(name)
}

/// Parses a path that does not depend on the folder in which fledge is started.
pub(super) fn file_of(table: &mut TableReader<'_>, key: &str, problems: &mut Problems) -> Option<PathBuf> {
    let path = table.text(key, problems)?;
    if !path.starts_with('/') && !path.starts_with("~/") {
        let place = table.take(key)?.place;
        let message = format!("expected `{key}` to be an absolute path, found `{}`", excerpt(path));
        problems.push(Problem::at(place, message).hint("begin the path with `/`, or with `~/` for your home folder"));
    }
    Some(path.into())
}

/// Parses the price of tokens. Without a price of the cache, reading from it costs as much as
/// input, and writing to it a quarter more, as with the most expensive providers. So a budget is
/// never charged less than the bill.
fn price(node: &YamlNode, problems: &mut Problems) -> Option<Price> {
    let mut table = TableReader::open(node, "`price`", problems)?;
    let mut part = |key, problems: &mut Problems| table.dollars(key, problems);
    let (input, output) = (part("input", problems), part("output", problems));
    let (cached, written) = (part("cached_input", problems), part("cache_write", problems));
    for key in ["input", "output"] {
        if table.place_of(key).is_none() {
            let lacking = Problem::at(table.place, format!("`price` has no `{key}`"));
            problems.push(lacking.hint("write US dollars per million tokens: `price: { input: 3, output: 15 }`"));
        }
    }
    table.finish(problems);
    let (input, output) = (input?, output?);
    let cache_write = written.unwrap_or_else(|| input.saturating_add(input.div_ceil(4)));
    Some(Price { input, output, cached_input: cached.unwrap_or(input), cache_write })
}

fn proxy(table: &mut TableReader<'_>, problems: &mut Problems) -> Option<Secret> {
    let url = table.text("proxy", problems)?;
    if let Some(why) = proxy_fault(url) {
        let place = table.take("proxy")?.place;
        problems.push(Problem::at(place, why).hint("write `http://host:port`"));
    }
    Some(Secret::new(url))
}

pub(super) fn is_variable(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

pub(super) fn is_header(name: &str, value: &str) -> bool {
    let word = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    word && value.chars().all(|c| c == '\t' || (' '..='~').contains(&c))
}
