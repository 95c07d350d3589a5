//! Errors of judging a base.

use crate::gate::clean::RoomError;
use crate::gate::planted::CanaryError;
use crate::store::StoreError;
use std::io;
use std::path::PathBuf;

/// An error of judging the base. Failing checks of the base are not an error.
#[derive(Debug, thiserror::Error)]
pub enum BaseError {
    /// No room can be made.
    #[error("cannot judge the base before any change")]
    Room(#[from] RoomError),
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
    /// A step fails because of something missing around it, so no work could pass.
    #[error("the checks cannot pass here, regardless of the work: {0}")]
    Unable(String),
    /// A step fails without files that git ignores, and passes with them. Work may pass without
    /// them.
    #[error(
        "step `{step}` of lane `{lane}` fails before any change because its room lacks files that git ignores ({files}), and passes with them: add `include_ignored: [{files}]` to the lane, or `expect: failing` to the task if the step must pass without them"
    )]
    Lacked {
        /// The lane.
        lane: String,
        /// The step.
        step: String,
        /// The paths of the files.
        files: String,
    },
    /// A lane that runs in the workspace would judge the agent's work instead of the base.
    #[error("cannot judge the base: a lane runs in the workspace itself, which the agent has changed")]
    TooLate,
    /// A step could not run, so the gate never can.
    #[error("the gate cannot run on the base: {0}")]
    CannotRun(String),
    /// No step of a lane ran. Where steps have conditions, one may run for the work.
    #[error("the gate cannot judge the base: {0}")]
    NothingRan(String),
    /// The result cannot be stored.
    #[error("cannot store the gate's result for the base")]
    Keep(#[from] StoreError),
    /// A cache cannot be stored.
    #[error("cannot store the cache `{}`", path.display())]
    Cache {
        /// The folder of the cache.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The search for a planted failure failed.
    #[error(transparent)]
    Canary(#[from] CanaryError),
    /// A lane does not see a planted failure on the base, so it never would.
    #[error(
        "lane `{0}` does not report a failing test that fledge planted on the base: its `canary` plants a kind of test that the lane does not run; plant your own test where the lane looks, `canary: {{ file: …, text: … }}`, or add a step that runs such tests"
    )]
    Unseen(String),
    /// A lane writes a path that no step may write, so it would never pass.
    #[error(
        "lane `{lane}` writes the protected path `{path}` on the base ({rule}): let git ignore the path, name its folder in `cache`, or open it with `allow_edit`"
    )]
    Writes {
        /// The lane.
        lane: String,
        /// The first of these paths.
        path: String,
        /// The rule that protects the path, and the step after which the change was seen.
        rule: String,
    },
    /// The run was stopped.
    #[error("stopped before the gate was done")]
    Stopped,
}

impl BaseError {
    /// Returns whether this error ends the run, because no work, or no wanted work, could pass the
    /// checks.
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
