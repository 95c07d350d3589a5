//! The gate: the lanes of a run with everything that defines them, frozen before the first model call. Judges the tree that an agent
//! has left and says so in a [`Verdict`]: `verified` is a property of a tree, not of a folder.

mod base;
mod built;
mod by_hand;
mod canary;
mod candidate;
mod check;
mod checkouts;
mod clean;
mod configuration;
mod contents;
mod detection;
mod differences;
mod evidence;
mod feedback;
mod folder_watch;
mod forget;
mod freeze;
mod gits;
mod go_settings;
mod history;
mod holdout;
mod inside;
mod install;
mod installed;
mod judge;
mod kept;
mod locks;
mod logs;
mod masked;
mod names;
mod pages;
mod pinned;
mod planted;
pub mod policy;
mod protected;
mod reach;
mod refreshed;
mod seal;
mod sentry;
mod signs;
mod unable;
mod unfetched;

pub use base::BaseFault;
pub use by_hand::Entered;
pub use check::{Checked, check, check_file};
pub use clean::{RoomFault, forget_installations};
pub use configuration::{CONFIGURATION, PutBack, has_configuration, put_back};
pub use contents::{RoomContents, room_contents};
pub use detection::{InitFault, file_to_write, look, look_if_no_lanes, write_detected};
pub use differences::{differences, fetching, ignored_in_commands, lacked_files};
pub use forget::forget_bases;
pub use freeze::{Definition, GateFault, Listed, Loaded, can_run, digest_of, freeze, freeze_by, list, load};
pub use installed::{Installed, installed_table};
pub use kept::ThawFault;
pub use masked::mask_logs;
pub use pages::LANES;
pub use planted::CanaryFault;
pub use policy::Policy;
pub use reach::{Unreached, unreached};
pub use seal::Seal;
pub use unable::lacks;

use crate::id::TreeId;
use crate::lane::{Facts, Lane, RoomKind, Selection};
use crate::lane_runner::{Behind, LaneOutcome, Room, recall, remember, run_lane};
use crate::process::Stopwatch;
use crate::process::wall::{Holes, View, Wall, WallKind, WallLimits, at_home_in};
use crate::task::OnTamper;
use crate::tool::Mask;
use crate::verdict::{Ruling, StepProgress, StepReport, Verdict};
use crate::workspace::replica::{Checkout, SourceRepository};
use crate::workspace::trees::{Trees, TreesFault};
use base::{Base, Caches};
use install::Installation;
use judge::Sitting;
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
    /// Lanes that only the gate knows, from outside of the repository.
    pub held_out: Vec<Lane>,
    /// A digest of the lanes as they were parsed: the same gate has the same one.
    pub digest: String,
    /// What is to be known about them, for people; empty when all is as the project says.
    pub notes: Vec<String>,
    /// What may not be changed, and what of a set of changes is not allowed.
    pub policy: Arc<Policy>,
    /// What may not be changed, as it was.
    pub seal: Arc<Seal>,
    /// The dependencies that were installed in the workspace before the agent.
    pub installed: Installed,
    /// The user's repository before the agent, of which rooms have a copy; `None` where the
    /// workspace is in none.
    pub repository: Option<SourceRepository>,
    /// The wall that stood around the agent, of a gate that was kept.
    wall: Option<WallKind>,
    /// The tree that was there before the agent.
    base: TreeId,
    /// The files of the base below the layers of rooms, once a room needs them.
    checkout: OnceCell<Option<Arc<Checkout>>>,
    /// The protected files of the base, once a room pins them.
    protected_files: OnceCell<BTreeSet<String>>,
    /// What the lanes said of it, once they were asked.
    judged: OnceCell<Arc<Base>>,
    /// The trees of an agent that failed, each with its first attempt and what the lanes said.
    failed: Mutex<BTreeMap<TreeId, (u32, Verdict)>>,
}

/// Where and how a gate runs.
#[derive(Debug, Clone)]
pub struct Site {
    /// The workspace.
    pub root: PathBuf,
    /// The user's checkout. Dependencies are installed there, and rooms have its path; in a run in place it is the workspace.
    pub origin: PathBuf,
    /// Whether rooms have what is installed there as layers over it; else copies of it are in `ignored`.
    pub has_layers: bool,
    /// The states of the workspace.
    pub trees: Trees,
    /// What stands around the lanes.
    pub wall: Wall,
    /// What nothing behind the wall sees: where fledge keeps its state.
    pub hidden: Vec<PathBuf>,
    /// The environment of steps, whole.
    pub env: Vec<(String, String)>,
    /// Where step logs go; a folder for each attempt is made in it.
    pub logs: PathBuf,
    /// What no log is kept with.
    pub mask: Mask,
    /// Where rooms are made.
    pub rooms: PathBuf,
    /// Copies of ignored files that rooms have, from before the agent.
    pub ignored: PathBuf,
    /// The folder of what is kept of the project: caches of its bases, and how long steps took.
    pub project: PathBuf,
    /// What the programs of a step may use up.
    pub limits: WallLimits,
    /// Steps at once.
    pub jobs: usize,
    /// What happens when a protected path was changed.
    pub on_tamper: OnTamper,
    /// Whether the base may be judged, so that failures that were there before can be told from new ones.
    pub may_judge_base: bool,
    /// The agent has a network. Manifests that are programs are run with one only where it has.
    pub agent_has_network: bool,
    /// Whether the agent has the tool that pages through what steps print, and is told so where it is told a part of that.
    pub pages_logs: bool,
    /// The time at which the gate was frozen, before the agent; absent where no agent is at work.
    pub frozen_at: Option<SystemTime>,
    /// Where fledge writes files when the run is over.
    pub outlets: Vec<PathBuf>,
}

impl Site {
    /// A variable of steps; empty where it is not set.
    fn variable(&self, name: &str) -> &str {
        self.env.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value)
    }

    /// Lays layers over the dependencies in the workspace for a lane that runs there; they are gone with the view. A lane with a setup fills
    /// the folders itself, so it has none.
    async fn view_in_place(
        &self,
        lane: &Lane,
        installed: &Installed,
        installation: Option<&Installation>,
    ) -> Result<Option<View>, RoomFault> {
        let is_wanted = self.has_layers && !installed.folders.is_empty() && lane.setup.is_empty();
        let Some(helper) = self.wall.helper().filter(|_| is_wanted) else { return Ok(None) };
        let over = self.rooms.join("in-place-layers");
        let io = |source| RoomFault::Io { path: over.clone(), source };
        clean::clear(&over).map_err(io)?;
        let mut mounts = installed.mounts(&self.origin, &self.root, &over, |_| true).map_err(io)?;
        for layer in &mut mounts.layers {
            let path = layer.at.strip_prefix(&self.root).unwrap_or(&layer.at).to_string_lossy();
            layer.between = installation.map_or(Vec::new(), |it| it.over(&path));
        }
        View::open(helper, &mounts).await.map(Some).map_err(RoomFault::Layers)
    }

    /// The workspace itself as a room for a lane, behind the same wall as the agent: what runs there may be what it wrote.
    fn in_place(&self, lane: &Lane, (installed, view): (&Installed, Option<&View>), logs: PathBuf) -> Room {
        let mut holes = Holes::of_workspace(&self.root);
        holes.hidden.clone_from(&self.hidden);
        holes.limits = self.limits;
        holes.home = Some(PathBuf::from(self.variable("HOME"))).filter(|home| home.is_absolute());
        holes.network = lane.network;
        holes.read_only.extend(installed.interpreters.iter().cloned());
        holes.view = view.cloned();
        let mut room = Room::new(self.root.clone(), self.env.clone(), logs, self.jobs);
        if self.wall.kind() == WallKind::Off {
            let own = self.rooms.join("in-place");
            match clean::clear(&own).and_then(|()| at_home_in(&own, &room.env)) {
                Ok(env) => room.env = env,
                Err(error) => tracing::warn!(%error, "lane `{}` has no home of its own", lane.name),
            }
        }
        room.behind = Some(Behind { wall: self.wall.clone(), holes, at: self.root.clone() });
        room
    }

    /// Runs a lane in a room. Not by what has changed: what git says of that is the agent's to decide, so every step that asks for it runs.
    async fn run(
        &self,
        lane: &Lane,
        mut room: Room,
        stop: &CancellationToken,
        on_step: &(dyn Fn(StepProgress) + Send + Sync),
    ) -> LaneOutcome {
        room.stay_offline();
        self.bring_go_settings(lane, &mut room);
        let variables = self.env.iter().cloned().collect();
        room.left_out = lane.left_out(&Selection::All, &Facts { variables, changed: None }).unwrap_or_default();
        room.expected = recall(lane, &self.project);
        let _placeholders = room.behind.as_ref().map(|behind| behind.wall.placeholders(&behind.holes));
        let outcome = run_lane(lane, &room, stop, on_step).await;
        mask_logs(&room.log_dir, &self.mask).await;
        remember(lane, &outcome, &self.project);
        outcome
    }
}

impl Gate {
    /// The tree that was there before the agent.
    pub fn base(&self) -> &TreeId {
        &self.base
    }

    /// The protected files that the gate compares part by part, as patterns: tools may write them.
    pub fn compared_by_parts(&self) -> impl Iterator<Item = String> {
        self.policy.compared_by_parts()
    }

    /// Whether every lane runs in a clean room.
    pub(crate) fn is_clean(&self) -> bool {
        self.lanes.iter().all(|lane| lane.room == RoomKind::Clean)
    }

    /// Whether a pass rests on what the lanes say of the base: what they find ready there, and the tests that ran.
    pub fn rests_on_base(&self) -> bool {
        let counts = |lane: &Lane| lane.canary.is_some() || lane.steps.iter().any(|step| step.junit.is_some());
        self.lanes.iter().any(counts) || self.fills_caches()
    }

    /// Whether the base is judged before the agent or never: rooms need what it leaves, and a lane runs in the workspace itself.
    pub fn needs_base(&self) -> bool {
        !self.is_clean() && self.fills_caches()
    }

    fn fills_caches(&self) -> bool {
        self.lanes.iter().chain(&self.held_out).any(Caches::are_wanted)
    }

    /// Returns the checkout of the base, which rooms overlay. Returns `None` without overlays, with
    /// object ids other than SHA-1, and while another run uses a checkout that must be replaced.
    async fn checkout(&self, site: &Site, stop: &CancellationToken) -> Result<Option<Arc<Checkout>>, TreesFault> {
        let has_other_ids = self.repository.as_ref().is_some_and(|repository| !repository.is_sha1());
        if !site.has_layers || has_other_ids {
            return Ok(None);
        }
        let open = || async { checkouts::kept_or_made(site, &self.base, stop).await.map(|kept| kept.map(Arc::new)) };
        self.checkout.get_or_try_init(open).await.cloned()
    }

    /// Prepares the parts that all gate runs share while the agent works, so that the first gate
    /// run starts sooner. Ignores errors: the gate run tries again and reports them.
    pub async fn prepare(&self, site: &Site, stop: &CancellationToken) {
        if self.lanes.iter().any(|lane| lane.room == RoomKind::Clean) && site.has_layers {
            let _reported_by_the_gate =
                futures_util::join!(self.checkout(site, stop), self.protected_of_base(site, stop));
        }
    }

    /// Why steps that failed before any agent cannot pass here, whatever the work is; `None` where they failed by themselves.
    pub fn unable(&self, steps: &[StepReport], site: &Site) -> Option<String> {
        let network = self.lanes.iter().any(|lane| lane.network);
        unable::why(steps, &unable::Around::of(site, network)).map(|why| BaseFault::Unable(why).to_string())
    }

    /// Judges the base, before any agent: whether its checks pass, and if not what a model is told of that. What is needed of it later is
    /// kept.
    ///
    /// # Errors
    /// [`BaseFault`] when the gate could never judge anything here.
    pub async fn judge_base(
        &self,
        site: &Site,
        stop: &CancellationToken,
        on_step: &(dyn Fn(StepProgress) + Send + Sync),
    ) -> Result<(Ruling, String), BaseFault> {
        let judged =
            self.judged.get_or_try_init(|| async { base::judge(self, site, stop, on_step).await.map(Arc::new) });
        let judged = judged.await?;
        Ok((judged.ruling, judged.feedback.clone()))
    }

    /// What fails on the base, which is judged where that is not known: steps as `lane/step`, tests as `lane/step: test`.
    ///
    /// # Errors
    /// [`BaseFault`].
    pub async fn learn_base(&self, site: &Site, stop: &CancellationToken) -> Result<Vec<String>, BaseFault> {
        self.judge_base(site, stop, &|_| {}).await?;
        self.lacks_nothing(site)?;
        Ok(self.judged.get().map_or_else(Vec::new, |base| base.failing.iter().cloned().collect()))
    }

    /// Looks whether a step of the judged base failed for ignored files that its room lacked.
    ///
    /// # Errors
    /// [`BaseFault::Lacked`].
    pub fn lacks_nothing(&self, site: &Site) -> Result<(), BaseFault> {
        let lacked = self.judged.get().and_then(|base| base.lacked.as_ref());
        lacked.and_then(|lacked| lacked.fault(site)).map_or(Ok(()), Err)
    }

    /// Judges what the agent has left: first what was tampered with, then the lanes in rooms of their own, then what a pass rests on.
    pub async fn judge(
        &self,
        site: &Site,
        attempt: u32,
        stop: &CancellationToken,
        on_step: &(dyn Fn(StepProgress) + Send + Sync),
    ) -> Verdict {
        let started = Stopwatch::start();
        Sitting { gate: self, site, attempt, is_base: false, stop, on_step, started }.judge().await
    }

    /// Judges what is there before any agent as it judges work: a pass has a proof. Nothing is put back, and nothing of it is taken from
    /// what is kept of the base but caches.
    ///
    /// # Errors
    /// [`BaseFault`] when what its rooms need cannot be made.
    pub async fn judge_as_it_is(
        &self,
        site: &Site,
        stop: &CancellationToken,
        on_step: &(dyn Fn(StepProgress) + Send + Sync),
    ) -> Result<Verdict, BaseFault> {
        if self.fills_caches() || (self.rests_on_base() && !self.is_clean()) {
            self.judge_base(site, stop, &|_| {}).await?;
        }
        let started = Stopwatch::start();
        Ok(Sitting { gate: self, site, attempt: 0, is_base: true, stop, on_step, started }.judge_base().await)
    }
}

#[cfg(test)]
mod tests;
