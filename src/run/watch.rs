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
pub enum AgentEvent {
    /// The run began.
    Started {
        /// The task's title.
        title: String,
        /// Its models, in order of preference.
        models: Vec<String>,
        /// Further attempts after the first one when the gate says no.
        max_retries: u32,
        /// Whether there is a gate.
        verify: bool,
        /// What it may spend.
        #[serde(default)]
        limits: Limits,
    },
    /// Another process has taken the run up. The machine itself never says so.
    Resumed {
        /// The state it is in.
        state: StateName,
        /// The attempt, from 1.
        attempt: u32,
        /// The turn of the model, from 1.
        turn: u64,
    },
    /// Memories of earlier runs went into the first message.
    Recalled {
        /// Their ids.
        ids: Vec<String>,
    },
    /// One of the five states was entered; Executing also after a failed gate.
    StateChanged(StateName),
    /// A part of Executing was entered.
    PhaseChanged(Phase),
    /// A piece of the model's text.
    Text(String),
    /// A piece of the model's reasoning.
    Thinking(String),
    /// The arguments of a tool call are complete. Nothing runs before the turn has ended.
    ToolCall {
        /// The tool.
        name: String,
        /// Its arguments.
        args: Value,
    },
    /// A tool call ended.
    ToolResult {
        /// The tool.
        name: String,
        /// Whether it did what it was asked for.
        success: bool,
    },
    /// More about the tool call that just ended.
    ToolDetail {
        /// The call, as the model named it.
        id: String,
        /// The tool.
        name: String,
        /// Its arguments.
        args: Value,
        /// Whether it was not run: unknown, not allowed, not understood, or denied by a person.
        denied: bool,
        /// How long it took, in milliseconds.
        duration_ms: u64,
        /// What the model is told.
        output: String,
        /// What a file tool changed.
        change: Option<FileChange>,
        /// What people may want to see beside the text.
        detail: Detail,
    },
    /// Something that a running tool printed.
    ToolOutput {
        /// What it printed.
        text: String,
    },
    /// The gate spoke.
    VerifyResult {
        /// Whether it passed.
        success: bool,
        /// The attempt, from 1.
        attempt: u32,
        /// How long it took, in milliseconds.
        duration_ms: u64,
        /// The steps that failed, as `lane/step`.
        failed_steps: Vec<String>,
        /// What the model is told of it.
        feedback: String,
        /// The attempt whose verdict this one repeats, because all files are as they were then. 0: the base.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unchanged_since: Option<u32>,
    },
    /// A step of the gate began, printed or ended.
    LaneStep(StepProgress),
    /// What the run has used so far.
    Usage(Usage),
    /// A model call or a read-only tool is tried again after a pause.
    Retry {
        /// What is tried again: `model`, `summary` (of the conversation), or a tool by name.
        what: String,
        /// How often it was tried.
        tries: u32,
        /// The pause, in milliseconds.
        wait_ms: u64,
        /// What went wrong.
        error: String,
    },
    /// The answer shown so far does not count: its turn did not end properly.
    TurnDiscarded {
        /// What went wrong.
        error: String,
    },
    /// The conversation was shortened, or could not be.
    Compaction {
        /// Whether it was.
        success: bool,
        /// By how much, or why not.
        note: String,
    },
    /// A person is asked, or answered.
    Confirmation {
        /// The tool.
        name: String,
        /// Its arguments.
        args: Value,
        /// The answer; nothing where it is asked for.
        approved: Option<bool>,
    },
    /// A sub-agent began or ended.
    Subagent {
        /// Whether it ended.
        finished: bool,
        /// Its title, or its task where it has none; at the end what it came to.
        note: String,
    },
    /// A limit ended the run.
    Limit {
        /// Which one.
        reason: Reason,
    },
    /// Protected paths had been changed.
    Tamper {
        /// Which ones.
        findings: Vec<Finding>,
    },
    /// What a turn has left of the files is kept.
    Checkpoint {
        /// The number of the turn.
        turn: u64,
        /// The files, as a tree of git.
        tree: TreeId,
    },
    /// The gate passed, and this is what that rests on.
    Proved {
        /// What it rests on.
        proof: Box<Proof>,
    },
    /// The verified tree became a commit.
    Committed {
        /// Its id.
        commit: String,
        /// The full name of the branch; nothing for a detached head.
        branch: Option<String>,
    },
    /// A hook told the model something.
    Hook {
        /// What it was told: a line on what happened, and behind it what the hook printed.
        note: String,
    },
    /// Something is not as it should be.
    Warning(String),
    /// The run is over.
    Finished {
        /// Why.
        reason: Reason,
        /// Whether its work counts: the gate passed, or was skipped on purpose. Null for a sub-agent, whose work the gate of the run judges.
        verified: Option<bool>,
        /// Whether somebody asked for it to stop.
        cancelled: bool,
        /// The exit code.
        exit_code: u8,
        /// One line on why it ended.
        message: String,
        /// What it has used.
        usage: Usage,
    },
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
    /// The gate waits until the base is judged. The one part of Verifying.
    JudgingBase,
}
