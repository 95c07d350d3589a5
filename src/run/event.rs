//! Everything that can happen to a run, in the past tense. Plain data: what is in the journal, and what the machine is fed.

use super::charter::{Charter, Plan};
use super::difference::Difference;
use super::workplace::Workplace;
use crate::chat::{Delta, FileChange, ModelError, Reply, ToolOutcome, Usage};
use crate::id::{CallId, TreeId};
use crate::verdict::{OutsideTree, Reason, StepProgress, StopCause, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Something that happened. `call` names the action that it answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum Event {
    /// A task was handed over.
    TaskSubmitted { charter: Box<Charter> },
    /// The gate is frozen and the first message is made.
    PlanReady { call: CallId, plan: Box<Plan> },
    /// The run cannot be planned: `reason` is one of bad input, plan failed, gate errored, no sandbox.
    PlanFailed { call: CallId, reason: Reason, message: String },
    /// A piece of an answer came in. Shown, never decided on, not journaled.
    ModelDelta { call: CallId, delta: Delta },
    /// The model's turn ended properly.
    ModelCompleted { call: CallId, reply: Box<Reply> },
    /// The model's turn ended in any other way.
    ModelFailed { call: CallId, error: ModelError },
    /// The process that had this call of a model under way is gone, and nobody knows how far it came.
    Interrupted { call: CallId },
    /// The moment of [`super::Run::deadline`] has come.
    DeadlinePassed,
    /// A person, or nobody in time, answered.
    ConfirmationAnswered { call: CallId, approved: bool, note: String },
    /// A tool printed something. Shown, never decided on, not journaled.
    ToolProgress { call: CallId, text: String },
    /// A tool call ended.
    ToolFinished { call: CallId, outcome: ToolOutcome },
    /// A sub-agent ended. What it used, how many turns it took of its models, what of the use was whose, and which files it changed.
    ChildFinished {
        call: CallId,
        outcome: ToolOutcome,
        usage: Usage,
        #[serde(default, skip_serializing_if = "is_zero")]
        turns: u64,
        /// All that it asked of models; 0 in journals of older programs.
        #[serde(default, skip_serializing_if = "is_zero")]
        requests: u64,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        by_model: BTreeMap<String, Usage>,
        /// What its file tools changed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changes: Vec<FileChange>,
    },
    /// The hooks after a turn ended; each note is told to the model.
    HooksFinished {
        call: CallId,
        notes: Vec<String>,
        /// What only people are told.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reported: Vec<String>,
        /// The files as the turn has left them, where that is another state than the one before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkpoint: Option<TreeId>,
    },
    /// What the model asked for in prose was looked up.
    QueryAnswered { call: CallId, answer: String },
    /// The conversation was summarised, or could not be.
    CompactionFinished {
        call: CallId,
        result: Result<String, String>,
        usage: Usage,
        /// Who summarised, as its provider names it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        model: String,
        /// Why no answer came, where none did; `None` in journals of older programs, which said it in `result` alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ModelError>,
    },
    /// A step of the gate began, printed or ended. Shown, never decided on, not journaled.
    GateProgress { call: CallId, progress: StepProgress },
    /// The gate spoke.
    GateFinished { call: CallId, verdict: Box<Verdict> },
    /// The verified tree was brought to where it belongs, or could not be.
    Delivered {
        call: CallId,
        result: Result<Delivery, String>,
        /// What leads on where it could not be, a clause; `None`: as ever.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ways: Option<String>,
    },
    /// The report is written.
    ReportSaved {
        call: CallId,
        #[serde(flatten)]
        saved: Box<Saved>,
    },
    /// The report could not be written.
    ReportFailed { call: CallId, message: String },
    /// The gate judged the base beside the agent's first turns: the steps and tests that fail there, or why the checks cannot run.
    BaseJudged { result: Result<Vec<String>, String> },
    /// Somebody outside the run found a limit reached.
    LimitReached { reason: Reason },
    /// Somebody wants the run to stop. `said` is what the model had said of an unfinished answer.
    CancelRequested { cause: StopCause, said: String },
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
    /// The full name of the branch that it is on (`refs/heads/main`); `None` for a detached head.
    pub branch: Option<String>,
    /// The tree of the workspace's folder in that commit, where git stores another one than was judged: of submodules, a sparse checkout,
    /// and files that a filter or a rule on line ends changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeId>,
    /// What should be known of it, a sentence each.
    pub notes: Vec<String>,
}

/// Whether a reason may come from outside. That the work counts, or that somebody wants a stop, only the machine itself says.
pub(super) fn may_be_given(reason: Reason) -> bool {
    !matches!(reason, Reason::Verified | Reason::Skipped | Reason::NotDelivered | Reason::Cancelled)
}

/// What is known once the report is written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    /// Notes on the way, which are in the report, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Where the run has worked, and what is left of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Workplace>,
    /// What changed in the workspace and is in no tree.
    #[serde(default, skip_serializing_if = "OutsideTree::is_empty")]
    pub outside_tree: OutsideTree,
    /// What differs between the base and the work, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Box<Difference>>,
}

impl Event {
    /// The call that this event answers, if it answers one.
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

    /// Whether it only passes through to whoever watches: such events change no state and are not journaled.
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

    /// The event's name, as the transition table prints it.
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
