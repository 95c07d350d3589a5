//! One configuration file, read. In a project's file, whatever could send a key elsewhere is refused: a `base_url` off this
//! machine, a key from another variable than the provider's own, and headers belong in the user's own configuration.

use super::model::{ModelSettings, ProviderKind, Secret};
use super::url::{is_loopback, url_fault};
use super::{ConfigFault, Sourced};
use crate::process::wall::WallChoice;
use crate::task::{Baseline, check_glob};
use crate::yaml::{Key, Node, Place, Problem, Problems, Table, Value, parse as parse_yaml};
use std::collections::BTreeMap;
use std::time::Duration;

/// Whose text a configuration file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The operator's: trusted.
    User,
    /// The project's: not.
    Project,
}

/// What one file sets.
#[derive(Debug, Default)]
pub(super) struct Layer {
    pub(super) default_model: Option<Sourced>,
    pub(super) models: BTreeMap<String, ModelSettings>,
    pub(super) protect: Vec<String>,
    pub(super) baseline: Option<Baseline>,
    pub(super) ephemeral_ttl: Option<Duration>,
    pub(super) sandbox: Option<WallChoice>,
    pub(super) network: Option<bool>,
}

/// Keys that are planned: refused, so that nobody relies on them in vain.
const LATER: &[&str] = &[
    "approve",
    "budget",
    "commit",
    "context",
    "hooks",
    "isolation",
    "lane",
    "max_retries",
    "mcp",
    "on_tamper",
    "parallel_reads",
    "room",
    "specs",
    "stuck_after",
    "tier",
    "time",
    "turns",
];
/// The same, of a model.
const MODEL_LATER: &[&str] = &["api_key_command", "max_context_tokens", "max_requests_per_minute", "price", "tier"];

/// Reads a configuration file; `name` names it in messages.
pub(super) fn parse(text: &str, name: &str, owner: Owner) -> Result<Layer, ConfigFault> {
    let fault = |problems| ConfigFault::Invalid { file: name.into(), problems };
    let root = parse_yaml(text, 1).map_err(|problem| fault(problem.into()))?;
    let mut layer = Layer::default();
    if root.value == Value::Null {
        return Ok(layer);
    }
    let mut problems = Problems::default();
    let Some(mut table) = Table::open(&root, "the configuration", &mut problems) else { return Err(fault(problems)) };
    let sourced = |value: &str| Sourced { value: value.into(), origin: name.into() };
    layer.default_model = table.text("default_model", &mut problems).map(sourced);
    layer.protect = table.texts_where("protect", check_glob, &mut problems).unwrap_or_default();
    layer.baseline = table.one_of("baseline", &Baseline::WORDS, &mut problems);
    if let Some(node) = table.take("models") {
        layer.models = models(node, name, owner, &mut problems);
    }
    if let Some(mut memory) = table.take("memory").and_then(|node| Table::open(node, "`memory`", &mut problems)) {
        layer.ephemeral_ttl = memory.duration("ephemeral_ttl", &mut problems);
        memory.finish(&mut problems);
    }
    layer.sandbox = sandbox(&mut table, owner, &mut problems);
    layer.network = network(&mut table, owner, &mut problems);
    table.take("tasks"); // read with the lanes that refer to them
    table.later(LATER, &mut problems);
    table.finish(&mut problems);
    if problems.is_empty() { Ok(layer) } else { Err(fault(problems)) }
}

/// What only the operator may open.
const OPERATOR_ONLY: &str = "say it on the command line, or in your own configuration";

fn sandbox(table: &mut Table<'_>, owner: Owner, problems: &mut Problems) -> Option<WallChoice> {
    let place = table.place_of("sandbox");
    let name = table.text("sandbox", problems)?;
    let place = place?;
    match (WallChoice::parse(name), owner) {
        (Some(WallChoice::Off), Owner::Project) => {
            let message = "a project cannot switch the sandbox off".to_owned();
            problems.push(Problem::at(place, message).hint(OPERATOR_ONLY));
            None
        }
        (Some(choice), Owner::User | Owner::Project) => Some(choice),
        (None, Owner::User | Owner::Project) => {
            let message = format!("`sandbox` cannot be `{}`", crate::yaml::excerpt(name));
            problems.push(Problem::at(place, message).hint("write `auto`, `required` or `off`"));
            None
        }
    }
}

fn network(table: &mut Table<'_>, owner: Owner, problems: &mut Problems) -> Option<bool> {
    let place = table.place_of("network");
    let word = table.text("network", problems)?;
    let place = place?;
    match (word, owner) {
        ("deny", _) => Some(false),
        ("allow", Owner::User) => Some(true),
        ("allow", Owner::Project) => {
            let message = "a project cannot grant itself the network".to_owned();
            problems.push(Problem::at(place, message).hint(OPERATOR_ONLY));
            None
        }
        (other, _) => {
            let message = format!("`network` cannot be `{}`", crate::yaml::excerpt(other));
            problems.push(Problem::at(place, message).hint("write `deny` or `allow`"));
            None
        }
    }
}

fn models(node: &Node, file: &str, owner: Owner, problems: &mut Problems) -> BTreeMap<String, ModelSettings> {
    let Value::Map(entries) = &node.value else {
        let message = format!("expected `models` to be a map from names to models, found {}", node.describe());
        problems.push(Problem::at(node.place, message).hint("write `name: { provider: anthropic, model: … }`"));
        return BTreeMap::new();
    };
    let entry = |(key, node): &(Key, Node)| Some((key.text.clone(), model(key, node, file, owner, problems)?));
    entries.iter().filter_map(entry).collect()
}

fn model(key: &Key, node: &Node, file: &str, owner: Owner, problems: &mut Problems) -> Option<ModelSettings> {
    let name = &key.text;
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) {
        let message = format!("`{}` can't be a model's name", crate::yaml::excerpt(name));
        problems.push(Problem::at(key.place, message).hint("use letters, digits, `.`, `_` and `-`"));
    }
    let mut table = Table::open(node, &format!("the model `{name}`"), problems)?;
    let provider = provider(&mut table, key.place, problems);
    if table.place_of("model").is_none() {
        problems.push(
            Problem::at(key.place, format!("the model `{name}` has no `model`")).hint("add the provider's name for it"),
        );
    }
    let id = table.text("model", problems).map(str::to_owned);
    let base_url = table.text("base_url", problems).map(str::to_owned);
    let key_variable = table.text("api_key_env", problems).map(str::to_owned);
    let max_output_tokens =
        table.int("max_output_tokens", 1..=10_000_000, problems).and_then(|n| u64::try_from(n).ok());
    let headers = table.map_of_text("headers", problems).unwrap_or_default();
    let place = |table: &mut Table<'_>, key: &str| table.take(key).map_or(node.place, |node| node.place);
    if let Some(why) = base_url.as_deref().and_then(url_fault) {
        problems.push(Problem::at(place(&mut table, "base_url"), why).hint("write `https://host/path`"));
    }
    if key_variable.as_deref().is_some_and(|name| !is_variable(name)) {
        let wrong =
            Problem::at(place(&mut table, "api_key_env"), "expected `api_key_env` to name an environment variable");
        problems
            .push(wrong.hint("the key itself has no place in a file; write the variable's name, like `MY_API_KEY`"));
    }
    if let Some((header, _)) = headers.iter().find(|(name, value)| !is_header(name, value)) {
        let message = format!("`{}` is not a header that can be sent", crate::yaml::excerpt(header));
        problems.push(
            Problem::at(place(&mut table, "headers"), message)
                .hint("names are letters, digits and `-`; values one line"),
        );
    }
    if owner == Owner::Project {
        let standard = provider.map(ProviderKind::key_variable);
        let foreign_url = base_url.as_deref().is_some_and(|url| !is_loopback(url));
        let foreign_key = key_variable.as_deref().is_some_and(|name| standard.is_some_and(|own| own != Some(name)));
        let refused = [
            ("base_url", foreign_url, "could send the operator's key to somebody else's machine"),
            ("api_key_env", foreign_key, "could send another secret of the operator's to the provider"),
            ("headers", !headers.is_empty(), "could send what the operator has not seen"),
        ];
        for (key, _, why) in refused.iter().filter(|(_, is, _)| *is) {
            let message = format!("`{key}` in a project's file {why}");
            problems.push(Problem::at(place(&mut table, key), message).hint(OWN_FILE));
        }
    }
    table.later(MODEL_LATER, problems);
    table.finish(problems);
    let headers = headers.into_iter().map(|(name, value)| (name, Secret::new(value))).collect();
    let (provider, model) = (provider?, id?);
    Some(ModelSettings { provider, model, base_url, key_variable, max_output_tokens, headers, origin: file.into() })
}

const OWN_FILE: &str = "put this model into your own configuration, ~/.config/fledge/config.yaml";

fn provider(table: &mut Table<'_>, place: Place, problems: &mut Problems) -> Option<ProviderKind> {
    let words = [
        ("anthropic", Some(ProviderKind::Anthropic)),
        ("openai", Some(ProviderKind::OpenAi)),
        ("openai-responses", None),
        ("ollama", None),
    ];
    let Some(stands) = table.place_of("provider") else {
        problems.push(
            Problem::at(place, "the model has no `provider`").hint("add `provider: anthropic` or `provider: openai`"),
        );
        return None;
    };
    let provider = table.one_of("provider", &words, problems)?;
    if provider.is_none() {
        let later = Problem::at(stands, "this provider is not supported yet");
        problems.push(later.hint("use `anthropic`, or `openai` with the base_url of a compatible server"));
    }
    provider
}

fn is_variable(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

fn is_header(name: &str, value: &str) -> bool {
    let word = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    word && value.chars().all(|c| c == '\t' || (' '..='~').contains(&c))
}
