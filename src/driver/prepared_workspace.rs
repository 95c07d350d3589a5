//! The prepared workspace of a run: the sandbox around its programs, the trees of its files, and
//! its installed dependencies. Built in Planning, and again on a resume.

use super::briefing::StartingPoint;
use super::enclosure::DependencyFolders;
use super::error::PlanError;
use super::{DriverSettings, enclosure, project_of};
use crate::chat::ToolSpec;
use crate::error_chain::chain;
use crate::gate::{Gate, GateSite, HiddenTests};
use crate::id::{RunId, TreeId};
use crate::process::sandbox::{MountView, Sandbox, SandboxKind, add_empty_layers, add_layers, tool_caches};
use crate::store::{RunDir, Store, StoreError, clear, project_dir};
use crate::task::{Baseline, Task};
use crate::tool::LANE_LOG;
use crate::verdict::Reason;
use crate::workspace::delivery::{DeliveryError, UserRepository};
use crate::workspace::replica::SourceRepository;
use crate::workspace::trees::{OutsideFiles, Trees, TreesError};
use crate::workspace::worktree::Worktree;
use crate::yaml::listed;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tokio_util::sync::CancellationToken;

/// The sandbox, the trees and the dependencies of a run.
#[derive(Debug, Clone)]
pub(super) struct PreparedWorkspace {
    pub(super) sandbox: Sandbox,
    pub(super) trees: Trees,
    /// The user's checkout. For a run in place, it is the workspace.
    pub(super) origin: PathBuf,
    pub(super) dependencies: DependencyFolders,
}

/// The folder in a run's folder for the layers of its agent.
const VIEWS: &str = "views";
/// The folder in a run's folder for copies of ignored files.
pub(super) const IGNORED: &str = "ignored";

/// The name of the folder for trees in the folder of a project.
const TREES: &str = "trees.git";

/// Opens the trees of a workspace, which are kept with its project. `path` is the search path for
/// git.
///
/// # Errors
/// [`TreesError`] if git is missing or unusable, or the trees cannot be stored.
pub async fn trees(
    state_dir: &Path,
    workspace: &Path,
    path: &str,
    stop: &CancellationToken,
) -> Result<Trees, TreesError> {
    Trees::open(&project_dir(state_dir, &project_of(state_dir, workspace)).join(TREES), workspace, path, stop).await
}

/// Opens the trees of a run's workspace, which are kept with its project.
pub(super) async fn trees_of(settings: &DriverSettings, stop: &CancellationToken) -> Result<Trees, TreesError> {
    let git_dir = project_dir(&settings.state_dir, settings.project()).join(TREES);
    Trees::open(&git_dir, &settings.workspace, enclosure::variable(settings, "PATH"), stop).await
}

/// Deletes what is kept of runs that the store no longer knows: their trees, and the references to
/// commits of their turns. Includes runs that were removed at the start of another run. `env` is
/// the user's environment.
///
/// # Errors
/// [`ForgetError`] if git or the store fails.
pub async fn forget_removed(
    (state_dir, project): (&Path, &Path),
    store: &Store,
    env: &[(String, String)],
) -> Result<(), ForgetError> {
    if !project_dir(state_dir, project).join(TREES).is_dir() {
        return Ok(()); // create nothing in order to remove
    }
    let stop = CancellationToken::new();
    let path = env.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path.as_str());
    let trees = trees(state_dir, project, path, &stop).await?;
    if let Some(repository) = UserRepository::around(&trees, env, &stop).await? {
        for keeper in trees.keepers(&stop).await? {
            let run = RunId::new(keeper);
            if !is_known(store, &run)? {
                repository.forget_turns(&run, &stop).await?;
            }
        }
    }
    forget_trees(&trees, |run| is_known(store, run), &stop).await?;
    Ok(trees.shrink(&stop).await?)
}

/// Deletes the kept trees of runs that the store no longer knows.
///
/// # Errors
/// [`ForgetError`] if git or the store fails.
async fn forget_trees(
    trees: &Trees,
    is_known: impl Fn(&RunId) -> Result<bool, StoreError>,
    stop: &CancellationToken,
) -> Result<(), ForgetError> {
    let mut gone = Vec::new();
    for keeper in trees.keepers(stop).await? {
        if !is_known(&RunId::new(keeper.clone()))? {
            gone.push(keeper);
        }
    }
    for keeper in gone {
        trees.forget(&keeper, stop).await?;
    }
    Ok(())
}

/// The reason that trees of removed runs are still kept.
#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    /// Git failed.
    #[error(transparent)]
    Trees(#[from] TreesError),
    /// The store cannot say which runs exist.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The user's repository cannot be read or changed.
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
}

/// Returns true if the store of a project has the run.
///
/// # Errors
/// [`StoreError`] if the store cannot be read.
fn is_known(store: &Store, run: &RunId) -> Result<bool, StoreError> {
    match store.run(run) {
        Err(StoreError::Unknown { .. }) => Ok(false),
        known => known.map(|_| true),
    }
}

/// Returns the name under which a tree of a run is kept: `RUN/WHAT`.
pub fn kept_as(run: &RunId, what: &str) -> String {
    format!("{run}/{what}")
}

impl PreparedWorkspace {
    /// Builds the sandbox and opens the trees.
    ///
    /// # Errors
    /// [`PlanError`] if the wanted sandbox or git is not available.
    pub(super) async fn make(
        settings: &DriverSettings,
        worktree: Option<&Worktree>,
        stop: &CancellationToken,
    ) -> Result<Self, PlanError> {
        enclosure::must_be_hideable(settings)?;
        let (sandbox, trees) = futures_util::join!(enclosure::find_sandbox(settings), trees_of(settings, stop));
        let sandbox = sandbox?;
        enclosure::must_be_writable(settings, &sandbox)?;
        let trees = trees.map_err(no_trees)?;
        let origin = worktree.map_or_else(|| settings.workspace.clone(), |worktree| worktree.origin.clone());
        Ok(Self { sandbox, trees, origin, dependencies: DependencyFolders::default() })
    }

    /// Puts layers over the installed dependencies, so that neither the agent nor a room changes
    /// them.
    ///
    /// If layers are not possible, a new run copies the dependencies for its rooms, and the agent
    /// works on the folders themselves. Returns a note on that.
    ///
    /// # Errors
    /// The reason, if layers of an earlier part of the run are lost, or if copying fails.
    pub(super) async fn lay(
        &mut self,
        gate: &Gate,
        settings: &DriverSettings,
        run: &RunDir,
        is_new: bool,
        stop: &CancellationToken,
    ) -> Result<Option<String>, String> {
        let installed = &gate.installed;
        self.dependencies =
            DependencyFolders { interpreters: installed.interpreters.clone(), ..DependencyFolders::default() };
        let views = run.path().join(VIEWS);
        let mut why = format!("the sandbox is {}", self.sandbox.kind().name());
        if let (SandboxKind::Bubblewrap, Some(helper)) = (self.sandbox.kind(), self.sandbox.helper())
            && (is_new || views.exists())
        {
            let mounts = installed.mounts(&self.origin, &settings.workspace, &views, |_| true);
            let mut mounts = mounts.map_err(|error| chain(&error))?;
            let caches =
                tool_caches(|name| Some(enclosure::variable(settings, name)).filter(|value| !value.is_empty()));
            let caches = caches.into_iter().filter(|it| it.exists && !settings.workspace.starts_with(&it.folder));
            // Builds of the user may have left hidden tests in a cache, in compiled form.
            let (fresh, plain): (Vec<_>, Vec<_>) =
                caches.partition(|cache| cache.is_build_cache && gate.hidden.is_some());
            let [plain, fresh] = [plain, fresh].map(|all| all.into_iter().map(|cache| (cache.folder, Vec::new())));
            let (own, text) = (views.join("tool-caches"), |error: std::io::Error| chain(&error));
            let mut caches = add_layers(plain, &own, &mut mounts).map_err(text)?;
            caches.extend(add_empty_layers(fresh, &own, &mut mounts).map_err(text)?);
            if mounts.is_empty() {
                self.dependencies.has_layers = self.sandbox.has_layers(run.path()).await;
                return Ok(None);
            }
            match MountView::open(helper, &mounts).await {
                Ok(view) => {
                    self.dependencies.view = Some(view);
                    self.dependencies.caches = caches;
                    self.dependencies.layered.clone_from(&installed.folders);
                    self.dependencies.has_layers = true;
                    return Ok(None);
                }
                Err(fault) if gate.hidden.is_some() => return Err(format!("hidden tests need layers: {fault}")),
                Err(fault) if !is_new => return Err(format!("the layers over its dependencies are gone: {fault}")),
                Err(fault) => why = fault,
            }
            clear(&views).map_err(|error| format!("{}: {error}", views.display()))?;
        }
        if !is_new || installed.folders.is_empty() {
            return Ok(None);
        }
        installed.copy(&self.origin, &run.path().join(IGNORED), &settings.env, stop).await?;
        Ok(Some(format!(
            "the agent works directly on your {} and can change them ({why}); \
             the checks use copies from before the run",
            listed(installed.folders.iter().map(String::as_str))
        )))
    }

    /// Deletes the trees of removed runs. Only logs a failure.
    pub(super) async fn forget_gone(&self, settings: &DriverSettings, stop: &CancellationToken) {
        let known = |run: &RunId| {
            let store = Store::existing(&settings.state_dir, settings.project())?;
            store.map_or(Ok(true), |store| is_known(&store, run))
        };
        if let Err(fault) = forget_trees(&self.trees, known, stop).await
            && !stop.is_cancelled()
        {
            tracing::warn!(why = %chain(&fault), "cannot remove the trees of deleted runs");
        }
    }

    /// Takes the base before the agent starts. From then on, the files that the user's git ignores
    /// are fixed.
    pub(super) async fn base(
        &self,
        settings: &DriverSettings,
        run: &RunId,
        stop: &CancellationToken,
    ) -> Result<StartingPoint, PlanError> {
        let take = async {
            let git = self.trees.freeze_ignores(&settings.env, stop).await?;
            let tree = self.trees.take(stop).await?.tree;
            let name = kept_as(run, "base");
            let (kept, paths, remembered) = futures_util::join!(
                self.trees.keep(&name, &tree, stop),
                self.trees.paths(&tree, stop),
                self.trees.remember_ignored(&self.dependencies.layered)
            );
            kept.and(remembered).and(paths).map(|paths| (git, tree, paths))
        };
        let repository = SourceRepository::read(&self.trees, &self.origin, &settings.env, stop);
        let (taken, repository) = futures_util::join!(take, repository);
        let (git, tree, paths) = taken.map_err(no_trees)?;
        let repository = repository.map_err(no_trees)?;
        Ok(StartingPoint { tree, paths, git, origin: self.origin.clone(), repository })
    }

    /// Keeps the agent's final files: the tree that was judged, else the current workspace with the
    /// `hidden` files of the base. Returns the tree.
    pub(super) async fn keep_candidate(
        &self,
        run: &RunId,
        tree: Option<TreeId>,
        hidden: Option<&HiddenTests>,
        stop: &CancellationToken,
    ) -> Result<TreeId, TreesError> {
        let tree = match (tree, hidden) {
            (Some(tree), _) => tree,
            (None, None) => self.trees.take(stop).await?.tree,
            (None, Some(hidden)) => {
                let seen = self.trees.take(stop).await?.tree;
                self.trees.with_paths_of(&seen, &hidden.base, &hidden.paths, stop).await?
            }
        };
        self.trees.keep(&kept_as(run, "candidate"), &tree, stop).await?;
        Ok(tree)
    }

    /// Finds changes of the workspace since a moment that are in no tree. Skips folders with
    /// layers, which the agent cannot change.
    pub(super) async fn outside(
        &self,
        since: SystemTime,
        written: &[String],
        stop: &CancellationToken,
    ) -> Result<OutsideFiles, TreesError> {
        self.trees.outside(since, written, &self.dependencies.layered, stop).await
    }

    /// Returns the folders that would show hidden tests to a room. A room covers the checkout.
    fn hidden_from_rooms(&self) -> impl Iterator<Item = PathBuf> {
        let hidden = self.dependencies.agent_view.hidden.iter();
        hidden.filter(|path| !path.starts_with(&self.origin) && !self.origin.starts_with(path)).cloned()
    }

    /// Returns where and how the gate judges a run whose agent has these tools.
    pub(super) fn site(&self, settings: &DriverSettings, task: &Task, run: &RunDir, tools: &[ToolSpec]) -> GateSite {
        GateSite {
            root: settings.workspace.clone(),
            origin: self.origin.clone(),
            has_layers: self.dependencies.has_layers,
            trees: self.trees.clone(),
            sandbox: self.sandbox.clone(),
            hidden: enclosure::hidden(settings).into_iter().chain(self.hidden_from_rooms()).collect(),
            env: settings.step_env.clone(),
            logs: run.logs(),
            failed_trees: settings.failed_trees.clone(),
            mask: settings.secrets.clone(),
            rooms: run.path().join("rooms"),
            ignored: run.path().join(IGNORED),
            project: run.project().to_owned(),
            limits: settings.limits,
            jobs: settings.jobs,
            on_tamper: task.on_tamper,
            may_judge_base: baseline(settings, task) != Baseline::Never,
            agent_has_network: settings.network,
            pages_logs: tools.iter().any(|tool| tool.name == LANE_LOG),
            frozen_at: run.gate().metadata().and_then(|meta| meta.modified()).ok(),
            outlets: settings.reports.iter().chain(&settings.patch).cloned().collect(),
        }
    }
}

/// Returns when the gate judges the base of a task.
pub(super) fn baseline(settings: &DriverSettings, task: &Task) -> Baseline {
    task.baseline.unwrap_or(settings.baseline)
}

pub(super) fn no_trees(fault: TreesError) -> PlanError {
    PlanError::new(Reason::GateErrored, chain(&fault))
}
