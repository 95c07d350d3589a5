//! Failing tests that fledge plants in the base for lanes with `canary: auto`. They show which
//! planted failures a lane reports, before any work is judged.

use super::{BaseError, BaseVerdict, keep};
use crate::error_chain::chain;
use crate::gate::evidence::Evidence;
use crate::gate::planted::{CanaryError, CanaryRun, KnownSightings};
use crate::gate::recognized::{is_needless, kinds_in_command};
use crate::gate::{Gate, GateSite};
use crate::lane::{CanaryTerms, Lane, RoomKind, Step};
use crate::verdict::Ruling;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use tokio_util::sync::CancellationToken;

const VERSION: u32 = 3;
/// The file in the folder of a base.
const FILE: &str = "canaries.json";

/// The failures planted in the base that the lanes with `canary: auto` report, by lane.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::gate) struct AutoCanaries {
    version: u32,
    pub(in crate::gate) lanes: BTreeMap<String, AutoCanary>,
}

/// The reports of a lane on failures that fledge planted in the base.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::gate) struct AutoCanary {
    /// The kinds of tests of which the lane reports failures, and those whose reports the base
    /// cannot show.
    pub(in crate::gate) kinds: BTreeMap<CanaryTerms, KindCanary>,
    /// The reasons why kinds are not planted in the work.
    pub(in crate::gate) lacking: Vec<String>,
    /// True if the lane's checks fail on the base, so that it may have run no test there.
    pub(in crate::gate) has_failed: bool,
}

/// The reports of a lane on planted failures of a kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::gate) struct KindCanary {
    /// For each planted test, by key: true if the lane reports its failure. Empty if the base
    /// cannot show that.
    pub(in crate::gate) by_key: BTreeMap<String, bool>,
    /// The names of the steps that do not run with planted tests.
    pub(in crate::gate) skipped: BTreeSet<String>,
    /// The tests of the base that fail beside planted ones, and pass alone.
    pub(in crate::gate) beside: BTreeSet<String>,
}

/// The kinds of tests that run only if the whole program compiles.
const COMPILED: [CanaryTerms; 4] =
    [CanaryTerms::CargoTest, CanaryTerms::GoTest, CanaryTerms::Junit, CanaryTerms::CppTest];
/// Programs that run a target by its name, and the names of targets that run tests.
const BUILDERS: [&str; 13] =
    ["make", "gmake", "ninja", "just", "task", "ant", "bazel", "meson", "scons", "rake", "waf", "--target", "-t"];
const TARGETS: [&str; 4] = ["test", "tests", "check", "unittest"];

/// Returns whether tests of a kind run only if the whole program compiles. A lane that reports none
/// of them on a failing base may do so once the work compiles. They are also planted in the files
/// of existing tests, so a lane that runs only some files runs some of them.
fn is_compiled(kind: &CanaryTerms) -> bool {
    COMPILED.contains(kind)
}

/// Returns whether a command says that it runs tests, by a target (`make check`), by the name of a
/// program (`sh run-tests.sh`, `build/unit_test`) or by a switch (`-DRUN_ALL_TESTS`). `test` alone
/// is a command of shells.
fn claims_tests(command: &str) -> bool {
    let words: Vec<&str> = command.split([' ', '\t', '\n', ';', '&', '|', '(', ')', '"', '\'']).collect();
    let is_program = |word: &&str| {
        let name = word.rsplit('/').next().unwrap_or(word);
        let parts: Vec<&str> = name.split(|c: char| !c.is_alphanumeric()).collect();
        let is_switch = parts.contains(&"RUN") && (parts.contains(&"TEST") || parts.contains(&"TESTS"));
        let is_named = parts.contains(&"test") || parts.contains(&"tests") || is_switch;
        **word != *"test" && !word.contains('*') && is_named
    };
    words.iter().any(is_program)
        || words.windows(2).any(|pair| BUILDERS.contains(&pair[0]) && TARGETS.contains(&pair[1]))
}

/// The kinds of tests that the steps of a lane run, by their commands and their output.
pub(in crate::gate) struct StepKinds<'l>(Vec<(&'l Step, BTreeSet<CanaryTerms>)>);

impl<'l> StepKinds<'l> {
    pub(in crate::gate) fn of(lane: &'l Lane, evidence: &Evidence) -> Self {
        let of_step = |step: &'l Step| {
            let mut kinds = evidence.kinds(&lane.name, &step.name);
            kinds.append(&mut kinds_in_command(&step.run));
            (step, kinds)
        };
        Self(lane.steps.iter().map(of_step).collect())
    }

    fn all(&self) -> BTreeSet<CanaryTerms> {
        self.0.iter().flat_map(|(_, kinds)| kinds.iter().cloned()).collect()
    }

    /// Returns whether a step shows that it runs tests of a kind.
    pub(in crate::gate) fn show(&self, kind: &CanaryTerms) -> bool {
        self.0.iter().any(|(_, kinds)| kinds.contains(kind))
    }

    /// Returns whether the lane claims to run tests and shows no kind: code that ends a test
    /// program at once also hides its runner.
    pub(in crate::gate) fn hide_runners(&self) -> bool {
        self.all().is_empty() && self.0.iter().any(|(step, _)| claims_tests(&step.run))
    }

    /// Returns the compiled kinds whose reports the base cannot show, for planting in the work:
    /// those that the steps show, and those of `guessed`.
    pub(in crate::gate) fn unknown(
        &self,
        guessed: impl Fn(&CanaryTerms) -> bool,
    ) -> impl Iterator<Item = (CanaryTerms, KindCanary)> {
        let kinds = COMPILED.into_iter().filter(move |kind| guessed(kind) || self.show(kind));
        kinds.map(|kind| (kind.clone(), KindCanary { skipped: self.skipped(&kind), ..KindCanary::default() }))
    }

    /// Returns the names of the steps that do not run with planted tests of a kind.
    fn skipped(&self, kind: &CanaryTerms) -> BTreeSet<String> {
        let is_skipped = |(step, kinds): &&(&Step, BTreeSet<CanaryTerms>)| {
            if kinds.is_empty() { is_needless(&step.run, kind) } else { !kinds.contains(kind) }
        };
        self.0.iter().filter(is_skipped).map(|(step, _)| step.name.clone()).collect()
    }
}

/// Returns what the lanes report of failures that are planted in the base. Plants them now if that
/// is not kept beside the result of the base.
///
/// # Errors
/// [`BaseError`] when the run is stopped, or when the base cannot be read or locked. If a lane
/// cannot run with planted tests, it has a reason in place of a result.
pub(in crate::gate) async fn plant(
    gate: &Gate,
    site: &GateSite,
    base: &BaseVerdict,
    stop: &CancellationToken,
) -> Result<AutoCanaries, BaseError> {
    let file = base.folder.join(FILE);
    let kept = || {
        let kept: AutoCanaries = serde_json::from_slice(&fs::read(&file).ok()?).ok()?;
        (kept.version == VERSION).then_some(kept)
    };
    let mut canaries = AutoCanaries { version: VERSION, ..AutoCanaries::default() };
    if !gate.lanes.iter().any(|lane| lane.canary.is_auto()) {
        return Ok(canaries);
    }
    if let Some(kept) = kept() {
        return Ok(kept);
    }
    let _lock = keep::lock(gate, site, stop).await?;
    // Another run may have planted them meanwhile.
    if let Some(kept) = kept() {
        return Ok(kept);
    }
    for lane in gate.lanes.iter().filter(|lane| lane.canary.is_auto()) {
        canaries.lanes.insert(lane.name.clone(), of_lane(gate, site, base, lane, stop).await?);
    }
    // Without the file, the next run plants them again.
    if let Err(error) = serde_json::to_vec(&canaries).map_err(Into::into).and_then(|text| fs::write(&file, text)) {
        tracing::warn!(%error, "what lanes report of planted tests is not kept");
    }
    Ok(canaries)
}

async fn of_lane(
    gate: &Gate,
    site: &GateSite,
    base: &BaseVerdict,
    lane: &Lane,
    stop: &CancellationToken,
) -> Result<AutoCanary, BaseError> {
    let mut canary = AutoCanary::default();
    if lane.room == RoomKind::InPlace {
        canary.lacking.push("the lane runs in the workspace".into());
        return Ok(canary);
    }
    let steps = StepKinds::of(lane, &base.evidence);
    let kinds = steps.all();
    canary.has_failed = base.ruling == Ruling::Failed && base.fails_in(lane);
    if kinds.is_empty() {
        canary.lacking.push("its test runner is not recognized".into());
    }
    let failing = base.failure_words(lane).await;
    let alone = base.failed_tests().await;
    for kind in kinds {
        let lane = Lane { canary: kind.clone(), ..lane.clone() };
        let logs = site.logs.join("base").join(format!("{}-canary-{}", lane.name, kind.word()));
        let caches = base.caches(&lane);
        let skipped = steps.skipped(&kind);
        let run = CanaryRun {
            gate,
            site,
            lane: &lane,
            tree: gate.base(),
            known: KnownSightings::default(),
            falls_back: false,
            alters: Some(&failing),
            skipped: &skipped,
            ready: caches.as_ref().into(),
            stop,
        };
        let why = match run.sightings(logs).await {
            Ok(sightings) if sightings.has_none() && canary.has_failed && is_compiled(&kind) => {
                let beside = sightings.beside.difference(&alone).cloned().collect();
                canary.kinds.insert(kind, KindCanary { by_key: BTreeMap::new(), skipped, beside });
                continue;
            }
            Ok(sightings) if sightings.has_none() => {
                format!("it reports no failing test of the kind `{}` that is planted in the base", kind.word())
            }
            Ok(sightings) => {
                let by_key = sightings.by_key();
                let beside = sightings.beside.difference(&alone).cloned().collect();
                canary.kinds.insert(kind, KindCanary { by_key, skipped, beside });
                continue;
            }
            Err(CanaryError::Stopped) => return Err(BaseError::Stopped),
            Err(CanaryError::NoPlace { why, .. }) => why,
            Err(fault) => chain(&fault),
        };
        canary.lacking.push(why);
    }
    Ok(canary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_claims_tests_by_its_words() {
        for (command, claims) in [
            ("make test", true),
            ("cmake --build build --target check", true),
            ("cd build && ./unit_test", true),
            ("sh scripts/run-tests.sh", true),
            ("make check", true),
            ("cmake -DEXERCISM_RUN_ALL_TESTS=1 .", true),
            ("cmake -DBUILD_TESTS=ON .", false),
            ("test -f build/app; for t in tests/*.sh; do sh $t; done", false),
            ("sh tests/all.sh", false),
            ("cargo check", false),
            ("cmake --build build", false),
            ("sh latest.sh", false),
        ] {
            assert_eq!(claims_tests(command), claims, "{command}");
        }
    }
}
