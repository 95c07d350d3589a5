//! Events of a run. They are plain data: the journal stores them, and the machine reads them.

use super::difference::TreeDifference;
use super::run_spec::{RunPlan, RunSpec};
use super::workplace::Workplace;
use crate::chat::{Delta, FileChange, ModelError, Reply, ToolOutcome, Usage};
use crate::id::{CallId, TreeId};
use crate::verdict::{OutsideTree, Reason, StepProgress, StopCause, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Something that happened in a run. `call` is the call of the action that the event answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum Event {
    /// A task was submitted.
    TaskSubmitted { spec: Box<RunSpec> },
    /// The gate is frozen and the first message is ready.
    PlanReady { call: CallId, plan: Box<RunPlan> },
    /// The run cannot be planned. `reason` is one of bad input, plan failed, gate errored, no
    /// sandbox.
    PlanFailed { call: CallId, reason: Reason, message: String },
    /// A piece of an answer arrived. Shown only: it decides nothing and is not journaled.
    ModelDelta { call: CallId, delta: Delta },
    /// The model completed its turn.
    ModelCompleted { call: CallId, reply: Box<Reply> },
    /// The model call failed.
    ModelFailed { call: CallId, error: ModelError },
    /// The process with this model call in flight died. The progress of the call is unknown.
    Interrupted { call: CallId },
    /// The time of [`super::Run::deadline`] was reached.
    DeadlinePassed,
    /// A person answered a question, or the time for an answer ran out.
    ConfirmationAnswered { call: CallId, approved: bool, note: String },
    /// A tool printed something. Shown only: it decides nothing and is not journaled.
    ToolProgress { call: CallId, text: String },
    /// A tool call ended.
    ToolFinished { call: CallId, outcome: ToolOutcome },
    /// A sub-agent ended, with its usage, its model turns, its usage by model, and its file
    /// changes.
    ChildFinished {
        call: CallId,
        outcome: ToolOutcome,
        usage: Usage,
        #[serde(default, skip_serializing_if = "is_zero")]
        turns: u64,
        /// Requests that it sent to models.
        #[serde(default, skip_serializing_if = "is_zero")]
        requests: u64,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        by_model: BTreeMap<String, Usage>,
        /// Files that its file tools changed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changes: Vec<FileChange>,
    },
    /// The hooks after a turn ended. The model receives each note.
    HooksFinished {
        call: CallId,
        notes: Vec<String>,
        /// Messages for people only.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reported: Vec<String>,
        /// The files after the turn, if they differ from the state before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkpoint: Option<TreeId>,
    },
    /// A question in prose was answered.
    QueryAnswered { call: CallId, answer: String },
    /// The conversation was summarised, or the summary failed.
    CompactionFinished {
        call: CallId,
        result: Result<String, String>,
        usage: Usage,
        /// The model that summarised, by its provider's name for it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        model: String,
        /// The error, if no answer came.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ModelError>,
    },
    /// A step of the gate began, printed or ended. Shown only: it decides nothing and is not
    /// journaled.
    GateProgress { call: CallId, progress: StepProgress },
    /// The gate returned a verdict.
    GateFinished { call: CallId, verdict: Box<Verdict> },
    /// The verified tree was delivered, or the delivery failed.
    Delivered {
        call: CallId,
        result: Result<Delivery, String>,
        /// The ways to proceed after a failed delivery, as a clause. `None`: the usual ones.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ways: Option<String>,
    },
    /// The report is written.
    ReportSaved {
        call: CallId,
        #[serde(flatten)]
        saved: Box<SavedReport>,
    },
    /// The report could not be written.
    ReportFailed { call: CallId, message: String },
    /// The gate judged the base in parallel with the agent's first turns. `result` is the failing
    /// steps and tests, or the reason why the checks cannot run.
    BaseJudged { result: Result<Vec<String>, String> },
    /// A component outside the run found that a limit was reached.
    LimitReached { reason: Reason },
    /// A stop of the run was requested. `partial_text` is the model's text in an unfinished answer.
    CancelRequested { cause: StopCause, partial_text: String },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A verified tree that became a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The id of the commit.
    pub commit: String,
    /// The full name of its branch (`refs/heads/main`); `None` for a detached head.
    pub branch: Option<String>,
    /// The tree of the workspace's folder in the commit, if it differs from the judged tree. It can
    /// differ for submodules, a sparse checkout, and files that a filter or a line-ending rule
    /// changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeId>,
    /// Remarks on the delivery, one sentence each.
    pub notes: Vec<String>,
}

/// Returns true if a reason may come from outside. Only the machine itself decides that the work is
/// verified, skipped, not delivered or cancelled.
pub(super) fn may_be_given(reason: Reason) -> bool {
    !matches!(reason, Reason::Verified | Reason::Skipped | Reason::NotDelivered | Reason::Cancelled)
}

/// Data known once the report is written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SavedReport {
    /// Notes from saving. The report contains them too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The worktree of the run, and its state at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Workplace>,
    /// Changes in the workspace that are in no tree.
    #[serde(default, skip_serializing_if = "OutsideTree::is_empty")]
    pub outside_tree: OutsideTree,
    /// The difference between the base and the work, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Box<TreeDifference>>,
}

impl Event {
    /// Returns the call that this event answers, if it answers one.
    pub fn call(&self) -> Option<CallId> {
        match self {
            Self::PlanReady { call, .. }
            | Self::PlanFailed { call, .. }
            | Self::ModelDelta { call, .. }
            | Self::ModelCompleted { call, .. }
            | Self::ModelFailed { call, .. }
            | Self::Interrupted { call }
            | Self::ConfirmationAnswered { call, .. }
            | Self::ToolProgress { call, .. }
            | Self::ToolFinished { call, .. }
            | Self::ChildFinished { call, .. }
            | Self::HooksFinished { call, .. }
            | Self::QueryAnswered { call, .. }
            | Self::CompactionFinished { call, .. }
            | Self::GateProgress { call, .. }
            | Self::GateFinished { call, .. }
            | Self::Delivered { call, .. }
            | Self::ReportSaved { call, .. }
            | Self::ReportFailed { call, .. } => Some(*call),
            Self::TaskSubmitted { .. }
            | Self::DeadlinePassed
            | Self::BaseJudged { .. }
            | Self::LimitReached { .. }
            | Self::CancelRequested { .. } => None,
        }
    }

    /// Returns true if the event is only shown to watchers. Transient events change no state and
    /// are not journaled.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::ModelDelta { .. } | Self::ToolProgress { .. } | Self::GateProgress { .. } => true,
            Self::TaskSubmitted { .. }
            | Self::PlanReady { .. }
            | Self::PlanFailed { .. }
            | Self::ModelCompleted { .. }
            | Self::ModelFailed { .. }
            | Self::Interrupted { .. }
            | Self::DeadlinePassed
            | Self::ConfirmationAnswered { .. }
            | Self::ToolFinished { .. }
            | Self::ChildFinished { .. }
            | Self::HooksFinished { .. }
            | Self::QueryAnswered { .. }
            | Self::CompactionFinished { .. }
            | Self::GateFinished { .. }
            | Self::Delivered { .. }
            | Self::ReportSaved { .. }
            | Self::ReportFailed { .. }
            | Self::BaseJudged { .. }
            | Self::LimitReached { .. }
            | Self::CancelRequested { .. } => false,
        }
    }

    /// Returns the name of the event, as the transition table prints it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::TaskSubmitted { .. } => "TaskSubmitted",
            Self::PlanReady { .. } => "PlanReady",
            Self::PlanFailed { .. } => "PlanFailed",
            Self::ModelDelta { .. } => "ModelDelta",
            Self::ModelCompleted { .. } => "ModelCompleted",
            Self::ModelFailed { .. } => "ModelFailed",
            Self::Interrupted { .. } => "Interrupted",
            Self::DeadlinePassed => "DeadlinePassed",
            Self::ConfirmationAnswered { .. } => "ConfirmationAnswered",
            Self::ToolProgress { .. } => "ToolProgress",
            Self::ToolFinished { .. } => "ToolFinished",
            Self::ChildFinished { .. } => "ChildFinished",
            Self::HooksFinished { .. } => "HooksFinished",
            Self::QueryAnswered { .. } => "QueryAnswered",
            Self::CompactionFinished { .. } => "CompactionFinished",
            Self::GateProgress { .. } => "GateProgress",
            Self::GateFinished { .. } => "GateFinished",
            Self::Delivered { .. } => "Delivered",
            Self::ReportSaved { .. } => "ReportSaved",
            Self::ReportFailed { .. } => "ReportFailed",
            Self::BaseJudged { .. } => "BaseJudged",
            Self::LimitReached { .. } => "LimitReached",
            Self::CancelRequested { .. } => "CancelRequested",
        }
    }
}

/// A tool call that ran to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoneTool {
    /// The tool's name.
    pub name: String,
    /// True if the tool did what the model asked for.
    pub success: bool,
    /// The paths that the tool changed: those of a file tool, or of the file tools of a sub-agent.
    /// Commands report none.
    pub changed: Vec<String>,
}
