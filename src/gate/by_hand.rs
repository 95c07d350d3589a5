//! The gate's room by hand: a lane in a clean room made of the tree on which its gate was frozen,
//! before any agent. Keeps neither the caches nor the results.

use super::base::{self, BaseError, LaneCaches};
use super::canary::SeenShare;
use super::clean::{CleanRoom, RoomDependencies, RoomError, RoomRequest, clear};
use super::evidence::{Evidence, NO_TESTS};
use super::planted::{CanaryRun, EITHER, KnownSightings};
use super::room_watcher::RoomWatcher;
use super::{Gate, GateSite};
use crate::lane::{FlakyPolicy, Lane};
use crate::lane_runner::{LaneOutcome, LaneRoom, LaneRuling};
use crate::verdict::StepStatus;
use std::collections::BTreeSet;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// The maximum number of changed files that a message names.
const NAMED: usize = 10;

/// A lane in a room that is ready for it.
#[derive(Debug)]
pub struct EnteredRoom<'g> {
    gate: &'g Gate,
    site: &'g GateSite,
    lane: Lane,
    room: CleanRoom,
    watcher: RoomWatcher,
    caches: Option<LaneCaches>,
    _filled: FilledRoom,
}

/// The folder of caches that are filled for a single use. Dropping it removes the folder.
#[derive(Debug)]
struct FilledRoom(PathBuf);

impl Drop for FilledRoom {
    fn drop(&mut self) {
        let _left = clear(&self.0);
    }
}

impl Gate {
    /// Makes a room for a lane and runs the lane's setup there, with network access. Skips the
    /// setup if caches of exactly this tree are kept.
    ///
    /// # Errors
    /// [`BaseError`] when no room can be made, or when the setup fails.
    pub async fn enter<'g>(
        &'g self,
        lane: Lane,
        site: &'g GateSite,
        stop: &CancellationToken,
    ) -> Result<EnteredRoom<'g>, BaseError> {
        let kept = base::kept(self, site).and_then(|base| base.caches(&lane));
        let filled = FilledRoom(site.rooms.with_file_name("caches"));
        let caches = kept.or_else(|| LaneCaches::are_wanted(&lane).then(|| LaneCaches::to_fill(filled.0.clone())));
        let tree = self.base();
        let kept = self.kept(site, &lane, tree, stop).await.map_err(RoomError::from)?;
        let dependencies = RoomDependencies::AsBefore;
        let wanted = RoomRequest {
            lane: &lane,
            tree,
            base: tree,
            caches: caches.as_ref(),
            dependencies,
            kept: &kept,
            gate: self,
        };
        let room = CleanRoom::make(site, wanted, stop).await?;
        if caches.as_ref().is_some_and(LaneCaches::is_open) {
            let place = room.room(site, site.logs.join("setup"));
            base::set_up(&lane, site, place, stop, &|_| {}).await?;
        }
        let watcher = RoomWatcher::post(self, &lane, &room, &kept).await.map_err(BaseError::CannotRun)?;
        Ok(EnteredRoom { gate: self, site, lane, room, watcher, caches, _filled: filled })
    }
}

impl EnteredRoom<'_> {
    /// Returns the place and the settings with which the lane runs.
    pub fn room(&self) -> LaneRoom {
        let mut room = self.room.room(self.site, self.site.logs.clone());
        room.after_step = Some(self.watcher.after_step());
        room.stay_offline();
        self.site.bring_reports(&self.lane, &mut room);
        room
    }

    /// Leaves the room and removes it. Returns the reasons why the gate would not accept a pass of
    /// the lane. `is_whole` is false if only some of its steps were to run, which need no tests.
    ///
    /// # Errors
    /// [`BaseError`] when these reasons cannot be determined.
    pub async fn leave(
        self,
        outcome: &LaneOutcome,
        is_whole: bool,
        stop: &CancellationToken,
    ) -> Result<Vec<String>, BaseError> {
        let Self { gate, site, lane, room, watcher, mut caches, _filled } = self;
        let mut doubts = Vec::new();
        if outcome.ruling != LaneRuling::Passed {
            room.close().await;
            return Ok(doubts);
        }
        if lane.flaky == FlakyPolicy::Fail && outcome.steps.iter().any(|step| step.status == StepStatus::Flaky) {
            doubts.push("it passed only after a retry, and has `flaky: fail`".to_owned());
        }
        let mut evidence = Evidence::default();
        base::show(outcome, site.names_tests(&lane), &mut evidence).await;
        if is_whole {
            let none = evidence.is_without_tests();
            doubts.extend(if none { vec![NO_TESTS.to_owned()] } else { evidence.empty_steps(&lane) });
        }
        doubts.extend(evidence.contradiction());
        let written = watcher.finish(gate, site, &lane, stop).await.map_err(BaseError::CannotRun)?;
        for it in &written {
            // Steps may write a manifest if its content stays as in the base.
            let is_free = gate.policy.rule(&it.path).is_none();
            if !(is_free && base::is_as_it_was(site, Some(&room), gate.base(), it, stop).await?) {
                doubts.push(format!("`{}` is protected ({})", it.path, it.rule));
            }
        }
        let trees = &site.trees;
        let after = room.left(trees, gate.base(), &lane, stop).await;
        let after = after.map_err(RoomError::from)?;
        if after != *gate.base() && !lane.writes {
            let changes = trees.changes(gate.base(), &after, stop).await.map_err(RoomError::from)?;
            let names: Vec<&str> = changes.iter().take(NAMED).map(|change| change.path.as_str()).collect();
            doubts.push(format!("it changed files that it judges, without `writes: true`: {}", names.join(", ")));
        }
        if let Some(caches) = caches.as_mut().filter(|caches| caches.is_open()) {
            caches.fill(&room, &lane, site, stop).await?;
            caches.close();
        }
        room.close().await;
        let logs = site.logs.join("canary");
        let ready = caches.as_ref().into();
        let (tree, known) = (gate.base(), KnownSightings::default());
        let run = CanaryRun {
            gate,
            site,
            lane: &lane,
            tree,
            known,
            falls_back: false,
            alters: None,
            skipped: &BTreeSet::new(),
            ready,
            stop,
        };
        let sightings = run.sightings(logs).await?;
        match sightings.share(None) {
            SeenShare::None => doubts.push(format!("it did not report a planted failing test: {EITHER}")),
            SeenShare::Some => {
                let missed = sightings.missed(None).join("; ");
                doubts.push(format!("it did not report all planted failing tests (missed: {missed})"));
            }
            SeenShare::All => {}
        }
        Ok(doubts)
    }
}
