//! Lanes and tasks as they are written, each thing with its place: what the readers of files make, and the compiler takes.

use super::Condition;
use crate::yaml::Place;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

/// A lane as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Draft {
    pub(super) description: String,
    pub(super) fail_fast: Option<bool>,
    pub(super) timeout: Option<Duration>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) jobs: Option<NonZeroUsize>,
    pub(super) items: Vec<Item>,
    /// The tasks that this file defines for itself.
    pub(super) tasks: BTreeMap<String, Task>,
}

/// One entry of `steps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) place: Place,
    pub(super) name: Option<String>,
    pub(super) kind: Kind,
    pub(super) needs: Option<Vec<Named>>,
    pub(super) options: Options,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A command.
    Run(String),
    /// A task, by name.
    Task(Named),
    /// Another lane, by name.
    Lane(Named),
    /// Entries that may run at the same time.
    Group(Vec<Item>),
}

/// A name, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) place: Place,
}

/// What can be said of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) shell: Option<Vec<String>>,
    pub(super) dir: Option<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) timeout: Option<Duration>,
    pub(super) retries: u32,
    pub(super) retry_delay: Duration,
    pub(super) when: Vec<Condition>,
    pub(super) changed: Vec<String>,
    pub(super) allow_failure: bool,
    pub(super) junit: Option<String>,
}

/// A task as it is written: a command that steps refer to, and what must run before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    /// `None` for one that only gathers others.
    pub(super) cmd: Option<String>,
    pub(super) deps: Vec<Named>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) dir: Option<String>,
}
