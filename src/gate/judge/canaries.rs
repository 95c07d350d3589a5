//! The check that a lane sees planted failures in the work.

use super::{EarlyEnd, GateRun, JudgeRecord};
use crate::gate::base::{AutoCanary, BaseError, BaseVerdict, KindCanary};
use crate::gate::canary::{CanarySightings, SeenShare};
use crate::gate::planted::{CanaryRun, EITHER, KnownSightings, ReadyRoom};
use crate::id::TreeId;
use crate::lane::{CanaryTerms, Lane};
use crate::verdict::Ruling;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of planted failures that a message names.
const NAMED: usize = 5;
const SILENCED: &str = "its tests are silenced";
static NONE: BTreeSet<String> = BTreeSet::new();

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
            CanaryTerms::None => Ok(()),
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

    /// Plants the kinds of failing tests that the lane reported on the base. Without the result of
    /// the base, nothing is planted.
    async fn auto_canary(&self, lane: &Lane, tree: &TreeId, record: &mut JudgeRecord) -> Result<(), EarlyEnd> {
        // The base has no work that could silence tests.
        if self.is_base {
            return Ok(());
        }
        let planted = self.gate.auto_canaries(self.site, self.stop).await?;
        let Some(AutoCanary { kinds, lacking }) = planted.as_ref().and_then(|all| all.lanes.get(&lane.name)) else {
            record.without_canary.insert(lane.name.clone(), "the base was not judged".into());
            return Ok(());
        };
        if kinds.is_empty() {
            record.without_canary.insert(lane.name.clone(), lacking.join("; "));
            return Ok(());
        }
        let base = self.gate.judged.get().map(|base| base.as_ref());
        let changes = self.site.trees.changes(self.gate.base(), tree, self.stop).await?;
        let falls_back = changes.iter().any(|change| self.gate.policy.opens_tests_in(&change.path));
        for (kind, KindCanary { by_key, skipped }) in kinds.iter().filter(|_| tree != self.gate.base()) {
            let lane = Lane { canary: kind.clone(), ..lane.clone() };
            let ready = self.ready(&lane, tree, record).await?;
            let logs = self.logs(&format!("{}-canary-{}", lane.name, kind.word()));
            let run = self.canary_run(&lane, tree, known(base, Some(by_key)), ready.borrowed());
            let sightings = CanaryRun { skipped, falls_back, alters: Some(&NONE), ..run }.sightings(logs).await?;
            let missed = match sightings.share(Some(by_key)) {
                SeenShare::All => None,
                SeenShare::None => Some(format!("a planted failing test: {SILENCED}")),
                SeenShare::Some => Some(missed(&sightings, Some(by_key))),
            };
            self.must_see(&lane, missed, record)?;
        }
        record.canaries += 1;
        Ok(())
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
    KnownSightings { by_key, has_base_passed: base.is_some_and(|base| base.ruling == Ruling::Passed) }
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
