//! `fledge models`: lists models with their known properties, and checks whether they answer.

mod check;
mod list;

use super::configured;
use super::failure::CliError;
use super::project::ProjectArguments;
use crate::config::{self, EnvironmentLayer};
use clap::{Args, Subcommand};

/// The version of the `--json` output.
const MODELS_SCHEMA_VERSION: u32 = 1;

#[derive(Debug, Subcommand)]
pub(super) enum ModelsVerb {
    /// List the configured models, and those built into fledge
    List(ListModelsArguments),
    /// Send a small request to each model and report problems
    Check(CheckArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fledge models list\n  fledge models list --json | jq .default")]
pub(super) struct ListModelsArguments {
    #[command(flatten)]
    place: ModelsPlaceArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Each check costs a few dozen tokens. Exit code 0 if all models work, else 3.\n\n\
    Examples:\n  fledge models check\n  fledge models check local anthropic/claude-haiku-4-5 --json")]
pub(super) struct CheckArguments {
    /// Models to check: configured names, or provider/model
    ///
    /// Default: all configured models, or else the default model.
    names: Vec<String>,
    #[command(flatten)]
    place: ModelsPlaceArguments,
}

#[derive(Debug, Args)]
struct ModelsPlaceArguments {
    /// Print JSON to standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArguments,
}

impl ModelsPlaceArguments {
    fn settings(&self, environment: &EnvironmentLayer) -> Result<config::ProjectConfig, CliError> {
        configured::load(environment, &self.project.root(environment)?).map_err(CliError::input)
    }
}

/// Runs the verb; returns the exit code.
///
/// # Errors
/// When the configuration is invalid, a name is unknown, or the output cannot be written.
pub(super) fn run(verb: &ModelsVerb, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    match verb {
        ModelsVerb::List(ListModelsArguments { place }) => {
            list::list(&place.settings(environment)?, environment, place.json)
        }
        ModelsVerb::Check(CheckArguments { names, place }) => {
            check::check(names, &place.settings(environment)?, environment, place.json)
        }
    }
}
