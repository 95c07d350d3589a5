//! The items of a lane's `steps` as they are written: what people number and name, and which commands each stands for.

use super::Condition;
use super::draft::{Item, Kind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// One item of a lane's `steps`, as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The given name; else the task's or the lane's name, the command line of a `run`, `parallel(a, b)` of a group.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// The members of a group, in order; else empty.
    pub items: Vec<Member>,
    /// The numbers of the commands that it put into the lane: its own, and those that its tasks depend on where it is the first to
    /// need them.
    pub steps: Vec<usize>,
    /// The numbers of the commands that its tasks depend on and that an earlier entry put in.
    pub needed: Vec<usize>,
    /// Its conditions, as they are written.
    pub when: Option<String>,
    /// The time that is written, for each try of each command.
    pub timeout: Option<Duration>,
    /// How often it is to be tried again, if that is written.
    pub retries: Option<u32>,
    /// The pause before that, if it is written.
    pub retry_delay: Option<Duration>,
}

/// A member of a parallel group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Named as an entry is.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// The numbers of the commands that it put in.
    pub steps: Vec<usize>,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A task, by name.
    Task,
    /// A command.
    Inline,
    /// A group.
    Parallel,
    /// Another lane.
    Lane,
}

/// A task in an entry that has no command of its own: what it depends on runs when it is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gather {
    /// The number of the entry, from 0.
    pub entry: usize,
    /// The number of the member of that entry, in a group, from 0.
    pub member: Option<usize>,
    /// The numbers of the steps that it depends on.
    pub steps: Vec<usize>,
    /// When it runs: all must hold.
    pub when: Vec<Condition>,
    /// It runs only if one of these globs fits a changed path; empty: always.
    pub changed: Vec<String>,
    /// The variables that its conditions see before those of the lane.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// What people call an item, and what it is.
pub(super) fn called(item: &Item) -> (String, EntryKind) {
    let (name, kind) = match &item.kind {
        Kind::Run(run) => (run.clone(), EntryKind::Inline),
        Kind::Task(named) => (named.name.clone(), EntryKind::Task),
        Kind::Lane(named) => (named.name.clone(), EntryKind::Lane),
        Kind::Group(items) => {
            let names: Vec<String> = items.iter().map(|item| called(item).0).collect();
            (format!("parallel({})", names.join(", ")), EntryKind::Parallel)
        }
    };
    (item.name.clone().unwrap_or(name), kind)
}
