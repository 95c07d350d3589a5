//! Events for watchers of a run. The shapes of `StateChanged`, `Text`, `ToolCall`, `ToolResult`,
//! `VerifyResult` and `Usage` are a contract with programs that match on them. New data goes into
//! further variants or into the envelope.

use crate::chat::{FileChange, OutcomeDetail, Usage};
use crate::id::TreeId;
use crate::limits::Limits;
use crate::verdict::{Proof, Reason, StepProgress, TamperFinding};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An event to show. In JSON: `{"type": …, "data": …}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEvent {
    /// The run began.
    Started {
        /// The task's title.
        title: String,
        /// The models, in order of preference.
        models: Vec<String>,
        /// Further attempts after the first one when the gate fails.
        max_retries: u32,
        /// True if the run has a gate.
        verify: bool,
        /// The limits of the run.
        limits: Limits,
    },
    /// Another process resumed the run. The machine itself never sends this event.
    Resumed {
        /// The current state.
        state: StateName,
        /// The current attempt, from 1.
        attempt: u32,
        /// The current model turn, from 1.
        turn: u64,
    },
    /// The first message contains memories of earlier runs.
    Recalled {
        /// The ids of the memories.
        ids: Vec<String>,
    },
    /// The run entered one of the five states. It enters Executing again after a failed gate.
    StateChanged(StateName),
    /// The run entered a part of Executing, or waits in Verifying for the verdict on the base.
    PhaseChanged(Phase),
    /// A piece of the model's text.
    Text(String),
    /// A piece of the model's reasoning.
    Thinking(String),
    /// The arguments of a tool call are complete. No call runs before the turn has ended.
    ToolCall {
        /// The name of the tool.
        name: String,
        /// The arguments.
        args: Value,
    },
    /// A tool call ended.
    ToolResult {
        /// The name of the tool.
        name: String,
        /// True if the call succeeded.
        success: bool,
    },
    /// Details of the tool call that just ended.
    ToolDetail {
        /// The id of the call in the conversation.
        id: String,
        /// The name of the tool.
        name: String,
        /// The arguments.
        args: Value,
        /// True if the call did not run: unknown, not allowed, malformed, or denied by a person.
        denied: bool,
        /// The duration, in milliseconds.
        duration_ms: u64,
        /// The result that the model receives.
        output: String,
        /// The change that a file tool made.
        change: Option<FileChange>,
        /// Details for people, beyond the text.
        detail: OutcomeDetail,
    },
    /// A running tool printed something.
    ToolOutput {
        /// The text that it printed.
        text: String,
    },
    /// The gate returned a verdict.
    VerifyResult {
        /// True if the gate passed.
        success: bool,
        /// The attempt, from 1.
        attempt: u32,
        /// The duration, in milliseconds.
        duration_ms: u64,
        /// The steps that failed, as `lane/step`.
        failed_steps: Vec<String>,
        /// The feedback that the model receives.
        feedback: String,
        /// The attempt whose verdict is repeated, because all files are unchanged since then. 0:
        /// the base.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unchanged_since: Option<u32>,
    },
    /// A step of the gate began, printed or ended.
    LaneStep(StepProgress),
    /// The usage of the run so far.
    Usage(Usage),
    /// A model call, a summary or a read-only tool is tried again after a pause.
    Retry {
        /// The effect that is tried again: `model`, `summary` (of the conversation), or the name of
        /// a tool.
        what: String,
        /// The number of tries so far.
        tries: u32,
        /// The pause, in milliseconds.
        wait_ms: u64,
        /// The error of the last try.
        error: String,
    },
    /// The answer shown so far is discarded, because its turn failed.
    TurnDiscarded {
        /// The error.
        error: String,
    },
    /// The conversation was shortened, or that failed.
    Compaction {
        /// True if it was shortened.
        success: bool,
        /// The amount, or the reason of the failure.
        note: String,
    },
    /// A question to a person was asked or answered.
    Confirmation {
        /// The name of the tool.
        name: String,
        /// The arguments.
        args: Value,
        /// The answer; `None` when the question is asked.
        approved: Option<bool>,
    },
    /// A sub-agent began or ended.
    Subagent {
        /// True if it ended.
        finished: bool,
        /// At the start its title, or its task if it has no title. At the end its result.
        note: String,
    },
    /// A limit ended the run.
    Limit {
        /// The limit.
        reason: Reason,
    },
    /// Protected paths were changed.
    Tamper {
        /// The changes.
        findings: Vec<TamperFinding>,
    },
    /// The state of the files after a turn was saved.
    Checkpoint {
        /// The number of the turn.
        turn: u64,
        /// The files, as a git tree.
        tree: TreeId,
    },
    /// The gate passed with this proof.
    Proved {
        /// The evidence for the pass.
        proof: Box<Proof>,
    },
    /// The verified tree became a commit.
    Committed {
        /// The id of the commit.
        commit: String,
        /// The full name of the branch; `None` for a detached head.
        branch: Option<String>,
    },
    /// A hook sent a note to the model.
    Hook {
        /// The note: a line on what happened, followed by the hook's output.
        note: String,
    },
    /// A warning.
    Warning(String),
    /// The run ended.
    Finished {
        /// The reason.
        reason: Reason,
        /// True if the gate passed, or was skipped on purpose. Null for a sub-agent, since the gate
        /// of the parent run judges its work.
        verified: Option<bool>,
        /// True if the run ended because of a stop request.
        cancelled: bool,
        /// The exit code.
        exit_code: u8,
        /// One line on why the run ended.
        message: String,
        /// The usage of the run.
        usage: Usage,
    },
}

/// The five states of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    /// The first and the last state of every run.
    Idle,
    /// The gate is being frozen, and the first message built.
    Planning,
    /// Model calls and tools are in progress.
    Executing,
    /// The gate is running.
    Verifying,
    /// The work is being delivered and the report written.
    Reporting,
}

/// The parts of Executing, and one of Verifying.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A model call is in flight.
    CallingModel,
    /// Waiting before the next try.
    BackingOff,
    /// Waiting for a person's answer.
    Confirming,
    /// Tools are running.
    RunningTools,
    /// Sub-agents are running.
    Dispatching,
    /// Hooks are running.
    RunningHooks,
    /// A question asked in prose is being answered.
    AnsweringQuery,
    /// The conversation is being summarised.
    Compacting,
    /// Part of Verifying: the gate waits until the base is judged.
    JudgingBase,
}
