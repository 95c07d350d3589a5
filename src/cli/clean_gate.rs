//! The conditions under which a run would judge a lane: the workspace's current tree, a sandbox,
//! and the environment of a gate.

use super::configured;
use super::failure::CliError;
use super::paint::say;
use crate::config::EnvironmentLayer;
use crate::driver::StopToken;
use crate::gate::{Gate, GateDefinition, GateError, GateSite, freeze};
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
use crate::workspace::ignored_paths;
use crate::workspace::replica::SourceRepository;
use crate::workspace::trees::{TakenTree, Trees, TreesError};
use anyhow::anyhow;
use serde_json::{Value, json};
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
        let set = configured::load_without_models(environment, root).map_err(CliError::input)?;
        let env: Vec<(String, String)> = environment.step_env().into_iter().collect();
        let path = env.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path.as_str());
        let sandbox =
            Sandbox::find(sandbox.unwrap_or(set.sandbox), environment.program(), &process::outside(path, root)).await;
        let sandbox = sandbox.and_then(|sandbox| sandbox.check_is_outside(root).map(|()| sandbox));
        let sandbox = sandbox.map_err(|none| CliError::because(Reason::NoSandbox, anyhow!("{none}: {}", none.hint)))?;
        let take = async {
            let trees = Trees::open(&project.join("trees.git"), root, path, token).await?;
            let git = trees.freeze_ignores(&env, token).await?;
            let repository = SourceRepository::read(&trees, root, &env, token).await?;
            let TakenTree { tree, .. } = trees.take(token).await?;
            let paths = trees.paths(&tree, token).await?;
            Ok::<_, TreesError>((trees, tree, paths, git, repository))
        };
        let (trees, base, paths, git, repository) = take.await.map_err(lost(stop))?;
        let (lanes, protect, allow_edit) = ([lane.to_owned()], set.protect.as_slice(), &[][..]);
        let definition = GateDefinition {
            root,
            origin: root,
            lanes: &lanes,
            holdout: None,
            protect,
            allow_edit,
            path,
            base: &base,
            paths: &paths,
            git: &git,
            repository: repository.as_ref(),
        };
        let mut gate = freeze(definition, None).map_err(failed)?;
        say(&gate.installed.leave_out_made(root, project));
        let has_layers = sandbox.has_layers(logs.path()).await;
        let site = GateSite {
            root: root.to_owned(),
            origin: root.to_owned(),
            has_layers,
            trees,
            sandbox,
            hidden: vec![environment.state_dir().map_err(CliError::input)?],
            env,
            logs: logs.path().to_owned(),
            earlier_logs: None,
            mask: secrets(environment, &set, &LateSecrets::default()),
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
        };
        Ok(Self { gate, site })
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
