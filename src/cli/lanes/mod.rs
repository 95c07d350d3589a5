//! `fledge lanes`: the project's lanes, by hand.

mod clean;
mod data;
mod files;
mod init;
mod last_clean;
mod list;
pub(super) mod log;
mod plan;
mod prove;
mod refusal;
mod run;
mod screen;
mod surroundings;
mod validate;
mod voice;
mod watch;

pub(super) use last_clean::recall as recall_clean;
pub(super) use prove::{InRoom, Trial};
pub(super) use voice::below_checkout;

use super::configured;
use super::failure::Failure;
use super::paint::{self, Tone};
use super::project::ProjectArguments;
use crate::config::Environment;
use crate::gate::GateFault;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(super) enum LanesVerb {
    /// List the project's lanes and what is in them
    List(list::ListArguments),
    /// Write the lane that the project's files suggest to lanes/verify.yaml, if there is none
    Init(init::InitArguments),
    /// Show a lane as it is understood: what runs, in which order
    Show(list::ShowArguments),
    /// Say everything that is wrong or strange in the lanes, and run nothing
    Validate(validate::ValidateArguments),
    /// Run a lane, in place or in the gate's room
    Run(run::RunArguments),
}

// What verbs take that never ask anything: scripts pass it to all alike.
#[derive(Debug, Args)]
struct Unasked {
    #[arg(long = "ni", alias = "non-interactive", hide = true)]
    _ni: bool,
}

/// Runs the verb; gives the exit code.
///
/// # Errors
/// An unknown or wrong lane, or no place for logs.
pub(super) fn run(verb: LanesVerb, project: &ProjectArguments, environment: &Environment) -> Result<u8, Failure> {
    let root = project.root(environment)?;
    configured::settle(environment, &root);
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

/// Says what is to be known about a detected lane.
pub(super) fn say<'r>(remarks: impl IntoIterator<Item = &'r String>) {
    for remark in remarks {
        paint::line(&[(Tone::Warn, "note: "), (Tone::Plain, remark)]);
    }
}

fn failed(fault: GateFault) -> Failure {
    Failure::because(fault.reason(), fault)
}
