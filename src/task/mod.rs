//! What was asked: the checked task that a run works on. Knows no files; [`parse`] makes one from text.

mod file;
mod params;

pub(crate) use file::check_glob;
pub use file::{TaskFault, parse};
pub use params::{ParamSpec, parse_values};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A checked task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its title: given, else the first heading, else the file's name.
    pub title: String,
    /// What the model is asked, with all parameters filled in.
    pub prompt: String,
    /// Where the text came from, as it was named: a path, or `-`.
    pub source: String,
    /// The gate.
    pub gate: GateChoice,
    /// Further attempts after the first one when the gate says no.
    pub max_retries: u32,
    /// Models to use, in order of preference: `provider/model`, or a name from the configuration. Empty: whatever is configured.
    pub models: Vec<String>,
    /// Which tools there are.
    pub tier: Tier,
    /// The only paths that the agent may change, as globs; empty: all but protected ones.
    pub files: Vec<String>,
    /// More protected paths, as globs.
    pub protect: Vec<String>,
    /// Protected paths that this task may change, as globs.
    pub allow_edit: Vec<String>,
    /// What happens when a protected path was changed.
    pub on_tamper: OnTamper,
    /// Which specs go into the context.
    pub specs: SpecChoice,
    /// Files whose text goes into the first message.
    pub context: Vec<String>,
    /// Which tools may be used, as globs over their names.
    pub tools: ToolChoice,
    /// What the run may spend beyond the defaults.
    pub budget: Budget,
    /// What the gate must say about the base before anything is done; nothing where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// Whether the base is judged first; what the configuration says where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// Whether it is to make the gate pass, and nothing else: one that passes already ends it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_fix: bool,
    /// What becomes a commit.
    #[serde(default)]
    pub commit: Commit,
    /// Whether what was not committed when the run began may go into that commit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_dirty: bool,
}

impl Task {
    /// A task of nothing but a prompt, with every default: what a file without front matter is.
    pub fn from_prompt(prompt: impl Into<String>) -> Self {
        let prompt = prompt.into();
        Self {
            title: file::title_of(&prompt, "task"),
            prompt,
            source: "-".into(),
            gate: GateChoice::default(),
            max_retries: crate::limits::MAX_RETRIES,
            models: Vec::new(),
            tier: Tier::Code,
            files: Vec::new(),
            protect: Vec::new(),
            allow_edit: Vec::new(),
            on_tamper: OnTamper::Restore,
            specs: SpecChoice::Auto,
            context: Vec::new(),
            tools: ToolChoice::default(),
            budget: Budget::default(),
            expect: None,
            baseline: None,
            is_fix: false,
            commit: Commit::None,
            allow_dirty: false,
        }
    }
}

/// Which lanes are the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateChoice {
    /// These lanes, in this order; never empty.
    Lanes(Vec<String>),
    /// None, on purpose: the result is `skipped`.
    Skip,
}

impl Default for GateChoice {
    fn default() -> Self {
        Self::Lanes(vec!["verify".into()])
    }
}

/// Which tools a task has: each tier includes the ones before it.
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

/// What happens when a protected path was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTamper {
    /// It is put back, the model is told, and an attempt is spent.
    Restore,
    /// The run ends.
    Fail,
}

/// What the gate must say about the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// It fails: the task repairs something.
    Failing,
    /// It passes: the task breaks nothing.
    Passing,
}

/// Whether the gate judges the base before the first model call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// Where the task needs it, or a lane's caches do.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Baseline {
    /// The words that are written for it.
    pub const WORDS: [(&str, Self); 3] = [("auto", Self::Auto), ("always", Self::Always), ("never", Self::Never)];
}

/// What becomes a commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Commit {
    /// Nothing.
    #[default]
    None,
    /// The tree that the gate has passed.
    OnSuccess,
}

/// Which specs go into the context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpecChoice {
    /// An index of all, and the full text of those whose files the task names.
    Auto,
    /// All in full.
    All,
    /// None.
    None,
    /// These modules in full.
    Modules(Vec<String>),
}

/// Tools by name, as globs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolChoice {
    /// Only these.
    pub allow: Vec<String>,
    /// Not these.
    pub deny: Vec<String>,
}

impl Default for ToolChoice {
    fn default() -> Self {
        Self { allow: vec!["*".into()], deny: Vec::new() }
    }
}

/// What a task may spend; `None` leaves the default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Model calls.
    pub turns: Option<u64>,
    /// Input and output tokens together.
    pub tokens: Option<u64>,
    /// Time in milliseconds.
    pub time_ms: Option<u64>,
}

/// Values given for a task's parameters, by name: flags and parameter files, already merged.
pub type ParamValues = BTreeMap<String, String>;

#[cfg(test)]
mod tests;
