//! Input of the machine: the run spec, needed before the start, and the plan, needed before the
//! first model call.

use super::workplace::Workplace;
use crate::chat::{Message, Price, ToolCall, ToolInput, ToolSpec};
use crate::id::{RunId, TreeId};
use crate::limits::{Limits, MAX_RETRIES};
use crate::sandbox_kind::SandboxKind;
use crate::task::OnTamper;
use crate::verdict::{StepLog, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The specification of one run, fixed when the task is submitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The id of the run.
    pub run: RunId,
    /// The task's title.
    pub title: String,
    /// The task's text. Summaries repeat it, and the machine looks in it for requests to change
    /// protected paths.
    pub prompt: String,
    /// True if the run has a gate.
    pub verify: bool,
    /// True if the run ends as verified when the gate passes on the base.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_fix: bool,
    /// True if a verified tree becomes a commit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub commits: bool,
    /// Further attempts after the first one.
    pub max_retries: u32,
    /// Attempts with the same failure after which the run ends early. `None`: only `max_retries`
    /// limits the attempts.
    pub stuck_after: Option<u32>,
    /// The reaction to a changed protected path.
    pub on_tamper: OnTamper,
    /// The models in order of preference, by the names that users give them. Never empty.
    pub models: Vec<String>,
    /// Properties of the models, in the same order. A model without an entry has the defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terms: Vec<ModelTerms>,
    /// The context window of the model in tokens, if known.
    pub context_window: Option<u64>,
    /// True if adjacent read-only calls may run in parallel.
    pub parallel_reads: bool,
    /// The time for a person to answer a question, in milliseconds. `None`: no limit.
    pub confirm_within_ms: Option<u64>,
    /// The limits of the run.
    pub limits: Limits,
    /// The seed for the jitter of back-off pauses.
    pub seed: u64,
    /// The number of runs above this one: 0 for a top-level run, 1 for its sub-agents.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl RunSpec {
    /// Returns a spec for this run with defaults for everything else.
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
            depth: 0,
        }
    }

    /// Returns the properties of the model at an index of the list.
    pub(super) fn terms_of(&self, model: usize) -> ModelTerms {
        self.terms.get(model).copied().unwrap_or_default()
    }

    /// Returns the reason why the run must not begin. A money limit needs the price of every model.
    pub fn refusal(&self) -> Option<String> {
        self.limits.usd_micros?;
        let model = self.unpriced()?;
        Some(format!(
            "a budget in dollars needs the price of every model, but the price of {model} is unknown\n  \
             add it to the model's entry in the configuration, in dollars per million tokens: \
             price: {{ input: …, output: … }}"
        ))
    }

    /// Returns the first model of the list that has no known price.
    fn unpriced(&self) -> Option<&str> {
        let has_price = |place: usize| self.terms_of(place).price.is_some();
        self.models.iter().enumerate().find(|(place, _)| !has_price(*place)).map(|(_, name)| name.as_str())
    }
}

/// Properties of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelTerms {
    /// The price of its tokens, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The maximum number of tokens in a conversation, answer included, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// The configured maximum of output tokens in one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// The maximum of output tokens in one answer that the provider publishes, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_output: Option<u64>,
    /// The percentage of the context window at which the conversation is shortened. `None`: the
    /// run's own limit applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact_at_percent: Option<u64>,
}

/// The result of planning: everything that the model calls of a run share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// The system prompt.
    pub system: String,
    /// The initial messages: the task's first message, after an earlier conversation where one is
    /// continued.
    pub messages: Vec<Message>,
    /// The tools offered to the model. Runs of one process that offer the same tools share one
    /// list.
    pub tools: Arc<[ToolSpec]>,
    /// Rules for each tool, offered or not.
    pub rules: Vec<ToolRule>,
    /// Patterns of shell commands that need a person's approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ask_commands: Vec<String>,
    /// The digest of the frozen gate; empty without a gate.
    pub gate_digest: String,
    /// The digest of the file that stores the gate for a resume; empty where no file exists.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gate_file: String,
    /// The tree before the agent's work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<TreeId>,
    /// The head of the user's repository at planning time, for a run that commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<RepositoryHead>,
    /// The run's own worktree, as it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Workplace>,
    /// The ids of memories of earlier runs that are in the first message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recalled: Vec<String>,
    /// True if the gate judges the base in parallel with the agent's first turns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judges_base: bool,
    /// The verdict of the gate on the base, where its pass ends the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_verdict: Option<Box<Verdict>>,
    /// The logs of the gate on the base, where the agent received its failures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub base_logs: Vec<StepLog>,
    /// The sandbox around the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxKind>,
    /// True if the agent can reach the network from the sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// The JSON Schema for the final answer, if the task requires one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Problems found while planning. Each becomes a warning.
    pub notes: Vec<String>,
}

impl RunPlan {
    /// Removes every tool with this role.
    pub(super) fn forbid(&mut self, role: ToolRole) {
        let is_gone = |name: &str| self.rules.iter().any(|rule| rule.role == role && rule.name == name);
        self.tools = self.tools.iter().filter(|tool| !is_gone(&tool.name)).cloned().collect();
        self.rules.retain(|rule| rule.role != role);
    }

    /// Returns true if a person must approve this call because of the command in it.
    pub(super) fn asks_about(&self, call: &ToolCall) -> bool {
        let ToolInput::Object(input) = &call.input else { return false };
        let command = input.get("command").and_then(Value::as_str).filter(|_| call.name == "shell-exec");
        command.is_some_and(|command| crate::task::asks(command, &self.ask_commands))
    }
}

/// The rule for one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRule {
    /// The tool's name.
    pub name: String,
    /// The permission to call it.
    pub access: ToolAccess,
    /// The component that carries it out.
    pub role: ToolRole,
}

/// The permission to call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolAccess {
    /// The model may call it.
    Allowed,
    /// Each call needs a person's approval.
    Ask,
    /// The tool is not available in this task.
    Denied,
}

/// The component that carries a tool out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolRole {
    /// The tool host. The tool only reads.
    Reader,
    /// The tool host. The tool may change files.
    Writer,
    /// A sub-agent.
    Child,
}

/// The state of a repository: its commit, branch and relevant configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryHead {
    /// The id of the commit; `None` before the first one.
    pub commit: Option<String>,
    /// The full name of the branch (`refs/heads/main`); `None` if the head is detached.
    pub branch: Option<String>,
    /// The tree of the workspace's folder; `None` if the commit does not have the folder.
    pub tree: Option<TreeId>,
    /// The git directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_dir: Option<String>,
    /// The committer and the git settings of a commit, as keys and values, as
    /// [`crate::workspace::delivery::UserRepository::with_config`] adds them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config: Vec<(String, String)>,
}
