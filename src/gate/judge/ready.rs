//! Preparation of a lane's room: caches of the base, refilled where the dependencies of the work
//! differ, and installed dependencies.

use super::early::EarlyEnd;
use super::{GateRun, JudgeRecord};
use crate::error_chain::chain;
use crate::gate::base::{self, BaseError, LaneCaches};
use crate::gate::clean::RoomDependencies;
use crate::gate::install::{self, InstallOutcome, Installation, is_completed};
use crate::gate::planted::ReadyRoom;
use crate::gate::refreshed;
use crate::id::TreeId;
use crate::lane::Lane;
use crate::verdict::{InstalledForChecks, Ruling, Verdict};
use std::sync::Arc;

/// The maximum number of packages that a note names.
const NAMED: usize = 10;

/// The caches and dependencies of a lane for a tree.
pub(super) struct PreparedLane {
    caches: Option<LaneCaches>,
    pub(super) installation: Option<Arc<Installation>>,
}

impl PreparedLane {
    pub(super) fn borrowed(&self) -> ReadyRoom<'_> {
        ReadyRoom {
            caches: self.caches.as_ref(),
            dependencies: RoomDependencies::from_installation(self.installation.as_deref()),
        }
    }
}

impl GateRun<'_> {
    /// Returns a note for each setup, because setups have network access.
    pub(super) fn setup_notes(&self) -> Vec<String> {
        let lanes = self.gate.lanes.iter().filter(|lane| !self.is_base && !lane.setup.is_empty());
        lanes.map(|lane| format!("the setup of lane `{}` ran with network access", lane.name)).collect()
    }

    /// Prepares the caches and dependencies of a lane for this tree. In a lane with a setup, only
    /// the setup installs dependencies.
    pub(super) async fn ready(
        &self,
        lane: &Lane,
        tree: &TreeId,
        record: &mut JudgeRecord,
    ) -> Result<PreparedLane, EarlyEnd> {
        let caches = self.caches(lane, tree).await?;
        let installs = lane.setup.is_empty() && !self.is_base;
        let installation = if installs { self.installation(tree, record).await? } else { None };
        Ok(PreparedLane { caches, installation })
    }

    async fn caches(&self, lane: &Lane, tree: &TreeId) -> Result<Option<LaneCaches>, EarlyEnd> {
        let is_known = || self.site.may_judge_base || base::kept(self.gate, self.site).is_some();
        if !LaneCaches::are_wanted(lane) || (!LaneCaches::must_be(lane) && !is_known()) {
            return Ok(None);
        }
        let Some(caches) = self.base().await?.caches(lane) else { return Ok(None) };
        match refreshed::caches(self.gate, self.site, lane, tree, caches, self.stop).await {
            Ok(caches) => Ok(Some(caches)),
            Err(fault @ BaseError::Setup { .. }) => Err(self.not_ready(&chain(&fault))),
            Err(fault) => Err(fault.into()),
        }
    }

    /// Installs the dependencies of this tree, where they differ from the base's.
    async fn installation(
        &self,
        tree: &TreeId,
        record: &mut JudgeRecord,
    ) -> Result<Option<Arc<Installation>>, EarlyEnd> {
        if let Some((_, installation)) = record.installed.as_ref().filter(|(of, _)| of == tree) {
            return Ok(installation.clone());
        }
        let installation = match install::for_tree(self.gate, self.site, tree, self.stop).await {
            Ok(Some(InstallOutcome::Done(installation))) => {
                record.notes.push(install_note(&installation.report));
                record.notes.extend(installation.withheld.iter().cloned());
                let work = self.site.trees.paths(tree, self.stop).await?;
                let is_missing = |path: &&String| is_completed(path) && !work.contains(path);
                let missing = installation.files().iter().filter(is_missing);
                record.notes.extend(missing.map(|path| {
                    format!("{path} is not in the work; the checks made one: run `go mod tidy` and commit the file")
                }));
                Some(Arc::from(installation))
            }
            Ok(Some(InstallOutcome::Impossible(lines))) => {
                record.notes.extend(lines);
                None
            }
            Ok(None) => None,
            Err(fault @ BaseError::Install { .. }) => return Err(self.not_ready(&chain(&fault))),
            Err(fault) => return Err(fault.into()),
        };
        record.notes.dedup();
        record.installed = Some((tree.clone(), installation.clone()));
        Ok(installation)
    }

    /// Returns the verdict for a setup or an installation that fails with the dependencies of the
    /// work.
    fn not_ready(&self, why: &str) -> EarlyEnd {
        let feedback = format!("the work changed the dependencies, and with them {why}\n");
        let signature = format!("setup: {why}");
        EarlyEnd::Ruled(Box::new(Verdict {
            feedback,
            signature,
            ..self.verdict(Ruling::Failed, &JudgeRecord::default())
        }))
    }
}

/// Returns the note on an installation.
fn install_note(installs: &InstalledForChecks) -> String {
    let (commands, count) = (installs.commands.join("`, `"), installs.packages.len());
    let mut names = installs.packages.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if count > NAMED {
        names.push_str(&format!(" and {} more", count - NAMED));
    }
    let what = if names.is_empty() { String::new() } else { format!(": {names}") };
    format!("the dependencies of the work were installed for the checks by `{commands}`{what}")
}
