//! `fledge runs resume`, and the search for runs of `fledge run --resume-or-start`.

use super::super::beside::{hooks, servers};
use super::super::configured;
use super::super::connect::{ConnectedModels, again};
use super::super::drive::{AgentWork, OutputArguments, OutputOptions, drive};
use super::super::failure::CliError;
use super::super::paint::{self, Tone};
use super::super::project::ProjectContext;
use super::super::runtime::block_on;
use super::super::secrets::secrets;
use super::RunsContext;
use super::data::LARGEST_REPORT;
use crate::config::EnvironmentLayer;
use crate::driver::{Asker, DriverSettings, ResumeError, RunTerms, is_for_now, must_be_ours, terms};
use crate::id::RunId;
use crate::provider::Pacer;
use crate::store::{RunHead, RunListFilter, RunRow, Store, StoreError, StoredRunState, read_text};
use crate::verdict::Reason;
use crate::workspace::AtomicOutput;
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

pub(super) fn failed(fault: ResumeError) -> CliError {
    CliError::because(fault.reason(), fault)
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

/// Resumes a run as the given [`AgentWork`], with the terms of its start and the current keys. `reports`
/// replace the places of its report, if there are any.
pub(in crate::cli) fn resume(
    how: fn(RunId) -> AgentWork,
    run: &RunId,
    reports: &[PathBuf],
    environment: &EnvironmentLayer,
    place: &ProjectContext<'_>,
    voice: OutputOptions,
) -> Result<u8, CliError> {
    let store = place.store()?;
    let (row, mut terms) = terms(&store, run).map_err(failed)?;
    let is_over = matches!(row.state, StoredRunState::Ended(_)) && !is_for_now(&row.state);
    if !is_over && !reports.is_empty() {
        terms.reports = reports.to_vec();
    }
    let models = match is_over {
        true => ConnectedModels::default(), // no model is called, so no key is needed
        false => again(&row, &terms, place, environment, &Pacer::default())?,
    };
    let settings = settings(place, environment, models, terms);
    let code = block_on(drive(how(run.clone()), settings, voice))??;
    if is_over {
        let report = read_text(&store.folder(run).report(), LARGEST_REPORT).map_err(CliError::own)?.unwrap_or_default();
        for path in reports {
            let outlet = AtomicOutput::find(path, place.workspace).map_err(CliError::input)?;
            outlet.write(report.as_bytes(), &|| false).map_err(CliError::own)?;
        }
    }
    Ok(code)
}

/// Returns the settings of an agent from the terms of an earlier run and the current environment.
pub(in crate::cli) fn settings(
    place: &ProjectContext<'_>,
    environment: &EnvironmentLayer,
    connected: ConnectedModels,
    terms: RunTerms,
) -> DriverSettings {
    let (models, late) = connected;
    let RunTerms {
        task: _,
        protect,
        reports,
        patch,
        jobs,
        earlier,
        memory,
        wall,
        network,
        holdout,
        lanes_from,
        worktree: _,
        places: _,
    } = terms;
    DriverSettings {
        workspace: place.workspace.to_owned(),
        project: Some(place.project()),
        state_dir: place.state_dir.to_owned(),
        models,
        no_models: None,
        env: environment.child_env().into_iter().collect(),
        step_env: environment.step_env().into_iter().collect(),
        protect,
        reports,
        patch,
        jobs,
        mcp: servers(place.set, environment),
        earlier,
        memory,
        secrets: secrets(environment, place.set, &late),
        holdout,
        lanes_from,
        baseline: place.set.baseline.unwrap_or_default(),
        wall,
        network,
        limits: place.set.limits,
        hooks: hooks(place.set),
        asker: Asker::default(),
        helper: environment.program().map(Path::to_owned),
    }
}

/// The runs of a key.
#[derive(Debug)]
pub(in crate::cli) struct RunsOfKey {
    /// The newest run.
    pub(in crate::cli) newest: Option<RunRow>,
    /// The key of the next run: the key itself, then with the suffix `#2`, `#3`.
    pub(in crate::cli) free: String,
}

/// Finds the newest run of a key. A key stays with its run, which is tied to its journal, so later
/// runs get a suffix.
pub(in crate::cli) fn keyed(store: &Store, key: &str) -> Result<RunsOfKey, StoreError> {
    let rows = store.keyed(key)?;
    let highest = rows.iter().map(|(number, _)| *number).max();
    let free = highest.map_or_else(|| key.to_owned(), |number| format!("{key}#{}", number.saturating_add(1)));
    Ok(RunsOfKey { newest: rows.into_iter().next().map(|(_, row)| row), free })
}

/// Finds the newest interrupted run of a task's text that no process drives. `same` checks
/// everything else. A run that ended only for now counts too, unless a later one ended for good.
pub(in crate::cli) fn interrupted(
    store: &Store,
    task_digest: &str,
    same: impl Fn(&Store, &RunRow) -> bool,
) -> Result<Option<RunRow>, StoreError> {
    let rows = store.runs(&RunListFilter { limit: u32::MAX, ..RunListFilter::default() })?.into_iter();
    let mut is_done = false;
    for row in rows.filter(|row| row.machine.is_none() && row.head.task_digest == task_digest && same(store, row)) {
        match &row.state {
            StoredRunState::Interrupted => return Ok(Some(row)),
            state if is_for_now(state) && !is_done => return Ok(Some(row)),
            StoredRunState::Ended(_) => is_done = true,
            StoredRunState::Running { .. } => {}
        }
    }
    Ok(None)
}
