//! Why a base cannot be judged.

use crate::gate::clean::RoomFault;
use crate::gate::planted::CanaryFault;
use crate::store::StoreError;
use std::io;
use std::path::PathBuf;

/// The base cannot be judged. A base whose checks fail is no fault.
#[derive(Debug, thiserror::Error)]
pub enum BaseFault {
    /// There is no room for it.
    #[error("on the base, before any change")]
    Room(#[from] RoomFault),
    /// A setup failed.
    #[error("the setup of lane `{lane}` failed: step `{step}`: {why}")]
    Setup {
        /// The lane.
        lane: String,
        /// The first step that did not pass.
        step: String,
        /// The end of its output.
        why: String,
    },
    /// A command that installs dependencies of the work failed.
    #[error("`{command}` failed: {why}")]
    Install {
        /// The command.
        command: String,
        /// The end of its output.
        why: String,
        /// Its program does not exist or cannot be started.
        is_missing: bool,
    },
    /// A step fails for what is missing around it, so no work could ever pass.
    #[error("the checks cannot pass here, whatever the work is: {0}")]
    Unable(String),
    /// A step fails without files that git ignores, and passes with them. Work may pass without.
    #[error(
        "step `{step}` of lane `{lane}` fails before any change, because its room lacks what git ignores ({files}), and passes with that: write `include_ignored: [{files}]` into the lane, or `expect: failing` into the task, if the step is to pass without"
    )]
    Lacked {
        /// The lane.
        lane: String,
        /// The step.
        step: String,
        /// The paths of the files.
        files: String,
    },
    /// A lane that runs in the workspace would judge the agent's work in place of the base.
    #[error("cannot judge the base: a lane runs in the workspace itself, and the agent has changed that")]
    TooLate,
    /// A step could not run, so the gate never could.
    #[error("the gate cannot run on the base: {0}")]
    CannotRun(String),
    /// No step of a lane ran. One may for the work, where steps have conditions.
    #[error("the gate cannot judge the base: {0}")]
    NothingRan(String),
    /// The result cannot be stored.
    #[error("cannot keep what the gate said of the base")]
    Keep(#[from] StoreError),
    /// A cache cannot be stored.
    #[error("cannot keep the cache `{}`", path.display())]
    Cache {
        /// The folder of the cache.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A planted failure cannot be looked for.
    #[error(transparent)]
    Canary(#[from] CanaryFault),
    /// A planted failure is not seen on the base, so it would never be.
    #[error(
        "lane `{0}` does not see a failing test that is planted on the base: its `canary` plants a test of a kind that the lane does not run; plant one of your own where it looks, `canary: {{ file: …, text: … }}`, or give it a step that runs them"
    )]
    Unseen(String),
    /// It writes what no step may write, so it never would pass.
    #[error(
        "lane `{lane}` writes `{path}` on the base, which is protected ({rule}): let git ignore it, name its folder in `cache`, or open it with `allow_edit`"
    )]
    Writes {
        /// The lane.
        lane: String,
        /// The first such path.
        path: String,
        /// The rule that protects it, and when the change was seen.
        rule: String,
    },
    /// Somebody asked for a stop.
    #[error("stopped before the gate was done")]
    Stopped,
}

impl BaseFault {
    /// Returns whether no work could pass the checks, or none that is wanted.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Setup { .. }
            | Self::Install { .. }
            | Self::Unable(_)
            | Self::Lacked { .. }
            | Self::CannotRun(_)
            | Self::Unseen(_)
            | Self::Writes { .. } => true,
            Self::Room(_) | Self::TooLate | Self::NothingRan(_) | Self::Keep(_) => false,
            Self::Cache { .. } | Self::Canary(_) | Self::Stopped => false,
        }
    }
}
