//! Lanes and tasks as written, with their places. The readers of files produce them, and the
//! compiler takes them.

use super::Condition;
use super::terms::LaneTerms;
use crate::yaml::FilePlace;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

/// A lane as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LaneDraft {
    pub(super) form: LaneForm,
    pub(super) description: String,
    pub(super) fail_fast: Option<bool>,
    pub(super) timeout: Option<Duration>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) jobs: Option<NonZeroUsize>,
    pub(super) items: Vec<StepItem>,
    /// The settings of the lane as a gate.
    pub(super) terms: LaneTerms,
    /// The tasks that the file defines for itself.
    pub(super) tasks: BTreeMap<String, LaneTask>,
}

/// The form of a lane file. Omitted settings have different defaults in each form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum LaneForm {
    /// `lanes/*.yaml`.
    #[default]
    Yaml,
    /// `fledge.toml`. Settings of a step apply to each of its commands, and a task may occur twice
    /// in a lane.
    Toml,
}

impl LaneForm {
    /// Returns the pause between tries, if only the number of tries is given.
    pub(super) fn retry_delay(self) -> Duration {
        match self {
            Self::Yaml => Duration::ZERO,
            Self::Toml => Duration::from_secs(1),
        }
    }
}

/// An entry of `steps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StepItem {
    pub(super) place: FilePlace,
    pub(super) name: Option<String>,
    pub(super) kind: StepKind,
    pub(super) needs: Option<Vec<NamedSpan>>,
    pub(super) options: CommandOptions,
}

/// The kind of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StepKind {
    /// A command.
    Run(String),
    /// A task, by name.
    Task(NamedSpan),
    /// Another lane, by name.
    Lane(NamedSpan),
    /// Entries that may run at the same time.
    Group(Vec<StepItem>),
}

impl StepKind {
    /// Returns a placeholder for an entry without a valid command. Other steps can refer to its
    /// name.
    pub(super) fn unknown() -> Self {
        Self::Group(Vec::new())
    }
}

/// A name with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedSpan {
    pub(super) name: String,
    pub(super) place: FilePlace,
}

/// The given settings of a command. For a group, they apply to each of its members.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CommandOptions {
    pub(super) shell: Option<Vec<String>>,
    pub(super) dir: Option<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) timeout: Option<Duration>,
    pub(super) retries: Option<u32>,
    pub(super) retry_delay: Option<Duration>,
    pub(super) when: Option<StepConditions>,
    pub(super) changed: Vec<String>,
    pub(super) allow_failure: bool,
    pub(super) junit: Option<String>,
}

impl CommandOptions {
    /// Returns the settings that can apply to several commands.
    pub(super) fn of_each_command(&self) -> Self {
        let Self { timeout, retries, retry_delay, .. } = *self;
        Self { timeout, retries, retry_delay, ..Self::default() }
    }

    /// Returns the key of the first setting that can only apply to a single command.
    pub(super) fn of_one_command(&self) -> Option<&'static str> {
        let message = [
            ("shell", self.shell.is_some()),
            ("dir", self.dir.is_some()),
            ("env", !self.env.is_empty()),
            ("allow_failure", self.allow_failure),
            ("junit", self.junit.is_some()),
        ];
        message.iter().find(|(_, is_said)| *is_said).map(|(key, _)| *key)
    }
}

/// Conditions, with their text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StepConditions {
    pub(super) text: String,
    pub(super) all: Vec<Condition>,
}

/// A task as written: a command that steps refer to, and the tasks that must run before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LaneTask {
    /// `None` for a task that only runs its dependencies.
    pub(super) cmd: Option<String>,
    pub(super) deps: Vec<NamedSpan>,
    /// True if the dependencies run one after the other, until one fails.
    pub(super) in_order: bool,
    pub(super) env: BTreeMap<String, String>,
    pub(super) dir: Option<String>,
}
