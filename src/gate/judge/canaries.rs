//! The check that a lane sees planted failures in the work.

use super::{EarlyEnd, GateRun, JudgeRecord};
use crate::gate::base::{BaseError, BaseVerdict};
use crate::gate::canary::SeenShare;
use crate::gate::planted::{CanaryRun, EITHER, ReadyRoom};
use crate::id::TreeId;
use crate::lane::Lane;
use crate::verdict::Ruling;

/// The maximum number of planted failures that a message names.
const NAMED: usize = 5;
const SILENCED: &str = "its tests are silenced";

impl GateRun<'_> {
    /// Prepares a run of a lane on a tree with planted failures.
    pub(super) fn canary_run<'a>(
        &'a self,
        lane: &'a Lane,
        tree: &'a TreeId,
        base: Option<&'a BaseVerdict>,
        ready: ReadyRoom<'a>,
    ) -> CanaryRun<'a> {
        CanaryRun { gate: self.gate, site: self.site, lane, tree, base, ready, stop: self.stop }
    }

    /// Runs a lane once more with planted failures. The lane must see at least one of them. It must
    /// also see each failure that it sees on the base, and each one beside a failure that it sees.
    pub(super) async fn canary(&self, lane: &Lane, tree: &TreeId, record: &mut JudgeRecord) -> Result<(), EarlyEnd> {
        let ready = self.ready(lane, tree, record).await?;
        let logs = self.logs(&format!("{}-canary", lane.name));
        let base = self.gate.judged.get();
        let before = base.map(|base| base.as_ref());
        let sightings = self.canary_run(lane, tree, before, ready.borrowed()).sightings(logs).await?;
        let known = before.and_then(|base| base.sightings.get(&lane.name));
        let saw_one = known.is_some_and(|known| known.values().any(|seen| *seen));
        let what = match sightings.share(known) {
            SeenShare::All => return Ok(()),
            SeenShare::None if self.is_base => return Err(BaseError::Unseen(lane.name.clone()).into()),
            SeenShare::Some if self.is_base => return Ok(()),
            SeenShare::None => format!("a planted failing test: {}", reason(before, saw_one)),
            SeenShare::Some => {
                let missed = sightings.missed(known);
                let names: Vec<&str> = missed.iter().take(NAMED).copied().collect();
                let rest = missed.len() - names.len();
                let rest = if rest == 0 { String::new() } else { format!(" and {rest} more") };
                format!("all planted failing tests: {SILENCED} (missed: {}{rest})", names.join("; "))
            }
        };
        Err(self.fell_short(record, &format!("lane `{}` did not report {what}", lane.name)))
    }
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
