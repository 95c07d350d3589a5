//! What the machine must know before it starts (the charter) and before the first model call (the plan).

use super::workplace::Workplace;
use crate::chat::{Message, Price, ToolCall, ToolInput, ToolSpec};
use crate::id::{RunId, TreeId};
use crate::limits::{Limits, MAX_RETRIES};
use crate::process::wall::WallKind;
use crate::task::OnTamper;
use crate::verdict::{StepLog, Verdict};
use crate::workspace::delivery::Head;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The newest edition of the machine's rules. A journal is folded by the rules that it was written under.
pub const EDITION: u32 = 3;

/// The terms of one run, fixed when the task is handed over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Charter {
    /// The run's name.
    pub run: RunId,
    /// The task's title.
    pub title: String,
    /// The task's text, for loop and query messages and compaction.
    pub prompt: String,
    /// Whether there is a gate.
    pub verify: bool,
    /// Whether a gate that passes on the base ends the run, verified.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_fix: bool,
    /// Whether a verified tree becomes a commit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub commits: bool,
    /// Further attempts after the first one.
    pub max_retries: u32,
    /// Attempts with the same failure that end the run early; `None`: only the retries bound it.
    pub stuck_after: Option<u32>,
    /// What happens when a protected path was changed.
    pub on_tamper: OnTamper,
    /// The models, in order of preference, as people name them; never empty.
    pub models: Vec<String>,
    /// What is known of each of them, in the same order; a model beyond its end has the default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terms: Vec<ModelTerms>,
    /// The model's context window in tokens, where it is known.
    pub context_window: Option<u64>,
    /// Whether neighbouring read-only calls may overlap in time.
    pub parallel_reads: bool,
    /// How long a person has to answer, in milliseconds; `None`: without end.
    pub confirm_within_ms: Option<u64>,
    /// What the run may spend.
    pub limits: Limits,
    /// Where the jitter of back-off pauses comes from.
    pub seed: u64,
    /// The edition of the machine's rules that it is decided by; 0 where an older program began the run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub edition: u32,
    /// How many runs stand above this one: 0 for a run of its own, 1 for its sub-agents.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Charter {
    /// A charter with every default, for a run of this name.
    pub fn new(run: RunId, title: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            run,
            title: title.into(),
            prompt: prompt.into(),
            verify: true,
            is_fix: false,
            commits: false,
            max_retries: MAX_RETRIES,
            stuck_after: None,
            on_tamper: OnTamper::Restore,
            models: vec!["model".into()],
            terms: Vec::new(),
            context_window: None,
            parallel_reads: false,
            confirm_within_ms: None,
            limits: Limits::default(),
            seed: 0,
            edition: EDITION,
            depth: 0,
        }
    }

    /// What is known of the model at a place of the list.
    pub(super) fn terms_of(&self, model: usize) -> ModelTerms {
        self.terms.get(model).copied().unwrap_or_default()
    }

    /// The first model of the list that has no price.
    pub(super) fn unpriced(&self) -> Option<&str> {
        let has_price = |place: usize| self.terms_of(place).price.is_some();
        self.models.iter().enumerate().find(|(place, _)| !has_price(*place)).map(|(_, name)| name.as_str())
    }
}

/// What is known of a model beside its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelTerms {
    /// What its tokens cost, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The most tokens that a conversation may have, answer included, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// The most tokens of one answer, where that is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// The most tokens of one answer that its provider has published, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_output: Option<u64>,
    /// Percents of its window at which a conversation is shortened, where that is not left to the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact_at_percent: Option<u64>,
}

/// What Planning made: everything that the model calls of this run share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The system prompt.
    pub system: String,
    /// The conversation to begin with: the task's first message, and an earlier conversation where one is continued.
    pub messages: Vec<Message>,
    /// The tools that the model is offered: one list for all runs of a process that are offered the same.
    pub tools: Arc<[ToolSpec]>,
    /// What the machine must know of each tool, offered or not.
    pub rules: Vec<ToolRule>,
    /// Commands of the shell that a person must agree to, as patterns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ask_commands: Vec<String>,
    /// The digest of the frozen gate; empty without one.
    pub gate_digest: String,
    /// The digest of the file that keeps the gate for whoever takes the run up again; empty where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gate_file: String,
    /// The tree that was there before the agent; `None` where an older program planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<TreeId>,
    /// Where the user's repository stood by then, for a run that commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Head>,
    /// The worktree that the run has for itself, as it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Workplace>,
    /// The ids of what was recalled of earlier runs into the first message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recalled: Vec<String>,
    /// Whether the gate passes on the base, where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_passes: Option<bool>,
    /// Whether the gate judges the base beside the agent's first turns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judges_base: bool,
    /// The verdict of the gate on what was there, where that is a pass which ends the run; `None` where an older program planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_verdict: Option<Box<Verdict>>,
    /// Where the whole output of the gate on what was there is, where the agent was told of its failures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub base_logs: Vec<StepLog>,
    /// The wall around the agent; `None` where an older program planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<WallKind>,
    /// Whether the agent reaches the network from behind it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// The JSON Schema that the final answer has to fit, where the task asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What was not as it should be while planning; each becomes a warning.
    pub notes: Vec<String>,
}

impl Plan {
    /// Takes away every tool of a role.
    pub(super) fn forbid(&mut self, role: ToolRole) {
        let is_gone = |name: &str| self.rules.iter().any(|rule| rule.role == role && rule.name == name);
        self.tools = self.tools.iter().filter(|tool| !is_gone(&tool.name)).cloned().collect();
        self.rules.retain(|rule| rule.role != role);
    }

    /// Whether a person must agree to just this call, because of the command in it.
    pub(super) fn asks_about(&self, call: &ToolCall) -> bool {
        let ToolInput::Object(input) = &call.input else { return false };
        let command = input.get("command").and_then(Value::as_str).filter(|_| call.name == "shell-exec");
        command.is_some_and(|command| crate::task::asks(command, &self.ask_commands))
    }
}

/// What the machine must know of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRule {
    /// The tool's name.
    pub name: String,
    /// Whether the model may call it.
    pub access: ToolAccess,
    /// Who carries it out.
    pub role: ToolRole,
}

/// Whether a tool may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolAccess {
    /// It may.
    Allowed,
    /// Only when a person says so.
    Ask,
    /// Not in this task.
    Denied,
}

/// Who carries a tool out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolRole {
    /// The tool host; it only reads.
    Reader,
    /// The tool host; it may change something.
    Writer,
    /// A sub-agent.
    Child,
}
