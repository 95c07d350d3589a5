//! Connections to models: resolves names, reads settings, fetches keys, and shares the rate limits.

mod again;

use super::failure::CliError;
use super::runtime::block_on;
use crate::config::{
    self, ConfigError, EnvironmentLayer, KeyPlace, ModelChoice, ModelSettings, ProviderKind, SentHeader, ToolsMode,
    auto_name, resolve_model,
};
use crate::driver::DriverModel;
use crate::limits::{Limits, MAX_CASSETTE};
use crate::process::Variables;
use crate::provider::{
    self, Endpoint, KeyCommand, KeyCommands, Pacer, Provider, RateLimit, Secret, SecretListener, TextTools, WireFormat,
};
use crate::run::ModelTerms;
use crate::store;
use crate::task::Tier;
use crate::tool::LateSecrets;
use anyhow::{Context, anyhow};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(super) use again::again;
use again::place_of;

/// The maximum number of bytes of a key in a file.
const LONGEST_KEY: u64 = 16 * 1024;

/// Connected models and those secrets that are in no variable, including secrets fetched later.
pub(super) type ConnectedModels = (Vec<DriverModel>, LateSecrets);

/// The requested models.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestedModels<'a> {
    /// Their names in order of preference; if empty, the configured model for the tier.
    pub(super) names: &'a [String],
    /// The tier of the task.
    pub(super) tier: Tier,
    /// The folder of cassettes.
    pub(super) folder: &'a Path,
}

/// A connection in the making.
struct Making<'a> {
    name: &'a str,
    environment: &'a EnvironmentLayer,
    told: SecretListener,
}

/// Connects models by name; without names, the configured one.
///
/// # Errors
/// When a name is unknown, a key is unavailable, or the settings of a model do not work.
pub(super) fn connect_models(
    asked: &RequestedModels<'_>,
    set: &config::ProjectConfig,
    environment: &EnvironmentLayer,
    pacer: &Pacer,
) -> Result<ConnectedModels, CliError> {
    let choices = choices(asked, set, environment)?;
    let late = LateSecrets::default();
    let models = choices.into_iter().map(|choice| connect(choice, asked, set, environment, pacer, &late));
    Ok((models.collect::<Result<_, _>>()?, late))
}

/// Models that several runs share. Cassettes are connected anew for each run, which plays them from
/// their start.
#[derive(Debug)]
pub(super) struct SharedModels {
    models: Vec<Result<DriverModel, ModelChoice>>,
    keys: LateSecrets,
}

impl SharedModels {
    /// Connects models like [`connect_models`].
    ///
    /// # Errors
    /// Those of [`connect_models`].
    pub(super) fn connect(
        asked: &RequestedModels<'_>,
        set: &config::ProjectConfig,
        environment: &EnvironmentLayer,
        pacer: &Pacer,
    ) -> Result<Self, CliError> {
        let choices = choices(asked, set, environment)?;
        let keys = LateSecrets::default();
        let model = |choice: ModelChoice| {
            let model = connect(choice.clone(), asked, set, environment, pacer, &keys)?;
            Ok(if choice.entry.provider == ProviderKind::Cassette { Err(choice) } else { Ok(model) })
        };
        let models = choices.into_iter().map(model).collect::<Result<_, CliError>>()?;
        Ok(Self { models, keys })
    }

    /// Returns the models for one run.
    ///
    /// # Errors
    /// When a cassette does not exist any more.
    pub(super) fn models(
        &self,
        asked: &RequestedModels<'_>,
        set: &config::ProjectConfig,
        environment: &EnvironmentLayer,
    ) -> Result<Vec<DriverModel>, CliError> {
        let model = |model: &Result<DriverModel, ModelChoice>| match model {
            Ok(model) => Ok(model.clone()),
            Err(choice) => connect(choice.clone(), asked, set, environment, &Pacer::default(), &self.keys),
        };
        self.models.iter().map(model).collect()
    }

    /// Renews the keys that expire within `ahead`. A failure does not stop the others.
    ///
    /// # Errors
    /// The keys that cannot be renewed, and why.
    pub(super) async fn renew(&self, ahead: Duration) -> Result<(), String> {
        let mut wrong = Vec::new();
        for model in self.models.iter().flatten() {
            wrong.extend(model.provider.renew(ahead).await.err().map(|error| error.message));
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
    }

    /// The keys that do not come from the environment.
    pub(super) fn keys(&self) -> &LateSecrets {
        &self.keys
    }
}

/// Resolves the names of models. Reports every wrong name before any program runs for a key.
///
/// # Errors
/// When a name is unknown.
pub(super) fn choices(
    asked: &RequestedModels<'_>,
    set: &config::ProjectConfig,
    environment: &EnvironmentLayer,
) -> Result<Vec<ModelChoice>, CliError> {
    let names = match asked.names {
        [] => vec![auto_name(set, asked.tier, environment).map_err(CliError::input)?.to_owned()],
        names => names.to_vec(),
    };
    let choices: Result<Vec<ModelChoice>, _> = names.iter().map(|name| resolve_model(name, set, environment)).collect();
    choices.map_err(CliError::input)
}

/// Checks models without running a program for a key, as far as that is possible. Returns notes
/// about missing keys.
///
/// # Errors
/// Those of [`connect_models`], except for a missing key.
pub(super) fn check_models(
    asked: &RequestedModels<'_>,
    set: &config::ProjectConfig,
    environment: &EnvironmentLayer,
) -> Result<Vec<String>, CliError> {
    let note = |fault: &ConfigError| format!("the run itself would be refused: {fault}");
    let names = match asked.names {
        [] => match auto_name(set, asked.tier, environment) {
            Ok(name) => vec![name.to_owned()],
            Err(fault) => return Ok(vec![note(&fault)]),
        },
        names => names.to_vec(),
    };
    let mut notes = Vec::new();
    for name in &names {
        match resolve_model(name, set, environment) {
            Err(fault @ (ConfigError::NoKey { .. } | ConfigError::NoValue { .. })) => notes.push(note(&fault)),
            Err(fault) => return Err(CliError::input(fault)),
            Ok(choice) if runs_program(&choice.entry) => {}
            Ok(choice) => {
                connect(choice, asked, set, environment, &Pacer::default(), &LateSecrets::default())?;
            }
        }
    }
    Ok(notes)
}

/// Returns true if a program prints the key of a model, or a header.
fn runs_program(entry: &ModelSettings) -> bool {
    let is_program = |place: &KeyPlace| matches!(place, KeyPlace::Command { .. });
    let headers = entry.headers.values().any(|sent| matches!(sent, SentHeader::At(place) if is_program(place)));
    headers || entry.key.as_ref().is_some_and(is_program)
}

/// Connects one model. Adds secrets that are in no variable to `late`.
///
/// # Errors
/// When its key is unavailable, one of its files cannot be read, or its endpoint is invalid.
pub(super) fn connect(
    choice: ModelChoice,
    asked: &RequestedModels<'_>,
    set: &config::ProjectConfig,
    environment: &EnvironmentLayer,
    pacer: &Pacer,
    late: &LateSecrets,
) -> Result<DriverModel, CliError> {
    let ModelChoice { name, entry, key } = choice;
    let terms = ModelTerms {
        price: entry.price().map(|(price, _)| price),
        context_window: entry.window(),
        max_output_tokens: entry.max_output_tokens,
        largest_output: entry.largest_output(),
        compact_at_percent: None,
    };
    let told: SecretListener = {
        let late = late.clone();
        Arc::new(move |secret| late.add(secret.reveal()))
    };
    let rate = RateLimit {
        per_minute: entry.per_minute,
        at_once: entry.at_once,
        max_wait: Duration::from_millis(set.defaults.max_wait_ms.unwrap_or(Limits::default().max_wait_ms)),
    };
    let (place, is_recorded) = (shared(&entry, key.as_ref(), environment), entry.provider == ProviderKind::Cassette);
    let (tools_mode, asked_at) = (entry.tools_mode, place_of(&name, &entry, set));
    let making = Making { name: &name, environment, told };
    let provider = making.provider(entry, key, asked.folder)?;
    let bounds = provider.bounds().unwrap_or_default();
    let terms = ModelTerms {
        context_window: terms.context_window.or(bounds.window),
        max_output_tokens: terms.max_output_tokens.or(bounds.max_output),
        compact_at_percent: bounds.compact_at,
        ..terms
    };
    let provider = if is_recorded { provider } else { pacer.pace(provider, &place, rate) };
    let provider: Arc<dyn Provider> = match tools_mode {
        ToolsMode::Native => provider,
        ToolsMode::Text => Arc::new(TextTools::new(provider)),
    };
    Ok(DriverModel { provider, terms, place: asked_at })
}

impl Making<'_> {
    /// Returns the provider, after reading all that it sends.
    fn provider(self, entry: ModelSettings, key: Option<Secret>, folder: &Path) -> Result<Arc<dyn Provider>, CliError> {
        let mut commands = KeyCommands::default();
        let key = match &entry.key {
            Some(KeyPlace::Variable(_)) | None => key,
            Some(place) => self.at(place, |command| commands.key = Some(command))?,
        };
        let mut headers = Vec::new();
        for (header, sent) in &entry.headers {
            let value = match sent {
                SentHeader::Text(text) => Some(text.clone()),
                SentHeader::At(place) => self.at(place, |command| commands.headers.push((header.clone(), command)))?,
            };
            headers.extend(value.map(|value| (header.clone(), value)));
        }
        let key_from = whence(&entry);
        let endpoint = Endpoint { headers, key_from, ..endpoint(self.name, entry, key, folder, self.environment)? };
        if commands.is_empty() {
            return provider::connect(endpoint).map_err(CliError::input);
        }
        let fetched = block_on(commands.fetch(endpoint, &self.told))?;
        let endpoint = fetched.map_err(|why| CliError::input(anyhow!("the model `{}`: {why}", self.name)))?;
        provider::connect_keyed(endpoint, commands, self.told).map_err(CliError::input)
    }

    /// Returns the value from a file or a variable. Passes a program to `later`.
    fn at(&self, place: &KeyPlace, later: impl FnOnce(KeyCommand)) -> Result<Option<Secret>, CliError> {
        match place {
            KeyPlace::Variable(name) => Ok(self.environment.get(name).map(Secret::new)),
            KeyPlace::File(path) => {
                let key = key_in(&self.environment.path(path))?;
                (self.told)(&key);
                Ok(Some(key))
            }
            KeyPlace::Command { command, ttl } => {
                let env = Variables::new(self.environment.all().clone());
                later(KeyCommand { command: command.clone(), env, ttl: *ttl });
                Ok(None)
            }
        }
    }
}

/// Names the source of a model's key for people. Omits a program's arguments, which may hold a
/// secret.
fn whence(entry: &ModelSettings) -> Option<String> {
    Some(match &entry.key {
        Some(KeyPlace::Variable(name)) => format!("the key in {name}"),
        Some(KeyPlace::File(path)) => format!("the key in {}", path.display()),
        Some(KeyPlace::Command { command, .. }) => format!("the key that `{}` prints", command.first()?),
        None => format!("the key in {}", entry.provider.key_variable()?),
    })
}

/// Returns the identity of a model's rate limits. Models share limits if they have the same
/// address, key and headers, because some headers name the account. Includes secrets only as a
/// digest.
fn shared(entry: &ModelSettings, key: Option<&Secret>, environment: &EnvironmentLayer) -> String {
    let at = |place: &KeyPlace| match place {
        KeyPlace::Variable(name) => environment.get(name).unwrap_or_default().to_owned(),
        KeyPlace::File(path) => path.display().to_string(),
        KeyPlace::Command { command, .. } => command.join("\0"),
    };
    let key = key.map(|key| key.reveal().to_owned()).or_else(|| entry.key.as_ref().map(at));
    let sent = |(name, sent): (&String, &SentHeader)| {
        let value = match sent {
            SentHeader::Text(text) => text.reveal().to_owned(),
            SentHeader::At(place) => at(place),
        };
        format!("{name}\0{value}")
    };
    let whose: Vec<String> = std::iter::once(key.unwrap_or_default()).chain(entry.headers.iter().map(sent)).collect();
    format!("{} {}", address(entry).trim_end_matches('/'), store::sha256(whose.join("\0\0").as_bytes()))
}

/// Returns the address of a model, or the name of its provider.
fn address(entry: &ModelSettings) -> String {
    let own = match entry.provider {
        ProviderKind::OpenAi | ProviderKind::OpenAiResponses => "openai",
        ProviderKind::Anthropic | ProviderKind::Ollama | ProviderKind::Cassette => entry.provider.name(),
    };
    entry.base_url.clone().unwrap_or_else(|| own.to_owned())
}

fn endpoint(
    name: &str,
    entry: ModelSettings,
    key: Option<Secret>,
    folder: &Path,
    environment: &EnvironmentLayer,
) -> Result<Endpoint, CliError> {
    let kind = match entry.provider {
        ProviderKind::Anthropic => WireFormat::Anthropic,
        ProviderKind::OpenAi => WireFormat::OpenAi,
        ProviderKind::OpenAiResponses => WireFormat::OpenAiResponses,
        ProviderKind::Ollama => WireFormat::Ollama,
        ProviderKind::Cassette => {
            let path = folder.join(&entry.model);
            let text = store::read_text(&path, MAX_CASSETTE).map_err(CliError::input)?;
            let text = text.ok_or_else(|| {
                let missing = CliError::no_file("cassette", path.strip_prefix(".").unwrap_or(&path));
                missing.or_hint("the path begins at the task's folder; record a cassette with `--record FILE`")
            })?;
            WireFormat::Cassette { text, path: path.strip_prefix(".").unwrap_or(&path).display().to_string() }
        }
    };
    let ca_file = entry.ca_file.as_ref().map(|path| {
        let path = environment.path(path);
        std::fs::read(&path).with_context(|| format!("the model `{name}`: cannot read its ca_file {}", path.display()))
    });
    let usual = Endpoint::new(kind, entry.model.clone());
    Ok(Endpoint {
        key,
        base_url: entry.base_url.clone(),
        proxy: entry.proxy.clone(),
        ca_file: ca_file.transpose().map_err(CliError::input)?,
        max_output_tokens: entry.max_output_tokens,
        context_window: entry.window(),
        reasoning: entry.reasoning,
        clocks: entry.clocks,
        max_response: entry.max_response.unwrap_or(usual.max_response),
        ..usual
    })
}

/// Reads a key from a file that no other user may read.
pub(super) fn key_in(path: &Path) -> Result<Secret, CliError> {
    let refused = |why: &str| CliError::input(anyhow!("the key file {}: {why}", path.display()));
    let unread = |error: std::io::Error| refused(&error.to_string());
    if !path.metadata().map_err(unread)?.is_file() {
        return Err(refused("not a regular file")); // reading a pipe could block
    }
    let file = File::open(path).map_err(unread)?;
    let mode = file.metadata().map_err(unread)?.permissions().mode();
    if mode & 0o044 != 0 {
        return Err(refused(&format!("others can read it (mode {:03o})", mode & 0o777)).hint("run `chmod 600` on it"));
    }
    let mut text = String::new();
    file.take(LONGEST_KEY + 1).read_to_string(&mut text).map_err(|_| refused("not UTF-8 text"))?;
    match text.trim() {
        "" => Err(refused("the file is empty")),
        key if key.len() as u64 > LONGEST_KEY || key.chars().any(char::is_control) => {
            Err(refused("the file has more than one line with a key"))
        }
        key => Ok(Secret::new(key)),
    }
}

/// Returns the state of a model's key and its place, never the key itself.
pub(super) fn key_of(model: &ModelSettings, environment: &EnvironmentLayer) -> (&'static str, Option<String>) {
    let variable = model.provider.key_variable().map(|name| KeyPlace::Variable(name.into()));
    match model.key.clone().or(variable) {
        Some(KeyPlace::Variable(name)) if environment.get(&name).is_some() => ("set", Some(name)),
        Some(KeyPlace::Variable(name)) => ("not set", Some(name)),
        Some(KeyPlace::Command { .. }) => ("command", None),
        Some(KeyPlace::File(path)) => ("file", Some(path.display().to_string())),
        None => ("no key", None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn error_text(failure: Result<Secret, CliError>) -> String {
        failure.map_or_else(|failure| failure.message(), |key| key.reveal().to_owned())
    }

    #[test]
    fn a_key_file_holds_one_line_that_only_its_owner_may_read() {
        let folder = crate::test_support::temp_dir();
        let path = folder.path().join("key");
        let written = |text: &[u8], mode: u32| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            error_text(key_in(&path)).replace(&path.display().to_string(), "K")
        };
        assert_eq!(written(b"sk-1\n", 0o600), "sk-1");
        assert_eq!(written(b"sk-1\n", 0o640), "the key file K: others can read it (mode 640)");
        assert_eq!(written(b"sk-1\n", 0o604), "the key file K: others can read it (mode 604)");
        assert_eq!(written(b" \n", 0o600), "the key file K: the file is empty");
        assert_eq!(written(b"a\nb\n", 0o600), "the key file K: the file has more than one line with a key");
        assert!(error_text(key_in(folder.path())).ends_with("not a regular file"));
    }

    #[test]
    fn each_key_has_limits_of_its_own_wherever_it_comes_from() {
        let environment = EnvironmentLayer::from_vars([("ONE", "k-1"), ("SAME", "k-1"), ("OTHER", "k-2")]);
        let entry = |key: Option<KeyPlace>| ModelSettings {
            key,
            ..ModelSettings::new(ProviderKind::OpenAi, "m", "config.yaml")
        };
        let of = |entry: &ModelSettings| shared(entry, None, &environment);
        let by = |name: &str| of(&entry(Some(KeyPlace::Variable(name.into()))));
        let (one, file) = (by("ONE"), of(&entry(Some(KeyPlace::File("/k".into())))));
        assert_eq!(one, by("SAME"));
        assert_eq!(one, shared(&entry(None), Some(&Secret::new("k-1")), &environment));
        let mut team = entry(Some(KeyPlace::Variable("ONE".into())));
        team.headers.insert("openai-organization".into(), SentHeader::Text(Secret::new("blue")));
        let near = ModelSettings { base_url: Some("http://near/v1/".into()), ..entry(None) };
        let all = [one, by("OTHER"), file, of(&team), of(&near), of(&entry(None))];
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len(), "{all:?}");
        assert!(!all.concat().contains("k-1"));
        let slashless = ModelSettings { base_url: Some("http://near/v1".into()), ..entry(None) };
        assert_eq!(of(&near), of(&slashless));
    }
}
