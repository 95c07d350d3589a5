//! The gate: the lanes of a run and everything that defines them, frozen before the first model
//! call.
//!
//! The gate judges the tree that an agent left and returns a [`Verdict`]. `verified` is a property
//! of a tree, not of a folder.

mod base;
mod beside;
mod built;
mod by_hand;
mod canary;
mod candidate;
mod checkouts;
mod clean;
mod configuration;
mod contents;
mod differences;
mod evidence;
mod feedback;
mod folder_watch;
mod forget;
mod freeze;
mod gits;
mod go_settings;
mod hidden;
mod history;
mod holdout;
mod inside;
mod install;
mod installed;
mod judge;
mod kept;
pub mod last_clean;
mod locks;
mod logs;
mod masked;
mod names;
mod pinned;
mod planted;
pub mod policy;
mod protected;
mod reach;
mod recognized;
mod refreshed;
mod room_watcher;
mod seal;
mod signs;
mod unable;
mod unfetched;

pub use base::BaseError;
pub use by_hand::EnteredRoom;
pub use clean::{RoomError, forget_installations};
pub use configuration::{RestoredConfiguration, put_back};
pub use contents::{RoomContents, room_contents};
pub use differences::{differences, fetching, ignored_in_commands, lacked_files};
pub use forget::{bytes_of_bases, forget_bases};
pub use freeze::{GateDefinition, GateError, check_definition, digest_of, freeze};
pub use hidden::{HiddenError, HiddenFiles, HiddenTests, choose_hidden, hidden_of_lanes};
pub use installed::{InstalledPackages, installed_table};
pub use judge::inherit_failed_trees;
pub use kept::ThawError;
pub use masked::mask_logs;
pub use planted::CanaryError;
pub use policy::Policy;
pub use reach::{ScriptPrograms, UnreachedProgram, lacking_in_scripts, unreached};
pub use recognized::kinds_in_commands;
pub use seal::Seal;
pub use unable::lacks;

use crate::id::TreeId;
use crate::lane::{Lane, RoomKind, StartFacts, StepSelection};
use crate::lane_runner::{LaneOutcome, LaneRoom, OutputInterest, SandboxedSteps, recall, remember, run_lane};
use crate::process::Stopwatch;
use crate::process::sandbox::{MountView, PathRules, Sandbox, SandboxKind, SandboxLimits, at_home_in};
use crate::task::OnTamper;
use crate::tool::SecretMask;
use crate::verdict::{Ruling, StepProgress, StepReport, Verdict};
use crate::workspace::replica::{Checkout, SourceRepository};
use crate::workspace::trees::{Trees, TreesError};
use base::{AutoCanaries, BaseVerdict, LaneCaches};
use evidence::Evidence;
use install::Installation;
use judge::GateRun;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

/// A frozen gate.
#[derive(Debug)]
pub struct Gate {
    /// The lanes, in the order in which they run.
    pub lanes: Vec<Lane>,
    /// Hold-out lanes, which only the gate knows. They come from outside the repository.
    pub held_out: Vec<Lane>,
    /// The digest of the parsed lanes. Equal gates have equal digests.
    pub digest: String,
    /// Notes for people about the lanes. Empty when there is nothing unusual.
    pub notes: Vec<String>,
    /// The rules for protected paths and for changes that are not allowed.
    pub policy: Arc<Policy>,
    /// The protected files in the state before the agent started.
    pub seal: Arc<Seal>,
    /// The dependencies that were installed in the workspace before the agent started.
    pub installed: InstalledPackages,
    /// The user's repository before the agent started. Rooms get a copy of it. `None` where the
    /// workspace is in no repository.
    pub repository: Option<SourceRepository>,
    /// The sandbox of the agent. Set only on a gate that was restored from its stored form.
    sandbox: Option<SandboxKind>,
    /// The hidden tests of the base. The base itself does not have them.
    pub hidden: Option<HiddenTests>,
    /// The evidence of the base with its hidden tests. Set once a gate run needs it.
    hidden_evidence: OnceCell<Evidence>,
    /// The tree before the agent started.
    base: TreeId,
    /// The files of the base below the layers of rooms. Set once a room needs them.
    checkout: OnceCell<Option<Arc<Checkout>>>,
    /// The protected files of the base. Set once a room pins them.
    protected_files: OnceCell<BTreeSet<String>>,
    /// The result of the lanes on the base. Set once the base is judged.
    judged: OnceCell<Arc<BaseVerdict>>,
    /// The failures planted in the base that lanes with `canary: auto` report. Set once they are
    /// planted.
    planted: OnceCell<Arc<AutoCanaries>>,
    /// The trees that failed, each with the number of its first attempt and the verdict.
    failed: Mutex<BTreeMap<TreeId, (u32, Verdict)>>,
}

/// The place and the settings of a gate run.
#[derive(Debug, Clone)]
pub struct GateSite {
    /// The workspace.
    pub root: PathBuf,
    /// The user's checkout. Dependencies are installed there, and rooms have its path. In a run in
    /// place this is the workspace.
    pub origin: PathBuf,
    /// True if rooms get the installed dependencies as layers. Otherwise they get copies from
    /// `ignored`.
    pub has_layers: bool,
    /// Takes and reads snapshots of the workspace.
    pub trees: Trees,
    /// The sandbox around the lanes.
    pub sandbox: Sandbox,
    /// The paths that no sandboxed process sees, because fledge keeps its state there.
    pub hidden: Vec<PathBuf>,
    /// The complete environment of steps.
    pub env: Vec<(String, String)>,
    /// The folder for step logs. Each attempt gets its own subfolder.
    pub logs: PathBuf,
    /// A file with the trees that failed in other runs of the same task. This run adds its own.
    pub failed_trees: Option<PathBuf>,
    /// Hides secrets in the logs that are kept.
    pub mask: SecretMask,
    /// The folder in which rooms are made.
    pub rooms: PathBuf,
    /// The folder with copies of ignored files from before the agent started. Rooms get these
    /// files.
    pub ignored: PathBuf,
    /// The folder for data that is kept per project: caches of its bases and durations of steps.
    pub project: PathBuf,
    /// The resource limits for the programs of a step.
    pub limits: SandboxLimits,
    /// The maximum number of steps that run at once.
    pub jobs: usize,
    /// The reaction to a changed protected path.
    pub on_tamper: OnTamper,
    /// True if the base may be judged, so that the gate can tell old failures from new ones.
    pub may_judge_base: bool,
    /// True if the agent has network access. Only then do manifests that are programs run with it.
    pub agent_has_network: bool,
    /// True if the agent has the tool that pages through the output of steps. Feedback with only a
    /// part of the output then points to the tool.
    pub pages_logs: bool,
    /// The time at which the gate was frozen, before the agent started. `None` where no agent
    /// works.
    pub frozen_at: Option<SystemTime>,
    /// The paths to which fledge writes files at the end of the run.
    pub outlets: Vec<PathBuf>,
}

impl GateSite {
    /// Returns a variable of the steps' environment, or an empty string if it is not set.
    fn variable(&self, name: &str) -> &str {
        self.env.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value)
    }

    /// Lays layers over the dependencies in the workspace for a lane that runs there. The layers
    /// disappear with the view. A lane with a setup gets none, because its setup fills the folders.
    async fn view_in_place(
        &self,
        lane: &Lane,
        installed: &InstalledPackages,
        installation: Option<&Installation>,
    ) -> Result<Option<MountView>, RoomError> {
        let is_wanted = self.has_layers && !installed.folders.is_empty() && lane.setup.is_empty();
        let Some(helper) = self.sandbox.helper().filter(|_| is_wanted) else { return Ok(None) };
        let over = self.rooms.join("in-place-layers");
        let io = |source| RoomError::Io { path: over.clone(), source };
        clean::clear(&over).map_err(io)?;
        let mut mounts = installed.mounts(&self.origin, &self.root, &over, |_| true).map_err(io)?;
        for layer in &mut mounts.layers {
            let path = layer.at.strip_prefix(&self.root).unwrap_or(&layer.at).to_string_lossy();
            layer.between = installation.map_or(Vec::new(), |it| it.layers_over(&path));
        }
        MountView::open(helper, &mounts).await.map(Some).map_err(RoomError::Layers)
    }

    /// Returns the workspace itself as a room for a lane. The room has the same sandbox as the
    /// agent, because the lane may run code that the agent wrote.
    fn in_place(
        &self,
        lane: &Lane,
        (installed, view): (&InstalledPackages, Option<&MountView>),
        logs: PathBuf,
    ) -> LaneRoom {
        let mut rules = PathRules::of_workspace(&self.root);
        rules.hidden.clone_from(&self.hidden);
        rules.limits = self.limits;
        rules.home = Some(PathBuf::from(self.variable("HOME"))).filter(|home| home.is_absolute());
        rules.network = lane.network;
        rules.read_only.extend(installed.interpreters.iter().cloned());
        rules.view = view.cloned();
        let mut room = LaneRoom::new(self.root.clone(), self.env.clone(), logs, self.jobs);
        if self.sandbox.kind() == SandboxKind::Off {
            let own = self.rooms.join("in-place");
            match clean::clear(&own).and_then(|()| at_home_in(&own, &room.env)) {
                Ok(env) => room.env = env,
                Err(error) => tracing::warn!(%error, "cannot make a home folder for lane `{}`", lane.name),
            }
        }
        room.behind = Some(SandboxedSteps { sandbox: self.sandbox.clone(), rules, at: self.root.clone() });
        room
    }

    /// Makes test runners report their tests by name in a room.
    fn bring_reports(&self, lane: &Lane, room: &mut LaneRoom) {
        self.bring_go_settings(lane, room);
        room.reporters = Some(self.rooms.join("reporters"));
    }

    /// Runs a lane in a room. Ignores what git reports as changed, because the agent controls that.
    /// So steps that depend on changed files always run.
    async fn run(
        &self,
        lane: &Lane,
        mut room: LaneRoom,
        stop: &CancellationToken,
        on_step: &(dyn Fn(StepProgress) + Send + Sync),
    ) -> LaneOutcome {
        room.stay_offline();
        self.bring_reports(lane, &mut room);
        let variables = self.env.iter().cloned().collect();
        let own = lane.left_out(&StepSelection::All, &StartFacts { variables, changed: None }).unwrap_or_default();
        let given = std::mem::take(&mut room.left_out).into_iter().chain(std::iter::repeat(None));
        room.left_out = own.into_iter().zip(given).map(|(own, given)| own.or(given)).collect();
        room.expected = recall(lane, &self.project);
        room.listen = OutputInterest::GrowingLines;
        let _placeholders = room.behind.as_ref().map(|behind| behind.sandbox.placeholders(&behind.rules));
        let outcome = run_lane(lane, &room, stop, on_step).await;
        mask_logs(&room.log_dir, &self.mask).await;
        remember(lane, &outcome, &self.project);
        outcome
    }
}

impl Gate {
    /// Returns the tree before the agent started.
    pub fn base(&self) -> &TreeId {
        &self.base
    }

    /// Returns patterns of the protected files that the gate compares part by part. Tools may write
    /// these files.
    pub fn compared_by_parts(&self) -> impl Iterator<Item = String> {
        self.policy.compared_by_parts()
    }

    /// Returns whether every lane runs in a clean room.
    pub(crate) fn is_clean(&self) -> bool {
        self.lanes.iter().all(|lane| lane.room == RoomKind::Clean)
    }

    /// Returns whether a pass depends on the result of the base: on its caches or on the tests that
    /// ran there.
    pub fn rests_on_base(&self) -> bool {
        let counts = |lane: &Lane| lane.canary.is_chosen() || lane.steps.iter().any(|step| step.junit.is_some());
        self.lanes.iter().any(counts) || self.fills_caches()
    }

    /// Returns whether the base must be judged before the agent starts, or not at all. That is so
    /// if rooms need its caches and a lane runs in the workspace itself.
    pub fn needs_base(&self) -> bool {
        !self.is_clean() && self.fills_caches()
    }

    fn fills_caches(&self) -> bool {
        self.lanes.iter().chain(&self.held_out).any(LaneCaches::are_wanted)
    }

    /// Returns the checkout of the base, which rooms overlay. Returns `None` without overlays, with
    /// object ids other than SHA-1, and while another run uses a checkout that must be replaced.
    async fn checkout(&self, site: &GateSite, stop: &CancellationToken) -> Result<Option<Arc<Checkout>>, TreesError> {
        let has_other_ids = self.repository.as_ref().is_some_and(|repository| !repository.is_sha1());
        if !site.has_layers || has_other_ids {
            return Ok(None);
        }
        let open = || async { checkouts::kept_or_made(site, &self.base, stop).await.map(|kept| kept.map(Arc::new)) };
        self.checkout.get_or_try_init(open).await.cloned()
    }

    /// Prepares the parts that all gate runs share while the agent works, so that the first gate
    /// run starts sooner. Ignores errors: the gate run tries again and reports them.
    pub async fn prepare(&self, site: &GateSite, stop: &CancellationToken) {
        if self.lanes.iter().any(|lane| lane.room == RoomKind::Clean) {
            let _reported_by_the_gate =
                futures_util::join!(self.checkout(site, stop), self.protected_of_base(site, stop));
        }
    }

    /// Returns why steps that fail on the base cannot pass here with any work. Returns
    /// `None` where the steps failed by themselves.
    pub fn unable(&self, steps: &[StepReport], site: &GateSite) -> Option<String> {
        let network = self.lanes.iter().any(|lane| lane.network);
        unable::why(steps, &unable::StepSurroundings::from_site(site, network))
            .map(|why| BaseError::Unable(why).to_string())
    }

    /// Judges the base, before any agent works, and keeps what later gate runs need of it. Returns
    /// the ruling and, if the checks fail, the feedback for the model.
    pub async fn judge_base(
        &self,
        site: &GateSite,
        stop: &CancellationToken,
        on_step: &(dyn Fn(StepProgress) + Send + Sync),
    ) -> Result<(Ruling, String), BaseError> {
        let judged =
            self.judged.get_or_try_init(|| async { base::judge(self, site, stop, on_step).await.map(Arc::new) });
        let judged = judged.await?;
        Ok((judged.ruling, judged.feedback.clone()))
    }

    /// Plants failing tests in the judged base, for the lanes with `canary: auto`. Ignores errors:
    /// the gate run tries again and reports them.
    pub async fn plant_in_base(&self, site: &GateSite, stop: &CancellationToken) {
        let _reported_by_the_gate = self.auto_canaries(site, stop).await;
    }

    /// Returns what the lanes with `canary: auto` report on the base. `None` if the base was not
    /// judged.
    async fn auto_canaries(
        &self,
        site: &GateSite,
        stop: &CancellationToken,
    ) -> Result<Option<Arc<AutoCanaries>>, BaseError> {
        let Some(base) = self.judged.get() else { return Ok(None) };
        let plant = || async { base::plant(self, site, base, stop).await.map(Arc::new) };
        self.planted.get_or_try_init(plant).await.cloned().map(Some)
    }

    /// Returns the failures of the base: steps as `lane/step`, tests as `lane/step: test`. Judges
    /// the base first if its result is unknown.
    ///
    /// # Errors
    /// [`BaseError`].
    pub async fn learn_base(&self, site: &GateSite, stop: &CancellationToken) -> Result<Vec<String>, BaseError> {
        self.judge_base(site, stop, &|_| {}).await?;
        self.lacks_nothing(site)?;
        Ok(self.judged.get().map_or_else(Vec::new, |base| base.failing.iter().cloned().collect()))
    }

    /// Checks that no step of the judged base failed because its room lacked ignored files.
    ///
    /// # Errors
    /// [`BaseError::Lacked`].
    pub fn lacks_nothing(&self, site: &GateSite) -> Result<(), BaseError> {
        let lacked = self.judged.get().and_then(|base| base.lacked.as_ref());
        lacked.and_then(|lacked| lacked.fault(site)).map_or(Ok(()), Err)
    }

    /// Judges the work of the agent. Looks for tampering, runs the lanes in separate rooms, then
    /// checks the evidence for a pass.
    pub async fn judge(
        &self,
        site: &GateSite,
        attempt: u32,
        stop: &CancellationToken,
        on_step: &(dyn Fn(StepProgress) + Send + Sync),
    ) -> Verdict {
        let started = Stopwatch::start();
        let is_by_hand = false;
        GateRun { gate: self, site, attempt, is_base: false, is_by_hand, stop, on_step, started }.judge().await
    }

    /// Judges the workspace by hand, as it judges the work of an agent. Changes nothing there, and
    /// does not look at files that no tree has: fledge did not see the workspace at the base.
    pub async fn judge_by_hand(
        &self,
        site: &GateSite,
        stop: &CancellationToken,
        on_step: &(dyn Fn(StepProgress) + Send + Sync),
    ) -> Verdict {
        let (started, is_by_hand) = (Stopwatch::start(), true);
        let run = GateRun { gate: self, site, attempt: 1, is_base: false, is_by_hand, stop, on_step, started };
        run.judge_by_hand().await
    }

    /// Judges the base, before any agent works, as strictly as it judges work, so that a pass has a
    /// proof. Restores nothing. Of the kept result of the base it uses only the caches.
    ///
    /// # Errors
    /// [`BaseError`] when the base must be judged first and that fails.
    pub async fn judge_as_it_is(
        &self,
        site: &GateSite,
        stop: &CancellationToken,
        on_step: &(dyn Fn(StepProgress) + Send + Sync),
    ) -> Result<Verdict, BaseError> {
        if self.fills_caches() || (self.rests_on_base() && !self.is_clean()) {
            self.judge_base(site, stop, &|_| {}).await?;
        }
        let started = Stopwatch::start();
        let run = GateRun { gate: self, site, attempt: 0, is_base: true, is_by_hand: false, stop, on_step, started };
        Ok(run.judge_base().await)
    }
}

#[cfg(test)]
mod tests;
