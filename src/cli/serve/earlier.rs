//! Runs made from earlier ones: the same task again, or a new text after the earlier conversation.

use super::super::connect::again;
use super::super::failure::CliError;
use super::super::resume::{settings as resumed_settings, task_after};
use super::source::{ProjectTasks, refusal};
use crate::config;
use crate::driver::{DriverSettings, RunTerms, earlier, terms};
use crate::id::RunId;
use crate::serve::engine::{Overrides, RunRefusal, RunRequest, UnfitTask};
use crate::setup::ProjectContext;
use crate::store::Store;
use crate::task::{Isolation, Task};
use std::path::{Path, PathBuf};

impl ProjectTasks {
    /// Returns the task of an earlier run, in its own worktree. Drops what ties the task to a
    /// batch.
    pub(super) fn task_again(&self, run: &RunId, overrides: &Overrides) -> Result<Task, UnfitTask> {
        let store = self.store().map_err(|failure| wrong(failure.message()))?;
        let (_, RunTerms { task, .. }) = terms(&store, run).map_err(|fault| wrong(CliError::own(fault).message()))?;
        let (needs, candidates, isolation) = (Vec::new(), None, Isolation::Worktree);
        let mut task = Task { needs, candidates, isolation, ..task };
        overrides.set_in(&mut task);
        Ok(task)
    }

    /// Returns the task of a run that continues an earlier one.
    pub(super) fn task_after(&self, run: &RunId, text: &str) -> Result<Task, UnfitTask> {
        if text.trim().is_empty() {
            return Err(UnfitTask::of_field("task", "the task is empty: describe what to do".into()));
        }
        let store = self.store().map_err(|failure| wrong(failure.message()))?;
        let found = earlier(&store, run).map_err(|fault| wrong(CliError::own(fault).message()));
        let (row, terms, _) = found?;
        Ok(task_after(text.to_owned(), (&store, &row), &terms, Path::new(&row.head.workspace).is_dir()))
    }

    /// Returns the task, and the settings of the earlier run with its conversation.
    pub(super) fn begin_after(
        &self,
        run: &RunId,
        request: &RunRequest,
        set: &config::ProjectConfig,
    ) -> Result<(Task, DriverSettings), RunRefusal> {
        let store = self.store().map_err(|failure| refusal(&failure))?;
        let found = earlier(&store, run);
        let (row, terms, before) =
            found.map_err(|fault| RunRefusal { reason: fault.reason(), message: CliError::own(fault).message() })?;
        let folder = PathBuf::from(&row.head.workspace).canonicalize().ok().filter(|folder| folder.is_dir());
        let mut task = task_after(request.text.clone(), (&store, &row), &terms, folder.is_some());
        request.overrides.set_in(&mut task);
        let workspace = folder.unwrap_or_else(|| self.workspace.clone());
        let place = ProjectContext { workspace: &workspace, state_dir: &self.state_dir, set };
        let connected = again(&row, &terms, &place, &self.environment, &self.models.pacer);
        let connected = connected.map_err(|failure| refusal(&failure))?;
        let terms = RunTerms { reports: Vec::new(), patch: None, earlier: Some(before), ..terms };
        Ok((task, resumed_settings(&place, &self.environment, connected, terms)))
    }

    pub(super) fn store(&self) -> Result<Store, CliError> {
        Store::open(&self.state_dir, &self.project).map_err(CliError::own)
    }
}

/// Returns the reason why no run can be made from the earlier one.
fn wrong(message: String) -> UnfitTask {
    UnfitTask { message, flaws: Vec::new() }
}
