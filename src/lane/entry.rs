//! The items of a lane's `steps` as written: the numbers and names that users see, and the commands
//! of each item.

use super::Condition;
use super::draft::{StepItem, StepKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// An item of a lane's `steps`, as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepEntry {
    /// The given name. Otherwise the name of the task or lane, the command line of a `run`, or
    /// `parallel(a, b)` for a group.
    pub name: String,
    /// The kind of the entry.
    pub kind: EntryKind,
    /// The members of a group, in order; empty for other kinds.
    pub items: Vec<GroupMember>,
    /// The numbers of the commands that the entry inserted: its own, and the dependencies of its
    /// tasks that no earlier entry needed.
    pub steps: Vec<usize>,
    /// The numbers of the commands that its tasks depend on and that an earlier entry inserted.
    pub needed: Vec<usize>,
    /// The conditions, as written.
    pub when: Option<String>,
    /// The time limit for each try of each command, if given.
    pub timeout: Option<Duration>,
    /// The number of retries, if given.
    pub retries: Option<u32>,
    /// The pause before a retry, if given.
    pub retry_delay: Option<Duration>,
}

/// A member of a parallel group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupMember {
    /// The name, formed as for an entry.
    pub name: String,
    /// The kind of the member.
    pub kind: EntryKind,
    /// The numbers of the commands that the member inserted.
    pub steps: Vec<usize>,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A task, by name.
    Task,
    /// A command.
    Inline,
    /// A parallel group.
    Parallel,
    /// Another lane.
    Lane,
}

/// A task without a command in an entry. Its dependencies run whenever the task is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskGroup {
    /// The number of the entry, from 0.
    pub entry: usize,
    /// The number of the member in a group, from 0.
    pub member: Option<usize>,
    /// The numbers of the steps that the task depends on.
    pub steps: Vec<usize>,
    /// The conditions, all of which must hold.
    pub when: Vec<Condition>,
    /// Globs: the task runs only if one of them matches a changed path. Empty: always.
    pub changed: Vec<String>,
    /// Variables for its conditions; they override those of the lane.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// Returns the name and the kind of an item.
pub(super) fn called(item: &StepItem) -> (String, EntryKind) {
    let (name, kind) = match &item.kind {
        StepKind::Run(run) => (run.clone(), EntryKind::Inline),
        StepKind::Task(named) => (named.name.clone(), EntryKind::Task),
        StepKind::Lane(named) => (named.name.clone(), EntryKind::Lane),
        StepKind::Group(items) => {
            let names: Vec<String> = items.iter().map(|item| called(item).0).collect();
            (format!("parallel({})", names.join(", ")), EntryKind::Parallel)
        }
    };
    (item.name.clone().unwrap_or(name), kind)
}
