//! Resuming and continuing runs: the search for them, their settings, and the task that follows.

use super::connect::{ConnectedModels, again};
use super::drive::{AgentWork, OutputOptions, drive};
use super::failure::CliError;
use super::runtime::block_on;
use crate::config::EnvironmentLayer;
use crate::driver::{self, DriverSettings, ResumeError, RunTerms, is_for_now, terms};
use crate::id::RunId;
use crate::provider::Pacer;
use crate::setup::ProjectContext;
use crate::store::{RunListFilter, RunRow, Store, StoreError, StoredRunState, read_text};
use crate::task::{Isolation, SpecChoice, Task};
use crate::workspace::AtomicOutput;
use std::path::PathBuf;

/// The longest title taken from the text, in characters.
const LONGEST_TITLE: usize = 80;
/// The largest report to read, in bytes.
pub(super) const LARGEST_REPORT: usize = 64 * 1024 * 1024;

pub(super) fn failed(fault: ResumeError) -> CliError {
    CliError::because(fault.reason(), fault)
}

/// Resumes a run as the given [`AgentWork`], with the terms of its start and the current keys.
/// `reports` replace the places of its report, if there are any.
pub(super) fn resume(
    how: AgentWork,
    run: &RunId,
    reports: &[PathBuf],
    environment: &EnvironmentLayer,
    place: &ProjectContext<'_>,
    voice: OutputOptions,
) -> Result<u8, CliError> {
    let store = place.store().map_err(CliError::own)?;
    let (row, mut terms) = terms(&store, run).map_err(failed)?;
    let is_raised =
        matches!(&how, AgentWork::Resume(_, limits) if !limits.is_empty()) && driver::is_limited(&row.state);
    let is_over = matches!(row.state, StoredRunState::Ended(_)) && !is_for_now(&row.state) && !is_raised;
    if !is_over && !reports.is_empty() {
        terms.reports = reports.to_vec();
    }
    let models = match is_over {
        true => ConnectedModels::default(), // no model is called, so no key is needed
        false => again(&row, &terms, place, environment, &Pacer::default())?,
    };
    let settings = settings(place, environment, models, terms);
    let code = block_on(drive(how, settings, voice))??;
    if is_over {
        let report = read_text(&store.folder(run).report(), LARGEST_REPORT).map_err(CliError::own)?.unwrap_or_default();
        for path in reports {
            let output = AtomicOutput::find(path, place.workspace).map_err(CliError::input)?;
            output.write(report.as_bytes(), &|| false).map_err(CliError::own)?;
        }
    }
    Ok(code)
}

/// Returns the settings of an agent from the terms of an earlier run and the current environment.
pub(super) fn settings(
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
        sandbox,
        network,
        holdout,
        lanes_from,
        worktree: _,
        places: _,
    } = terms;
    DriverSettings {
        models,
        protect,
        reports,
        patch,
        jobs,
        earlier,
        memory,
        sandbox,
        network,
        holdout,
        lanes_from,
        ..place.settings(environment, &late)
    }
}

/// The runs of a key.
#[derive(Debug)]
pub(super) struct RunsOfKey {
    /// The newest run.
    pub(super) newest: Option<RunRow>,
    /// The key of the next run: the key itself, then with the suffix `#2`, `#3`.
    pub(super) free: String,
}

/// Finds the newest run of a key. A key stays with its run, which is tied to its journal, so later
/// runs get a suffix.
pub(super) fn keyed(store: &Store, key: &str) -> Result<RunsOfKey, StoreError> {
    let rows = store.keyed(key)?;
    let highest = rows.iter().map(|(number, _)| *number).max();
    let free = highest.map_or_else(|| key.to_owned(), |number| format!("{key}#{}", number.saturating_add(1)));
    Ok(RunsOfKey { newest: rows.into_iter().next().map(|(_, row)| row), free })
}

/// Finds the newest interrupted run of a task's text that no process drives. `same` checks
/// everything else. A run that ended only for now counts too, unless a later one ended for good.
pub(super) fn interrupted(
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

/// Returns the task of a run that continues an earlier one. `is_there` says that the folder of the
/// earlier run exists.
pub(super) fn task_after(text: String, (store, row): (&Store, &RunRow), terms: &RunTerms, is_there: bool) -> Task {
    let task = further(text, terms.task.clone());
    match &terms.worktree {
        None => task,
        // The earlier worktree exists: work in it, and commit as the earlier run would.
        Some(_) if is_there => {
            Task { commit: Some(task.commits()), isolation: Isolation::InPlace, base: None, allow_dirty: true, ..task }
        }
        Some(_) => {
            let result = driver::story(store, row).0.run.result();
            Task { base: result.and_then(|result| result.commit).or(task.base), ..task }
        }
    }
}

/// Returns the task with a new text. Its context and specs are dropped, because the conversation
/// already has them. Its expectation about the base is dropped, because the base is another one.
fn further(text: String, task: Task) -> Task {
    let first = text.trim().lines().next().unwrap_or_default().trim_start_matches('#').trim();
    let title = first.chars().take(LONGEST_TITLE).collect();
    let (context, specs, expect, is_fix) = (Vec::new(), SpecChoice::None, None, false);
    Task { title, prompt: text, context, specs, expect, is_fix, ..task }
}
