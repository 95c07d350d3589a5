//! The planted failures that a lane has seen.

use super::PlantedTest;
use std::collections::{BTreeMap, BTreeSet};

/// The share of the planted failures that a lane has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gate) enum SeenShare {
    None,
    /// At least one failure is missed: the lane sees it on the base, or has seen another one of its
    /// group.
    Some,
    All,
}

/// The planted failures of a lane, seen and unseen.
#[derive(Debug, Default)]
pub(in crate::gate) struct CanarySightings {
    plants: Vec<PlantedTest>,
    seen: BTreeSet<String>,
    /// The search ended early, so seen failures may still hide others.
    is_cut: bool,
    /// Only plain tests are planted, because the lane failed for another reason with those that use
    /// the project's assertions.
    is_plain: bool,
    /// The lane failed in the last room.
    is_red: bool,
    /// Tests that are not planted and failed beside all planted ones.
    pub(in crate::gate) beside: BTreeSet<String>,
}

impl CanarySightings {
    /// Starts with planted tests of which the lane has seen none.
    pub(in crate::gate) fn new(plants: Vec<PlantedTest>) -> Self {
        Self { plants, ..Self::default() }
    }

    /// Returns the planted tests whose failures the lane has not seen.
    pub(in crate::gate) fn unseen(&self) -> Vec<PlantedTest> {
        self.plants.iter().filter(|plant| !self.seen.contains(&plant.key)).cloned().collect()
    }

    /// Adds the keys of the failures seen in a room. Returns true if there are new ones and others
    /// are still unseen, so that another room may show more.
    pub(in crate::gate) fn add(&mut self, keys: BTreeSet<String>) -> bool {
        let before = self.seen.len();
        self.seen.extend(keys);
        self.seen.len() > before && self.seen.len() < self.plants.len()
    }

    /// Returns true if the lane has seen no planted failure.
    pub(in crate::gate) fn has_none(&self) -> bool {
        self.seen.is_empty()
    }

    /// Notes that only plain tests are planted.
    pub(in crate::gate) fn only_plain(self) -> Self {
        Self { is_plain: true, ..self }
    }

    /// Returns whether only plain tests are planted.
    pub(in crate::gate) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Notes whether the lane failed in the last room.
    pub(in crate::gate) fn set_red(&mut self, is_red: bool) {
        self.is_red = is_red;
    }

    /// Returns whether the lane failed with planted tests but named none of them.
    pub(in crate::gate) fn failed_without_names(&self) -> bool {
        self.is_red && self.has_none()
    }

    /// Notes that further rooms would show more failures.
    pub(in crate::gate) fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Returns, for each key, whether the lane has seen the failure.
    pub(in crate::gate) fn by_key(&self) -> BTreeMap<String, bool> {
        self.plants.iter().map(|plant| (plant.key.clone(), self.seen.contains(&plant.key))).collect()
    }

    /// Returns the keys of missed failures: those that the lane sees on the base, or whose group
    /// has a seen failure. Returns none after an early end.
    pub(in crate::gate) fn missed(&self, base: Option<&BTreeMap<String, bool>>) -> Vec<&str> {
        let runs = |group: &str| self.plants.iter().any(|other| other.group == group && self.seen.contains(&other.key));
        let is_missed = |plant: &&PlantedTest| {
            let was_seen = base.and_then(|base| base.get(&plant.key)).copied();
            was_seen == Some(true) || runs(&plant.group)
        };
        let unseen = self.plants.iter().filter(|plant| !self.seen.contains(&plant.key));
        // After an early end, further rooms could have shown the unseen failures.
        unseen.filter(|_| !self.is_cut).filter(is_missed).map(|plant| plant.key.as_str()).collect()
    }

    /// Returns the share of planted failures that the lane has seen; `All` if none are planted.
    pub(in crate::gate) fn share(&self, base: Option<&BTreeMap<String, bool>>) -> SeenShare {
        if self.seen.is_empty() && !self.plants.is_empty() {
            SeenShare::None
        } else if self.missed(base).is_empty() {
            SeenShare::All
        } else {
            SeenShare::Some
        }
    }
}
