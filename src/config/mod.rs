//! What the operator has set: layers of files and environment, composed into [`Settings`]; and what a model's name means.
//! A project's own files are somebody else's text: what they may say is in `config/trust.rs`.

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
mod size;
mod sync;
mod trust;
mod url;
mod woven;

pub use headers::{Headers, Sent};
pub use layers::Environment;
pub use model::{KeyPlace, ModelChoice, ModelSettings, ProviderKind, ToolsMode, auto_model, auto_name, resolve_model};
pub use prices::{PRICES_READ, Published, all_published, near_published, published};
#[cfg(feature = "cli")]
pub(crate) use schema::schema;
pub use servers::{Hook, McpAt, McpServer};
pub(crate) use size::parse_size;
pub(crate) use sync::SYNC_VARIABLE;
pub use sync::Sync;
#[cfg(feature = "cli")]
pub(crate) use sync::{SYNC_TOKEN_VARIABLE, elsewhere};
pub use trust::Owner;
pub use woven::Woven;

use crate::limits::MAX_SOURCE;
use crate::process::wall::{WallChoice, WallLimits};
use crate::task::{Baseline, Defaults};
use crate::yaml::Problems;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Everything that is set, later layers over earlier ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// The model of tasks that name none.
    pub default_model: Option<Sourced>,
    /// Models by name. An entry of a later layer replaces an earlier one as a whole.
    pub models: BTreeMap<String, ModelSettings>,
    /// More protected paths, as globs: those of all layers.
    pub protect: Vec<String>,
    /// Whether the gate judges the base first, for tasks that do not say.
    pub baseline: Option<Baseline>,
    /// How long what runs leave in memory lives.
    pub ephemeral_ttl: Option<Duration>,
    /// Tokens of memories in the first message of a run.
    pub recall_tokens: Option<usize>,
    /// Which wall stands around agents.
    pub sandbox: WallChoice,
    /// Whether agents reach the network.
    pub network: bool,
    /// What tools of agents, and steps of a gate, may use up.
    pub limits: WallLimits,
    /// Whether nobody is there to be asked.
    pub non_interactive: bool,
    /// What holds for tasks that do not say it themselves.
    pub defaults: Defaults,
    /// Commands that follow every turn in which something may have changed, those of earlier layers first.
    pub hooks: Vec<Hook>,
    /// MCP servers by name. An entry of a later layer replaces an earlier one as a whole.
    pub mcp: BTreeMap<String, McpServer>,
    /// The server that runs are told of.
    pub sync: Option<Sync>,
    /// Projects whose own files may say everything, as the user's configuration names them.
    pub trust: Vec<PathBuf>,
}

/// The variable that names the model of tasks that name none.
pub(crate) const MODEL_VARIABLE: &str = "FLEDGE_MODEL";

/// The files of a project that set something, later ones over earlier ones.
const PROJECT_FILES: [&str; 2] = ["fledge.yaml", "fledge.local.yaml"];

/// A value and the layer it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced {
    /// The value.
    pub value: String,
    /// A file's name, or a variable's.
    pub origin: String,
}

/// Why there are no settings, or no such model.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFault {
    /// A configuration file could not be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A configuration file is wrong: every problem, one a line, with file and place.
    #[error("{}", .problems.within(.file))]
    Invalid {
        /// The file, as it was named.
        file: String,
        /// What is wrong with it.
        problems: Problems,
    },
    /// An environment variable is wrong.
    #[error("{name}: {why}")]
    Variable {
        /// The variable.
        name: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A model's name means nothing.
    #[error("no model `{name}` ({hint})")]
    UnknownModel {
        /// The name.
        name: String,
        /// What there is.
        hint: String,
    },
    /// A model's key is not set.
    #[error("no key for the model `{model}` (set {variable})")]
    NoKey {
        /// The model, as it was asked for.
        model: String,
        /// The variable that would hold the key.
        variable: String,
    },
    /// The variable of a header is not set.
    #[error("no value for the header `{header}` of the model `{model}` (set {variable})")]
    NoValue {
        /// The header.
        header: String,
        /// The model, as it was asked for.
        model: String,
        /// The variable that would hold it.
        variable: String,
    },
    /// A model is somewhere else than at its provider's, and its key is not said.
    #[error(
        "the model `{model}` is at {url}, and {variable} is for the provider's own address alone (say where its key is: add \
         `api_key_env: MY_KEY`, `api_key_file` or `api_key_command` to the model; `api_key_env: {variable}` where it is that one)"
    )]
    ForeignKey {
        /// The model, as it was asked for.
        model: String,
        /// Where it is.
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
    /// There is no place for state.
    #[error("no place for fledge's state (set FLEDGE_STATE_DIR or HOME)")]
    NoStateDir,
}

/// Reads all layers: the user's file, `fledge.yaml` and `fledge.local.yaml` in `workspace`, the environment.
///
/// # Errors
/// The first layer that is unreadable or wrong, with all that is wrong with it.
pub fn load(environment: &Environment, workspace: &Path) -> Result<Settings, ConfigFault> {
    load_seen(environment, workspace, None, &mut |_, _| {})
}

/// Reads all layers for a command that asks no model and starts no agent. Leaves out the models of a project's files, and what a project may
/// not say. Returns a note for each of the latter.
///
/// # Errors
/// As those of [`load`].
pub fn load_without_models(
    environment: &Environment,
    workspace: &Path,
) -> Result<(Settings, Vec<String>), ConfigFault> {
    let mut left_out = Vec::new();
    let settings = load_seen(environment, workspace, Some(&mut left_out), &mut |_, _| {})?;
    Ok((settings, left_out))
}

/// The same, layer by layer, each over those before it: first of all what holds where nothing is set.
///
/// # Errors
/// As those of [`load`].
pub fn layers(environment: &Environment, workspace: &Path) -> Result<Vec<LayerSeen>, ConfigFault> {
    let mut all = vec![LayerSeen { name: "default".into(), text: None, so_far: Settings::default() }];
    let so_far = load_seen(environment, workspace, None, &mut |layer, so_far| {
        all.push(LayerSeen { name: layer.name.clone(), text: layer.text.clone(), so_far: so_far.clone() });
    })?;
    all.push(LayerSeen { name: "environment".into(), text: None, so_far });
    Ok(all)
}

/// Where configuration files are looked for, in the order of their layers, each with the name that it goes by.
pub fn places(environment: &Environment, workspace: &Path) -> Vec<(String, PathBuf)> {
    let own = environment.user_config().map(|path| (path.display().to_string(), path));
    own.into_iter().chain(PROJECT_FILES.map(|name| (name.to_owned(), workspace.join(name)))).collect()
}

/// A layer, and what is set up to it.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerSeen {
    /// A file's name, `default` or `environment`.
    pub name: String,
    /// The text of a file.
    pub text: Option<String>,
    /// What it and all layers before it set.
    pub so_far: Settings,
}

/// A file that was read.
struct Read {
    name: String,
    text: Option<String>,
}

fn load_seen(
    environment: &Environment,
    workspace: &Path,
    mut left_out: Option<&mut Vec<String>>,
    seen: &mut dyn FnMut(&Read, &Settings),
) -> Result<Settings, ConfigFault> {
    let mut settings = Settings::default();
    let mut owner = Owner::User;
    let mut own = Vec::new();
    for (name, path) in places(environment, workspace) {
        // Who owns the project's files is said by the user's own alone, which comes first.
        if owner == Owner::User && PROJECT_FILES.first().is_some_and(|first| *first == name) {
            let is_trusted = environment.trusts_project() || is_trusted(&settings, workspace);
            owner = if is_trusted { Owner::User } else { Owner::Project };
            own = settings.models.keys().cloned().collect();
        }
        let file = Read { text: read(&path)?, name };
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

/// Puts a layer over those before it. These models are the operator's: a project does not put others in their places.
fn overlay(
    settings: &mut Settings,
    file: &Read,
    owner: Owner,
    own: &[String],
    left_out: Option<&mut Vec<String>>,
) -> Result<(), ConfigFault> {
    let Some(text) = &file.text else { return Ok(()) };
    let layer = match left_out {
        Some(left_out) => {
            let (mut layer, refused) = file::parse_what_may_be_said(text, &file.name, owner)?;
            if owner == Owner::Project {
                (layer.models, layer.model_places) = Default::default();
            }
            left_out.extend(refused.sorted().iter().map(|problem| format!("{}:{problem}: it is left out", file.name)));
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
        (Owner::Project, WallChoice::Required, _) | (_, _, None) => settings.sandbox,
        (Owner::User | Owner::Project, _, Some(choice)) => choice,
    };
    settings.network = layer.network.unwrap_or(settings.network);
    settings.limits = match owner {
        Owner::User => layer.limits.over(settings.limits),
        Owner::Project => layer.limits.over(settings.limits).within(settings.limits),
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

/// Whether the user's configuration names this folder among those it trusts, by whatever path.
fn is_trusted(settings: &Settings, workspace: &Path) -> bool {
    let real = workspace.canonicalize();
    settings.trust.iter().any(|path| real.as_ref().is_ok_and(|real| path.canonicalize().is_ok_and(|own| own == *real)))
}

/// A file's text; `None` where there is no file. A pipe or a device would keep us waiting and is refused.
fn read(path: &Path) -> Result<Option<String>, ConfigFault> {
    let unreadable = |source| ConfigFault::Unreadable { path: path.into(), source };
    let refused = |why: &str| Err(unreadable(std::io::Error::other(why)));
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(error)),
        Ok(found) if !found.is_file() => refused("not a regular file"),
        Ok(found) if found.len() > 2 * MAX_SOURCE as u64 => refused("far too large for a configuration"),
        Ok(_) => std::fs::read_to_string(path).map(Some).map_err(unreadable),
    }
}

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;
