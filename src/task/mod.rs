//! What was asked: the checked task that a run works on. Knows no files; [`parse`] makes one from text.

mod approval;
mod candidates;
mod command_line;
mod defaults;
mod file;
mod params;
#[cfg(feature = "cli")]
mod schema;
mod timetable;
mod tools;

pub use approval::asks;
#[cfg(feature = "cli")]
pub(crate) use candidates::CANDIDATES;
pub use candidates::Candidates;
pub use defaults::Defaults;
pub use file::{TaskFault, declared_params, needs, parse, parse_with, races};
pub(crate) use file::{check_glob, read_budget};
pub use params::{ParamSpec, parse_values};
#[cfg(feature = "cli")]
pub(crate) use schema::{approve as approve_schema, budget as budget_schema, schema};
#[cfg(test)]
pub(crate) use tools::TOOLS;
pub(crate) use tools::{Fit, check_ask, check_tool, fit, reaches};

pub use timetable::{MonitorTerms, Timetable, timetable};

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
    /// Failures of the gate in a row, all with the same signature, that end the run early; `None`: only the retries bound it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck_after: Option<u32>,
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
    /// The path of the JSON Schema that the final answer has to fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<String>,
    /// Whether it is to make the gate pass, and nothing else: one that passes already ends it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_fix: bool,
    /// What becomes a commit; `None`: as [`Task::commits`] says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    /// Where the agent works.
    #[serde(default, skip_serializing_if = "Isolation::is_usual")]
    pub isolation: Isolation,
    /// The commit that a worktree is made from; `None`: the newest one of the checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Whether what was not committed when the run began may go into that commit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_dirty: bool,
    /// Calls that a person must agree to, as globs over tools' names; `shell-exec:git push*` is one over its commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approve: Vec<String>,
    /// MCP servers whose tools it has, by their names in the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<String>,
    /// Other tasks of its batch that must be verified first, by their names there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Runs of it that race. A batch makes a run of each; an agent that is handed the task is one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<Candidates>,
    /// What only the configuration says of how it is worked on.
    #[serde(default, skip_serializing_if = "Conduct::is_usual")]
    pub conduct: Conduct,
}

/// How a task is worked on, beside what it says itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conduct {
    /// Whether neighbouring read-only calls may overlap in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parallel_reads: bool,
    /// Alike calls among recent ones that make a loop; `None`: the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_threshold: Option<u32>,
    /// Percents of its model's window at which the conversation is made shorter; `None`: the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact_at_percent: Option<u32>,
    /// How long a person has to agree to a call, in milliseconds; `None`: without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_within_ms: Option<u64>,
    /// How often one model call is tried; `None`: the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tries: Option<u32>,
    /// The longest pause that a provider may ask for, in milliseconds; `None`: the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wait_ms: Option<u64>,
}

impl Conduct {
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

impl Task {
    /// A task of nothing but a prompt, with every default: what a file without front matter is.
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
            on_tamper: OnTamper::Restore,
            stuck_after: None,
            specs: SpecChoice::Auto,
            context: Vec::new(),
            tools: ToolChoice::default(),
            budget: Budget::default(),
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
            conduct: Conduct::default(),
        }
    }

    /// To make these lanes pass, and nothing else. What they say of the base is added when the run is planned; where they pass already,
    /// no model is asked.
    pub fn fix(lanes: Vec<String>) -> Self {
        let title = format!("Fix {}", lanes.join(", "));
        Self { title, source: "fix".into(), gate: GateChoice::Lanes(lanes), is_fix: true, ..Self::from_prompt(FIX) }
    }

    /// What becomes a commit. Where nothing says so, the verified tree in a worktree of its own, and nothing in place.
    pub fn commits(&self) -> Commit {
        let usual = match (self.isolation, &self.gate) {
            (Isolation::Worktree, GateChoice::Lanes(_)) => Commit::OnSuccess,
            (Isolation::Worktree, GateChoice::Skip) | (Isolation::InPlace, _) => Commit::None,
        };
        self.commit.unwrap_or(usual)
    }

    /// What it demands of the gate and, by what else it says, can never be; in words for people.
    pub fn contradiction(&self) -> Option<&'static str> {
        match (self.expect, &self.gate, self.baseline) {
            (None, _, _) => None,
            (Some(_), GateChoice::Skip, _) => Some("`expect` says what the gate says, and verification is skipped"),
            (Some(_), GateChoice::Lanes(_), Some(Baseline::Never)) => {
                Some("`expect` needs the base to be judged, and `baseline: never` forbids it")
            }
            (Some(_), GateChoice::Lanes(_), Some(Baseline::Auto | Baseline::Always) | None) => None,
        }
    }
}

/// The prompt of a task that makes the gate pass.
const FIX: &str = "The project's checks fail. Repair the code, not the checks: find the cause of each failure below and mend it where it is. \
    Tests, lanes and the configuration that steers them stay as they are; where one of them is wrong, say so and leave it. Change what the \
    repair needs and nothing else.";

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

impl Tier {
    /// The words that are written for it.
    pub const WORDS: [(&str, Self); 3] = [("read", Self::Read), ("tool", Self::Tool), ("code", Self::Code)];

    /// Its word.
    pub fn name(self) -> &'static str {
        Self::WORDS.iter().find(|(_, tier)| *tier == self).map_or("", |(word, _)| word)
    }
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

impl OnTamper {
    /// The words that are written for it.
    pub const WORDS: [(&str, Self); 2] = [("restore", Self::Restore), ("fail", Self::Fail)];
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

impl Expect {
    /// The words that are written for it.
    pub const WORDS: [(&str, Self); 2] = [("failing", Self::Failing), ("passing", Self::Passing)];
}

/// How many equal failures in a row may end a run: one alone is what `max_retries: 0` is for.
pub(crate) const STUCK_AFTER: std::ops::RangeInclusive<i64> = 2..=100;

/// When the gate judges the base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// Before the first model call where the task or a lane's caches need the verdict, else beside the first turns.
    #[default]
    Auto,
    /// Before the first model call.
    Always,
    /// Only where a later verdict needs the base.
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
    /// The same; and, apart from every branch, what each turn has left.
    EachTurn,
}

impl Commit {
    /// The words that are written for it.
    pub const WORDS: [(&str, Self); 3] =
        [("none", Self::None), ("on-success", Self::OnSuccess), ("each-turn", Self::EachTurn)];

    /// The word that is written for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::OnSuccess => "on-success",
            Self::EachTurn => "each-turn",
        }
    }
}

/// Where an agent works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In the checkout itself.
    #[default]
    InPlace,
    /// In a worktree of its own, on a branch of its own.
    Worktree,
}

impl Isolation {
    /// The words that are written for it.
    pub const WORDS: [(&str, Self); 2] = [("in-place", Self::InPlace), ("worktree", Self::Worktree)];

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
    fn is_usual(&self) -> bool {
        *self == Self::InPlace
    }
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
    /// Money, in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_micros: Option<u64>,
    /// Time in milliseconds.
    pub time_ms: Option<u64>,
}

/// Values given for a task's parameters, by name: flags and parameter files, already merged.
pub type ParamValues = BTreeMap<String, String>;

#[cfg(test)]
mod tests;
