//! `fledge runs resume`.

use super::super::configured;
use super::super::drive::{AgentWork, OutputArguments, OutputOptions};
use super::super::failure::CliError;
use super::super::paint::{self, Tone};
use super::super::resume::{failed, resume};
use super::RunsContext;
use crate::config::EnvironmentLayer;
use crate::driver::{must_be_ours, terms};
use crate::setup::ProjectContext;
use crate::store::{RunHead, RunRow, Store, StoredRunState};
use crate::verdict::Reason;
use anyhow::{Context, anyhow};
use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fledge runs resume last\n  fledge runs resume 0198f2 --json")]
pub(in crate::cli) struct ResumeArguments {
    /// Run: the start of its id, its run key, or `last`
    run: String,
    #[command(flatten)]
    voice: OutputArguments,
}

/// Runs the verb; returns the exit code.
pub(super) fn run(
    shelf: &RunsContext,
    arguments: &ResumeArguments,
    environment: &EnvironmentLayer,
) -> Result<u8, CliError> {
    let (store, row) = shelf.find_to_go_on(&arguments.run)?;
    must_be_ours(&row).map_err(|elsewhere| failed(elsewhere.into()))?;
    let is_verified = |reason: &str| reason == Reason::Verified.to_string();
    if matches!(&row.state, StoredRunState::Ended(end) if is_verified(&end.reason)) && !arguments.voice.quiet {
        let text = format!("run {} ended verified, so there is nothing to resume; its result:", row.head.id);
        paint::line(&[(Tone::Warn, "! "), (Tone::Plain, &text)]);
    }
    let workspace = home_of(shelf, &store, &row)?;
    let set = configured::load(environment, &workspace).map_err(CliError::input)?;
    let place = ProjectContext { workspace: &workspace, state_dir: &shelf.state, set: &set };
    let voice = OutputOptions::new(arguments.voice, &set, environment);
    resume(AgentWork::Resume, &row.head.id, &[], environment, &place, voice)
}

/// Returns the folder from which to resume a run: the project's folder if the run has its own
/// worktree, else the folder in which it worked.
pub(super) fn home_of(shelf: &RunsContext, store: &Store, row: &RunRow) -> Result<PathBuf, CliError> {
    let (_, terms) = terms(store, &row.head.id).map_err(failed)?;
    terms.worktree.map_or_else(|| workspace_of(shelf, row), |worktree| Ok(worktree.project))
}

/// Returns the folder in which a run worked. It differs from the current one if the run's id was
/// found in another project.
pub(super) fn workspace_of(shelf: &RunsContext, row: &RunRow) -> Result<PathBuf, CliError> {
    let RunHead { id, workspace, .. } = &row.head;
    if shelf.workspace.display().to_string() == *workspace {
        return Ok(shelf.workspace.clone()); // the row cannot hold a name that is not UTF-8
    }
    if workspace.contains(char::REPLACEMENT_CHARACTER) {
        let error = anyhow!("run {id} works in a folder whose name is not UTF-8: {workspace}");
        return Err(CliError::input(error).hint("change to that folder, or name it with -C"));
    }
    let canonical = Path::new(workspace).canonicalize();
    canonical.with_context(|| format!("run {id} works in {workspace}, which is gone")).map_err(CliError::input)
}
