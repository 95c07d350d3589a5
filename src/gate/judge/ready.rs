//! Caches of a lane: those of the base, made again where the lock files of the work differ.

use super::early::Early;
use super::{Record, Sitting};
use crate::causes::chain;
use crate::gate::base::{self, BaseFault, Caches};
use crate::gate::refreshed;
use crate::id::TreeId;
use crate::lane::Lane;
use crate::verdict::{Ruling, Verdict};

impl Sitting<'_> {
    /// A note for each setup, which has network.
    pub(super) fn setup_notes(&self) -> Vec<String> {
        let lanes = self.gate.lanes.iter().filter(|lane| !self.is_base && !lane.setup.is_empty());
        lanes.map(|lane| format!("the setup of lane `{}` ran with network", lane.name)).collect()
    }

    /// Returns the caches of a lane for this tree.
    pub(super) async fn caches(&self, lane: &Lane, tree: &TreeId) -> Result<Option<Caches>, Early> {
        let is_known = || self.site.may_judge_base || base::kept(self.gate, self.site).is_some();
        if !Caches::are_wanted(lane) || (!Caches::must_be(lane) && !is_known()) {
            return Ok(None);
        }
        let Some(caches) = self.base().await?.caches(lane) else { return Ok(None) };
        match refreshed::caches(self.gate, self.site, lane, tree, caches, self.stop).await {
            Ok(caches) => Ok(Some(caches)),
            Err(fault @ BaseFault::Setup { .. }) => Err(self.not_ready(&chain(&fault))),
            Err(fault) => Err(fault.into()),
        }
    }

    /// The verdict where a setup passed on the base and fails with the lock files of the work.
    fn not_ready(&self, why: &str) -> Early {
        let feedback = format!("the lock files differ from those at the start, and with them {why}\n");
        let signature = format!("setup: {why}");
        Early::Said(Box::new(Verdict { feedback, signature, ..self.verdict(Ruling::Failed, &Record::default()) }))
    }
}
