//! The conditions under which a run would judge a lane: the workspace's current tree, a sandbox,
//! and the environment of a gate.

use super::configured;
use super::failure::CliError;
use super::paint::say;
use crate::config::{EnvironmentLayer, ProjectConfig};
use crate::driver::StopToken;
use crate::gate::{Gate, GateDefinition, GateError, GateSite, freeze};
use crate::id::TreeId;
use crate::lane::{Lane, RoomKind};
use crate::process::{
    self, cores,
    sandbox::{Sandbox, SandboxChoice},
};
use crate::setup::secrets;
use crate::store::LaneDir;
use crate::task::OnTamper;
use crate::tool::LateSecrets;
use crate::verdict::Reason;
use crate::workspace::delivery::{DeliveryError, ExportedBase, UserRepository};
use crate::workspace::ignored_paths;
use crate::workspace::replica::SourceRepository;
use crate::workspace::trees::{GitPrograms, TakenTree, Trees, TreesError};
use anyhow::anyhow;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// A gate of one lane, and the site where it judges.
#[derive(Debug)]
pub(super) struct CleanGate {
    pub(super) gate: Gate,
    pub(super) site: GateSite,
}

impl CleanGate {
    /// Starts the sandbox, takes the tree and freezes the lane on it.
    ///
    /// # Errors
    /// When the sandbox or git is missing, or the lane cannot be frozen.
    pub(super) async fn open(
        root: &Path,
        lane: &str,
        sandbox: Option<SandboxChoice>,
        environment: &EnvironmentLayer,
        (project, logs): (&Path, &LaneDir),
        stop: &StopToken,
    ) -> Result<Self, CliError> {
        let token = stop.token();
        let place = GatePlace { root, environment, project, logs, allow_edit: &[], stop };
        let set = configured::load_without_models(environment, root).map_err(CliError::input)?;
        let env = place.env();
        let sandbox = place.sandbox(sandbox.unwrap_or(set.sandbox)).await?;
        let take = async {
            let trees = place.trees(&env).await?;
            let git = trees.freeze_ignores(&env, token).await?;
            let repository = SourceRepository::read(&trees, root, &env, token).await?;
            let TakenTree { tree, .. } = trees.take(token).await?;
            let paths = trees.paths(&tree, token).await?;
            Ok::<_, TreesError>((trees, tree, paths, git, repository))
        };
        let (trees, base, paths, git, repository) = take.await.map_err(lost(stop))?;
        let (base, repository) = (GateBase { lanes: root, tree: &base, paths: &paths, git: &git }, repository.as_ref());
        let gate = place.freeze(lane, &set, base, repository)?;
        Ok(Self { gate, site: place.site(&set, trees, sandbox).await? })
    }

    /// Starts the sandbox and freezes the lane of a commit, with the commit as the base of the
    /// current files. `allow_edit` opens protected paths. Returns the id of the commit too.
    ///
    /// # Errors
    /// Those of [`CleanGate::open`], and a commit that does not exist.
    pub(super) async fn open_at(
        rev: &str,
        (root, lane, allow_edit): (&Path, &str, &[String]),
        sandbox: Option<SandboxChoice>,
        environment: &EnvironmentLayer,
        (project, logs): (&Path, &LaneDir),
        stop: &StopToken,
    ) -> Result<(Self, String), CliError> {
        let token = stop.token();
        let place = GatePlace { root, environment, project, logs, allow_edit, stop };
        let env = place.env();
        let trees = place.trees(&env).await.map_err(lost(stop))?;
        let folder = logs.path().join("base-files");
        let ExportedBase { commit, tree, submodules } = {
            let repository = UserRepository::around(&trees, &env, token).await.map_err(lost(stop))?;
            let repository = repository.ok_or_else(|| CliError::input(DeliveryError::NoRepository))?;
            let exported = repository.export_base(rev, &folder, token).await;
            exported.map_err(|fault| match fault {
                DeliveryError::NoCommit { .. } => CliError::input(fault),
                fault => lost(stop)(fault),
            })?
        };
        let set = configured::load_without_models(environment, &folder).map_err(CliError::input)?;
        let sandbox = place.sandbox(sandbox.unwrap_or(set.sandbox)).await?;
        let take = async {
            let git = trees.freeze_ignores(&env, token).await?;
            trees.begin_at(&tree, &submodules, token).await?;
            let paths = trees.paths(&tree, token).await?;
            Ok((git, paths, SourceRepository::read_at(&commit, &trees, root, &env, token).await?))
        };
        let (git, paths, repository) = take.await.map_err(|fault: TreesError| lost(stop)(fault))?;
        let base = GateBase { lanes: &folder, tree: &tree, paths: &paths, git: &git };
        let mut gate = place.freeze(lane, &set, base, repository.as_ref())?;
        for lane in &mut gate.lanes {
            lane.room = RoomKind::Clean;
        }
        let site = GateSite { may_judge_base: true, ..place.site(&set, trees, sandbox).await? };
        let _it_goes_with_the_logs = fs::remove_dir_all(folder);
        Ok((Self { gate, site }, commit))
    }

    /// Returns the ignored paths of the workspace, without installed dependencies that a room has.
    pub(super) async fn ignored(&self, environment: &EnvironmentLayer, stop: &StopToken) -> Vec<String> {
        let env: Vec<(String, String)> = environment.hand_env().into_iter().collect();
        let mut ignored = ignored_paths(&self.site.root, &env, stop.token()).await;
        ignored.retain(|path| !self.gate.installed.has(path));
        ignored
    }

    /// Returns the room as data. `doubts` are the reasons why the gate would not accept a pass.
    /// `differences` are the reasons why failed steps may pass by hand.
    pub(super) fn data(&self, doubts: &[String], differences: &[String]) -> Value {
        let (sandbox, tree) = (self.site.sandbox.kind(), self.gate.base());
        json!({ "kind": "clean", "sandbox": sandbox, "tree": tree, "doubts": doubts, "differences": differences })
    }

    /// Returns notes to print before anything runs.
    pub(super) fn notes(&self, lane: &Lane) -> Vec<String> {
        let tree: String = self.gate.base().to_string().chars().take(12).collect();
        let mut notes = vec![format!("tree {tree} in a clean room, sandbox {}", self.site.sandbox.kind().name())];
        if lane.room == RoomKind::InPlace {
            notes.push("the lane has `room: in-place`, so as a gate it still runs in the workspace".into());
        }
        if !lane.setup.is_empty() {
            notes.push(format!("first its setup, without output: {}", steps(lane.setup.len())));
        }
        notes
    }
}

/// The project and the folders of a gate.
#[derive(Debug, Clone, Copy)]
struct GatePlace<'p> {
    root: &'p Path,
    environment: &'p EnvironmentLayer,
    project: &'p Path,
    logs: &'p LaneDir,
    /// Protected paths that may differ from the base, as globs.
    allow_edit: &'p [String],
    stop: &'p StopToken,
}

/// The base of a gate: the folder with its lanes, its files, and the files that git reads there.
#[derive(Debug, Clone, Copy)]
struct GateBase<'b> {
    lanes: &'b Path,
    tree: &'b TreeId,
    paths: &'b [String],
    git: &'b GitPrograms,
}

impl GatePlace<'_> {
    /// Returns the environment of steps.
    fn env(&self) -> Vec<(String, String)> {
        self.environment.step_env().into_iter().collect()
    }

    async fn sandbox(&self, choice: SandboxChoice) -> Result<Sandbox, CliError> {
        let path = process::outside(path_of(&self.env()), self.root);
        let sandbox = Sandbox::find(choice, self.environment.program(), &path).await;
        let sandbox = sandbox.and_then(|sandbox| sandbox.check_is_outside(self.root).map(|()| sandbox));
        sandbox.map_err(|none| CliError::because(Reason::NoSandbox, anyhow!("{none}: {}", none.hint)))
    }

    async fn trees(&self, env: &[(String, String)]) -> Result<Trees, TreesError> {
        Trees::open(&self.project.join("trees.git"), self.root, path_of(env), self.stop.token()).await
    }

    fn freeze(
        &self,
        lane: &str,
        set: &ProjectConfig,
        base: GateBase<'_>,
        repository: Option<&SourceRepository>,
    ) -> Result<Gate, CliError> {
        let (env, lanes) = (self.env(), [lane.to_owned()]);
        let definition = GateDefinition {
            root: base.lanes,
            origin: self.root,
            lanes: &lanes,
            holdout: None,
            protect: set.protect.as_slice(),
            allow_edit: self.allow_edit,
            path: path_of(&env),
            base: base.tree,
            paths: base.paths,
            git: base.git,
            repository,
        };
        let mut gate = freeze(definition, None).map_err(failed)?;
        say(&gate.installed.leave_out_made(self.root, self.project));
        Ok(gate)
    }

    async fn site(&self, set: &ProjectConfig, trees: Trees, sandbox: Sandbox) -> Result<GateSite, CliError> {
        let Self { root, environment, project, logs, .. } = *self;
        Ok(GateSite {
            root: root.to_owned(),
            origin: root.to_owned(),
            has_layers: sandbox.has_layers(logs.path()).await,
            trees,
            sandbox,
            hidden: vec![environment.state_dir().map_err(CliError::input)?],
            env: self.env(),
            logs: logs.path().to_owned(),
            failed_trees: None,
            mask: secrets(environment, set, &LateSecrets::default()),
            rooms: logs.path().join("rooms"),
            ignored: root.to_owned(), // as the workspace has them now
            project: project.to_owned(),
            limits: set.limits,
            jobs: cores(),
            on_tamper: OnTamper::Restore,
            agent_has_network: false,
            pages_logs: false,
            frozen_at: None,
            outlets: Vec::new(),
            may_judge_base: false,
        })
    }
}

/// Returns the search path of an environment.
fn path_of(env: &[(String, String)]) -> &str {
    env.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path.as_str())
}

fn steps(number: usize) -> String {
    if number == 1 { "1 step".into() } else { format!("{number} steps") }
}

/// Returns the failure for an error of the gate, or for a stop by the user.
pub(super) fn lost<E: Into<anyhow::Error>>(stop: &StopToken) -> impl FnOnce(E) -> CliError {
    move |fault| match stop.token().is_cancelled() {
        true => CliError::stopped(stop.cause(), fault),
        false => CliError::because(Reason::GateErrored, fault),
    }
}

/// Returns the failure for an error of the gate or of its lanes.
pub(super) fn failed(fault: impl Into<GateError>) -> CliError {
    let fault = fault.into();
    CliError::because(fault.reason(), fault)
}
