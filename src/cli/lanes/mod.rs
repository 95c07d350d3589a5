//! `fledge lanes`: the project's lanes, by hand.

mod against;
mod data;
mod files;
mod init;
mod list;
mod output;
mod plan;
mod refusal;
mod run;
mod screen;
mod surroundings;
mod validate;
mod watch;

use super::clean_gate::failed;
use super::configured;
use super::failure::CliError;
use super::paint::say;
use super::project::ProjectArguments;
use crate::config::EnvironmentLayer;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(super) enum LanesVerb {
    /// List the project's lanes and their steps
    List(list::ListLanesArguments),
    /// Detect a lane from the project's files and write it to lanes/verify.yaml
    ///
    /// Fails if the project has a lane already.
    Init(init::InitLanesArguments),
    /// Show what a lane runs, in which order
    Show(list::ShowLaneArguments),
    /// Check lanes for errors and warnings, without running anything
    Validate(validate::ValidateLanesArguments),
    /// Run a lane, in place or in a clean room like the gate's
    Run(Box<run::RunLaneArguments>),
}

// Accepted by verbs that never prompt, so that scripts can pass `--ni` to every verb.
#[derive(Debug, Args)]
struct Unasked {
    #[arg(long = "ni", alias = "non-interactive", hide = true)]
    _ni: bool,
}

/// Runs the verb; returns the exit code.
///
/// # Errors
/// When the lane is unknown or invalid, or logs cannot be stored.
pub(super) fn run(verb: LanesVerb, project: &ProjectArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let root = project.root(environment)?;
    configured::restore_configuration(environment, &root);
    let env = environment.hand_env();
    let path = env.get("PATH").map_or("", String::as_str);
    match verb {
        LanesVerb::List(arguments) => list::list(&root, &arguments, path),
        LanesVerb::Show(arguments) => list::show(&root, &arguments, path),
        LanesVerb::Validate(arguments) => validate::validate(&root, &arguments, path),
        LanesVerb::Init(arguments) => init::init(&root, &arguments, path),
        LanesVerb::Run(arguments) => run::run(&root, &arguments, environment, path),
    }
}
