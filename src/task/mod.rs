//! Checked tasks for runs. This module reads no files; [`parse`] reads a task from text.

mod approval;
mod candidates;
mod command_line;
mod defaults;
mod file;
mod hidden;
mod params;
#[cfg(feature = "cli")]
mod schema;
mod timetable;
mod tools;

pub use approval::asks;
#[cfg(feature = "cli")]
pub(crate) use candidates::CANDIDATES;
pub use candidates::Candidates;
pub use defaults::TaskDefaults;
pub use file::{TASK_KEYS, TaskError, declared_params, needs, parse, parse_with, place_of, races};
pub(crate) use file::{check_glob, read_budget};
pub use hidden::HiddenRule;
pub(crate) use hidden::check_hidden;
pub use params::{ParamSpec, parse_values};
#[cfg(feature = "cli")]
pub(crate) use schema::{approve as approve_schema, budget as budget_schema, schema};
#[cfg(test)]
pub(crate) use tools::TOOLS;
pub(crate) use tools::{PatternMatch, check_ask, check_tool, fit, reaches};

pub use timetable::{MonitorTerms, Timetable, timetable};

use crate::limits::NewLimits;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A checked task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The title. Default: the first heading, or else the file's name.
    pub title: String,
    /// The prompt for the model, with all parameters filled in.
    pub prompt: String,
    /// The source of the text, as the caller named it: a path, or `-`.
    pub source: String,
    /// The gate.
    pub gate: GateChoice,
    /// The number of further attempts after the gate fails the first one.
    pub max_retries: u32,
    /// Models in order of preference: `provider/model`, or a name from the configuration. If empty,
    /// the configuration decides.
    pub models: Vec<String>,
    /// The tools that the task has.
    pub tier: Tier,
    /// Globs of the only paths that the agent may change. If empty, all but protected paths.
    pub files: Vec<String>,
    /// More protected paths, as globs.
    pub protect: Vec<String>,
    /// Protected paths that this task may change, as globs.
    pub allow_edit: Vec<String>,
    /// Files of the base that the agent does not see and the gate uses, as [`HiddenRule::parse`]
    /// reads them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// The reaction to a change of a protected path.
    pub on_tamper: OnTamper,
    /// The number of gate failures in a row with the same signature that ends the run early. `None`
    /// sets no such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck_after: Option<u32>,
    /// The specs in the context.
    pub specs: SpecChoice,
    /// Files whose text is part of the first message.
    pub context: Vec<String>,
    /// The tools that may be used, as globs over their names.
    pub tools: ToolChoice,
    /// The limits of the run that differ from the defaults.
    pub budget: TaskBudget,
    /// The verdict on the base that the task requires before the agent begins, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// When the base is judged. `None` leaves it to the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// The path of the JSON Schema for the final answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<String>,
    /// True if the only goal is a gate that passes. A gate that already passes ends the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_fix: bool,
    /// The results that are committed. For `None`, see [`Task::commits`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    /// The place where the agent works.
    #[serde(default, skip_serializing_if = "Isolation::is_usual")]
    pub isolation: Isolation,
    /// The commit that a worktree starts from. `None` means the newest one of the checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// True if changes from before the run that were not committed may go into its commit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_dirty: bool,
    /// Calls that a person must approve: globs over tools, or `shell-exec:git push*` for commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approve: Vec<String>,
    /// MCP servers whose tools the task has, by their names in the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<String>,
    /// Tasks of the same batch that must be verified first, by their names in the batch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// The candidate runs. A batch starts all; an agent that receives the task is one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<Candidates>,
    /// Settings that only the configuration has.
    #[serde(default, skip_serializing_if = "TaskSettings::is_usual")]
    pub conduct: TaskSettings,
}

/// Settings of a task's run that do not come from the task itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSettings {
    /// True if adjacent read-only calls may run in parallel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parallel_reads: bool,
    /// The number of similar calls among recent ones that counts as a loop. `None`: the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_threshold: Option<u32>,
    /// The percentage of the model's window that triggers shortening. `None`: the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact_at_percent: Option<u32>,
    /// The time that a person has to approve a call, in milliseconds. `None`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_within_ms: Option<u64>,
    /// The maximum number of tries of one model call. `None`: the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tries: Option<u32>,
    /// The longest pause that a provider may ask for, in milliseconds. `None`: the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wait_ms: Option<u64>,
}

impl TaskSettings {
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

impl Task {
    /// Sets limits instead of those of the task.
    pub fn set_limits(&mut self, new: NewLimits) {
        let NewLimits { max_retries, turns, tokens, usd_micros, time_ms } = new;
        self.max_retries = max_retries.unwrap_or(self.max_retries);
        let budget = &mut self.budget;
        budget.turns = turns.or(budget.turns);
        budget.tokens = tokens.or(budget.tokens);
        budget.usd_micros = usd_micros.or(budget.usd_micros);
        budget.time_ms = time_ms.or(budget.time_ms);
    }

    /// Creates a task from a prompt, with default settings, like a file without front matter.
    pub fn from_prompt(prompt: impl Into<String>) -> Self {
        let prompt = prompt.into();
        Self {
            title: file::title_of(&prompt, &file::opening(&prompt)),
            prompt,
            source: "-".into(),
            gate: GateChoice::default(),
            max_retries: crate::limits::MAX_RETRIES,
            models: Vec::new(),
            tier: Tier::Code,
            files: Vec::new(),
            protect: Vec::new(),
            allow_edit: Vec::new(),
            hidden: Vec::new(),
            on_tamper: OnTamper::Restore,
            stuck_after: None,
            specs: SpecChoice::Auto,
            context: Vec::new(),
            tools: ToolChoice::default(),
            budget: TaskBudget::default(),
            expect: None,
            baseline: None,
            output_schema: None,
            is_fix: false,
            commit: None,
            isolation: Isolation::InPlace,
            base: None,
            allow_dirty: false,
            approve: Vec::new(),
            mcp: Vec::new(),
            needs: Vec::new(),
            candidates: None,
            conduct: TaskSettings::default(),
        }
    }

    /// Creates a task to make these lanes pass. The failures of the base are added to the prompt
    /// when the run is planned. If the lanes already pass, no model is called.
    pub fn fix(lanes: Vec<String>) -> Self {
        let title = format!("Fix {}", lanes.join(", "));
        Self { title, source: "fix".into(), gate: GateChoice::Lanes(lanes), is_fix: true, ..Self::from_prompt(FIX) }
    }

    /// Returns the results that are committed. Default: the verified tree in a worktree, else
    /// nothing.
    pub fn commits(&self) -> Commit {
        let usual = match (self.isolation, &self.gate) {
            (Isolation::Worktree, GateChoice::Lanes(_)) => Commit::OnSuccess,
            (Isolation::Worktree, GateChoice::Skip) | (Isolation::InPlace, _) => Commit::None,
        };
        self.commit.unwrap_or(usual)
    }

    /// Returns why the task's demands on the gate contradict its other settings, for people.
    pub fn contradiction(&self) -> Option<&'static str> {
        match (self.expect, &self.gate, self.baseline) {
            (None, _, _) => None,
            (Some(_), GateChoice::Skip, _) => Some("`expect` needs a gate, but verification is skipped"),
            (Some(_), GateChoice::Lanes(_), Some(Baseline::Never)) => {
                Some("`expect` needs a gate run on the base, but `baseline: never` skips that run")
            }
            (Some(_), GateChoice::Lanes(_), Some(Baseline::Auto | Baseline::Always) | None) => None,
        }
    }
}

/// The prompt of a task that makes the gate pass.
const FIX: &str = "The project's checks fail. Repair the code, not the checks. For each failure below, find the cause and fix it there. \
    Do not change tests, lanes or the configuration that controls them. If one of them is wrong, say so and leave it unchanged. \
    Change only what the repair needs.";

/// The lanes of the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateChoice {
    /// These lanes, in this order; never empty.
    Lanes(Vec<String>),
    /// No lanes, on purpose. The result is `skipped`.
    Skip,
}

impl Default for GateChoice {
    fn default() -> Self {
        Self::Lanes(vec!["verify".into()])
    }
}

/// The tools that a task has. Each tier includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Reading and searching.
    Read,
    /// Also writing files.
    Tool,
    /// Also the shell.
    Code,
}

impl Tier {
    /// The keywords in task files and the configuration.
    pub const WORDS: [(&str, Self); 3] = [("read", Self::Read), ("tool", Self::Tool), ("code", Self::Code)];

    /// Returns the keyword.
    pub fn name(self) -> &'static str {
        Self::WORDS.iter().find(|(_, tier)| *tier == self).map_or("", |(word, _)| word)
    }
}

/// The reaction to a change of a protected path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTamper {
    /// fledge restores the path, informs the model and counts the attempt.
    Restore,
    /// The run ends.
    Fail,
}

impl OnTamper {
    /// The keywords in task files and the configuration.
    pub const WORDS: [(&str, Self); 2] = [("restore", Self::Restore), ("fail", Self::Fail)];
}

/// The required verdict on the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// The gate must fail, because the task repairs something.
    Failing,
    /// The gate must pass.
    Passing,
}

impl Expect {
    /// The keywords in task files and the configuration.
    pub const WORDS: [(&str, Self); 2] = [("failing", Self::Failing), ("passing", Self::Passing)];
}

/// The allowed values of `stuck_after`. For a single failure, use `max_retries: 0`.
pub(crate) const STUCK_AFTER: std::ops::RangeInclusive<i64> = 2..=100;

/// The time at which the gate judges the base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// Before the first model call if the task or a lane's caches need the verdict, else in
    /// parallel with the first turns.
    #[default]
    Auto,
    /// Before the first model call.
    Always,
    /// Only if a later verdict needs the base.
    Never,
}

impl Baseline {
    /// The keywords in task files and the configuration.
    pub const WORDS: [(&str, Self); 3] = [("auto", Self::Auto), ("always", Self::Always), ("never", Self::Never)];
}

/// The results that are committed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Commit {
    /// Nothing.
    #[default]
    None,
    /// The tree that passed the gate.
    OnSuccess,
    /// The tree that passed the gate. Also the files after each turn, outside of all branches.
    EachTurn,
}

impl Commit {
    /// The keywords in task files and the configuration.
    pub const WORDS: [(&str, Self); 3] =
        [("none", Self::None), ("on-success", Self::OnSuccess), ("each-turn", Self::EachTurn)];

    /// Returns the keyword.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::OnSuccess => "on-success",
            Self::EachTurn => "each-turn",
        }
    }
}

/// The place where an agent works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// The checkout itself.
    #[default]
    InPlace,
    /// A separate worktree with its own branch.
    Worktree,
}

impl Isolation {
    /// The keywords in task files and the configuration.
    pub const WORDS: [(&str, Self); 2] = [("in-place", Self::InPlace), ("worktree", Self::Worktree)];

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
    fn is_usual(&self) -> bool {
        *self == Self::InPlace
    }
}

/// The specs in the context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpecChoice {
    /// An index of all, and the full text of those whose files the task names.
    Auto,
    /// The full text of all specs.
    All,
    /// No specs.
    None,
    /// The full text of these modules' specs.
    Modules(Vec<String>),
}

/// Globs over the names of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolChoice {
    /// The allowed tools.
    pub allow: Vec<String>,
    /// The tools that are not allowed.
    pub deny: Vec<String>,
}

impl Default for ToolChoice {
    fn default() -> Self {
        Self { allow: vec!["*".into()], deny: Vec::new() }
    }
}

/// The limits of a task. `None` keeps the default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskBudget {
    /// Model calls.
    pub turns: Option<u64>,
    /// Input and output tokens together.
    pub tokens: Option<u64>,
    /// Cost, in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_micros: Option<u64>,
    /// Time, in milliseconds.
    pub time_ms: Option<u64>,
}

/// The values of a task's parameters by name, merged from flags and parameter files.
pub type ParamValues = BTreeMap<String, String>;

#[cfg(test)]
mod tests;
