//! The check that a lane sees planted failures in the work.

use super::{EarlyEnd, GateRun, JudgeRecord};
use crate::gate::base::{BaseError, BaseVerdict, KindCanary, StepKinds, words_in};
use crate::gate::canary::{CanarySightings, SeenShare};
use crate::gate::planted::{CanaryError, CanaryRun, EITHER, KnownSightings, ReadyRoom};
use crate::gate::recognized::may_run;
use crate::id::TreeId;
use crate::lane::{CanaryTerms, Lane};
use crate::verdict::Ruling;
use crate::workspace::trees::TreesError;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of planted failures that a message names.
const NAMED: usize = 5;
/// The largest file with commands that is read, in bytes.
const LARGEST: u64 = 1024 * 1024;
const SILENCED: &str = "its tests are silenced";
/// The reason if tests fail only beside planted ones.
const DIFFERS: &str = "the code behaves differently where it finds other tests";
/// The reason if the base could not show whether the lane reports planted tests.
const UNSHOWN: &str = "its tests are silenced, or it runs none of the tests that fledge looks for (then set `canary: none`); \
    the checks of the base ran none that could show it";
/// The reason for no canary if the lane fails with planted tests but does not name them.
const UNNAMED: &str = "it fails with planted tests, but its output does not name them";
/// The reason for no canary if the base could not show what a lane with a selection reports.
const SELECTED: &str = "a command selects tests by name, and the checks of the base ran none";
/// Options of test programs of Java and C++ that select tests by name. Their planted tests have
/// other names.
const SELECTS: [&str; 8] =
    ["--gtest_filter", "GTEST_FILTER", "--test-case", "-tc=", "-Dtest=", "--tests ", "--select-", "--include-"];
/// The note on a lane that reports only plain planted tests.
const PLAIN: &str = "reported planted failing tests, but only without the project's own assertions: with them it failed for another reason";
static NONE: BTreeSet<String> = BTreeSet::new();

/// The result of planting failing tests of one kind in the work.
enum KindSeen {
    /// The lane reported all that it must report.
    Reported,
    /// The lane failed, but named no planted test.
    Unnamed,
    /// Nothing was planted, for this reason.
    NoPlace(String),
}

impl GateRun<'_> {
    /// Prepares a run of a lane on a tree with planted failures.
    pub(super) fn canary_run<'a>(
        &'a self,
        lane: &'a Lane,
        tree: &'a TreeId,
        known: KnownSightings<'a>,
        ready: ReadyRoom<'a>,
    ) -> CanaryRun<'a> {
        let (gate, site, stop) = (self.gate, self.site, self.stop);
        CanaryRun { gate, site, lane, tree, known, falls_back: false, alters: None, skipped: &NONE, ready, stop }
    }

    /// Runs a lane once more with planted failures, unless it has `canary: none`. The lane must see
    /// at least one of them. It must also see each failure that it sees on the base, and each one
    /// beside a failure that it sees.
    pub(super) async fn canary(&self, lane: &Lane, tree: &TreeId, record: &mut JudgeRecord) -> Result<(), EarlyEnd> {
        match &lane.canary {
            CanaryTerms::None => {
                record.without_canary.insert(lane.name.clone(), "turned off in the lane".into());
                Ok(())
            }
            CanaryTerms::Auto => self.auto_canary(lane, tree, record).await,
            _ => self.chosen_canary(lane, tree, record).await,
        }
    }

    async fn chosen_canary(&self, lane: &Lane, tree: &TreeId, record: &mut JudgeRecord) -> Result<(), EarlyEnd> {
        let ready = self.ready(lane, tree, record).await?;
        let logs = self.logs(&format!("{}-canary", lane.name));
        let base = self.gate.judged.get();
        let before = base.map(|base| base.as_ref());
        let by_key = before.and_then(|base| base.sightings.get(&lane.name));
        let known = known(before, by_key);
        let alters = by_key.map(|_| &NONE);
        let run = CanaryRun { alters, ..self.canary_run(lane, tree, known, ready.borrowed()) };
        let sightings = run.sightings(logs).await?;
        let missed = match sightings.share(by_key) {
            SeenShare::All => None,
            SeenShare::None if self.is_base => return Err(BaseError::Unseen(lane.name.clone()).into()),
            SeenShare::Some if self.is_base => None,
            SeenShare::None => Some(format!("a planted failing test: {}", reason(before, known.saw_one()))),
            SeenShare::Some => Some(missed(&sightings, by_key)),
        };
        self.must_see(lane, missed, record)?;
        record.canaries += 1;
        Ok(())
    }

    /// Plants the kinds of failing tests that the lane reported on the base. If the checks fail on
    /// the base, also plants compiled kinds that the base could not report. Without the result of
    /// the base, nothing is planted.
    async fn auto_canary(&self, lane: &Lane, tree: &TreeId, record: &mut JudgeRecord) -> Result<(), EarlyEnd> {
        // The base has no work that could silence tests.
        if self.is_base {
            return Ok(());
        }
        let planted = self.gate.auto_canaries(self.site, self.stop).await?;
        let Some(canary) = planted.as_ref().and_then(|all| all.lanes.get(&lane.name)) else {
            record.without_canary.insert(lane.name.clone(), "the base was not judged".into());
            return Ok(());
        };
        let (mut kinds, shown) = (canary.kinds.clone(), StepKinds::of(lane, &record.evidence));
        if canary.has_failed {
            let commands = if shown.hide_runners() { self.commands(lane).await? } else { String::new() };
            for (kind, unknown) in shown.unknown(|kind| may_run(&commands, kind)) {
                kinds.entry(kind).or_insert(unknown);
            }
        }
        let mut is_seen = !kinds.is_empty() && tree == self.gate.base();
        let mut lacking: BTreeSet<String> = canary.lacking.iter().cloned().collect();
        for (kind, of_kind) in kinds.iter().filter(|_| tree != self.gate.base()) {
            match self.kind_canary(lane, tree, (kind, of_kind), record).await? {
                KindSeen::Reported => is_seen = true,
                KindSeen::Unnamed => lacking = [UNNAMED.to_owned()].into(),
                KindSeen::NoPlace(why) => lacking.extend(Some(why).filter(|_| shown.show(kind))),
            }
        }
        let why = lacking.into_iter().collect::<Vec<_>>().join("; ");
        if is_seen {
            record.canaries += 1;
            if !why.is_empty() {
                record.notes.push(format!("lane `{}` did not report planted tests of every runner: {why}", lane.name));
            }
        } else {
            record.without_canary.insert(lane.name.clone(), why);
        }
        Ok(())
    }

    /// Returns the commands of a lane, with the files of the base from which they take commands.
    async fn commands(&self, lane: &Lane) -> Result<String, TreesError> {
        let files: Vec<&str> = self.gate.policy.command_files().collect();
        let texts = self.site.trees.read_all(self.gate.base(), &files, LARGEST, self.stop).await?;
        let texts = texts.into_values().map(|text| String::from_utf8_lossy(&text).into_owned());
        Ok(lane.steps.iter().map(|step| step.run.clone()).chain(texts).collect::<Vec<_>>().join("\n"))
    }

    /// Plants failing tests of one kind in the work. The lane must report those that it reported on
    /// the base; if the base could not show any, at least one.
    async fn kind_canary(
        &self,
        lane: &Lane,
        tree: &TreeId,
        (kind, KindCanary { by_key, skipped, beside }): (&CanaryTerms, &KindCanary),
        record: &mut JudgeRecord,
    ) -> Result<KindSeen, EarlyEnd> {
        let by_key = Some(by_key).filter(|by_key| !by_key.is_empty());
        let own = record.steps.iter().filter(|step| step.lane == lane.name && by_key.is_none());
        let ran = words_in(own.filter_map(|step| step.log.clone()).collect(), |_| true).await;
        let changes = self.site.trees.changes(self.gate.base(), tree, self.stop).await?;
        let falls_back = changes.iter().any(|change| self.gate.policy.opens_tests_in(&change.path));
        let lane = Lane { canary: kind.clone(), ..lane.clone() };
        let ready = self.ready(&lane, tree, record).await?;
        let logs = self.logs(&format!("{}-canary-{}", lane.name, kind.word()));
        let base = self.gate.judged.get().map(|base| base.as_ref());
        let known = KnownSightings { beside: Some(beside), ..known(base, by_key) };
        let run = self.canary_run(&lane, tree, known, ready.borrowed());
        let run = CanaryRun { skipped, falls_back, alters: Some(&ran), ..run };
        let sightings = match run.sightings(logs).await {
            Err(CanaryError::NoPlace { why, .. }) if by_key.is_none() => return Ok(KindSeen::NoPlace(why)),
            sightings => sightings?,
        };
        if by_key.is_none() && sightings.failed_without_names() {
            return Ok(KindSeen::Unnamed);
        }
        if by_key.is_none() && sightings.has_none() && lane.steps.iter().any(|step| selects_tests(&step.run)) {
            return Ok(KindSeen::NoPlace(SELECTED.to_owned()));
        }
        // A test of C++ is planted beside those that it imitates, so it compiles like them.
        let may_be_plain = by_key.is_some() || *kind != CanaryTerms::CppTest;
        let missed = match sightings.share(by_key) {
            SeenShare::All if sightings.is_plain() && !may_be_plain => {
                Some(format!("planted failing tests with the project's own assertions: {UNSHOWN}"))
            }
            SeenShare::All => None,
            SeenShare::None if by_key.is_none() => Some(format!("a planted failing test: {UNSHOWN}")),
            SeenShare::None => Some(format!("a planted failing test: {SILENCED}")),
            SeenShare::Some => Some(missed(&sightings, by_key)),
        };
        self.must_see(&lane, missed, record)?;
        self.must_pass_beside(&lane, &sightings.beside, beside, record)?;
        if sightings.is_plain() {
            record.notes.push(format!("lane `{}` {PLAIN}", lane.name));
        }
        Ok(KindSeen::Reported)
    }

    /// Fails the gate run if tests of the lane failed beside planted ones, and did not do so on the
    /// base. The task may want tests in files that it opens to be changed.
    fn must_pass_beside(
        &self,
        lane: &Lane,
        now: &BTreeSet<String>,
        base: &BTreeSet<String>,
        record: &JudgeRecord,
    ) -> Result<(), EarlyEnd> {
        // A new test may be about the other tests.
        let judged = self.gate.judged.get();
        let is_of_base = |name: &&String| judged.and_then(|base| base.evidence.has_run(name)).unwrap_or(true);
        let new: Vec<&str> = now.difference(base).filter(is_of_base).take(NAMED).map(String::as_str).collect();
        if new.is_empty() {
            return Ok(());
        }
        let names = new.join(", ");
        Err(self.fell_short(
            record,
            &format!("lane `{}`: tests pass only without planted tests beside them: {names}; {DIFFERS}", lane.name),
        ))
    }

    /// Fails the gate run if the lane missed planted failures.
    fn must_see(&self, lane: &Lane, missed: Option<String>, record: &JudgeRecord) -> Result<(), EarlyEnd> {
        match missed {
            Some(what) => Err(self.fell_short(record, &format!("lane `{}` did not report {what}", lane.name))),
            None => Ok(()),
        }
    }
}

fn known<'a>(base: Option<&BaseVerdict>, by_key: Option<&'a BTreeMap<String, bool>>) -> KnownSightings<'a> {
    let has_base_passed = base.is_some_and(|base| base.ruling == Ruling::Passed);
    KnownSightings { by_key, has_base_passed, beside: None }
}

/// Names the planted failures that a lane missed.
fn missed(sightings: &CanarySightings, by_key: Option<&BTreeMap<String, bool>>) -> String {
    let missed = sightings.missed(by_key);
    let names: Vec<&str> = missed.iter().take(NAMED).copied().collect();
    let rest = missed.len() - names.len();
    let rest = if rest == 0 { String::new() } else { format!(" and {rest} more") };
    format!("all planted failing tests: {SILENCED} (missed: {}{rest})", names.join("; "))
}

/// Returns why a lane may have seen nothing. Blames the work only if the lane saw a planted failure
/// on the base.
fn reason(base: Option<&BaseVerdict>, saw_one: bool) -> String {
    match base {
        _ if saw_one => SILENCED.into(),
        Some(base) if base.ruling == Ruling::Failed => format!(
            "the checks fail on the base, so fledge cannot tell whether the lane ever reports one; \
             give the lane your own `canary` where it looks, or find out why the tests of the work are silent: {EITHER}"
        ),
        Some(_) | None => EITHER.into(),
    }
}

/// Returns whether a command selects tests by name.
fn selects_tests(command: &str) -> bool {
    SELECTS.iter().any(|option| command.contains(option))
}
