//! A worktree for a run that wants one for itself: chosen before the run is written down, made in Planning, and left before the report says
//! how it ended. What is not committed by then stays.

use super::briefing::PlanFault;
use super::perform::Hands;
use super::{Agent, Settings};
use crate::causes::chain;
use crate::id::RunId;
use crate::run::{Charter, TaskResult, Workplace};
use crate::store::{RunDir, StoreError, make_private, project_dir};
use crate::task::{Isolation, Task};
use crate::verdict::{Reason, StopCause};
use crate::workspace::worktree::{self, Base, FOLDER, Left, Record, Worktree, WorktreeFault};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Where the worktrees of a project's runs are.
pub fn worktrees(state_dir: &Path, project: &Path) -> PathBuf {
    project_dir(state_dir, project).join(FOLDER)
}

/// Whose runs those of a folder are: its own, but in the worktree of a run those of that run's project.
pub fn project_of(state_dir: &Path, folder: &Path) -> PathBuf {
    worktree::project_of(state_dir, folder).unwrap_or_else(|| folder.to_owned())
}

impl Settings {
    /// Whose runs these are.
    pub fn project(&self) -> &Path {
        self.project.as_deref().unwrap_or(&self.workspace)
    }
}

impl Agent {
    /// The worktree of a task that wants one; it is not made yet.
    pub(super) fn choose_worktree(&self, task: &Task, charter: &Charter) -> Result<Option<Worktree>, StoreError> {
        if task.isolation == Isolation::InPlace {
            return Ok(None);
        }
        let settings = &self.settings;
        let all = worktrees(&settings.state_dir, settings.project());
        make_private(&all)?;
        let all = all.canonicalize().map_err(|source| StoreError::new("open", &all, source))?;
        let (origin, project) = (&settings.workspace, settings.project());
        Ok(Some(Worktree::choose(&all, &charter.run, &task.title, task.base.as_deref(), origin, project)))
    }

    /// The settings of a run, which works in its worktree where it has one.
    pub(super) fn settings_in(&self, worktree: Option<&Worktree>) -> Arc<Settings> {
        let Some(worktree) = worktree else { return self.settings.clone() };
        let (workspace, project) = (worktree.workspace(), Some(worktree.project.clone()));
        Arc::new(Settings { workspace, project, ..Settings::clone(&self.settings) })
    }
}

/// Makes the worktree of a run that has not been planned yet, where it wants one; gives what people should know of it.
pub(super) async fn make(
    worktree: Option<&Worktree>,
    settings: &Settings,
    run_dir: &RunDir,
    stop: &CancellationToken,
) -> Result<Option<(Workplace, Vec<String>)>, PlanFault> {
    let Some(worktree) = worktree else { return Ok(None) };
    let made = worktree.make(&run_dir.run(), &settings.env, run_dir.path(), stop).await.map_err(unplanned)?;
    Ok(Some((Workplace::made(&worktree.folder, &worktree.branch, &made.base), made.notes)))
}

/// What a run would begin with that is to have a worktree, for who only wants to look: the files of its commit are written into `scratch`, and
/// the settings are those that have them for the workspace; with what people should know of it. `None` where a run has no worktree.
///
/// # Errors
/// As those of a run that would begin with these settings.
pub async fn base_at(
    task: &Task,
    settings: &Settings,
    scratch: &Path,
) -> Result<Option<(Settings, Vec<String>)>, PlanFault> {
    if task.isolation == Isolation::InPlace {
        return Ok(None);
    }
    let worktree = imagined(task.base.as_deref(), settings, scratch);
    let base = base_of(&worktree, settings, scratch).await?;
    let short = base.commit.get(..12).unwrap_or(&base.commit);
    let note = format!("the run would begin in a worktree of {short}: nothing that is not committed is in it");
    let seen = written(&worktree, settings, scratch).await?;
    Ok(Some((seen, [note].into_iter().chain(base.notes).collect())))
}

/// The same for any task that begins with this commit; nothing is written where the checkout has just its files.
///
/// # Errors
/// As those of [`base_at`].
pub async fn ground_at(
    from: Option<&str>,
    settings: &Settings,
    scratch: &Path,
) -> Result<(Settings, Vec<String>), PlanFault> {
    let worktree = imagined(from, settings, scratch);
    let base = base_of(&worktree, settings, scratch).await?;
    let seen = if base.is_checked_out { settings.clone() } else { written(&worktree, settings, scratch).await? };
    Ok((seen, base.notes))
}

/// Insists that there is a commit of this name in the repository of a folder.
///
/// # Errors
/// When there is none, or no repository.
pub async fn commit_at(folder: &Path, name: &str, env: &[(String, String)], scratch: &Path) -> Result<(), PlanFault> {
    let worktree = Worktree::choose(&scratch.join(FOLDER), &RunId::new("dry"), "", Some(name), folder, folder);
    worktree.commit(env, scratch, &CancellationToken::new()).await.map(drop).map_err(unplanned)
}

/// A worktree that is never made.
pub(super) fn imagined(from: Option<&str>, settings: &Settings, scratch: &Path) -> Worktree {
    let (all, run) = (scratch.join(FOLDER), RunId::new("dry"));
    Worktree::choose(&all, &run, "", from, &settings.workspace, settings.project())
}

async fn base_of(worktree: &Worktree, settings: &Settings, scratch: &Path) -> Result<Base, PlanFault> {
    worktree.base(&settings.env, scratch, &CancellationToken::new()).await.map_err(unplanned)
}

async fn written(worktree: &Worktree, settings: &Settings, scratch: &Path) -> Result<Settings, PlanFault> {
    let workspace = scratch.join("base");
    let stop = CancellationToken::new();
    worktree.export(&workspace, &settings.env, scratch, &stop).await.map_err(unplanned)?;
    Ok(Settings { workspace, project: Some(settings.project().to_owned()), ..settings.clone() })
}

/// Insists that the worktree of a run that goes on is still there.
pub(super) fn must_stand(worktree: Option<&Worktree>) -> Result<(), String> {
    worktree.map_or(Ok(()), |worktree| worktree.must_stand().map(drop).map_err(|fault| chain(&fault)))
}

/// Whether a run that ends like this may be taken up again, and needs its worktree then.
fn is_for_now(result: &TaskResult) -> bool {
    let is_ended_from_outside = result.cancelled && result.stopped_by == Some(StopCause::Terminate);
    result.reason == Reason::Blocked || is_ended_from_outside
}

pub(super) fn unplanned(fault: WorktreeFault) -> PlanFault {
    let reason = if fault.is_bad_input() { Reason::BadInput } else { Reason::PlanFailed };
    PlanFault::new(reason, chain(&fault))
}

impl Hands {
    /// The same for a run that has this worktree.
    pub(super) fn within(self, worktree: Option<Worktree>) -> Self {
        Self { worktree: worktree.map(Arc::new), ..self }
    }

    /// Whether the run had a worktree that is not there, so that there is nothing to look at any more.
    pub(super) fn has_left(&self) -> bool {
        self.worktree.as_ref().is_some_and(|worktree| worktree.folder.symlink_metadata().is_err())
    }

    /// Why nothing can be judged where somebody has removed the worktree.
    pub(super) fn must_not_have_left(&self) -> Option<String> {
        let worktree = self.worktree.as_ref().filter(|_| self.has_left())?;
        Some(WorktreeFault::Gone { folder: worktree.folder.clone() }.to_string())
    }

    /// Leaves the worktree: one that holds nothing that is not committed is removed. Nobody of the agent may be alive. Done again it does
    /// the rest.
    pub(super) async fn leave_worktree(&self, result: &TaskResult, stop: &CancellationToken) -> Option<Workplace> {
        let worktree = self.worktree.as_ref()?;
        let record = match Record::read(worktree.outer()) {
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
            return Some(workplace.kept("the run can be gone on with".into(), true));
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
            () = late => return Some(workplace.unclear("it was stopped before".into())),
        };
        Some(match left {
            Ok(Left { stays: None, has_branch }) => workplace.removed(has_branch),
            Ok(Left { stays: Some(why), has_branch }) => workplace.kept(why, has_branch),
            Err(fault) => workplace.unclear(chain(&fault)),
        })
    }
}
