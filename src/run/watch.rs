//! What a watcher of a run is told. The shapes of `StateChanged`, `Text`, `ToolCall`, `ToolResult`, `VerifyResult` and
//! `Usage` are a contract with programs that match on them; everything else lives in further variants or in the envelope.

use crate::chat::{Detail, FileChange, Usage};
use crate::id::TreeId;
use crate::limits::Limits;
use crate::verdict::{Finding, Proof, Reason, StepProgress};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing to show. In JSON: `{"type": …, "data": …}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum AgentEvent {
    /// The run began.
    Started {
        title: String,
        models: Vec<String>,
        max_retries: u32,
        verify: bool,
        #[serde(default)]
        limits: Limits,
    },
    /// Another process has taken the run up in this state, attempt and turn of the model, each from 1. The machine itself never says so.
    Resumed { state: StateName, attempt: u32, turn: u64 },
    /// Memories of earlier runs went into the first message.
    Recalled { ids: Vec<String> },
    /// One of the five states was entered; Executing also after a failed gate.
    StateChanged(StateName),
    /// A part of Executing was entered.
    PhaseChanged(Phase),
    /// A piece of the model's text.
    Text(String),
    /// A piece of the model's reasoning.
    Thinking(String),
    /// The arguments of a tool call are complete. Nothing runs before the turn has ended.
    ToolCall { name: String, args: Value },
    /// A tool call ended.
    ToolResult { name: String, success: bool },
    /// More about the tool call that just ended.
    ToolDetail {
        id: String,
        name: String,
        args: Value,
        denied: bool,
        duration_ms: u64,
        output: String,
        change: Option<FileChange>,
        detail: Detail,
    },
    /// Something that a running tool printed.
    ToolOutput { text: String },
    /// The gate spoke.
    VerifyResult { success: bool, attempt: u32, duration_ms: u64, failed_steps: Vec<String>, feedback: String },
    /// A step of the gate began, printed or ended.
    LaneStep(StepProgress),
    /// What the run has used so far.
    Usage(Usage),
    /// A model call or a read-only tool is tried again after a pause.
    Retry { what: String, tries: u32, wait_ms: u64, error: String },
    /// The answer shown so far does not count: its turn did not end properly.
    TurnDiscarded { error: String },
    /// The conversation was shortened, or could not be.
    Compaction { success: bool, note: String },
    /// A person is asked, or answered.
    Confirmation { name: String, args: Value, approved: Option<bool> },
    /// A sub-agent began or ended.
    Subagent { finished: bool, note: String },
    /// A limit ended the run.
    Limit { reason: Reason },
    /// Protected paths had been changed.
    Tamper { findings: Vec<Finding> },
    /// What a turn has left of the files is kept, under its number.
    Checkpoint { turn: u64, tree: TreeId },
    /// The gate passed, and this is what that rests on.
    Proved { proof: Box<Proof> },
    /// The verified tree became a commit, on this branch unless the head is detached.
    Committed { commit: String, branch: Option<String> },
    /// Something is not as it should be.
    Warning(String),
    /// The run is over.
    Finished { reason: Reason, verified: bool, cancelled: bool, exit_code: u8, message: String, usage: Usage },
}

/// The five states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    /// First and last of every run.
    Idle,
    /// The gate is frozen, the first message is made.
    Planning,
    /// Model calls and tools.
    Executing,
    /// The gate runs.
    Verifying,
    /// The report is written.
    Reporting,
}

/// The parts of Executing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A model call is in flight.
    CallingModel,
    /// Waiting before another try.
    BackingOff,
    /// Waiting for a person.
    Confirming,
    /// Tools are running.
    RunningTools,
    /// Sub-agents are running.
    Dispatching,
    /// Hooks are running.
    RunningHooks,
    /// A question asked in prose is looked up.
    AnsweringQuery,
    /// The conversation is being summarised.
    Compacting,
}
