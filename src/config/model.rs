//! The resolution of model names to a provider, an address, a key and terms. This module is pure:
//! it makes a choice from settings and a captured environment.

use super::headers::{Headers, SentHeader};
use super::prices::{PRICES_READ, all_published, published};
use super::url::{is_loopback, url_fault};
use super::{ConfigError, EnvironmentLayer, ProjectConfig};
use crate::chat::Price;
use crate::provider::{Effort, Secret, TurnTimeouts};
use crate::task::Tier;
use crate::yaml::nearest;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// The API of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    /// Anthropic's Messages API.
    Anthropic,
    /// OpenAI's Chat Completions API, which other servers have, too.
    OpenAi,
    /// OpenAI's Responses API.
    OpenAiResponses,
    /// Ollama's own API.
    Ollama,
    /// Recorded answers from a file.
    Cassette,
}

impl ProviderKind {
    /// The kinds that have an address, by their names in a configuration.
    pub const WORDS: [(&str, Self); 4] = [
        ("anthropic", Self::Anthropic),
        ("openai", Self::OpenAi),
        ("openai-responses", Self::OpenAiResponses),
        ("ollama", Self::Ollama),
    ];

    /// Returns the part before the slash in `anthropic/claude-sonnet-4-5`.
    pub fn name(self) -> &'static str {
        Self::WORDS.iter().find(|(_, kind)| *kind == self).map_or("cassette", |(word, _)| word)
    }

    /// Returns the variable that the provider's documentation uses for the key.
    pub fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::OpenAi | Self::OpenAiResponses => Some("OPENAI_API_KEY"),
            Self::Ollama | Self::Cassette => None,
        }
    }

    /// Returns the variable that the provider's documentation uses for the address.
    fn url_variable(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("ANTHROPIC_BASE_URL"),
            Self::OpenAi | Self::OpenAiResponses => Some("OPENAI_BASE_URL"),
            Self::Ollama | Self::Cassette => None,
        }
    }
}

/// The way in which a model learns of tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolsMode {
    /// Through the tool calls of its API.
    #[default]
    Native,
    /// In the text of messages, for a model without tool calls.
    Text,
}

/// The source of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPlace {
    /// A variable of the environment.
    Variable(String),
    /// The output of a program.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
        /// The time for which the output is valid; `None` means until it is refused.
        ttl: Option<Duration>,
    },
    /// The content of a file: an absolute path, or one below the home folder that begins with `~/`.
    File(PathBuf),
}

/// A model as a configuration file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSettings {
    /// The API of the model.
    pub provider: ProviderKind,
    /// The provider's name for the model; for a cassette its path, relative to the task file's
    /// folder.
    pub model: String,
    /// The address of the API; `None` for the provider's own.
    pub base_url: Option<String>,
    /// The source of the key; `None` for the provider's own variable.
    pub key: Option<KeyPlace>,
    /// The tier of tasks that the model is for, if set.
    pub tier: Option<Tier>,
    /// The price of its tokens, if set.
    pub price: Option<Price>,
    /// The maximum number of tokens of a conversation, answer included.
    pub max_context_tokens: Option<u64>,
    /// The maximum number of tokens of one answer.
    pub max_output_tokens: Option<u64>,
    /// The maximum number of requests that begin within a minute.
    pub per_minute: Option<NonZeroU32>,
    /// The maximum number of requests at a time.
    pub at_once: Option<NonZeroU32>,
    /// Headers sent with each request.
    pub headers: Headers,
    /// A file with certificates of authorities that are trusted besides the system's; a path as for
    /// keys.
    pub ca_file: Option<PathBuf>,
    /// The proxy to the model; `None` for the proxies of the environment.
    pub proxy: Option<Secret>,
    /// The reasoning effort.
    pub reasoning: Option<Effort>,
    /// The way in which it learns of tools.
    pub tools_mode: ToolsMode,
    /// The time limits of a turn.
    pub clocks: TurnTimeouts,
    /// The maximum number of bytes of one answer on the wire; `None` for the default.
    pub max_response: Option<usize>,
    /// The file that configures the model; for a spelled-out name, the name itself.
    pub origin: String,
}

impl ModelSettings {
    /// Creates a model without further settings; `origin` is the place that names it.
    pub fn new(provider: ProviderKind, model: impl Into<String>, origin: impl Into<String>) -> Self {
        Self {
            provider,
            model: model.into(),
            base_url: None,
            key: None,
            tier: None,
            price: None,
            max_context_tokens: None,
            max_output_tokens: None,
            per_minute: None,
            at_once: None,
            headers: Headers::new(),
            ca_file: None,
            proxy: None,
            reasoning: None,
            tools_mode: ToolsMode::Native,
            clocks: TurnTimeouts::default(),
            max_response: None,
            origin: origin.into(),
        }
    }

    /// Returns the maximum number of tokens of a conversation, if set or published.
    pub fn window(&self) -> Option<u64> {
        self.max_context_tokens.or_else(|| published(self.provider, &self.model).map(|known| known.window))
    }

    /// Returns true if a header of its requests takes the place of a key.
    fn has_key_header(&self) -> bool {
        let is_key = |name: &String| ["authorization", "x-api-key", "api-key"].contains(&name.to_lowercase().as_str());
        self.headers.keys().any(is_key)
    }

    /// Returns true if its address is its provider's own.
    pub fn is_at_home(&self) -> bool {
        let own = match self.provider {
            ProviderKind::Anthropic => "https://api.anthropic.com",
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses => "https://api.openai.com",
            ProviderKind::Ollama | ProviderKind::Cassette => return self.base_url.is_none(),
        };
        let rest = |url: &str| url.strip_prefix(own).map(|rest| matches!(rest.trim_end_matches('/'), "" | "/v1"));
        self.base_url.as_deref().is_none_or(|url| rest(url).unwrap_or(false))
    }

    /// Returns the maximum number of tokens of one answer, if published.
    pub fn largest_output(&self) -> Option<u64> {
        published(self.provider, &self.model).and_then(|known| known.largest_output())
    }

    /// Returns the price of its tokens and the source of the price: the configuration, else what
    /// its provider has published.
    pub fn price(&self) -> Option<(Price, String)> {
        if let Some(price) = self.price {
            return Some((price, self.origin.clone()));
        }
        if !self.is_at_home() {
            return match (self.provider, self.base_url.as_deref().is_some_and(is_loopback)) {
                (ProviderKind::Ollama, true) => Some((Price::default(), "on this machine".into())),
                _ => None, // other servers have their own prices
            };
        }
        match self.provider {
            ProviderKind::Cassette => Some((Price::default(), "recorded answers".into())),
            ProviderKind::Ollama => Some((Price::default(), "on this machine".into())),
            ProviderKind::Anthropic | ProviderKind::OpenAi | ProviderKind::OpenAiResponses => {
                let known = published(self.provider, &self.model)?;
                let price = known.price_up_to(self.window().unwrap_or(known.window));
                Some((price, format!("built in, {PRICES_READ}")))
            }
        }
    }
}

/// A resolved model, with everything that its provider needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// The requested name.
    pub name: String,
    /// The settings of the model, with the effective address and source of the key. There is no
    /// source if no key is needed.
    pub entry: ModelSettings,
    /// The key, if it is in the environment.
    pub key: Option<Secret>,
}

/// The default model if Anthropic's key is set.
const ANTHROPIC_MODEL: &str = "anthropic/claude-sonnet-4-5";
/// The default model if only OpenAI's key is set.
const OPENAI_MODEL: &str = "openai/gpt-5";

/// Resolves a name: a configured model, else `anthropic/…`, `openai/…`, `openai-responses/…`,
/// `ollama/…` or `cassette/<path>`.
///
/// # Errors
/// [`ConfigError`] if the name is unknown, its key or the variable of a header is not set, the
/// source of its key is unclear, or the variable with its base URL is invalid.
pub fn resolve_model(
    name: &str,
    settings: &ProjectConfig,
    environment: &EnvironmentLayer,
) -> Result<ModelChoice, ConfigError> {
    let mut entry = match settings.models.get(name) {
        Some(entry) => entry.clone(),
        None => spelled_out(name).ok_or_else(|| unknown(name, settings))?,
    };
    // A provider's key is for that provider's address. A model elsewhere has its own key, or none.
    let is_foreign = !entry.is_at_home();
    let message = entry.provider.url_variable().filter(|_| entry.base_url.is_none());
    if let Some((variable, url)) = message.and_then(|variable| Some((variable, environment.get(variable)?))) {
        if let Some(why) = url_fault(url) {
            return Err(ConfigError::Variable { name: variable.into(), why });
        }
        entry.base_url = Some(url.to_owned());
    }
    for (header, sent) in &mut entry.headers {
        *sent = found(sent, header, name, environment)?;
    }
    let is_near = entry.key.is_none() && entry.base_url.as_deref().is_some_and(is_loopback);
    let own_key = entry.provider.key_variable().filter(|_| entry.key.is_none());
    match (own_key, &entry.base_url) {
        (Some(variable), Some(url)) if is_foreign && !is_near && !entry.has_key_header() => {
            let (url, variable) = (url.clone(), variable.to_owned());
            return Err(ConfigError::ForeignKey { model: name.into(), url, variable });
        }
        (Some(variable), _) if !is_foreign => entry.key = Some(KeyPlace::Variable(variable.into())),
        (Some(_) | None, _) => {}
    }
    let mut key = None;
    if let Some(KeyPlace::Variable(variable)) = &entry.key {
        key = environment.get(variable).map(Secret::new);
        match (&key, is_near) {
            (None, false) => return Err(ConfigError::NoKey { model: name.into(), variable: variable.clone() }),
            (None, true) => entry.key = None,
            (Some(_), _) => {}
        }
    }
    Ok(ModelChoice { name: name.into(), entry, key })
}

/// Returns the value of a header, read from its variable if it has one.
fn found(
    sent: &SentHeader,
    header: &str,
    model: &str,
    environment: &EnvironmentLayer,
) -> Result<SentHeader, ConfigError> {
    let SentHeader::At(KeyPlace::Variable(variable)) = sent else { return Ok(sent.clone()) };
    let none = || ConfigError::NoValue { header: header.into(), model: model.into(), variable: variable.clone() };
    environment.get(variable).map(|value| SentHeader::Text(Secret::new(value))).ok_or_else(none)
}

/// Returns the name of the model for a task of this tier that names none. A model named in the
/// environment comes first. Then follow the default model if it is for this tier, another model for
/// this tier, and the default model for any tier. If none exists, the key that is set decides. A
/// model without a tier is for code.
///
/// # Errors
/// [`ConfigError::NoModel`], which names the ways to set one.
pub fn auto_name<'s>(
    settings: &'s ProjectConfig,
    tier: Tier,
    environment: &EnvironmentLayer,
) -> Result<&'s str, ConfigError> {
    let default = settings.default_model.as_ref();
    if let Some(model) = default.filter(|model| model.origin == super::MODEL_VARIABLE) {
        return Ok(&model.value);
    }
    let own = |name: &str| settings.models.get(name).and_then(|model| model.tier);
    let suits = default.is_some_and(|model| own(&model.value).unwrap_or(Tier::Code) == tier);
    let other = settings.models.iter().find(|(_, model)| model.tier == Some(tier)).map(|(name, _)| name.as_str());
    match default.map(|model| model.value.as_str()) {
        Some(name) if suits => Ok(name),
        default => other.or(default).or_else(|| by_key(environment)).ok_or(ConfigError::NoModel),
    }
}

fn by_key(environment: &EnvironmentLayer) -> Option<&'static str> {
    let has = |provider: ProviderKind| provider.key_variable().is_some_and(|name| environment.get(name).is_some());
    if has(ProviderKind::Anthropic) {
        return Some(ANTHROPIC_MODEL);
    }
    has(ProviderKind::OpenAi).then_some(OPENAI_MODEL)
}

/// Resolves the model that [`auto_name`] returns.
///
/// # Errors
/// The errors of [`auto_name`] and [`resolve_model`].
pub fn auto_model(
    settings: &ProjectConfig,
    tier: Tier,
    environment: &EnvironmentLayer,
) -> Result<ModelChoice, ConfigError> {
    resolve_model(auto_name(settings, tier, environment)?, settings, environment)
}

/// Returns the settings of a name such as `provider/model`, with all defaults.
fn spelled_out(name: &str) -> Option<ModelSettings> {
    let (provider, model) = name.split_once('/').filter(|(_, model)| !model.trim().is_empty())?;
    let known = ProviderKind::WORDS.iter().find(|(word, _)| *word == provider).map(|(_, kind)| *kind);
    let provider = known.or((provider == "cassette").then_some(ProviderKind::Cassette))?;
    Some(ModelSettings::new(provider, model, name))
}

/// Returns a suggestion with the full name of a known model, for a name without its provider.
fn published_as(name: &str) -> Option<String> {
    let of = |kind: ProviderKind| all_published(kind).map(move |known| (kind, known.model));
    let all: Vec<_> = [ProviderKind::Anthropic, ProviderKind::OpenAi].into_iter().flat_map(of).collect();
    let near = nearest(name, all.iter().map(|(_, model)| *model))?;
    let (kind, model) = all.iter().find(|(_, model)| *model == near)?;
    Some(format!("did you mean `{}/{model}`?", kind.name()))
}

fn unknown(name: &str, settings: &ProjectConfig) -> ConfigError {
    let providers = || ProviderKind::WORDS.iter().map(|(word, _)| *word).chain(["cassette"]);
    let mut hints = Vec::new();
    let example = |kind: ProviderKind| match kind {
        ProviderKind::Anthropic => ANTHROPIC_MODEL,
        ProviderKind::OpenAi => OPENAI_MODEL,
        ProviderKind::OpenAiResponses => "openai-responses/gpt-5",
        ProviderKind::Ollama => "ollama/qwen3",
        ProviderKind::Cassette => "cassette/answers.yaml",
    };
    let kinds = ProviderKind::WORDS.iter().map(|(_, kind)| *kind).chain([ProviderKind::Cassette]);
    let provider = kinds.into_iter().find(|kind| kind.name() == name.trim_end_matches('/'));
    if let Some(provider) = provider {
        let hint = format!("this is a provider: add the model, e.g. `{}`", example(provider));
        return ConfigError::UnknownModel { name: name.into(), hint };
    }
    match name.split_once('/') {
        Some((provider, model)) if !providers().any(|known| known == provider) => {
            hints.extend(nearest(provider, providers()).map(|near| format!("did you mean `{near}/{model}`?")));
        }
        _ => {
            let near = nearest(name, settings.models.keys().map(String::as_str));
            hints.extend(near.map(|near| format!("did you mean `{near}`?")).or_else(|| published_as(name)));
        }
    }
    if !settings.models.is_empty() {
        let all: Vec<&str> = settings.models.keys().map(String::as_str).collect();
        hints.push(format!("configured: {}", all.join(", ")));
    }
    let default = settings.default_model.as_ref().filter(|default| default.value == name);
    hints.extend(default.map(|default| match default.origin == super::MODEL_VARIABLE {
        true => format!("the name comes from {}", default.origin),
        false => format!("the name comes from `default_model`, {}", default.origin),
    }));
    let ways: Vec<String> = ProviderKind::WORDS.iter().map(|(word, _)| format!("`{word}/<model>`")).collect();
    let or = if hints.is_empty() { "" } else { "or " };
    hints.push(format!("{or}write {} or `cassette/<path>`", ways.join(", ")));
    ConfigError::UnknownModel { name: name.into(), hint: hints.join("; ") }
}
