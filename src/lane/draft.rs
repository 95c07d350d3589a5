//! Lanes and tasks as they are written, each thing with its place: what the readers of files make, and the compiler takes.

use super::Condition;
use super::terms::Terms;
use crate::yaml::Place;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

/// A lane as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Draft {
    pub(super) form: Form,
    pub(super) description: String,
    pub(super) fail_fast: Option<bool>,
    pub(super) timeout: Option<Duration>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) jobs: Option<NonZeroUsize>,
    pub(super) items: Vec<Item>,
    /// On what terms it is a gate.
    pub(super) terms: Terms,
    /// The tasks that this file defines for itself.
    pub(super) tasks: BTreeMap<String, Task>,
}

/// The form that a lane is written in: what is not said means different things.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Form {
    /// `lanes/*.yaml`.
    #[default]
    Yaml,
    /// `fledge.toml`: what is said of a step holds for each command of it, and a task may stand in a lane twice.
    Toml,
}

impl Form {
    /// The pause before another try when only the number of tries is written.
    pub(super) fn retry_delay(self) -> Duration {
        match self {
            Self::Yaml => Duration::ZERO,
            Self::Toml => Duration::from_secs(1),
        }
    }
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

impl Kind {
    /// What stands where nothing that can be run is written, so that what is named after it is there for others to name.
    pub(super) fn unknown() -> Self {
        Self::Group(Vec::new())
    }
}

/// A name, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) place: Place,
}

/// What can be said of a command, as far as it is said. For a group, what is said of each of its members.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) shell: Option<Vec<String>>,
    pub(super) dir: Option<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) timeout: Option<Duration>,
    pub(super) retries: Option<u32>,
    pub(super) retry_delay: Option<Duration>,
    pub(super) when: Option<When>,
    pub(super) changed: Vec<String>,
    pub(super) allow_failure: bool,
    pub(super) junit: Option<String>,
}

impl Options {
    /// Those that can hold for several commands alike.
    pub(super) fn of_each_command(&self) -> Self {
        let Self { timeout, retries, retry_delay, .. } = *self;
        Self { timeout, retries, retry_delay, ..Self::default() }
    }

    /// The first that is about a single command, if one is said.
    pub(super) fn of_one_command(&self) -> Option<&'static str> {
        let said = [
            ("shell", self.shell.is_some()),
            ("dir", self.dir.is_some()),
            ("env", !self.env.is_empty()),
            ("allow_failure", self.allow_failure),
            ("junit", self.junit.is_some()),
        ];
        said.iter().find(|(_, is_said)| *is_said).map(|(key, _)| *key)
    }
}

/// Conditions, and how they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct When {
    pub(super) text: String,
    pub(super) all: Vec<Condition>,
}

/// A task as it is written: a command that steps refer to, and what must run before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Task {
    /// `None` for one that only gathers others.
    pub(super) cmd: Option<String>,
    pub(super) deps: Vec<Named>,
    /// Whether these run one after the other, as long as none fails.
    pub(super) in_order: bool,
    pub(super) env: BTreeMap<String, String>,
    pub(super) dir: Option<String>,
}
