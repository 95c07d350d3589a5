//! A watcher of a clean room while a lane runs in it.
//!
//! A step may run code of the agent, and that code could change files that control the next step.
//! No step may write a protected path, not even for a moment.

use super::candidate::is_in;
use super::clean::CleanRoom;
use super::folder_watch::FolderWatch;
use super::seal::{NOT_LOOKED_INTO, Seal, SealStamps};
use super::{Gate, GateSite};
use crate::lane::Lane;
use crate::lane_runner::AfterStep;
use crate::verdict::{IN_THE_ROOM, TamperFinding};
use crate::workspace::replica::{LayerEntry, LayerSides};
use crate::workspace::trees::path_text;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// A watcher of a clean room.
#[derive(Debug, Clone)]
pub(super) struct RoomWatcher(Arc<WatchPost>);

/// The files of a room, with their state before the first step.
#[derive(Debug)]
enum Before {
    /// A folder, all of whose protected files are checked.
    Folder(SealStamps),
    /// A layer, of which only written files are checked.
    Layer(LayerSides, Differences),
}

/// The protected paths that a layer changes.
type Differences = BTreeMap<PathBuf, LayerEntry>;

#[derive(Debug)]
struct WatchPost {
    seal: Seal,
    /// Manifests of the base, which the work may change and steps may not. Empty if the lane
    /// writes.
    manifests: BTreeSet<String>,
    before: Before,
    folders: FolderWatch,
    /// The writes that were seen, by path, each with the step that had just ended.
    seen: Mutex<BTreeMap<String, (TamperFinding, String)>>,
}

impl RoomWatcher {
    /// Starts to watch a room, before the first step of a lane. `kept` are the protected paths of
    /// the room, whose folders are watched.
    ///
    /// # Errors
    /// The reason, when the state of the room cannot be read.
    pub(super) async fn post(gate: &Gate, lane: &Lane, room: &CleanRoom, kept: &[String]) -> Result<Self, String> {
        let (protection, files, kept) = (gate.policy.protection().clone(), room.files(), kept.to_vec());
        let sides = room.overlay().map(|overlay| overlay.sides().clone());
        let manifests = gate.watched_manifests([lane]);
        let look = move || {
            let folders = FolderWatch::start(&files, &kept);
            let seal = Seal::of_nothing(&files, protection);
            let before = match sides {
                None => Before::Folder(seal.stamps_with(&manifests)),
                Some(sides) => {
                    let before = differences(&seal, &manifests, &sides)?;
                    Before::Layer(sides, before)
                }
            };
            Ok(Self(Arc::new(WatchPost { seal, manifests, before, folders, seen: Mutex::default() })))
        };
        tokio::task::spawn_blocking(look).await.map_err(panicked)?
    }

    /// Returns the callback for the end of each step.
    pub(super) fn after_step(&self) -> AfterStep {
        let watcher = self.clone();
        AfterStep::new(move |step| {
            let watcher = watcher.clone();
            Box::pin(async move {
                // A failed look fails again at the end, where the error is reported.
                let _looked = tokio::task::spawn_blocking(move || watcher.look(&step)).await;
            })
        })
    }

    /// Returns a note for people if folders cannot be watched.
    pub(super) fn unwatched(&self) -> Option<String> {
        self.0.folders.missing()
    }

    fn look(&self, step: &str) -> Result<(), String> {
        let WatchPost { seal, manifests, before, folders, seen } = &*self.0;
        let touched = match before {
            Before::Folder(before) => seal.touched(before, &seal.stamps_with(manifests)),
            Before::Layer(sides, before) => touched(seal, sides, before, &differences(seal, manifests, sides)?),
        };
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        for finding in touched.into_iter().chain(folders.seen().into_iter().map(FolderWatch::finding)) {
            seen.entry(finding.path.clone()).or_insert_with(|| (finding, step.to_owned()));
        }
        Ok(())
    }

    /// Returns the protected paths that were written. Leaves out caches of the lane, new files that
    /// the base ignores, and changes that the base's own steps make too.
    ///
    /// # Errors
    /// The reason, when the written paths cannot be determined.
    pub(super) async fn finish(
        self,
        gate: &Gate,
        site: &GateSite,
        lane: &Lane,
        stop: &CancellationToken,
    ) -> Result<Vec<TamperFinding>, String> {
        let last = self.clone();
        tokio::task::spawn_blocking(move || last.look("")).await.map_err(panicked)??;
        let mut seen = std::mem::take(&mut *self.0.seen.lock().unwrap_or_else(PoisonError::into_inner));
        let kept: Vec<String> = lane.kept_folders().cloned().collect();
        // The room's repository is removed with the room, and fledge never runs git in it.
        seen.retain(|path, _| !is_in(&kept, path) && !Path::new(path).starts_with(".git"));
        let new: Vec<String> =
            seen.values().filter(|(finding, _)| finding.change == "added").map(|it| it.0.path.clone()).collect();
        let ignored: BTreeSet<String> =
            site.trees.ignored(gate.base(), &new, stop).await.map_err(|fault| fault.to_string())?;
        seen.retain(|path, _| !ignored.contains(path));
        if let Some(base) = gate.judged.get() {
            seen.retain(|path, (finding, _)| finding.change != "changed" || !base.restless.contains(path));
        }
        let reported = |(mut finding, step): (TamperFinding, String)| {
            let when = if step.is_empty() { String::new() } else { format!(" after step `{step}`") };
            finding.rule.push_str(&format!("{IN_THE_ROOM}, seen{when} of lane `{}`", lane.name));
            finding
        };
        Ok(seen.into_values().map(reported).collect())
    }
}

/// Returns the protected paths that a layer changes now.
fn differences(seal: &Seal, manifests: &BTreeSet<String>, sides: &LayerSides) -> Result<Differences, String> {
    let is_protected = |path: &Path| {
        let path = path_text(path);
        manifests.contains(&path) || seal.protection().rule(&path).is_some()
    };
    let enters = |path: &Path| {
        let is_skipped = path.file_name().is_some_and(|name| NOT_LOOKED_INTO.iter().any(|it| name == *it));
        !is_skipped || is_protected(path)
    };
    let mut all = sides.differences(enters).map_err(|error| format!("cannot read the changes in a room: {error}"))?;
    all.retain(|path, _| is_protected(path));
    Ok(all)
}

/// Returns the protected paths that were written between two states of a layer.
fn touched(seal: &Seal, sides: &LayerSides, before: &Differences, after: &Differences) -> Vec<TamperFinding> {
    let is_below = |path: &Path| sides.lower.join(path).symlink_metadata().is_ok_and(|meta| !meta.is_dir());
    let all: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    let written = all.into_iter().filter(|path| before.get(*path) != after.get(*path));
    let word = |path: &Path| match (before.get(path), after.get(path)) {
        (_, Some(LayerEntry::Gone)) | (Some(LayerEntry::Written(..)), None) => "removed",
        (Some(LayerEntry::Written(..)), _) => "changed",
        (None, _) if is_below(path) => "changed",
        (None | Some(LayerEntry::Gone), _) => "added",
    };
    written.map(|path| seal.finding(path, word(path))).collect()
}

fn panicked(_: tokio::task::JoinError) -> String {
    "the check of protected files panicked".into()
}
