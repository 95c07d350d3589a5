//! A lane: a named graph of commands, checked and with nothing left to guess. Pure: it knows what is to be run and in what
//! order, and starts nothing.
//!
//! A project's lanes and tasks are gathered in a [`Book`]; [`Book::lane`] makes a [`Lane`] of what is written there, with tasks
//! and included lanes put in their place.

mod book;
mod compile;
mod condition;
mod course;
pub mod detect;
mod draft;
mod entry;
mod file;
mod inclusion;
mod order;
mod program;
mod reading;
#[cfg(feature = "cli")]
mod schema;
mod selection;
mod terms;
mod texts;
mod toml;
pub(crate) mod verbs;

pub use book::{Book, LaneFault, Remark};
pub use condition::Condition;
pub use course::{Course, LaneRuling, Next, Order};
pub use detect::{Detected, detect};
pub use entry::{Entry, EntryKind, Gather, Member};
pub use file::parse;
#[cfg(all(test, feature = "cli"))]
pub(crate) use schema::tasks_fault;
#[cfg(feature = "cli")]
pub(crate) use schema::{schema, tasks as tasks_schema};
pub use selection::{Facts, NOT_SELECTED, Selection};
pub use terms::{Canary, Flaky, RoomKind};
pub use toml::parse_toml;

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// A lane. Two of them are the same gate when they serialize to the same text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Its name, which is that of its file.
    pub name: String,
    /// What it is for; empty when nothing is said.
    pub description: String,
    /// Whether the first failure ends it.
    pub fail_fast: bool,
    /// The time of the whole lane.
    pub timeout: Duration,
    /// Variables for every step.
    pub env: BTreeMap<String, String>,
    /// How many steps run at once at most; as many as there are cores when absent.
    pub jobs: Option<NonZeroUsize>,
    /// What is run, in the order of the file; never empty. A step's number is its place here, from 0.
    pub steps: Vec<Step>,
    /// What several steps wait for together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joints: Vec<Joint>,
    /// What is written in `steps`, item by item.
    pub entries: Vec<Entry>,
    /// The tasks among them that have no command of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gathers: Vec<Gather>,
    /// Where it is run when it is a gate.
    #[serde(default)]
    pub room: RoomKind,
    /// What makes that room ready, with network: run one after the other, each when the one before it has passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<Step>,
    /// Folders that are built on the base and copied for each run as a gate: plain paths below the root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cache: Vec<String>,
    /// Build output that fledge keeps between rooms by itself: never said in the lane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub built: Vec<String>,
    /// Whether its steps have a network in the room.
    #[serde(default)]
    pub network: bool,
    /// Whether its steps may change the sources in the room.
    #[serde(default)]
    pub writes: bool,
    /// The planted failure that it must see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
    /// What a pass that needed another try is worth.
    #[serde(default)]
    pub flaky: Flaky,
    /// Files and folders of the base that git ignores and that the room needs: plain paths below the root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include_ignored: Vec<String>,
    /// The folder that it comes from, where only the gate knows it: never said in the lane itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<PathBuf>,
}

/// One command of a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its name, no other step's of the lane.
    pub name: String,
    /// The command line, for the shell.
    pub run: String,
    /// The shell and its arguments before the command line.
    pub shell: Vec<String>,
    /// The directory it runs in, relative to the root and inside it; the root when absent.
    pub dir: Option<String>,
    /// Variables for this step; they win over the lane's.
    pub env: BTreeMap<String, String>,
    /// Its own time, for each try, within that of the lane.
    pub timeout: Option<Duration>,
    /// How often it is tried again when it fails.
    pub retries: u32,
    /// The pause before it is tried again.
    pub retry_delay: Duration,
    /// When it runs: all must hold.
    pub when: Vec<Condition>,
    /// It runs only if one of these globs fits a changed path; empty: always.
    pub changed: Vec<String>,
    /// Whether its failure is only reported.
    pub allow_failure: bool,
    /// The machine report that it writes, relative to its directory.
    pub junit: Option<String>,
    /// The numbers of the steps that must have ended before it starts, beside those of its joints.
    pub after: Vec<usize>,
    /// The numbers of the joints that must have ended before it starts, see [`Lane::joints`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joints: Vec<usize>,
    /// Those of them whose failure keeps it from running, because it names them, or a task wants them in this order. One that was
    /// skipped does not.
    pub needs: Vec<usize>,
    /// Those of them that its task depends on.
    pub deps: Vec<usize>,
    /// Whether it is there only because tasks depend on it: it runs when one of these does.
    pub on_demand: bool,
}

/// Several steps as one thing to wait for: what comes after a group waits for one joint rather than for each of its steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joint {
    /// The numbers of steps that it is made of.
    pub steps: Vec<usize>,
    /// The numbers of joints that it is made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joints: Vec<usize>,
}

impl Lane {
    /// The folders that the run on the base fills for later rooms.
    pub fn kept_folders(&self) -> impl Iterator<Item = &String> {
        self.cache.iter().chain(&self.built)
    }

    /// What makes its room ready, as a lane of its own; `None` where nothing does.
    pub fn setup_lane(&self) -> Option<Self> {
        if self.setup.is_empty() {
            return None;
        }
        let entry = |(number, step): (usize, &Step)| Entry {
            name: step.name.clone(),
            kind: EntryKind::Inline,
            items: Vec::new(),
            steps: vec![number],
            needed: Vec::new(),
            when: None,
            timeout: step.timeout,
            retries: None,
            retry_delay: None,
        };
        Some(Self {
            name: format!("{}-setup", self.name),
            description: format!("What makes the room of `{}` ready", self.name),
            fail_fast: true,
            entries: self.setup.iter().enumerate().map(entry).collect(),
            steps: self.setup.clone(),
            joints: Vec::new(),
            gathers: Vec::new(),
            setup: Vec::new(),
            network: true,
            writes: true,
            canary: None,
            ..self.clone()
        })
    }

    /// The numbers of all steps that must have ended before this one starts, in order.
    pub fn before(&self, step: usize) -> Vec<usize> {
        let Step { after, joints, .. } = &self.steps[step];
        let (mut steps, mut open, mut seen) = (after.clone(), joints.clone(), BTreeSet::new());
        while let Some(joint) = open.pop() {
            if seen.insert(joint) {
                steps.extend_from_slice(&self.joints[joint].steps);
                open.extend_from_slice(&self.joints[joint].joints);
            }
        }
        steps.sort_unstable();
        steps.dedup();
        steps
    }
}

#[cfg(test)]
mod bad_tests;
