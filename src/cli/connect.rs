//! From names to models that can be asked: what is configured of each is read, its key is fetched, and all share one pace.

use super::block_on;
use super::failure::Failure;
use super::run::task_folder;
use super::runs::Place;
use crate::config::{
    self, Environment, KeyPlace, ModelChoice, ModelSettings, ProviderKind, ToolsMode, auto_name, resolve_model,
};
use crate::driver::{Model, Terms};
use crate::limits::{Limits, MAX_SOURCE};
use crate::process::Variables;
use crate::provider::{self, Endpoint, KeyCommand, Kind, Pacer, Provider, Rate, Secret, TextTools};
use crate::run::ModelTerms;
use crate::store::{self, RunRow};
use crate::task::Tier;
use anyhow::{Context, anyhow};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of the longest key in a file.
const LONGEST_KEY: u64 = 16 * 1024;

/// Models that can be asked, and their keys as far as they are in no variable.
pub(super) type Connected = (Vec<Model>, Vec<Secret>);

/// Which models are wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    /// Their names, in order of preference; none: the one that is configured for the tier.
    pub(super) names: &'a [String],
    /// What the task may do.
    pub(super) tier: Tier,
    /// Where cassettes are.
    pub(super) folder: &'a Path,
}

/// Connects models by their names; without any, the one that is configured.
///
/// # Errors
/// When a name means nothing, a key is not to be had, or a model cannot be reached as it is configured.
pub(super) fn connect_models(
    asked: &Asked<'_>,
    set: &config::Settings,
    environment: &Environment,
    pacer: &Pacer,
) -> Result<Connected, Failure> {
    let names = match asked.names {
        [] => vec![auto_name(set, asked.tier, environment).map_err(Failure::input)?.to_owned()],
        names => names.to_vec(),
    };
    // All that can be wrong with names is told before a program is run for a key.
    let choices: Result<Vec<ModelChoice>, _> = names.iter().map(|name| resolve_model(name, set, environment)).collect();
    let (mut models, mut keys) = (Vec::new(), Vec::new());
    for choice in choices.map_err(Failure::input)? {
        let (model, key) = connect(choice, asked.folder, environment, pacer)?;
        models.push(model);
        keys.extend(key);
    }
    Ok((models, keys))
}

/// The same for a run that is taken up or continued: by the names that were asked for where they were, else those that answer to what it
/// worked with then.
///
/// # Errors
/// As those of [`connect_models`].
pub(super) fn again(
    row: &RunRow,
    terms: &Terms,
    place: &Place<'_>,
    environment: &Environment,
    pacer: &Pacer,
) -> Result<Connected, Failure> {
    let task = &terms.task;
    let names = match task.models.as_slice() {
        [] => row.head.models.iter().map(|model| as_it_was(model, place.set, task.tier, environment)).collect(),
        names => names.to_vec(),
    };
    let folder = place.workspace.join(task_folder(&task.source));
    connect_models(&Asked { names: &names, tier: task.tier, folder: &folder }, place.set, environment, pacer)
}

/// The name by which a model is configured that was `provider/model` then; what would be chosen today comes first.
fn as_it_was(model: &str, set: &config::Settings, tier: Tier, environment: &Environment) -> String {
    let today = auto_name(set, tier, environment).ok();
    let names = today.into_iter().chain(set.models.keys().map(String::as_str));
    let is_it = |entry: &ModelSettings| format!("{}/{}", entry.provider.name(), entry.model) == model;
    let mut known = names.filter(|name| set.models.get(*name).is_some_and(is_it));
    known.next().unwrap_or(model).to_owned()
}

/// Connects one model; with its key, where that is in no variable.
///
/// # Errors
/// When its key is not to be had, a file of it cannot be read, or its endpoint cannot work as it is written.
pub(super) fn connect(
    choice: ModelChoice,
    folder: &Path,
    environment: &Environment,
    pacer: &Pacer,
) -> Result<(Model, Option<Secret>), Failure> {
    let ModelChoice { name, entry, key } = choice;
    let terms = ModelTerms {
        price: entry.price().map(|(price, _)| price),
        context_window: entry.window(),
        max_output_tokens: entry.max_output_tokens,
        largest_output: entry.largest_output(),
    };
    let (key, command) = match &entry.key {
        Some(KeyPlace::Variable(_)) | None => (key, None),
        Some(KeyPlace::File(path)) => (Some(key_in(&environment.path(path))?), None),
        Some(KeyPlace::Command { command, ttl }) => {
            let env = Variables::new(environment.all().clone());
            let command = KeyCommand { command: command.clone(), env, ttl: *ttl };
            let key =
                block_on(command.run())?.map_err(|fault| Failure::input(anyhow!("the model `{name}`: {fault}")))?;
            (Some(key), Some(command))
        }
    };
    let elsewhere = key.clone().filter(|_| !matches!(entry.key, Some(KeyPlace::Variable(_)) | None));
    let rate = Rate {
        per_minute: entry.per_minute,
        at_once: entry.at_once,
        max_wait: Duration::from_millis(Limits::default().max_wait_ms),
    };
    let (address, is_recorded) = (address(&entry), entry.provider == ProviderKind::Cassette);
    let tools_mode = entry.tools_mode;
    let endpoint = endpoint(&name, entry, key, folder, environment)?;
    let provider = match command {
        Some(command) => provider::connect_keyed(endpoint, command),
        None => provider::connect(endpoint),
    };
    let provider = provider.map_err(Failure::input)?;
    let provider = if is_recorded { provider } else { pacer.pace(provider, &address, rate) };
    let provider: Arc<dyn Provider> = match tools_mode {
        ToolsMode::Native => provider,
        ToolsMode::Text => Arc::new(TextTools::new(provider)),
    };
    Ok((Model { provider, terms }, elsewhere))
}

/// What a model shares with all others at the same place.
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
    environment: &Environment,
) -> Result<Endpoint, Failure> {
    let kind = match entry.provider {
        ProviderKind::Anthropic => Kind::Anthropic,
        ProviderKind::OpenAi => Kind::OpenAi,
        ProviderKind::OpenAiResponses => Kind::OpenAiResponses,
        ProviderKind::Ollama => Kind::Ollama,
        ProviderKind::Cassette => {
            let path = folder.join(&entry.model);
            let text = store::read_text(&path, MAX_SOURCE).map_err(Failure::input)?;
            Kind::Cassette {
                text: text.ok_or_else(|| Failure::input(anyhow!("there is no cassette {}", path.display())))?,
            }
        }
    };
    let ca_file = entry.ca_file.as_ref().map(|path| {
        let path = environment.path(path);
        std::fs::read(&path).with_context(|| format!("the model `{name}`: cannot read its ca_file {}", path.display()))
    });
    Ok(Endpoint {
        key,
        base_url: entry.base_url.clone(),
        headers: entry.headers.clone().into_iter().collect(),
        proxy: entry.proxy.clone(),
        ca_file: ca_file.transpose().map_err(Failure::input)?,
        max_output_tokens: entry.max_output_tokens,
        context_window: entry.window(),
        reasoning: entry.reasoning,
        ..Endpoint::new(kind, entry.model)
    })
}

/// The key in a file that nobody else may read.
fn key_in(path: &Path) -> Result<Secret, Failure> {
    let refused = |why: &str| Failure::input(anyhow!("the key file {}: {why}", path.display()));
    let unread = |error: std::io::Error| refused(&error.to_string());
    if !path.metadata().map_err(unread)?.is_file() {
        return Err(refused("it is no regular file")); // a pipe would keep us waiting
    }
    let file = File::open(path).map_err(unread)?;
    let mode = file.metadata().map_err(unread)?.permissions().mode();
    if mode & 0o044 != 0 {
        return Err(refused(&format!("others may read it (mode {:03o})", mode & 0o777)).hint("run `chmod 600` on it"));
    }
    let mut text = String::new();
    file.take(LONGEST_KEY + 1).read_to_string(&mut text).map_err(|_| refused("it is no text"))?;
    match text.trim() {
        "" => Err(refused("it is empty")),
        key if key.len() as u64 > LONGEST_KEY || key.chars().any(char::is_control) => {
            Err(refused("it holds more than one line with a key"))
        }
        key => Ok(Secret::new(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn said(failure: Result<Secret, Failure>) -> String {
        failure.map_or_else(|failure| failure.message(), |key| key.reveal().to_owned())
    }

    #[test]
    fn a_key_file_holds_one_line_that_only_its_owner_may_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let written = |text: &[u8], mode: u32| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            said(key_in(&path)).replace(&path.display().to_string(), "K")
        };
        assert_eq!(written(b"sk-1\n", 0o600), "sk-1");
        assert_eq!(written(b"sk-1\n", 0o640), "the key file K: others may read it (mode 640)");
        assert_eq!(written(b"sk-1\n", 0o604), "the key file K: others may read it (mode 604)");
        assert_eq!(written(b" \n", 0o600), "the key file K: it is empty");
        assert_eq!(written(b"a\nb\n", 0o600), "the key file K: it holds more than one line with a key");
        assert!(said(key_in(folder.path())).ends_with("it is no regular file"));
    }

    #[test]
    fn a_run_that_is_taken_up_works_with_the_model_that_is_configured_for_what_it_worked_with() {
        let mut set = config::Settings::default();
        let entry = |model: &str| ModelSettings::new(ProviderKind::OpenAi, model, "config.yaml");
        set.models = [("a", "m"), ("b", "m"), ("c", "n")].map(|(name, model)| (name.to_owned(), entry(model))).into();
        let was = |model: &str, default: &str| {
            let environment = Environment::from_vars([("OPENAI_API_KEY", "k")]);
            let set = config::Settings {
                default_model: Some(config::Sourced { value: default.into(), origin: "config.yaml".into() }),
                ..set.clone()
            };
            as_it_was(model, &set, Tier::Code, &environment)
        };
        assert_eq!([was("openai/m", "b"), was("openai/m", "c"), was("openai/other", "b")], ["b", "a", "openai/other"]);
    }
}
