//! The check that a lane sees planted failures in the work.

use super::{Early, Record, Sitting};
use crate::gate::base::{Base, BaseFault};
use crate::gate::canary::Seen;
use crate::gate::planted::{CanaryRun, EITHER, Ready};
use crate::id::TreeId;
use crate::lane::Lane;
use crate::verdict::Ruling;

/// The most planted failures that a message names.
const NAMED: usize = 5;
const SILENCED: &str = "its tests are silenced";

impl Sitting<'_> {
    /// Prepares a run of a lane on a tree with planted failures.
    pub(super) fn canary_run<'a>(
        &'a self,
        lane: &'a Lane,
        tree: &'a TreeId,
        base: Option<&'a Base>,
        ready: Ready<'a>,
    ) -> CanaryRun<'a> {
        CanaryRun { gate: self.gate, site: self.site, lane, tree, base, ready, stop: self.stop }
    }

    /// Runs a lane once more with planted failures. The lane must see at least one of them. It must
    /// also see each failure that it sees on the base, and each one beside a failure that it sees.
    pub(super) async fn canary(&self, lane: &Lane, tree: &TreeId, record: &mut Record) -> Result<(), Early> {
        let ready = self.ready(lane, tree, record).await?;
        let logs = self.logs(&format!("{}-canary", lane.name));
        let base = self.gate.judged.get();
        let before = base.map(|base| base.as_ref());
        let sight = self.canary_run(lane, tree, before, ready.borrowed()).sight(logs).await?;
        let known = before.and_then(|base| base.sights.get(&lane.name));
        let saw_one = known.is_some_and(|known| known.values().any(|seen| *seen));
        let what = match sight.share(known) {
            Seen::All => return Ok(()),
            Seen::None if self.is_base => return Err(BaseFault::Unseen(lane.name.clone()).into()),
            Seen::Some if self.is_base => return Ok(()),
            Seen::None => format!("a planted failing test: {}", reason(before, saw_one)),
            Seen::Some => {
                let missed = sight.missed(known);
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
fn reason(base: Option<&Base>, saw_one: bool) -> String {
    match base {
        _ if saw_one => SILENCED.into(),
        Some(base) if base.ruling == Ruling::Failed => format!(
            "the checks fail on the base, so fledge cannot tell whether the lane ever reports one; \
             give the lane your own `canary` where it looks, or find out why the tests of the work are silent: {EITHER}"
        ),
        Some(_) | None => EITHER.into(),
    }
}
