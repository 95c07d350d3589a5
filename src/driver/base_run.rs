//! Judges the base with the gate during the agent's first turns.
//!
//! If the checks cannot run here, the run ends before the model has cost much. Failures of the base
//! become known, too.

use super::effects::{EffectRunner, RunReady};
use super::inbox::Inbox;
use crate::error_chain::chain;
use crate::gate::BaseError;
use crate::run::{Event, Run};
use tokio_util::sync::CancellationToken;

/// The maximum number of failures to name.
const NAMED: usize = 20;

/// The gate run on the base. Base and work are judged in the same folder, one after the other.
#[derive(Debug)]
pub(super) struct BaseRun {
    /// Stops the gate run.
    stop: CancellationToken,
    /// Cancelled when the gate run has ended for any reason.
    ended: CancellationToken,
}

impl RunReady {
    /// Waits until the base is judged, if that is under way.
    pub(super) async fn wait_for_base_run(&self) {
        if let Some(base) = self.base_run.get() {
            base.ended.cancelled().await;
        }
    }

    /// Stops the gate run on the base and waits until it has ended.
    pub(super) async fn stop_base(&self) {
        if let Some(base) = self.base_run.get() {
            base.stop.cancel();
            base.ended.cancelled().await;
        }
    }
}

impl EffectRunner {
    /// Starts to judge the base if the plan requires it, at most once in a process.
    pub(super) fn judge_base(&self, run: &Run, inbox: &mut Inbox) {
        if !run.awaits_base() || self.lineage.is_child() {
            return;
        }
        let Some((ready, gate)) = self.ready.get().and_then(|ready| Some((ready, ready.gate.clone()?))) else { return };
        let (stop, ended) = (inbox.stop_token().child_token(), CancellationToken::new());
        if ready.base_run.set(BaseRun { stop: stop.clone(), ended: ended.clone() }).is_err() {
            return;
        }
        let site = ready.workspace.site(&self.settings, &self.task, &self.run_dir, run.tools());
        let judged = |result| Event::BaseJudged { result };
        let effect = async move {
            let _ended = ended.drop_guard();
            let known = gate.learn_base(&site, &stop).await;
            if known.is_ok() {
                gate.prepare(&site, &stop).await;
                gate.plant_in_base(&site, &stop).await;
            }
            judged(match known {
                Ok(failing) => Ok(name_failures(failing)),
                Err(fault) if fault.is_final() => Err(chain(&fault)),
                Err(BaseError::Stopped) => Ok(Vec::new()),
                Err(_) if stop.is_cancelled() => Ok(Vec::new()), // the run has ended; that is no fault
                Err(fault) => {
                    tracing::warn!(why = %chain(&fault), "cannot judge the base now");
                    Ok(Vec::new())
                }
            })
        };
        inbox.start("base-run", effect, judged(Ok(Vec::new())));
    }
}

/// Names the first failures and counts the rest.
fn name_failures(mut failing: Vec<String>) -> Vec<String> {
    let more = failing.len().saturating_sub(NAMED);
    failing.truncate(NAMED);
    failing.extend((more > 0).then(|| format!("and {more} more")));
    failing
}
