//! Plants a canary in a room of its own and looks whether the lane sees it.

use super::base::Caches;
use super::canary::{self, Places, Plant, Seen, says_failed};
use super::clean::{CleanRoom, Dependencies, RoomFault, Wanted};
use super::logs::{has_line, says};
use super::{Gate, Site, feedback};
use crate::id::TreeId;
use crate::lane::{Lane, RoomKind};
use crate::lane_runner::LaneRuling;
use crate::process;
use crate::store;
use crate::verdict::StepReport;
use crate::workspace::trees::TreesFault;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The largest file that is read to find a place for a canary, in bytes.
const READ: u64 = 1024 * 1024;

/// Whether a lane sees failures cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum CanaryFault {
    /// There is no room for it.
    #[error(transparent)]
    Room(#[from] RoomFault),
    /// The base cannot be read.
    #[error("cannot read the base")]
    Tree(#[from] TreesFault),
    /// It has no place among the files of the base.
    #[error("no canary for lane `{lane}`: {why}")]
    NoPlace {
        /// The lane.
        lane: String,
        /// Why.
        why: String,
    },
    /// It cannot be put among the files of the tree.
    #[error("cannot plant the canary")]
    Unplanted(#[source] TreesFault),
    /// Lanes that run in the workspace itself have no room for it.
    #[error("lane `{0}` has a canary and runs in the workspace: a failure is only ever planted in a clean room")]
    InPlace(String),
    /// The lane could not run in the room of the canary, so it has seen nothing and missed nothing.
    #[error("lane `{lane}` could not run where a failing test is planted: {why}")]
    CannotRun {
        /// The lane.
        lane: String,
        /// Why.
        why: String,
    },
    /// Somebody asked for a stop.
    #[error("stopped while a planted failure was looked for")]
    Stopped,
}

/// The caches and dependencies of a room.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ready<'a> {
    pub(super) caches: Option<&'a Caches>,
    pub(super) dependencies: Dependencies<'a>,
}

impl<'a> From<Option<&'a Caches>> for Ready<'a> {
    fn from(caches: Option<&'a Caches>) -> Self {
        Self { caches, dependencies: Dependencies::AsBefore }
    }
}

/// Which failures a lane sees on this tree that are planted there. All, of a lane without a canary.
///
/// # Errors
/// [`CanaryFault`].
pub(super) async fn seen(
    gate: &Gate,
    site: &Site,
    lane: &Lane,
    tree: &TreeId,
    ready: Ready<'_>,
    logs: PathBuf,
    stop: &CancellationToken,
) -> Result<Seen, CanaryFault> {
    let plants = plants(gate, site, lane, stop).await?;
    if plants.is_empty() {
        return Ok(Seen::All);
    }
    if lane.room == RoomKind::InPlace {
        return Err(CanaryFault::InPlace(lane.name.clone()));
    }
    // As in the room that it judged in, or what is judged could tell the two apart.
    let kept = gate.kept(site, lane, tree, stop).await?;
    let files = plants.iter().map(|plant| (plant.path.as_str(), plant.text.as_str()));
    let planted = &site.trees.with_files(tree, files, stop).await.map_err(CanaryFault::Unplanted)?;
    let Ready { caches, dependencies } = ready;
    let wanted = Wanted { lane, tree: planted, base: gate.base(), caches, dependencies, kept: &kept, gate };
    let room = CleanRoom::make(site, wanted, stop).await?;
    let all = Lane { fail_fast: false, ..room.lane(lane) };
    let outcome = site.run(&all, room.room(site, logs), stop, &|_| {}).await;
    room.close().await;
    match outcome.ruling {
        LaneRuling::Passed | LaneRuling::Failed => {}
        LaneRuling::Cancelled => return Err(CanaryFault::Stopped),
        LaneRuling::Errored => {
            let why = feedback::could_not_run(&outcome.steps);
            return Err(CanaryFault::CannotRun { lane: lane.name.clone(), why });
        }
        LaneRuling::NothingRan => {
            return Err(CanaryFault::CannotRun { lane: lane.name.clone(), why: "nothing ran".into() });
        }
    }
    let looked = tokio::task::spawn_blocking(move || {
        let names_it = |step: &StepReport, plant: &Plant| {
            let log = step.log.as_deref().map(Path::new);
            log.is_some_and(|log| says(log, &plant.mark) || has_line(log, |line| says_failed(line, &plant.name)))
        };
        let is_seen = |plant: &Plant| {
            outcome.steps.iter().any(|step| canary::is_seen(plant, &step.step, step.status, || names_it(step, plant)))
        };
        Seen::of(&plants.iter().map(is_seen).collect::<Vec<_>>())
    });
    looked
        .await
        .map_err(|_| CanaryFault::CannotRun { lane: lane.name.clone(), why: "reading its logs panicked".into() })
}

async fn plants(gate: &Gate, site: &Site, lane: &Lane, stop: &CancellationToken) -> Result<Vec<Plant>, CanaryFault> {
    let Some(canary) = &lane.canary else { return Ok(Vec::new()) };
    let (trees, base) = (&site.trees, gate.base());
    let paths = trees.paths(base, stop).await?;
    let places = Places::choose(canary, &paths);
    let mut texts = BTreeMap::new();
    for path in places.read() {
        let bytes = trees.read(base, path, READ, stop).await?.unwrap_or_default();
        texts.insert(path.clone(), String::from_utf8_lossy(&bytes).into_owned());
    }
    let has = |path: &str| paths.iter().any(|own| own == path);
    let plants = canary::plant(canary, &places, word, |path| texts.get(path).cloned(), has);
    plants.map_err(|why| CanaryFault::NoPlace { lane: lane.name.clone(), why })
}

/// A word that nobody has written yet, and that looks like any other.
pub(super) fn word() -> String {
    const LETTERS: [&[u8]; 2] = [b"bdfgklmnprstvz", b"aeiou"];
    let digest = store::sha256(process::unforeseen().as_bytes());
    let letter = |(place, byte): (usize, u8)| {
        let letters = LETTERS[place % 2];
        char::from(letters[usize::from(byte) % letters.len()])
    };
    digest.bytes().take(12).enumerate().map(letter).collect()
}
