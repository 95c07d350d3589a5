//! What a model's name means: a provider, its address and its key. Pure: settings and captured environment in, a choice out.

use super::url::{is_loopback, url_fault};
use super::{ConfigFault, Environment, Settings};
use crate::yaml::nearest;
use std::collections::BTreeMap;
use std::fmt;

/// Which API speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    /// Anthropic's Messages API.
    Anthropic,
    /// OpenAI's Chat Completions API, and whoever speaks it too.
    OpenAi,
    /// Recorded answers from a file.
    Cassette,
}

impl ProviderKind {
    /// The variable that its own documentation puts the key into.
    pub fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::OpenAi => Some("OPENAI_API_KEY"),
            Self::Cassette => None,
        }
    }
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A model as a configuration file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSettings {
    /// Which API speaks.
    pub provider: ProviderKind,
    /// The provider's name for the model.
    pub model: String,
    /// Where the API is; the provider's own place otherwise.
    pub base_url: Option<String>,
    /// The variable that holds the key; the provider's own otherwise.
    pub key_variable: Option<String>,
    /// The most tokens of one answer.
    pub max_output_tokens: Option<u64>,
    /// Headers sent with each request.
    pub headers: BTreeMap<String, Secret>,
    /// The file that says so.
    pub origin: String,
}

/// Everything that a provider needs to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// Which API speaks.
    pub provider: ProviderKind,
    /// The provider's name for the model; for a cassette its path, relative to the task file's folder.
    pub model: String,
    /// Where the API is; the provider's own place otherwise.
    pub base_url: Option<String>,
    /// The key. None is needed on this machine.
    pub key: Option<Secret>,
    /// The variable it comes from, or would.
    pub key_variable: Option<String>,
    /// Headers sent with each request.
    pub headers: BTreeMap<String, Secret>,
    /// The most tokens of one answer.
    pub max_output_tokens: Option<u64>,
}

/// The model chosen by default where only this key is set.
const ANTHROPIC_MODEL: &str = "anthropic/claude-sonnet-4-5";
/// The same for the other one.
const OPENAI_MODEL: &str = "openai/gpt-5";

/// What a name means: a configured model, else `anthropic/…`, `openai/…` or `cassette/<path>`.
///
/// # Errors
/// [`ConfigFault`] where it means nothing, its key is not set, or the variable with its base URL is wrong.
pub fn resolve_model(name: &str, settings: &Settings, environment: &Environment) -> Result<ModelChoice, ConfigFault> {
    let entry = match settings.models.get(name) {
        Some(entry) => entry.clone(),
        None => spelled_out(name).ok_or_else(|| unknown(name, settings))?,
    };
    let url_variable = match entry.provider {
        ProviderKind::Anthropic => Some("ANTHROPIC_BASE_URL"),
        ProviderKind::OpenAi => Some("OPENAI_BASE_URL"),
        ProviderKind::Cassette => None,
    };
    let from_environment = url_variable.and_then(|variable| environment.get(variable).map(|url| (variable, url)));
    if let (None, Some((name, url))) = (&entry.base_url, from_environment)
        && let Some(why) = url_fault(url)
    {
        return Err(ConfigFault::Variable { name: name.into(), why });
    }
    let base_url = entry.base_url.or_else(|| from_environment.map(|(_, url)| url.to_owned()));
    let named = entry.key_variable.is_some();
    let key_variable = entry.key_variable.or_else(|| entry.provider.key_variable().map(str::to_owned));
    let key = key_variable.as_deref().and_then(|variable| environment.get(variable)).map(Secret::new);
    let keyless = !named && base_url.as_deref().is_some_and(is_loopback);
    if let (None, Some(variable), false) = (&key, &key_variable, keyless) {
        return Err(ConfigFault::NoKey { model: name.into(), variable: variable.clone() });
    }
    let (provider, model) = (entry.provider, entry.model);
    let (headers, max_output_tokens) = (entry.headers, entry.max_output_tokens);
    Ok(ModelChoice { provider, model, base_url, key, key_variable, headers, max_output_tokens })
}

/// The model of a task that names none: the configured one, else by the key that is set.
///
/// # Errors
/// [`ConfigFault::NoModel`], which says the ways to set one; and what [`resolve_model`] says.
pub fn auto_model(settings: &Settings, environment: &Environment) -> Result<ModelChoice, ConfigFault> {
    let name = match &settings.default_model {
        Some(model) => model.value.as_str(),
        None if environment.anthropic_key().is_some() => ANTHROPIC_MODEL,
        None if environment.openai_key().is_some() => OPENAI_MODEL,
        None => return Err(ConfigFault::NoModel),
    };
    resolve_model(name, settings, environment)
}

/// `provider/model` as an entry with everything left to its defaults.
fn spelled_out(name: &str) -> Option<ModelSettings> {
    let (provider, model) = name.split_once('/').filter(|(_, model)| !model.trim().is_empty())?;
    let provider = match provider {
        "anthropic" => ProviderKind::Anthropic,
        "openai" => ProviderKind::OpenAi,
        "cassette" => ProviderKind::Cassette,
        _ => return None,
    };
    let (base_url, key_variable, max_output_tokens) = (None, None, None);
    let (headers, origin) = (BTreeMap::new(), name.into());
    Some(ModelSettings { provider, model: model.into(), base_url, key_variable, max_output_tokens, headers, origin })
}

fn unknown(name: &str, settings: &Settings) -> ConfigFault {
    let providers = ["anthropic", "openai", "cassette"];
    let mut hints = Vec::new();
    match name.split_once('/') {
        Some((provider, model)) if !providers.contains(&provider) => {
            hints.extend(nearest(provider, providers).map(|near| format!("did you mean `{near}/{model}`?")));
        }
        _ => {
            let near = nearest(name, settings.models.keys().map(String::as_str));
            hints.extend(near.map(|near| format!("did you mean `{near}`?")));
        }
    }
    if !settings.models.is_empty() {
        let all: Vec<&str> = settings.models.keys().map(String::as_str).collect();
        hints.push(format!("configured: {}", all.join(", ")));
    }
    hints.push("or write `anthropic/<model>`, `openai/<model>` or `cassette/<path>`".into());
    ConfigFault::UnknownModel { name: name.into(), hint: hints.join("; ") }
}
