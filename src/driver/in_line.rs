//! Updates the installed dependencies of the workspace after a verified run in place.

use super::effects::EffectRunner;
use crate::error_chain::chain;
use crate::run::Run;
use crate::store::write_whole;
use tokio_util::sync::CancellationToken;

/// Marks that fledge has begun to install the dependencies of verified work. No agent is alive
/// then, so new files are fledge's.
pub(super) const IN_LINE: &str = "in-line";

impl EffectRunner {
    /// Installs the dependencies of verified work into the workspace. Returns a note for people.
    /// Does nothing after any other end, or if the run worked in another folder.
    pub(super) async fn bring_in_line(&self, run: &Run, stop: &CancellationToken) -> Option<String> {
        let ready = self.ready.get()?;
        let (gate, result) = (ready.gate.as_ref()?, run.result().filter(|result| result.verified)?);
        let tree = result.tree.clone()?;
        if ready.ground.origin != self.settings.workspace || self.has_left() {
            return None;
        }
        let marker = self.run_dir.path().join(IN_LINE);
        let begins = || {
            let made = write_whole(&marker, &[]);
            made.map_err(|fault| format!("your installed dependencies were not updated: {}", chain(&fault)))
        };
        let site = ready.ground.site(&self.settings, &self.task, &self.run_dir, run.tools());
        match self.see_out(stop, gate.bring_in_line(&site, &tree, begins, stop)).await {
            Some(Ok(note)) => note,
            Some(Err(why)) => Some(why),
            None => Some("your installed dependencies were not updated: the run had to stop".to_owned()),
        }
    }
}
