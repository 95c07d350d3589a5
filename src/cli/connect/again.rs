//! Models for a run that resumes or continues an earlier run, at the addresses that the earlier run
//! used.

use super::{ConnectedModels, RequestedModels, choices, connect_models};
use crate::cli::failure::CliError;
use crate::cli::tasks::task_folder;
use crate::config::{self, EnvironmentLayer, ModelChoice, ModelSettings, auto_name, resolve_model};
use crate::driver::RunTerms;
use crate::provider::Pacer;
use crate::setup::ProjectContext;
use crate::store::{self, RunRow};
use crate::task::Tier;
use anyhow::anyhow;

/// The prefix of an address that the entry of a model sets.
const BY_ENTRY: &str = "entry ";
/// The prefix of an address that a variable sets for all models of a provider.
const BY_VARIABLE: &str = "variable ";

/// Connects the models of a resumed or continued run: those that its task names, else the
/// configured ones that match the models of the earlier run.
///
/// # Errors
/// Those of [`connect_models`]; also when a model has another address than in the earlier run.
pub(in crate::cli) fn again(
    row: &RunRow,
    terms: &RunTerms,
    place: &ProjectContext<'_>,
    environment: &EnvironmentLayer,
    pacer: &Pacer,
) -> Result<ConnectedModels, CliError> {
    let (task, set) = (&terms.task, place.set);
    let then = |at: usize| terms.places.get(at).map(String::as_str);
    let as_then = |(at, model): (usize, &String)| as_it_was((model, then(at)), set, task.tier, environment);
    let names: Vec<String> = match task.models.as_slice() {
        [] => row.head.models.iter().enumerate().map(as_then).collect::<Result<_, _>>()?,
        names => names.to_vec(),
    };
    let folder = place.workspace.join(task_folder(&task.source));
    let asked = RequestedModels { names: &names, tier: task.tier, folder: &folder };
    for (at, choice) in choices(&asked, set, environment)?.iter().enumerate() {
        stays_there(choice, then(at).unwrap_or_default(), set)?;
    }
    connect_models(&asked, set, environment, pacer)
}

/// Checks that a conversation with the user's own server moves to another address only if the user
/// names that address now.
fn stays_there(choice: &ModelChoice, then: &str, set: &config::ProjectConfig) -> Result<(), CliError> {
    let now = place_of(&choice.name, &choice.entry, set);
    let is_said = now.starts_with(BY_ENTRY) || now.starts_with(BY_VARIABLE) && then.starts_with(BY_VARIABLE);
    if then.is_empty() || now == then || is_said { Ok(()) } else { Err(gone(&choice.name)) }
}

fn gone(model: &str) -> CliError {
    let error = anyhow!(
        "the model `{model}` of this run now has another address in the configuration, \
         and that address would receive the whole conversation"
    );
    CliError::input(error).hint("restore its entry with the old `base_url` under `models:`, or start a new run")
}

/// Returns the source of a model's address with a digest of it; empty for the provider's own
/// address.
pub(super) fn place_of(name: &str, entry: &ModelSettings, set: &config::ProjectConfig) -> String {
    let is_entry = set.models.get(name).is_some_and(|entry| entry.base_url.is_some());
    let who = if is_entry { BY_ENTRY } else { BY_VARIABLE };
    let other = entry.base_url.as_deref().filter(|_| !entry.is_at_home());
    other.map(|url| format!("{who}{}", store::sha256(url.trim_end_matches('/').as_bytes()))).unwrap_or_default()
}

/// Returns the configured name of a model that was `provider/model` in the earlier run. Prefers a
/// name with the same address, if that is known, then today's default, then any.
///
/// # Errors
/// When no name matches, the earlier address is unknown, and the model is not today's default.
fn as_it_was(
    (model, then): (&str, Option<&str>),
    set: &config::ProjectConfig,
    tier: Tier,
    environment: &EnvironmentLayer,
) -> Result<String, CliError> {
    let today = auto_name(set, tier, environment).ok();
    let names = today.into_iter().chain(set.models.keys().map(String::as_str));
    let is_it = |entry: &ModelSettings| format!("{}/{}", entry.provider.name(), entry.model) == model;
    let known: Vec<&str> = names.filter(|name| set.models.get(*name).is_some_and(is_it)).collect();
    let place =
        |name: &str| resolve_model(name, set, environment).ok().map(|choice| place_of(name, &choice.entry, set));
    let same = then.and_then(|then| known.iter().find(|name| place(name).as_deref() == Some(then)));
    match same.or(known.first()) {
        Some(name) => Ok((*name).to_owned()),
        None if then.is_none() && today != Some(model) => Err(gone(model)),
        None => Ok(model.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ProviderKind;

    #[test]
    fn a_resumed_run_uses_the_model_that_is_now_configured_under_the_same_name() {
        let mut set = config::ProjectConfig::default();
        let entry = |model: &str| ModelSettings::new(ProviderKind::OpenAi, model, "config.yaml");
        set.models = [("a", "m"), ("b", "m"), ("c", "n")].map(|(name, model)| (name.to_owned(), entry(model))).into();
        let was = |model: &str, then: Option<&str>, default: &str| {
            let environment = EnvironmentLayer::from_vars([("OPENAI_API_KEY", "k")]);
            let set = config::ProjectConfig {
                default_model: Some(config::Sourced { value: default.into(), origin: "config.yaml".into() }),
                ..set.clone()
            };
            as_it_was((model, then), &set, Tier::Code, &environment).unwrap_or_else(|failure| failure.message())
        };
        let of_old = |default: &str| was("openai/m", None, default);
        assert_eq!([of_old("b"), of_old("c"), was("openai/other", Some(""), "b")], ["b", "a", "openai/other"]);
        assert_eq!(was("openai/other", None, "openai/other"), "openai/other");
        assert!(was("openai/other", None, "b").contains("`openai/other` of this run now has another address"));
        let elsewhere = ModelSettings { base_url: Some("http://127.0.0.1:1/v1".into()), ..entry("m") };
        set.models.insert("d".into(), elsewhere.clone());
        let place = place_of("d", &elsewhere, &set);
        let environment = EnvironmentLayer::from_vars([("OPENAI_API_KEY", "k")]);
        let then = |place: &str| as_it_was(("openai/m", Some(place)), &set, Tier::Code, &environment).ok();
        assert_eq!((then(&place), then("")), (Some("d".into()), Some("a".into())));
    }
}
