//! `fledge worktrees`: lists the worktrees that runs left, and removes those that hold no work.

mod clean;
mod list;

use super::failure::CliError;
use super::left_worktrees::{WorktreeRow, WorktreeState, WorktreesContext};
use super::project::ProjectArguments;
use super::runtime::heeding;
use crate::config::EnvironmentLayer;
use clap::{Args, Subcommand};

/// The version of the `--json` output.
const WORKTREES_SCHEMA_VERSION: u32 = 1;

#[derive(Debug, Args)]
#[command(
    after_help = "A run gets a worktree with `isolation: worktree` in its task or with --isolation worktree.\n\n\
    Examples:\n  fledge worktrees list\n  fledge worktrees clean --dry-run\n  fledge worktrees clean --older-than 7d\n  \
    fledge worktrees clean --discard 0198f2"
)]
pub(super) struct WorktreesArguments {
    #[command(flatten)]
    project: ProjectArguments,
    #[command(subcommand)]
    verb: WorktreesVerb,
}

#[derive(Debug, Subcommand)]
enum WorktreesVerb {
    /// List remaining worktrees and the work in them
    List(list::ListWorktreesArguments),
    /// Remove worktrees without uncommitted work
    Clean(clean::CleanArguments),
}

/// Runs the verb; returns the exit code.
///
/// # Errors
/// When the store or the worktrees cannot be read.
pub(super) fn run(arguments: WorktreesArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    heeding(async |stop| {
        let worktrees = WorktreesContext::open(&arguments.project.root(environment)?, environment, stop)?;
        match &arguments.verb {
            WorktreesVerb::List(arguments) => list::list(&worktrees, arguments).await,
            WorktreesVerb::Clean(arguments) => clean::clean(&worktrees, arguments).await,
        }
    })
}
