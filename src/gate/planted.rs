//! Runs of a lane with planted failures, in separate rooms, that show whether the lane sees them.

use super::base::LaneCaches;
use super::beside::failed_tests;
use super::canary::{
    self, AlteredTests, CanarySightings, PlantedFile, PlantedTest, PlantedTests, PlantingPlaces, altered_key,
    says_failed,
};
use super::clean::{CleanRoom, RoomDependencies, RoomError, RoomRequest};
use super::inside::{self, TestBody};
use super::logs::{has_line, says};
use super::recognized::without_early_end;
use super::{Gate, GateSite, feedback};
use crate::id::TreeId;
use crate::lane::{CanaryTerms, Lane, RoomKind, Step};
use crate::lane_runner::{LaneOutcome, LaneRuling};
use crate::process;
use crate::store;
use crate::verdict::StepReport;
use crate::workspace::trees::TreesError;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The reason why a lane may see no planted failure.
pub(super) const EITHER: &str =
    "its tests are silenced, or its `canary` plants a kind of test that the lane does not run";

/// The largest file that is read to find a place for a canary, in bytes.
const READ: u64 = 1024 * 1024;
/// The maximum number of tests of the base that are made to fail.
const MOST_ALTERED: usize = 64;
/// The maximum number of rooms for one level of planted failures if the lane saw none on the base,
/// or if the base is unknown.
const ROUNDS: usize = 3;
/// The maximum number of rooms for one level of planted failures if the lane saw some on the base.
const WORK_ROUNDS: usize = 4;

/// The reason for leaving a step out of a room with planted tests.
const NO_TESTS_HERE: &str = "it runs no tests";

/// An error of testing whether a lane sees planted failures.
#[derive(Debug, thiserror::Error)]
pub enum CanaryError {
    /// No room can be made.
    #[error(transparent)]
    Room(#[from] RoomError),
    /// The base cannot be read.
    #[error("cannot read the base")]
    Tree(#[from] TreesError),
    /// The base has no place for the canary.
    #[error("cannot plant a canary for lane `{lane}`: {why}")]
    NoPlace {
        /// The lane.
        lane: String,
        /// The reason.
        why: String,
    },
    /// The canary cannot be added to the tree.
    #[error("cannot plant the canary")]
    Unplanted(#[source] TreesError),
    /// The lane runs in the workspace itself, where nothing is planted.
    #[error("lane `{0}` has a canary but runs in the workspace: fledge plants failures only in clean rooms")]
    InPlace(String),
    /// The lane could not run in the room of the canary, so the test has no result.
    #[error("lane `{lane}` could not run with a planted failing test: {why}")]
    CannotRun {
        /// The lane.
        lane: String,
        /// The reason.
        why: String,
    },
    /// The run was stopped.
    #[error("stopped while fledge ran the canary")]
    Stopped,
}

/// The caches and dependencies of a room.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadyRoom<'a> {
    pub(super) caches: Option<&'a LaneCaches>,
    pub(super) dependencies: RoomDependencies<'a>,
}

impl<'a> From<Option<&'a LaneCaches>> for ReadyRoom<'a> {
    fn from(caches: Option<&'a LaneCaches>) -> Self {
        Self { caches, dependencies: RoomDependencies::AsBefore }
    }
}

/// The failures planted in the base that a lane reported.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KnownSightings<'a> {
    /// For each planted test, by key: true if the lane reported its failure. `None` if unknown.
    pub(super) by_key: Option<&'a BTreeMap<String, bool>>,
    /// The checks pass on the base.
    pub(super) has_base_passed: bool,
    /// The tests that fail beside planted ones on the base; `None` if they do not matter.
    pub(super) beside: Option<&'a BTreeSet<String>>,
}

impl KnownSightings<'_> {
    fn of(self, plant: &PlantedTest) -> Option<bool> {
        self.by_key?.get(&plant.key).copied()
    }

    /// Returns whether the lane reported at least one planted test.
    pub(super) fn saw_one(self) -> bool {
        self.by_key.is_some_and(|known| known.values().any(|seen| *seen))
    }
}

/// A test of whether a lane sees failures that are planted in a tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct CanaryRun<'a> {
    pub(super) gate: &'a Gate,
    pub(super) site: &'a GateSite,
    pub(super) lane: &'a Lane,
    pub(super) tree: &'a TreeId,
    /// The reports on the base, if known. Failures that the lane missed there are not planted, if
    /// the base passes or the lane saw others there.
    pub(super) known: KnownSightings<'a>,
    /// A lane that reported planted tests on the base may report plain ones only in the work, if it
    /// fails for another reason: the work has changed tests that the task opens, which the planted
    /// ones imitate.
    pub(super) falls_back: bool,
    /// The words in lines of the base's output that report failures. If given, tests of the base
    /// are made to fail, too: in the work those that the lane reported on the base, and on the base
    /// those with a name among the words and a random choice of others.
    pub(super) alters: Option<&'a BTreeSet<String>>,
    /// The names of steps that do not run with planted tests.
    pub(super) skipped: &'a BTreeSet<String>,
    pub(super) ready: ReadyRoom<'a>,
    pub(super) stop: &'a CancellationToken,
}

impl CanaryRun<'_> {
    /// Returns which of the planted failures the lane sees.
    ///
    /// A failing test can hide others: `cargo test` stops after the first program with a failure.
    /// So unseen failures are planted again, as long as that shows more. If the lane fails for
    /// another reason in the first room of a level, the tests of the next level are planted.
    ///
    /// # Errors
    /// [`CanaryError`].
    pub(super) async fn sightings(self, logs: PathBuf) -> Result<CanarySightings, CanaryError> {
        let lane = self.lane;
        let PlantedTests { levels } = self.beds().await?;
        let saw_one = self.known.saw_one();
        let is_known = saw_one || self.known.has_base_passed;
        let open = |level: usize| -> Vec<PlantedTest> {
            let plants = levels.get(level).into_iter().flatten().flat_map(PlantedFile::plants);
            plants.filter(|plant| !(is_known && self.known.of(plant) == Some(false))).cloned().collect()
        };
        let is_seen = |level: &Vec<PlantedFile>| {
            level.iter().flat_map(PlantedFile::plants).any(|plant| self.known.of(plant) == Some(true))
        };
        let mut level = levels.iter().position(is_seen).unwrap_or(0);
        let rounds = if saw_one { WORK_ROUNDS } else { ROUNDS };
        let (mut sightings, mut first) = (CanarySightings::new(open(level)), 1);
        for round in 1.. {
            let left = sightings.unseen();
            if left.is_empty() {
                break;
            }
            if lane.room == RoomKind::InPlace {
                return Err(CanaryError::InPlace(lane.name.clone()));
            }
            let is_left = |plant: &PlantedTest| left.iter().any(|left| left.key == plant.key);
            let beds = &levels[level];
            let files: Vec<(&str, String)> =
                beds.iter().filter_map(|bed| Some((bed.path.as_str(), bed.text(is_left)?))).collect();
            let logs = if round == 1 { logs.clone() } else { logs.with_added_extension(round.to_string()) };
            let outcome = self.run(&files, logs).await?;
            let is_red = outcome.ruling == LaneRuling::Failed;
            let is_base = self.tree == self.gate.base();
            let is_first = round == first;
            let all: Vec<PlantedTest> = levels[level].iter().flat_map(PlantedFile::plants).cloned().collect();
            let look = move || {
                let seen =
                    left.iter().filter(|plant| is_in(&outcome, plant, is_base)).map(|it| it.key.clone()).collect();
                (seen, if is_first { failed_tests(&outcome, &all) } else { BTreeSet::new() })
            };
            let (seen, beside) = self.looked(look).await?;
            let shows_more = sightings.add(seen);
            sightings.set_red(is_red);
            sightings.beside.extend(beside);
            // The next level is for a lane that fails for another reason. A lane that passes beside
            // failures does not see them.
            if is_red && sightings.has_none() && (!saw_one || self.falls_back) && level + 1 < levels.len() {
                (level, first) = (level + 1, round + 1);
                sightings = CanarySightings::new(open(level));
                if levels[level].iter().flat_map(PlantedFile::plants).all(PlantedTest::is_plain) {
                    sightings = sightings.only_plain();
                }
                continue;
            }
            if !shows_more {
                break;
            }
            if round + 1 - first >= rounds {
                sightings.cut();
                break;
            }
        }
        if self.known.beside.is_some_and(|known| !sightings.beside.is_subset(known)) {
            // A test may fail by chance, but not twice.
            let (plants, is_open) = (open(level), |plant: &PlantedTest| open(level).contains(plant));
            let beds = levels[level].iter();
            let files: Vec<_> = beds.filter_map(|bed| Some((bed.path.as_str(), bed.text(is_open)?))).collect();
            let outcome = self.run(&files, logs.with_added_extension("again")).await?;
            let again: BTreeSet<String> = self.looked(move || failed_tests(&outcome, &plants)).await?;
            sightings.beside.retain(|name| again.contains(name));
        }
        Ok(sightings)
    }

    /// Reads logs on a thread for blocking work.
    async fn looked<T: Send + 'static>(self, look: impl FnOnce() -> T + Send + 'static) -> Result<T, CanaryError> {
        tokio::task::spawn_blocking(look).await.map_err(|_| self.cannot_run("reading its logs panicked"))
    }

    /// Runs the lane in a separate room, with these files added to the tree.
    async fn run(self, files: &[(&str, String)], logs: PathBuf) -> Result<LaneOutcome, CanaryError> {
        let Self { gate, site, lane, tree, skipped, ready: ReadyRoom { caches, dependencies }, stop, .. } = self;
        // The pins are those of the room in which the lane judged. Otherwise the judged code could
        // tell the two rooms apart.
        let kept = gate.kept(site, lane, tree, stop).await?;
        let files = files.iter().map(|(path, text)| (*path, text.as_str(), false));
        let planted = &site.trees.with_files(tree, files, stop).await.map_err(CanaryError::Unplanted)?;
        let wanted = RoomRequest { lane, tree: planted, base: gate.base(), caches, dependencies, kept: &kept, gate };
        let room = CleanRoom::make(site, wanted, stop).await?;
        let mut all = Lane { fail_fast: false, ..room.lane(lane) };
        all.steps.iter_mut().for_each(|step| step.run = without_early_end(&step.run));
        let mut place = room.room(site, logs);
        let reason = |step: &Step| skipped.contains(&step.name).then(|| NO_TESTS_HERE.to_owned());
        place.left_out = all.steps.iter().map(reason).collect();
        let outcome = site.run(&all, place, stop, &|_| {}).await;
        room.close().await;
        match outcome.ruling {
            LaneRuling::Passed | LaneRuling::Failed => Ok(outcome),
            LaneRuling::Cancelled => Err(CanaryError::Stopped),
            LaneRuling::Errored => Err(self.cannot_run(&feedback::could_not_run(&outcome.steps))),
            LaneRuling::NothingRan => Err(self.cannot_run("nothing ran")),
        }
    }

    async fn beds(self) -> Result<PlantedTests, CanaryError> {
        let canary = &self.lane.canary;
        if !canary.is_chosen() {
            return Ok(PlantedTests { levels: Vec::new() });
        }
        let (trees, base, tree, stop) = (&self.site.trees, self.gate.base(), self.tree, self.stop);
        let mut places = PlantingPlaces::choose(canary, &trees.paths(base, stop).await?);
        let work = trees.paths(tree, stop).await?;
        if *canary == CanaryTerms::CargoTest {
            let changed = trees.changes(base, tree, stop).await?;
            let is_changed = |path: &str| changed.iter().any(|change| change.path == path);
            places.look_inside(&work, is_changed);
        }
        // A task may allow changes of tests. So the tests are read from the work, with their
        // current imports, if any of them are there.
        let work: BTreeSet<&String> = work.iter().collect();
        let is_kept = places.likes().any(|path| work.contains(path));
        let likes = places.likes().filter(|path| !is_kept || work.contains(path));
        let likes = likes.map(|path| (if is_kept { tree } else { base }, path));
        let mut texts = BTreeMap::new();
        for (tree, path) in likes.chain(places.units().map(|path| (tree, path))) {
            let bytes = trees.read(tree, path, READ, stop).await?.unwrap_or_default();
            texts.insert(path.clone(), String::from_utf8_lossy(&bytes).into_owned());
        }
        let has = |path: &str| work.iter().any(|own| *own == path);
        let altered = self.alters.map_or_else(AlteredTests::new, |failing| self.altered(failing, &texts));
        canary::plant(canary, &places, word, &texts, &altered, has)
            .map_err(|why| CanaryError::NoPlace { lane: self.lane.name.clone(), why })
    }

    /// Returns the tests of these files that are made to fail.
    fn altered(self, failing: &BTreeSet<String>, texts: &BTreeMap<String, String>) -> AlteredTests {
        let of_file = |(path, text): (&String, &String)| {
            inside::test_bodies(path, text).into_iter().map(|body| (path.clone(), body)).collect::<Vec<_>>()
        };
        let mut all: Vec<(String, TestBody)> = texts.iter().flat_map(of_file).collect();
        if let Some(known) = self.known.by_key {
            // A task may want tests in the files that it opens to be skipped.
            let is_opened = |path: &str| self.gate.policy.opens_tests_in(path);
            all.retain(|(path, body)| known.get(&altered_key(path, body)) == Some(&true) && !is_opened(path));
        } else {
            let has_failed = |body: &TestBody| body.name.last().is_some_and(|name| failing.contains(name));
            all.sort_by_cached_key(|(_, body)| (!has_failed(body), word()));
            all.truncate(MOST_ALTERED);
        }
        let mut altered = AlteredTests::new();
        for (path, body) in all {
            altered.entry(path).or_default().push(body);
        }
        altered.values_mut().for_each(|bodies| bodies.sort_by_key(|body| body.at));
        altered
    }

    fn cannot_run(self, why: &str) -> CanaryError {
        CanaryError::CannotRun { lane: self.lane.name.clone(), why: why.into() }
    }
}

/// Returns whether a step saw the planted failure. Blocks.
fn is_in(outcome: &LaneOutcome, plant: &PlantedTest, is_base: bool) -> bool {
    let names_it = |step: &StepReport| {
        let log = step.log.as_deref().map(Path::new);
        log.is_some_and(|log| says(log, &plant.mark) || has_line(log, |line| says_failed(line, plant, is_base)))
    };
    outcome.steps.iter().any(|step| canary::is_seen(plant, &step.step, step.status, || names_it(step)))
}

/// Returns a word that no code can know before and that looks like any other word.
pub(super) fn word() -> String {
    const LETTERS: [&[u8]; 2] = [b"bdfgklmnprstvz", b"aeiou"];
    let digest = store::sha256(process::unforeseen().as_bytes());
    let letter = |(place, byte): (usize, u8)| {
        let letters = LETTERS[place % 2];
        char::from(letters[usize::from(byte) % letters.len()])
    };
    digest.bytes().take(12).enumerate().map(letter).collect()
}
