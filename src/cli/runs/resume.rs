//! `fledge runs resume`, and the runs that `fledge run --resume-or-start` finds.

use super::super::beside::{hooks, servers};
use super::super::block_on;
use super::super::configured;
use super::super::connect::{Connected, again};
use super::super::drive::{Voice, VoiceArguments, Work, drive};
use super::super::failure::Failure;
use super::super::paint::{self, Tone};
use super::super::secrets::secrets;
use super::Shelf;
use super::data::LARGEST_REPORT;
use crate::config::{self, Environment};
use crate::driver::{Asker, ResumeFault, Settings, Terms, is_for_now, must_be_ours, project_of, terms};
use crate::id::RunId;
use crate::provider::Pacer;
use crate::store::{Filter, RunHead, RunRow, RunState, Store, StoreError, read_text};
use crate::verdict::Reason;
use crate::workspace::Outlet;
use anyhow::{Context, anyhow};
use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fledge runs resume last\n  fledge runs resume 0198f2 --json")]
pub(in crate::cli) struct ResumeArguments {
    /// The run: its id or the start of it, its run key, or `last`
    run: String,
    #[command(flatten)]
    voice: VoiceArguments,
}

/// Where runs are, and what is configured there.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct Place<'p> {
    pub(in crate::cli) workspace: &'p Path,
    pub(in crate::cli) state_dir: &'p Path,
    pub(in crate::cli) set: &'p config::Settings,
}

impl Place<'_> {
    /// What is kept of the project.
    pub(in crate::cli) fn store(&self) -> Result<Store, Failure> {
        Store::open(self.state_dir, &self.project()).map_err(Failure::own)
    }

    /// Whose runs these are.
    pub(in crate::cli) fn project(&self) -> PathBuf {
        project_of(self.state_dir, self.workspace)
    }
}

/// Runs the verb.
pub(super) fn run(shelf: &Shelf, arguments: &ResumeArguments, environment: &Environment) -> Result<u8, Failure> {
    let (store, row) = shelf.find_to_go_on(&arguments.run)?;
    must_be_ours(&row).map_err(|elsewhere| failed(elsewhere.into()))?;
    let is_verified = |reason: &str| reason == Reason::Verified.to_string();
    if matches!(&row.state, RunState::Ended(end) if is_verified(&end.reason)) && !arguments.voice.quiet {
        let text = format!("run {} is over and verified: there is nothing to resume. It ended so:", row.head.id);
        paint::line(&[(Tone::Warn, "! "), (Tone::Plain, &text)]);
    }
    let workspace = home_of(shelf, &store, &row)?;
    let set = configured::load(environment, &workspace).map_err(Failure::input)?;
    let place = Place { workspace: &workspace, state_dir: &shelf.state, set: &set };
    let voice = Voice::new(arguments.voice, &set, environment);
    resume(Work::Resume, &row.head.id, &[], environment, &place, voice)
}

pub(super) fn failed(fault: ResumeFault) -> Failure {
    Failure::because(fault.reason(), fault)
}

/// The folder from which a run is gone on with: that of its project, where it has a worktree for itself.
pub(super) fn home_of(shelf: &Shelf, store: &Store, row: &RunRow) -> Result<PathBuf, Failure> {
    let (_, terms) = terms(store, &row.head.id).map_err(failed)?;
    terms.worktree.map_or_else(|| workspace_of(shelf, row), |worktree| Ok(worktree.project))
}

/// The folder that a run works in, which is another than the one that was asked in when its id was found elsewhere.
pub(super) fn workspace_of(shelf: &Shelf, row: &RunRow) -> Result<PathBuf, Failure> {
    let RunHead { id, workspace, .. } = &row.head;
    if shelf.workspace.display().to_string() == *workspace {
        return Ok(shelf.workspace.clone()); // the row cannot tell a name that is not UTF-8
    }
    if workspace.contains(char::REPLACEMENT_CHARACTER) {
        let error = anyhow!("run {id} works in a folder whose name is not UTF-8: {workspace}");
        return Err(Failure::input(error).hint("go there, or name it with -C"));
    }
    let canonical = Path::new(workspace).canonicalize();
    canonical.with_context(|| format!("run {id} works in {workspace}, which is gone")).map_err(Failure::input)
}

/// Goes on with a run in one of the two ways of [`Work`], with the terms that it was begun with and the keys of today. Where its report is to be written today, if
/// anywhere, takes the place of where it was to be.
pub(in crate::cli) fn resume(
    how: fn(RunId) -> Work,
    run: &RunId,
    reports: &[PathBuf],
    environment: &Environment,
    place: &Place<'_>,
    voice: Voice,
) -> Result<u8, Failure> {
    let store = place.store()?;
    let (row, mut terms) = terms(&store, run).map_err(failed)?;
    let is_over = matches!(row.state, RunState::Ended(_)) && !is_for_now(&row.state);
    if !is_over && !reports.is_empty() {
        terms.reports = reports.to_vec();
    }
    let models = match is_over {
        true => Connected::default(), // nothing is asked any more, so that no key is needed
        false => again(&row, &terms, place, environment, &Pacer::default())?,
    };
    let settings = settings(place, environment, models, terms);
    let code = block_on(drive(how(run.clone()), settings, voice))??;
    if is_over {
        let report = read_text(&store.folder(run).report(), LARGEST_REPORT).map_err(Failure::own)?.unwrap_or_default();
        for path in reports {
            let outlet = Outlet::find(path, place.workspace).map_err(Failure::input)?;
            outlet.write(report.as_bytes(), &|| false).map_err(Failure::own)?;
        }
    }
    Ok(code)
}

/// What an agent works with that goes by the terms of an earlier run and the environment of today.
pub(in crate::cli) fn settings(
    place: &Place<'_>,
    environment: &Environment,
    connected: Connected,
    terms: Terms,
) -> Settings {
    let (models, late) = connected;
    let Terms {
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
    Settings {
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
pub(in crate::cli) struct Found {
    /// The newest one.
    pub(in crate::cli) newest: Option<RunRow>,
    /// The name under which the next one is kept: the key itself, then with `#2`, `#3` behind it.
    pub(in crate::cli) free: String,
}

/// The newest run of a key. A key stays with its run, which is tied to its journal, so later ones have a number behind it.
pub(in crate::cli) fn keyed(store: &Store, key: &str) -> Result<Found, StoreError> {
    let rows = store.keyed(key)?;
    let highest = rows.iter().map(|(number, _)| *number).max();
    let free = highest.map_or_else(|| key.to_owned(), |number| format!("{key}#{}", number.saturating_add(1)));
    Ok(Found { newest: rows.into_iter().next().map(|(_, row)| row), free })
}

/// The newest run of a task's text that did not end and that nobody drives, and that is the `same` in all else. One that ended only for now
/// is such a one where no later one of them ended for good.
pub(in crate::cli) fn interrupted(
    store: &Store,
    task_digest: &str,
    same: impl Fn(&Store, &RunRow) -> bool,
) -> Result<Option<RunRow>, StoreError> {
    let rows = store.runs(&Filter { limit: u32::MAX, ..Filter::default() })?.into_iter();
    let mut is_done = false;
    for row in rows.filter(|row| row.machine.is_none() && row.head.task_digest == task_digest && same(store, row)) {
        match &row.state {
            RunState::Interrupted => return Ok(Some(row)),
            state if is_for_now(state) && !is_done => return Ok(Some(row)),
            RunState::Ended(_) => is_done = true,
            RunState::Running { .. } => {}
        }
    }
    Ok(None)
}
