//! What a run stands on: the wall around everything that it starts, and the trees of its workspace. Made in Planning, and again when a
//! run is taken up.

use super::Settings;
use super::briefing::{PlanFault, chain};
use crate::gate::Site;
use crate::id::{RunId, TreeId};
use crate::process::Variables;
use crate::process::wall::{NoWall, Wall};
use crate::store::{RunDir, project_dir};
use crate::task::{Baseline, Task};
use crate::verdict::Reason;
use crate::workspace::trees::{Trees, TreesFault};
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// What a run stands on.
#[derive(Debug, Clone)]
pub(super) struct Ground {
    pub(super) wall: Wall,
    pub(super) trees: Trees,
}

/// The name by which a tree of a run is kept.
pub(super) fn kept_as(run: &RunId, what: &str) -> String {
    format!("{run}/{what}")
}

impl Ground {
    /// Raises the wall and opens the trees.
    ///
    /// # Errors
    /// When there is no wall where one is wanted, or no git.
    pub(super) async fn make(settings: &Settings, stop: &CancellationToken) -> Result<Self, PlanFault> {
        let env: Variables = settings.env.clone().into();
        let path = env.get("PATH").unwrap_or_default();
        let wall = Wall::raise(settings.wall, settings.helper.as_deref(), path).await.map_err(no_wall)?;
        let git_dir = project_dir(&settings.state_dir, &settings.workspace).join("trees.git");
        let trees = Trees::open(&git_dir, &settings.workspace, path, stop).await.map_err(no_trees)?;
        Ok(Self { wall, trees })
    }

    /// Takes the base, before the agent: what is ignored is ignored by what the user says now.
    pub(super) async fn base(
        &self,
        settings: &Settings,
        run: &RunId,
        stop: &CancellationToken,
    ) -> Result<(TreeId, Vec<String>), PlanFault> {
        let take = async {
            self.trees.freeze_ignores(&settings.env, stop).await?;
            let tree = self.trees.take(stop).await?.tree;
            self.trees.keep(&kept_as(run, "base"), &tree, stop).await?;
            let paths = self.trees.entries(&tree, stop).await?.into_iter().map(|entry| entry.path).collect();
            Ok((tree, paths))
        };
        take.await.map_err(no_trees)
    }

    /// Where and how the gate of a run judges.
    pub(super) fn site(&self, settings: &Settings, task: &Task, run: &RunDir) -> Site {
        Site {
            root: settings.workspace.clone(),
            trees: self.trees.clone(),
            wall: self.wall.clone(),
            hidden: hidden(settings),
            env: settings.env.clone(),
            logs: run.logs(),
            rooms: run.path().join("rooms"),
            ignored: run.path().join("ignored"),
            project: run.project().to_owned(),
            jobs: settings.jobs,
            on_tamper: task.on_tamper,
            may_judge_base: baseline(settings, task) != Baseline::Never,
        }
    }
}

/// When the base of a task is judged.
pub(super) fn baseline(settings: &Settings, task: &Task) -> Baseline {
    task.baseline.unwrap_or(settings.baseline)
}

/// What no agent sees, and no lane that it knows.
pub(super) fn hidden(settings: &Settings) -> Vec<PathBuf> {
    let holdout = settings.holdout.iter().filter_map(|folder| folder.canonicalize().ok());
    [settings.state_dir.clone()].into_iter().chain(holdout).collect()
}

fn no_wall(fault: NoWall) -> PlanFault {
    PlanFault { reason: Reason::NoSandbox, message: format!("{fault}\n  {}", fault.mend) }
}

fn no_trees(fault: TreesFault) -> PlanFault {
    PlanFault { reason: Reason::GateErrored, message: chain(&fault) }
}
