//! The worktree of a run that works apart from the checkout.
//!
//! fledge chooses it before it records the run, creates it in Planning, and leaves it before the
//! report. Uncommitted work in it stays.

use super::effects::EffectRunner;
use super::error::PlanError;
use super::{Agent, DriverSettings};
use crate::error_chain::chain;
use crate::id::RunId;
use crate::limits::LimitName;
use crate::run::{RunSpec, TaskResult, Workplace};
use crate::store::{RunDir, StoreError, make_private, project_dir};
use crate::task::{Isolation, Task};
use crate::verdict::{Reason, StopCause};
use crate::workspace::worktree::{
    self, FOLDER, Worktree, WorktreeBase, WorktreeError, WorktreeLeftover, WorktreeRecord,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Returns the folder with the worktrees of a project's runs.
pub fn worktrees(state_dir: &Path, project: &Path) -> PathBuf {
    project_dir(state_dir, project).join(FOLDER)
}

/// Returns the project folder that keeps the runs of this folder: the folder itself or, in the
/// worktree of a run, that run's project.
pub fn project_of(state_dir: &Path, folder: &Path) -> PathBuf {
    worktree::project_of(state_dir, folder).unwrap_or_else(|| folder.to_owned())
}

impl DriverSettings {
    /// Returns the project folder that keeps the runs.
    pub fn project(&self) -> &Path {
        self.project.as_deref().unwrap_or(&self.workspace)
    }
}

impl Agent {
    /// Chooses the worktree of a task that wants one, without creating it.
    pub(super) fn choose_worktree(&self, task: &Task, spec: &RunSpec) -> Result<Option<Worktree>, StoreError> {
        if task.isolation == Isolation::InPlace {
            return Ok(None);
        }
        let settings = &self.settings;
        let all = worktrees(&settings.state_dir, settings.project());
        make_private(&all)?;
        let all = all.canonicalize().map_err(|source| StoreError::new("open", &all, source))?;
        let (origin, project) = (&settings.workspace, settings.project());
        Ok(Some(Worktree::choose(&all, &spec.run, &task.title, task.base.as_deref(), origin, project)))
    }

    /// Returns the settings of a run. Its worktree is the workspace, if it has one.
    pub(super) fn settings_in(&self, worktree: Option<&Worktree>) -> Arc<DriverSettings> {
        let Some(worktree) = worktree else { return self.settings.clone() };
        let (workspace, project) = (worktree.workspace(), Some(worktree.project.clone()));
        Arc::new(DriverSettings { workspace, project, ..DriverSettings::clone(&self.settings) })
    }
}

/// Creates the worktree of a run that is not planned yet. Returns it with notes for people, or
/// `None` if the run has none.
pub(super) async fn make(
    worktree: Option<&Worktree>,
    settings: &DriverSettings,
    run_dir: &RunDir,
    stop: &CancellationToken,
) -> Result<Option<(Workplace, Vec<String>)>, PlanError> {
    let Some(worktree) = worktree else { return Ok(None) };
    let made = worktree.make(&run_dir.run(), &settings.env, run_dir.path(), stop).await.map_err(unplanned)?;
    Ok(Some((Workplace::made(&worktree.folder, &worktree.branch, &made.base), made.notes)))
}

/// Writes the files that a run in a worktree would begin with into `scratch`, for a caller that
/// starts no run. Returns settings with these files as the workspace, and notes for people. Returns
/// `None` if the run would have no worktree.
///
/// # Errors
/// [`PlanError`], as for a run with these settings.
pub async fn base_at(
    task: &Task,
    settings: &DriverSettings,
    scratch: &Path,
) -> Result<Option<(DriverSettings, Vec<String>)>, PlanError> {
    if task.isolation == Isolation::InPlace {
        return Ok(None);
    }
    let worktree = imagined(task.base.as_deref(), settings, scratch);
    let base = base_of(&worktree, settings, scratch).await?;
    let short = base.commit.get(..12).unwrap_or(&base.commit);
    let note = format!("the run would begin in a worktree of {short}, without uncommitted changes");
    let seen = written(&worktree, settings, scratch).await?;
    Ok(Some((seen, [note].into_iter().chain(base.notes).collect())))
}

/// Writes the files of this commit into `scratch`, for any task that begins with it. Writes nothing
/// if the checkout has just these files.
///
/// # Errors
/// As for [`base_at`].
pub async fn export_commit(
    from: Option<&str>,
    settings: &DriverSettings,
    scratch: &Path,
) -> Result<(DriverSettings, Vec<String>), PlanError> {
    let worktree = imagined(from, settings, scratch);
    let base = base_of(&worktree, settings, scratch).await?;
    let seen = if base.is_checked_out { settings.clone() } else { written(&worktree, settings, scratch).await? };
    Ok((seen, base.notes))
}

/// Checks that the repository of a folder has a commit with this name.
///
/// # Errors
/// [`PlanError`] if the commit or the repository does not exist.
pub async fn commit_at(folder: &Path, name: &str, env: &[(String, String)], scratch: &Path) -> Result<(), PlanError> {
    let worktree = Worktree::choose(&scratch.join(FOLDER), &RunId::new("dry"), "", Some(name), folder, folder);
    let found = worktree.commit(env, scratch, &CancellationToken::new()).await;
    found.map(drop).map_err(|fault| unplanned(fault).of_value("base", name))
}

/// Returns a worktree that is never created.
pub(super) fn imagined(from: Option<&str>, settings: &DriverSettings, scratch: &Path) -> Worktree {
    let (all, run) = (scratch.join(FOLDER), RunId::new("dry"));
    Worktree::choose(&all, &run, "", from, &settings.workspace, settings.project())
}

async fn base_of(worktree: &Worktree, settings: &DriverSettings, scratch: &Path) -> Result<WorktreeBase, PlanError> {
    let base = worktree.base(&settings.env, scratch, &CancellationToken::new()).await;
    base.map_err(|fault| unplanned(fault).of_value("base", &worktree.from))
}

async fn written(worktree: &Worktree, settings: &DriverSettings, scratch: &Path) -> Result<DriverSettings, PlanError> {
    let workspace = scratch.join("base");
    let stop = CancellationToken::new();
    worktree.export(&workspace, &settings.env, scratch, &stop).await.map_err(unplanned)?;
    Ok(DriverSettings { workspace, project: Some(settings.project().to_owned()), ..settings.clone() })
}

/// Checks that the worktree of a resumed run still exists.
pub(super) fn must_stand(worktree: Option<&Worktree>) -> Result<(), String> {
    worktree.map_or(Ok(()), |worktree| worktree.must_stand().map(drop).map_err(|fault| chain(&fault)))
}

/// Returns true if a run with this result may be resumed and then needs its worktree, even without
/// changes in it. A failed gate does not count: without changes, another attempt is a new run.
fn is_for_now(result: &TaskResult) -> bool {
    let is_ended_from_outside = result.cancelled && result.stopped_by == Some(StopCause::Terminate);
    let is_limited = result.reason.limit().is_some_and(|limit| limit != LimitName::Retries);
    result.reason == Reason::Blocked || is_limited || is_ended_from_outside
}

pub(super) fn unplanned(fault: WorktreeError) -> PlanError {
    let reason = if fault.is_bad_input() { Reason::BadInput } else { Reason::PlanFailed };
    PlanError::new(reason, chain(&fault))
}

impl EffectRunner {
    /// Sets the worktree of the run.
    pub(super) fn within(self, worktree: Option<Worktree>) -> Self {
        Self { worktree: worktree.map(Arc::new), ..self }
    }

    /// Returns true if the worktree of the run is missing, so that nothing can be checked any more.
    pub(super) fn has_left(&self) -> bool {
        self.worktree.as_ref().is_some_and(|worktree| worktree.folder.symlink_metadata().is_err())
    }

    /// Returns the reason that nothing can be judged, if the worktree was removed.
    pub(super) fn missing_worktree(&self) -> Option<String> {
        let worktree = self.worktree.as_ref().filter(|_| self.has_left())?;
        Some(WorktreeError::Gone { folder: worktree.folder.clone() }.to_string())
    }

    /// Leaves the worktree, and removes it if it holds no uncommitted work. No process of the agent
    /// may be alive. A second call does what the first one left.
    pub(super) async fn leave_worktree(&self, result: &TaskResult, stop: &CancellationToken) -> Option<Workplace> {
        let worktree = self.worktree.as_ref()?;
        let record = match WorktreeRecord::read(worktree.outer()) {
            Ok(Some(record)) => record,
            Ok(None) => {
                let has_branch = result.commit.is_some();
                return result.worktree.clone().map(|workplace| workplace.removed(has_branch));
            }
            Err(fault) => return result.worktree.clone().map(|workplace| workplace.unclear(chain(&fault))),
        };
        if !self.has_left() {
            self.close_git().await;
        }
        let workplace = Workplace::made(&worktree.folder, &worktree.branch, &record.base);
        if is_for_now(result) {
            return Some(workplace.kept("the run can be resumed".into(), true));
        }
        let own = stop.child_token();
        let late = async {
            self.stop.haste().await;
            own.cancel();
            std::future::pending::<()>().await;
        };
        let left = tokio::select! {
            biased;
            left = record.remove(false, &self.settings.env, self.run_dir.path(), &own) => left,
            () = late => return Some(workplace.unclear("fledge was stopped before the removal".into())),
        };
        Some(match left {
            Ok(WorktreeLeftover { stays: None, has_branch }) => workplace.removed(has_branch),
            Ok(WorktreeLeftover { stays: Some(why), has_branch }) => workplace.kept(why, has_branch),
            Err(fault) => workplace.unclear(chain(&fault)),
        })
    }
}
