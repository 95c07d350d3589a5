//! `fledge runs`: earlier runs of the project.

mod replay;
mod resume;

pub(super) use resume::{Found, Place, interrupted, keyed, resume};

use super::failure::Failure;
use crate::config::Environment;
use clap::Subcommand;

/// The verbs of `fledge runs`.
#[derive(Debug, Subcommand)]
pub(super) enum RunsVerb {
    /// Go on with a run that was interrupted
    Resume(resume::ResumeArguments),
    /// Check that a run would be decided today as it was then; calls no model and changes nothing
    Replay(replay::ReplayArguments),
}

/// Runs the verb; gives the exit code.
///
/// # Errors
/// When there is no such run, or what is kept of it cannot be used.
pub(super) fn run(verb: RunsVerb, environment: &Environment) -> Result<u8, Failure> {
    match verb {
        RunsVerb::Resume(arguments) => resume::run(&arguments, environment),
        RunsVerb::Replay(arguments) => replay::run(&arguments, environment),
    }
}
