//! The checks of a run before it begins, for a caller that records no run that is refused.
//!
//! Planning repeats them: the files may change meanwhile.

use super::briefing::{PlanError, check_input};
use super::planning::lanes_at;
use super::uncommitted::must_be_committed;
use super::worktree::commit_at;
use super::{Agent, delivery, enclosure, servers};
use crate::id::RunId;
use crate::task::{Isolation, Task};
use crate::verdict::Reason;
use std::path::Path;

impl Agent {
    /// Checks a run of this task before it begins, as far as that costs little. Starts no program
    /// but git and changes nothing. `scratch` is an empty folder.
    ///
    /// Does not look into a commit that the task works on: only the run reads its files.
    ///
    /// # Errors
    /// [`PlanError`] for bad input. Other faults are left to the run, which records them.
    pub async fn must_be_plannable(&self, task: &Task, scratch: &Path) -> Result<(), PlanError> {
        match self.plan_beforehand(task, scratch).await {
            Err(fault) if fault.reason == Reason::BadInput => Err(fault),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    async fn plan_beforehand(&self, task: &Task, scratch: &Path) -> Result<(), PlanError> {
        if let Some(why) = self.spec(task, RunId::new("dry")).refusal() {
            return Err(PlanError::bad(why));
        }
        let settings = &*self.settings;
        enclosure::must_be_hideable(settings)?;
        servers::named_servers(task, settings)?;
        must_be_committed(task, settings, scratch).await?;
        if task.isolation == Isolation::Worktree {
            commit_at(&settings.workspace, task.base.as_deref().unwrap_or("HEAD"), &settings.env, scratch).await?;
        }
        if task.isolation == Isolation::InPlace || task.base.is_none() {
            check_input(task, settings, lanes_at(settings, scratch).await?.as_deref())?;
        }
        delivery::must_be_committable(task, settings, scratch).await
    }
}
