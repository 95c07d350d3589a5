//! `fledge runs resume`.

use super::super::configured;
use super::super::drive::{AgentWork, OutputArguments, OutputOptions};
use super::super::failure::CliError;
use super::super::limit_arguments::LimitArguments;
use super::super::output::{no_output, print_data, print_json};
use super::super::paint::{self, Tone};
use super::super::resume::{failed, resume};
use super::RunsContext;
use crate::chat::money;
use crate::config::EnvironmentLayer;
use crate::driver::{RunUse, check_limits, is_limited, must_be_ours, terms};
use crate::duration::show_duration;
use crate::limits::NewLimits;
use crate::setup::ProjectContext;
use crate::store::{RunHead, RunRow, Store, StoredRunState};
use crate::verdict::Reason;
use anyhow::{Context, anyhow};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Args)]
#[command(
    after_help = "A limit counts for the whole run, with what it has used so far. A run that a limit ended goes on \
    if that limit is now higher.\n\n\
    Examples:\n  fledge runs resume last\n  fledge runs resume 0198f2 --json\n  \
    fledge runs resume last --max-turns 200 --max-usd 5"
)]
pub(in crate::cli) struct ResumeArguments {
    /// Run: the start of its id, its run key, or `last`
    run: String,
    #[command(flatten)]
    limits: LimitArguments,
    /// Show what the run has used and may use, and resume nothing
    #[arg(long)]
    dry_run: bool,
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
    let limits = arguments.limits.limits();
    if arguments.dry_run {
        return show_limits(&store, &row, limits, arguments.voice.json);
    }
    if !limits.is_empty() {
        check_limits(&store, &row, limits).map_err(failed)?;
    }
    let is_verified = |reason: &str| reason == Reason::Verified.to_string();
    if matches!(&row.state, StoredRunState::Ended(end) if is_verified(&end.reason)) && !arguments.voice.quiet {
        let text = format!("run {} ended verified, so there is nothing to resume; its result:", row.head.id);
        paint::line(&[(Tone::Warn, "! "), (Tone::Plain, &text)]);
    }
    let workspace = home_of(shelf, &store, &row)?;
    let set = configured::load(environment, &workspace).map_err(CliError::input)?;
    let place = ProjectContext { workspace: &workspace, state_dir: &shelf.state, set: &set };
    let voice = OutputOptions::new(arguments.voice, &set, environment);
    let work = AgentWork::Resume(row.head.id.clone(), limits);
    let resumed = resume(work, &row.head.id, &[], environment, &place, voice);
    match is_limited(&row.state) && limits.is_empty() {
        true => resumed.map_err(|failure| failure.hint("to resume with a higher limit, add it, e.g. --max-turns 200")),
        false => resumed,
    }
}

/// Prints what a run has used and what it may use in all.
fn show_limits(store: &Store, run: &RunRow, limits: NewLimits, json: bool) -> Result<u8, CliError> {
    let RunUse { used, limits } = check_limits(store, run, limits).map_err(failed)?;
    if json {
        let data = json!({ "run": run.head.id, "used": used, "limits": limits });
        print_json(&data.to_string()).map_err(no_output)?;
        return Ok(0);
    }
    let count = |number: u64| number.to_string();
    let time = |ms: u64| show_duration(Duration::from_millis(ms));
    let row = |name: &str, used: Option<u64>, limit: Option<u64>, show: &dyn Fn(u64) -> String| {
        let used = used.map_or_else(|| "unknown".to_owned(), show);
        let limit = limit.map_or_else(|| "no limit".to_owned(), |limit| format!("of {}", show(limit)));
        format!("  {name:<8} {used} used, {limit}\n")
    };
    let page = [
        format!("run {}\n", run.head.id),
        row("retries", used.max_retries.map(u64::from), limits.max_retries.map(u64::from), &count),
        row("turns", used.turns, limits.turns, &count),
        row("tokens", used.tokens, limits.tokens, &count),
        row("cost", used.usd_micros, limits.usd_micros, &money),
        row("time", used.time_ms, limits.time_ms, &time),
    ]
    .concat();
    print_data(page.trim_end()).map_err(no_output)?;
    Ok(0)
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
