//! The planted failures that a lane has seen.

use super::Plant;
use std::collections::{BTreeMap, BTreeSet};

/// The share of the planted failures that a lane has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gate) enum Seen {
    None,
    /// One is missed that the lane sees on the base, or beside which it has seen another.
    Some,
    All,
}

/// The planted failures that a lane has seen, and those that it has not.
#[derive(Debug, Default)]
pub(in crate::gate) struct Sight {
    plants: Vec<Plant>,
    seen: BTreeSet<String>,
    /// Whether the lane was asked less often than planted failures hide each other.
    is_cut: bool,
}

impl Sight {
    /// A lane that was asked for these.
    pub(in crate::gate) fn new(plants: Vec<Plant>) -> Self {
        Self { plants, ..Self::default() }
    }

    /// The planted failures that are not seen yet.
    pub(in crate::gate) fn unseen(&self) -> Vec<Plant> {
        self.plants.iter().filter(|plant| !self.seen.contains(&plant.key)).cloned().collect()
    }

    /// Adds what was seen in a room: these keys. Gives whether there is reason to look again.
    pub(in crate::gate) fn add(&mut self, keys: BTreeSet<String>) -> bool {
        let before = self.seen.len();
        self.seen.extend(keys);
        self.seen.len() > before && self.seen.len() < self.plants.len()
    }

    /// Returns true if the lane saw none of the planted tests.
    pub(in crate::gate) fn has_none(&self) -> bool {
        self.seen.is_empty()
    }

    /// Notes that more would be seen in further rooms.
    pub(in crate::gate) fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Which were seen, by their keys.
    pub(in crate::gate) fn by_key(&self) -> BTreeMap<String, bool> {
        self.plants.iter().map(|plant| (plant.key.clone(), self.seen.contains(&plant.key))).collect()
    }

    /// Those that the lane has missed although the base shows that it sees them, or although it runs what is beside them.
    pub(in crate::gate) fn missed(&self, base: Option<&BTreeMap<String, bool>>) -> Vec<&str> {
        let runs = |group: &str| self.plants.iter().any(|other| other.group == group && self.seen.contains(&other.key));
        let is_missed = |plant: &&Plant| {
            let was_seen = base.and_then(|base| base.get(&plant.key)).copied();
            was_seen == Some(true) || runs(&plant.group)
        };
        let unseen = self.plants.iter().filter(|plant| !self.seen.contains(&plant.key));
        // What further rooms would show was not asked for.
        unseen.filter(|_| !self.is_cut).filter(is_missed).map(|plant| plant.key.as_str()).collect()
    }

    /// The share of what is planted that the lane has seen; all where nothing is.
    pub(in crate::gate) fn share(&self, base: Option<&BTreeMap<String, bool>>) -> Seen {
        if self.seen.is_empty() && !self.plants.is_empty() {
            Seen::None
        } else if self.missed(base).is_empty() {
            Seen::All
        } else {
            Seen::Some
        }
    }
}
