//! The gate's result on the base, before any agent: known failures, the tests that ran, and caches
//! that no agent could write.
//!
//! fledge judges each base once for each gate and keeps the result beside the runs of the project.

mod error;
mod keep;
mod lacked;
mod planted;
mod setup;

pub use error::BaseError;
pub(super) use keep::{kept, remember};
pub(super) use planted::{AutoCanaries, KindCanary, StepKinds, plant};
pub(super) use setup::set_up;

use super::beside::printed_failures;
use super::built::is_start;
use super::canary::{self, SeenShare};
use super::clean::{CleanRoom, RoomDependencies, RoomError, RoomRequest, copy_tree};
use super::evidence::{Evidence, PrintedCounts, StepEvidence};
use super::folder_watch::FolderWatch;
use super::logs::{counted, says_failure, words};
use super::planted::{CanaryRun, KnownSightings};
use super::policy::Policy;
use super::room_watcher::RoomWatcher;
use super::{Gate, GateSite, feedback, unable};
use crate::id::TreeId;
use crate::lane::{Lane, RoomKind};
use crate::lane_runner::{LaneOutcome, LaneRuling};
use crate::limits::FEEDBACK_LIMIT;
use crate::process;
use crate::verdict::{Ruling, StepProgress, StepReport, StepStatus, TamperFinding};
use crate::workspace::trees::text_path;
use lacked::LackedFiles;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

const VERSION: u32 = 10;
/// The folder, in a lane's caches, for build output that tools keep in their own caches.
pub(super) const BUILDS: &str = "builds";

/// The gate's result on the base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct BaseVerdict {
    version: u32,
    /// Either `Passed` or `Failed`.
    pub(super) ruling: Ruling,
    /// The output of the failing steps, in the form that the model gets.
    pub(super) feedback: String,
    /// The reports of the steps. Their logs belong to the run that judged the base, and may be
    /// removed with it.
    pub(super) steps: Vec<StepReport>,
    /// The failed steps as `lane/step`, and the failed tests as `lane/step: test`.
    pub(super) failing: BTreeSet<String>,
    pub(super) evidence: Evidence,
    /// For each lane, whether it sees each planted failure. Where the checks fail, a lane may see
    /// none.
    pub(super) sightings: BTreeMap<String, BTreeMap<String, bool>>,
    /// Protected paths that the steps of the base touch. These are data that they write and leave
    /// unchanged, and folders of protected files that they move or close, or whose times they set.
    pub(super) restless: BTreeSet<String>,
    /// The ignored files without which a step failed.
    pub(super) lacked: Option<LackedFiles>,
    /// The key that this base shares with bases of the project that may start from its build
    /// output.
    line: String,
    /// The number of bases in a row that started with the build output of an earlier one.
    generation: u32,
    /// The folder of the caches.
    #[serde(skip)]
    folder: PathBuf,
}

impl BaseVerdict {
    /// Returns the caches of a lane, or `None` if the lane has none.
    pub(super) fn caches(&self, lane: &Lane) -> Option<LaneCaches> {
        let folder = || LaneCaches::place(&self.folder, lane);
        LaneCaches::are_wanted(lane).then(|| LaneCaches { folder: folder(), is_open: false, start: None })
    }

    /// Returns the folder for the build output of a lane that tools cache in the user's home.
    pub(super) fn builds(&self, lane: &Lane) -> PathBuf {
        LaneCaches::place(&self.folder, lane).join(BUILDS)
    }

    /// Returns the words in lines of a lane's output that report failures.
    async fn failure_words(&self, lane: &Lane) -> BTreeSet<String> {
        let failed = self.steps.iter().filter(|step| step.lane == lane.name && step.status.is_failure());
        let logs: Vec<String> = failed.filter_map(|step| step.log.clone()).collect();
        words_in(logs, says_failure).await
    }

    /// Returns the failed tests, by the names that runners report to fledge or print.
    async fn failed_tests(&self) -> BTreeSet<String> {
        let (steps, reported) = (self.steps.clone(), self.evidence.failed_tests().cloned());
        let printed = tokio::task::spawn_blocking(move || printed_failures(&steps)).await.unwrap_or_default();
        reported.chain(printed).collect()
    }

    /// Returns whether a step of a lane failed.
    fn fails_in(&self, lane: &Lane) -> bool {
        self.steps.iter().any(|step| step.lane == lane.name && step.status.is_failure())
    }

    /// Returns the names of those failures that the base has too.
    pub(super) fn failed_before(&self, steps: &[StepReport]) -> Vec<String> {
        failing(steps).into_iter().filter(|name| self.failing.contains(name)).collect()
    }
}

/// The caches of one lane.
#[derive(Debug, Clone)]
pub(super) struct LaneCaches {
    folder: PathBuf,
    /// True while a room fills them.
    is_open: bool,
    /// The caches of an earlier base whose build output these start with.
    start: Option<PathBuf>,
}

impl LaneCaches {
    /// Returns whether a lane has caches.
    pub(super) fn are_wanted(lane: &Lane) -> bool {
        !lane.built.is_empty() || Self::must_be(lane)
    }

    /// Returns whether a lane declares a cache or a setup. Without other caches a room is only
    /// slower.
    pub(super) fn must_be(lane: &Lane) -> bool {
        !lane.cache.is_empty() || !lane.setup.is_empty()
    }

    /// Returns the path of a lane's caches in the folder of a base.
    fn place(base: &Path, lane: &Lane) -> PathBuf {
        base.join(if lane.held_out.is_some() { "held-out" } else { "lanes" }).join(&lane.name)
    }

    /// Returns caches in this folder that a room and its setup are to fill.
    pub(super) fn to_fill(folder: PathBuf) -> Self {
        Self { folder, is_open: true, start: None }
    }

    /// Ends the filling. From now on nothing changes the caches.
    pub(super) fn close(&mut self) {
        self.is_open = false;
    }

    /// Returns the folder that contains all of the lane's caches.
    pub(super) fn path(&self) -> &Path {
        &self.folder
    }

    /// Returns the folder of one cache, by its path in the tree.
    pub(super) fn folder(&self, path: &str) -> PathBuf {
        self.folder.join("tree").join(path)
    }

    /// Returns the folder that a room gets at a path: the kept cache, or during filling the build
    /// output of an earlier base.
    pub(super) fn found(&self, path: &str) -> Option<PathBuf> {
        let start = self.start.as_ref().map(|start| start.join("tree").join(path)).filter(|start| is_start(start));
        Some(if self.is_open { start? } else { self.folder(path) }).filter(|folder| folder.exists())
    }

    /// Returns whether the caches start with build output of another base. Builds must then treat
    /// all sources as new.
    pub(super) fn have_start(&self) -> bool {
        self.start.is_some()
    }

    /// Returns the folder for the downloads of a toolchain.
    pub(super) fn fetched(&self, name: &str) -> PathBuf {
        self.folder.join("fetched").join(name)
    }

    /// Returns whether the caches are still being filled.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Keeps the folders that a room has made, for later rooms.
    pub(super) async fn fill(
        &self,
        room: &CleanRoom,
        lane: &Lane,
        site: &GateSite,
        stop: &CancellationToken,
    ) -> Result<(), BaseError> {
        for path in lane.kept_folders() {
            let (from, to) = (room.files().join(path), self.folder(path));
            if from.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
                let io = |source| BaseError::Cache { path: to.clone(), source };
                to.parent().map_or(Ok(()), fs::create_dir_all).map_err(io)?;
                if room.has_made(path) {
                    fs::rename(room.made(path), &to).map_err(io)?;
                } else {
                    // A part of the folder is in the tree, so it cannot be moved.
                    let copied = copy_tree(&from, &to, &process::with_path_outside(&site.env, &site.root), stop).await;
                    copied.map_err(|why| io(std::io::Error::other(why)))?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the kept result of this base, or judges the base now.
///
/// # Errors
/// [`BaseError`]. Failing checks of the base are not an error.
pub(super) async fn judge(
    gate: &Gate,
    site: &GateSite,
    stop: &CancellationToken,
    on_step: &(dyn Fn(StepProgress) + Send + Sync),
) -> Result<BaseVerdict, BaseError> {
    let tree = gate.base();
    if let Some(base) = kept(gate, site) {
        return Ok(base);
    }
    let _lock = keep::lock(gate, site, stop).await?;
    // Another run may have judged the base meanwhile.
    if let Some(base) = kept(gate, site) {
        return Ok(base);
    }
    let making = keep::making(site)?;
    let line = keep::line(gate, site);
    let start = keep::newest(&line, site);
    let mut base = BaseVerdict {
        version: VERSION,
        line,
        generation: start.as_ref().map_or(0, |start| start.generation + 1),
        ruling: Ruling::Passed,
        feedback: String::new(),
        steps: Vec::new(),
        failing: BTreeSet::new(),
        evidence: Evidence::default(),
        sightings: BTreeMap::new(),
        restless: BTreeSet::new(),
        lacked: None,
        folder: making.clone(),
    };
    for lane in &gate.lanes {
        let steps = judge_lane(gate, lane, site, start.as_ref(), &mut base, stop, on_step).await?;
        base.steps.extend(steps);
    }
    // Hold-out lanes run only to fill their caches. Their outcome on the base is not used.
    for lane in gate.held_out.iter().filter(|lane| LaneCaches::are_wanted(lane)) {
        judge_lane(gate, lane, site, start.as_ref(), &mut base, stop, &|_| {}).await?;
    }
    if base.ruling == Ruling::Failed {
        base.feedback = feedback::failing_steps(&base.steps, FEEDBACK_LIMIT);
        base.lacked = lacked::look(gate, site, &base, &base.steps, stop).await?;
    }
    for lane in gate.lanes.iter().filter(|lane| lane.canary.is_chosen()) {
        let (caches, logs) = (base.caches(lane), site.logs.join("base").join(format!("{}-canary", lane.name)));
        let (ready, known, failing) =
            (caches.as_ref().into(), KnownSightings::default(), base.failure_words(lane).await);
        let run = CanaryRun {
            gate,
            site,
            lane,
            tree,
            known,
            falls_back: false,
            alters: Some(&failing),
            skipped: &BTreeSet::new(),
            ready,
            stop,
        };
        let sightings = run.sightings(logs).await?;
        // On a failing base, runners may stop before the planted tests. Once the work passes, they
        // do not.
        if base.ruling == Ruling::Passed && sightings.share(None) == SeenShare::None {
            return Err(BaseError::Unseen(lane.name.clone()));
        }
        // Where steps fail anyway, only a planted failure that the output names counts as seen.
        if base.ruling == Ruling::Passed || canary::is_distinct(&lane.canary) {
            base.sightings.insert(lane.name.clone(), sightings.by_key());
        }
    }
    keep::keep(base, gate, site)
}

async fn judge_lane(
    gate: &Gate,
    lane: &Lane,
    site: &GateSite,
    start: Option<&BaseVerdict>,
    base: &mut BaseVerdict,
    stop: &CancellationToken,
    on_step: &(dyn Fn(StepProgress) + Send + Sync),
) -> Result<Vec<StepReport>, BaseError> {
    let tree = gate.base();
    let start = start.filter(|_| !lane.built.is_empty()).map(|start| LaneCaches::place(&start.folder, lane));
    let caches = LaneCaches { folder: LaneCaches::place(&base.folder, lane), is_open: true, start };
    let kept = gate.kept(site, lane, tree, stop).await.map_err(RoomError::from)?;
    let (filled, dependencies) = (Some(&caches), RoomDependencies::AsBefore);
    // No agent has changed anything yet, so nothing is pinned. In rooms of the work, steps may
    // later write the paths that they write here.
    let wanted = RoomRequest { lane, tree, base: tree, caches: filled, dependencies, kept: &[], gate };
    let logs = site.logs.join("base").join(&lane.name);
    let room = match lane.room {
        RoomKind::Clean => Some(CleanRoom::make(site, wanted, stop).await?),
        RoomKind::InPlace => None,
    };
    let view = match lane.room {
        RoomKind::Clean => None,
        RoomKind::InPlace => site.view_in_place(lane, &gate.installed, None).await?,
    };
    let here = |logs: PathBuf| match &room {
        Some(room) => room.room(site, logs),
        None => site.in_place(lane, (&gate.installed, view.as_ref()), logs),
    };
    let lane = &room.as_ref().map_or_else(|| lane.clone(), |room| room.lane(lane));
    let is_asked = lane.held_out.is_none();
    set_up(lane, site, here(logs.join("setup")), stop, on_step).await?;
    // All steps run, so that the gate learns as much as possible about the base.
    let all = Lane { fail_fast: false, ..lane.clone() };
    let watcher = match &room {
        Some(room) if is_asked => Some(RoomWatcher::post(gate, lane, room, &kept).await.map_err(BaseError::CannotRun)?),
        Some(_) | None => None,
    };
    let mut place = here(logs);
    place.after_step = watcher.as_ref().map(RoomWatcher::after_step);
    let outcome = site.run(&all, place, stop, on_step).await;
    match outcome.ruling {
        LaneRuling::Passed => {}
        LaneRuling::Failed if is_asked => {
            if let Some(why) = unable::why(&outcome.steps, &unable::StepSurroundings::from_site(site, lane.network)) {
                return Err(BaseError::Unable(why));
            }
            base.ruling = Ruling::Failed;
        }
        LaneRuling::Failed => {}
        LaneRuling::Cancelled => return Err(BaseError::Stopped),
        LaneRuling::Errored => return Err(BaseError::CannotRun(feedback::could_not_run(&outcome.steps))),
        LaneRuling::NothingRan => return Err(BaseError::NothingRan(feedback::nothing_ran(lane))),
    }
    if let Some(watcher) = watcher {
        let written = watcher.finish(gate, site, lane, stop).await.map_err(BaseError::CannotRun)?;
        let (moved, written): (Vec<_>, Vec<_>) = written.into_iter().partition(FolderWatch::has_found);
        base.restless.extend(moved.into_iter().map(|finding| finding.path));
        for finding in written {
            let is_code = Policy::is_source(&finding.path);
            if (is_code && !site.has_layers) || !is_as_it_was(site, room.as_ref(), tree, &finding, stop).await? {
                return Err(BaseError::Writes { lane: lane.name.clone(), path: finding.path, rule: finding.rule });
            }
            // Code stays pinned, because writable code could be replaced for a moment.
            base.restless.extend(Some(finding.path).filter(|_| !is_code));
        }
    }
    if is_asked {
        base.failing.extend(failing(&outcome.steps));
        show(&outcome, site.names_tests(lane), &mut base.evidence).await;
    }
    if let Some(mut room) = room {
        caches.fill(&room, lane, site, stop).await?;
        let builds = base.builds(lane);
        if let Err(error) = room.keep_builds(&builds) {
            tracing::warn!(%error, "what the checks of the base built is not kept");
        }
        room.close().await;
    }
    Ok(outcome.steps)
}

/// Returns the words in the lines of these logs for which `is_read` holds.
pub(super) async fn words_in(logs: Vec<String>, is_read: fn(&str) -> bool) -> BTreeSet<String> {
    let all = move || logs.iter().flat_map(|log| words(Path::new(log), is_read)).collect();
    tokio::task::spawn_blocking(all).await.unwrap_or_default()
}

/// Returns whether a file that a step wrote has the same content as in the tree.
pub(super) async fn is_as_it_was(
    site: &GateSite,
    room: Option<&CleanRoom>,
    tree: &TreeId,
    finding: &TamperFinding,
    stop: &CancellationToken,
) -> Result<bool, BaseError> {
    let Some(room) = room.filter(|_| finding.change == "changed") else { return Ok(false) };
    let Ok(now) = fs::read(room.files().join(text_path(&finding.path))) else { return Ok(false) };
    let was = site.trees.read(tree, &finding.path, now.len() as u64, stop).await;
    Ok(was.is_ok_and(|was| was.as_deref() == Some(now.as_slice())))
}

/// Returns the names of failed steps and of their failed tests.
pub(super) fn failing(steps: &[StepReport]) -> BTreeSet<String> {
    let failing = steps.iter().filter(|step| matches!(step.status, StepStatus::Failed | StepStatus::TimedOut));
    let names = |step: &StepReport| {
        let name = format!("{}/{}", step.lane, step.step);
        let tests = step.tests.iter().flat_map(|tests| &tests.failing);
        let mut names: Vec<String> =
            tests.map(|test| format!("{name}: {}", format!("{} {}", test.suite, test.name).trim())).collect();
        names.push(name);
        names
    };
    failing.flat_map(names).collect()
}

/// Adds the output of a lane's steps to the evidence. `names_tests` says that Go printed the names
/// of single tests.
pub(super) async fn show(outcome: &LaneOutcome, names_tests: bool, evidence: &mut Evidence) {
    let reports = outcome.test_reports.iter().zip(&outcome.found_reports).zip(&outcome.runner_reports);
    for (step, ((report, found), reported)) in outcome.steps.iter().zip(reports) {
        let mut printed = match step.log.clone() {
            Some(log) => tokio::task::spawn_blocking(move || counted(Path::new(&log))).await.unwrap_or_default(),
            None => PrintedCounts::default(),
        };
        if names_tests {
            printed.note_command(&step.command);
        }
        let is_green = matches!(step.status, StepStatus::Passed | StepStatus::Flaky);
        let shown = StepEvidence::new(report.as_ref(), found.as_ref(), printed, is_green);
        evidence.add(&step.lane, &step.step, shown.with_reported(reported.as_ref()));
    }
}
