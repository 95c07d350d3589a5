//! `fledge models`: which models there are, what is known of them, and whether they answer.

mod check;
mod list;

pub(super) use list::key_of;

use super::configured;
use super::failure::Failure;
use super::project::ProjectArguments;
use crate::config::{self, Environment};
use clap::{Args, Subcommand};

/// The version of what `--json` gives out.
const MODELS_SCHEMA_VERSION: u32 = 1;

#[derive(Debug, Subcommand)]
pub(super) enum ModelsVerb {
    /// List the models that are configured, and those whose price and size are known without
    List(ListArguments),
    /// Send one small request to each configured model and say how it answers, or what is wrong
    Check(CheckArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fledge models list\n  fledge models list --json | jq .default")]
pub(super) struct ListArguments {
    #[command(flatten)]
    place: PlaceArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "It costs what a few dozen tokens cost. Exit code 0 when all are well, 3 when one is not.\n\n\
    Examples:\n  fledge models check\n  fledge models check local anthropic/claude-haiku-4-5 --json")]
pub(super) struct CheckArguments {
    /// Only these: names of the configuration, or provider/model; none: all that are configured, else the default one
    names: Vec<String>,
    #[command(flatten)]
    place: PlaceArguments,
}

#[derive(Debug, Args)]
struct PlaceArguments {
    /// As JSON, to standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArguments,
}

impl PlaceArguments {
    fn settings(&self, environment: &Environment) -> Result<config::Settings, Failure> {
        configured::load(environment, &self.project.root(environment)?).map_err(Failure::input)
    }
}

/// Runs the verb; gives the exit code.
///
/// # Errors
/// When the configuration is wrong, a name means nothing, or nothing can be printed.
pub(super) fn run(verb: &ModelsVerb, environment: &Environment) -> Result<u8, Failure> {
    match verb {
        ModelsVerb::List(ListArguments { place }) => list::list(&place.settings(environment)?, environment, place.json),
        ModelsVerb::Check(CheckArguments { names, place }) => {
            check::check(names, &place.settings(environment)?, environment, place.json)
        }
    }
}
