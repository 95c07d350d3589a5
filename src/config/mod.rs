//! The operator's settings: layers of files and environment, merged into [`ProjectConfig`], and the
//! resolution of model names. A project's own files are not trusted: `config/trust.rs` decides what
//! they may set.

mod env_template;
mod file;
mod headers;
mod layers;
mod limits;
mod model;
mod model_keys;
mod prices;
#[cfg(feature = "cli")]
mod schema;
mod servers;
mod sync;
mod trust;
mod url;

pub use env_template::EnvTemplate;
pub use headers::{Headers, SentHeader};
pub use layers::EnvironmentLayer;
#[cfg(feature = "cli")]
pub(crate) use limits::parse_size;
pub use model::{KeyPlace, ModelChoice, ModelSettings, ProviderKind, ToolsMode, auto_model, auto_name, resolve_model};
pub use prices::{PRICES_READ, PublishedPrice, all_published, near_published, published};
#[cfg(feature = "cli")]
pub(crate) use schema::schema;
pub use servers::{HookConfig, McpAt, McpServer};
pub(crate) use sync::SYNC_VARIABLE;
pub use sync::SyncConfig;
#[cfg(feature = "cli")]
pub(crate) use sync::{SYNC_TOKEN_VARIABLE, elsewhere};
pub use trust::Owner;

use crate::limits::MAX_SOURCE;
use crate::process::sandbox::{SandboxChoice, SandboxLimits};
use crate::task::{Baseline, TaskDefaults};
use crate::yaml::Problems;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// All settings. Later layers override earlier ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProjectConfig {
    /// The model of tasks that name none.
    pub default_model: Option<Sourced>,
    /// Models by name. An entry of a later layer replaces an earlier one as a whole.
    pub models: BTreeMap<String, ModelSettings>,
    /// Further protected paths, as globs, from all layers.
    pub protect: Vec<String>,
    /// The setting for judging the base first, for tasks that do not set it.
    pub baseline: Option<Baseline>,
    /// The lifetime of memories that runs leave.
    pub ephemeral_ttl: Option<Duration>,
    /// The maximum number of tokens of memories in the first message of a run.
    pub recall_tokens: Option<usize>,
    /// The sandbox of agents.
    pub sandbox: SandboxChoice,
    /// True if agents may use the network.
    pub network: bool,
    /// The resource limits of agents' tools and of gate steps.
    pub limits: SandboxLimits,
    /// True if no person can be asked.
    pub non_interactive: bool,
    /// Defaults for tasks that do not set a value.
    pub defaults: TaskDefaults,
    /// Commands that run after every turn in which something may have changed, those of earlier
    /// layers first.
    pub hooks: Vec<HookConfig>,
    /// MCP servers by name. An entry of a later layer replaces an earlier one as a whole.
    pub mcp: BTreeMap<String, McpServer>,
    /// The server to which runs are sent.
    pub sync: Option<SyncConfig>,
    /// Projects whose own files may set everything, as listed in the user's configuration.
    pub trust: Vec<PathBuf>,
}

/// The variable that names the model of tasks that name none.
pub(crate) const MODEL_VARIABLE: &str = "FLEDGE_MODEL";

/// The configuration files of a project. Later ones override earlier ones.
const PROJECT_FILES: [&str; 2] = ["fledge.yaml", "fledge.local.yaml"];

/// A value and the layer it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced {
    /// The value.
    pub value: String,
    /// The name of a file or of a variable.
    pub origin: String,
}

/// An error of reading the settings or of resolving a model.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A configuration file could not be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A configuration file is invalid. The message has one line for each problem, with file and
    /// place.
    #[error("{}", .problems.within(.file))]
    Invalid {
        /// The name of the file.
        file: String,
        /// The problems of the file.
        problems: Problems,
    },
    /// An environment variable is invalid.
    #[error("{name}: {why}")]
    Variable {
        /// The variable.
        name: String,
        /// The problem, and how to solve it.
        why: String,
    },
    /// A model's name is unknown.
    #[error("no model `{name}` ({hint})")]
    UnknownModel {
        /// The name.
        name: String,
        /// A hint with the known names.
        hint: String,
    },
    /// A model's key is not set.
    #[error("no key for the model `{model}` (set {variable})")]
    NoKey {
        /// The requested model.
        model: String,
        /// The variable that would hold the key.
        variable: String,
    },
    /// The variable of a header is not set.
    #[error("no value for the header `{header}` of the model `{model}` (set {variable})")]
    NoValue {
        /// The header.
        header: String,
        /// The requested model.
        model: String,
        /// The variable that would hold the value.
        variable: String,
    },
    /// A model is not at its provider's own address, and the source of its key is not set.
    #[error(
        "the model `{model}` is at {url}, and fledge sends {variable} to the provider's own \
         address alone (add `api_key_env: MY_KEY`, `api_key_file` or `api_key_command` to the model, or `api_key_env: {variable}` to use that key)"
    )]
    ForeignKey {
        /// The requested model.
        model: String,
        /// The address of the model.
        url: String,
        /// The variable with its provider's key.
        variable: String,
    },
    /// No model was named and none can be chosen.
    #[error(
        "no model is configured (set ANTHROPIC_API_KEY or OPENAI_API_KEY; or name one with `model:` in the task, \
         `default_model:` in fledge.yaml or FLEDGE_MODEL; `cassette/<path>` replays recorded answers without a key)"
    )]
    NoModel,
    /// No folder for fledge's state exists.
    #[error("no folder for fledge's state (set FLEDGE_STATE_DIR or HOME)")]
    NoStateDir,
}

/// Reads all layers: the user's file, `fledge.yaml` and `fledge.local.yaml` in `workspace`, the
/// environment.
///
/// # Errors
/// The first layer that is unreadable or invalid, with all of its problems.
pub fn load(environment: &EnvironmentLayer, workspace: &Path) -> Result<ProjectConfig, ConfigError> {
    load_seen(environment, workspace, None, &mut |_, _| {})
}

/// Reads all layers for a command that calls no model and starts no agent. Leaves out the models of
/// a project's files, and the settings that a project may not make. Returns a note for each of
/// these settings.
///
/// # Errors
/// The errors of [`load`].
pub fn load_without_models(
    environment: &EnvironmentLayer,
    workspace: &Path,
) -> Result<(ProjectConfig, Vec<String>), ConfigError> {
    let mut left_out = Vec::new();
    let settings = load_seen(environment, workspace, Some(&mut left_out), &mut |_, _| {})?;
    Ok((settings, left_out))
}

/// Reads all layers, and returns the merged settings after each layer. The first layer holds the
/// defaults.
///
/// # Errors
/// The errors of [`load`].
pub fn layers(environment: &EnvironmentLayer, workspace: &Path) -> Result<Vec<LayerSeen>, ConfigError> {
    let mut all = vec![LayerSeen { name: "default".into(), text: None, so_far: ProjectConfig::default() }];
    let so_far = load_seen(environment, workspace, None, &mut |layer, so_far| {
        all.push(LayerSeen { name: layer.name.clone(), text: layer.text.clone(), so_far: so_far.clone() });
    })?;
    all.push(LayerSeen { name: "environment".into(), text: None, so_far });
    Ok(all)
}

/// Returns the paths of the configuration files in the order of their layers, each with its name in
/// messages.
pub fn places(environment: &EnvironmentLayer, workspace: &Path) -> Vec<(String, PathBuf)> {
    let own = environment.user_config().map(|path| (path.display().to_string(), path));
    own.into_iter().chain(PROJECT_FILES.map(|name| (name.to_owned(), workspace.join(name)))).collect()
}

/// A layer, and the settings merged up to it.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerSeen {
    /// A file's name, `default` or `environment`.
    pub name: String,
    /// The text of a file; `None` if the layer has none.
    pub text: Option<String>,
    /// The settings of this layer and all layers before it.
    pub so_far: ProjectConfig,
}

/// A file that was read.
struct ReadConfig {
    name: String,
    text: Option<String>,
}

fn load_seen(
    environment: &EnvironmentLayer,
    workspace: &Path,
    mut left_out: Option<&mut Vec<String>>,
    seen: &mut dyn FnMut(&ReadConfig, &ProjectConfig),
) -> Result<ProjectConfig, ConfigError> {
    let mut settings = ProjectConfig::default();
    let mut owner = Owner::User;
    let mut own = Vec::new();
    for (name, path) in places(environment, workspace) {
        // Of the files, only the user's own one, which comes first, can make the project trusted.
        if owner == Owner::User && PROJECT_FILES.first().is_some_and(|first| *first == name) {
            let is_trusted = environment.trusts_project() || is_trusted(&settings, workspace);
            owner = if is_trusted { Owner::User } else { Owner::Project };
            own = settings.models.keys().cloned().collect();
        }
        let file = ReadConfig { text: read(&path)?, name };
        overlay(&mut settings, &file, owner, &own, left_out.as_deref_mut())?;
        seen(&file, &settings);
    }
    if let Some(value) = environment.get(MODEL_VARIABLE) {
        settings.default_model = Some(Sourced { value: value.into(), origin: MODEL_VARIABLE.into() });
    }
    if let Some(url) = environment.get(SYNC_VARIABLE) {
        settings.sync = Some(sync::elsewhere(url, settings.sync.take()));
    }
    settings.non_interactive = environment.flag("FLEDGE_NON_INTERACTIVE")?;
    Ok(settings)
}

/// Merges a layer into the settings before it. `own` are the operator's models, which a project may
/// not replace.
fn overlay(
    settings: &mut ProjectConfig,
    file: &ReadConfig,
    owner: Owner,
    own: &[String],
    left_out: Option<&mut Vec<String>>,
) -> Result<(), ConfigError> {
    let Some(text) = &file.text else { return Ok(()) };
    let layer = match left_out {
        Some(left_out) => {
            let (mut layer, refused) = file::parse_what_may_be_said(text, &file.name, owner)?;
            if owner == Owner::Project {
                (layer.models, layer.model_places) = Default::default();
            }
            left_out.extend(refused.sorted().iter().map(|problem| format!("{}:{problem}: key ignored", file.name)));
            layer
        }
        None => file::parse(text, &file.name, owner)?,
    };
    if owner == Owner::Project {
        trust::keep(own, &layer.model_places, &file.name)?;
    }
    settings.default_model = layer.default_model.or(settings.default_model.take());
    settings.models.extend(layer.models);
    settings.protect.extend(layer.protect);
    settings.baseline = layer.baseline.or(settings.baseline);
    settings.sandbox = match (owner, settings.sandbox, layer.sandbox) {
        (Owner::Project, SandboxChoice::Required, _) | (_, _, None) => settings.sandbox,
        (Owner::User | Owner::Project, _, Some(choice)) => choice,
    };
    settings.network = layer.network.unwrap_or(settings.network);
    settings.limits = match owner {
        Owner::User => layer.limits.or_else(settings.limits),
        Owner::Project => layer.limits.or_else(settings.limits).within(settings.limits),
    };
    settings.ephemeral_ttl = layer.ephemeral_ttl.or(settings.ephemeral_ttl);
    settings.recall_tokens = layer.recall_tokens.or(settings.recall_tokens);
    let above = std::mem::take(&mut settings.defaults);
    settings.defaults = match owner {
        Owner::User => layer.defaults.over(above),
        Owner::Project => layer.defaults.within(above),
    };
    settings.hooks.extend(layer.hooks);
    settings.mcp.extend(layer.mcp);
    settings.sync = layer.sync.or(settings.sync.take());
    settings.trust.extend(layer.trust);
    Ok(())
}

/// Returns true if the user's configuration trusts this folder, by any path that leads to it.
fn is_trusted(settings: &ProjectConfig, workspace: &Path) -> bool {
    let real = workspace.canonicalize();
    settings.trust.iter().any(|path| real.as_ref().is_ok_and(|real| path.canonicalize().is_ok_and(|own| own == *real)))
}

/// Reads a file's text; `None` if no file exists. Refuses pipes and devices, which would block.
fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.into(), source };
    let refused = |why: &str| Err(unreadable(std::io::Error::other(why)));
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(error)),
        Ok(found) if !found.is_file() => refused("not a regular file"),
        Ok(found) if found.len() > 2 * MAX_SOURCE as u64 => refused("too large for a configuration file"),
        Ok(_) => match String::from_utf8(std::fs::read(path).map_err(unreadable)?) {
            Ok(text) if !text.contains('\0') => Ok(Some(text)),
            Err(error) if !error.as_bytes().contains(&0) => refused("not UTF-8; save it as UTF-8"),
            Ok(_) | Err(_) => refused("it is a binary file, or not UTF-8; save it as text in UTF-8"),
        },
    }
}

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;
