//! A lane: a named graph of commands, checked and complete. Pure: it defines the commands and their
//! order, and starts nothing.
//!
//! A [`LaneFiles`] collects the lanes and tasks of a project. [`LaneFiles::lane`] compiles them
//! into a [`Lane`], with tasks and included lanes inserted.

mod compile;
mod condition;
pub mod detect;
mod draft;
mod entry;
mod file;
mod inclusion;
mod lane_files;
mod lane_machine;
mod order;
mod outcome;
mod program;
mod reading;
#[cfg(feature = "cli")]
mod schema;
mod selection;
mod shell_programs;
mod terms;
mod texts;
mod toml;
pub(crate) mod verbs;

pub use condition::Condition;
pub use detect::{DetectedLane, detect};
pub use entry::{EntryKind, GroupMember, StepEntry, TaskGroup};
pub use file::parse;
pub use lane_files::{LaneError, LaneFiles, LaneRemark};
pub use lane_machine::{LaneMachine, LaneOrder, LaneRuling, RetryDecision};
pub use outcome::{JunitReport, LaneOutcome, ReportedState, ReportedTest, RunnerReport, StepSpan};
#[cfg(all(test, feature = "cli"))]
pub(crate) use schema::tasks_fault;
#[cfg(feature = "cli")]
pub(crate) use schema::{schema, tasks as tasks_schema};
pub use selection::{NOT_SELECTED, StartFacts, StepSelection};
pub use shell_programs::shell_programs;
pub use terms::{CanaryTerms, FlakyPolicy, RoomKind};
pub use toml::parse_toml;

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// A lane. Two lanes are the same gate if they serialize to the same text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// The name, which is the name of its file.
    pub name: String,
    /// The purpose; empty if not given.
    pub description: String,
    /// True if the first failure ends the lane.
    pub fail_fast: bool,
    /// The time limit of the whole lane.
    pub timeout: Duration,
    /// Variables for every step.
    pub env: BTreeMap<String, String>,
    /// The maximum number of parallel steps; `None` for the number of cores.
    pub jobs: Option<NonZeroUsize>,
    /// The steps, in the order of the file; never empty. The number of a step is its index, from 0.
    pub steps: Vec<Step>,
    /// Groups of steps that several steps wait for together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joints: Vec<Joint>,
    /// The items of `steps`, as written.
    pub entries: Vec<StepEntry>,
    /// The tasks among the entries that have no command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gathers: Vec<TaskGroup>,
    /// The room in which the lane runs as a gate.
    pub room: RoomKind,
    /// The steps that prepare the room, with network access. They run in order; each needs the
    /// success of the previous one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<Step>,
    /// Folders that are built on the base and copied for each gate run: plain paths below the root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cache: Vec<String>,
    /// Folders of build output that fledge keeps between rooms by default. Not a setting of the
    /// lane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub built: Vec<String>,
    /// True if the steps have network access in the room.
    pub network: bool,
    /// True if the steps may change the sources in the room.
    pub writes: bool,
    /// The planted failing tests that the lane must detect.
    #[serde(default, skip_serializing_if = "CanaryTerms::is_auto")]
    pub canary: CanaryTerms,
    /// The ruling for a pass that needed a retry.
    pub flaky: FlakyPolicy,
    /// Files and folders of the base that git ignores but the room needs: plain paths below the
    /// root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include_ignored: Vec<String>,
    /// Files of the base that the agent does not see and the gate uses, as
    /// [`crate::task::HiddenRule::parse`] reads them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// The source folder of a hold-out lane. Not a setting of the lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<PathBuf>,
}

/// A command of a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The name, unique in the lane.
    pub name: String,
    /// The command line, for the shell.
    pub run: String,
    /// The shell and its arguments before the command line.
    pub shell: Vec<String>,
    /// The working directory, relative to the root and inside it; `None` for the root.
    pub dir: Option<String>,
    /// Variables for this step; they override those of the lane.
    pub env: BTreeMap<String, String>,
    /// The time limit of each try, within that of the lane.
    pub timeout: Option<Duration>,
    /// The number of retries after a failure.
    pub retries: u32,
    /// The pause before a retry.
    pub retry_delay: Duration,
    /// The conditions, all of which must hold.
    pub when: Vec<Condition>,
    /// Globs: the step runs only if one of them matches a changed path. Empty: always.
    pub changed: Vec<String>,
    /// True if a failure is only reported.
    pub allow_failure: bool,
    /// The JUnit report that the step writes, relative to its directory.
    pub junit: Option<String>,
    /// The numbers of the steps that must end before this step starts, besides those of its joints.
    pub after: Vec<usize>,
    /// The numbers of the joints that must end before this step starts; see [`Lane::joints`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joints: Vec<usize>,
    /// The steps of `after` whose failure prevents this step, because the step names them, or
    /// because a task requires this order. A skipped step does not prevent it.
    pub needs: Vec<usize>,
    /// The steps of `after` that the task of this step depends on.
    pub deps: Vec<usize>,
    /// True if the step exists only because tasks depend on it. It runs when one of these tasks
    /// runs.
    pub on_demand: bool,
}

/// Several steps to wait for as one. A step after a group waits for one joint instead of each step
/// of the group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joint {
    /// The numbers of the steps in the joint.
    pub steps: Vec<usize>,
    /// The numbers of the joints in the joint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joints: Vec<usize>,
}

impl Lane {
    /// Returns the folders that the run on the base fills for later rooms.
    pub fn kept_folders(&self) -> impl Iterator<Item = &String> {
        self.cache.iter().chain(&self.built)
    }

    /// Returns the setup of the room as a separate lane; `None` if no setup exists.
    pub fn setup_lane(&self) -> Option<Self> {
        if self.setup.is_empty() {
            return None;
        }
        let entry = |(number, step): (usize, &Step)| StepEntry {
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
            canary: CanaryTerms::None,
            ..self.clone()
        })
    }

    /// Returns the numbers of all steps that must end before this step starts, in order.
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
