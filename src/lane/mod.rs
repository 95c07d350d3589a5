//! A lane: a named graph of commands, checked and with nothing left to guess. Pure: it knows what is to be run and in what
//! order, and starts nothing.
//!
//! A project's lanes and tasks are gathered in a [`Book`]; [`Book::lane`] makes a [`Lane`] of what is written there, with tasks
//! and included lanes put in their place.

mod book;
mod compile;
mod condition;
mod course;
pub mod detect;
mod draft;
mod entry;
mod file;
mod order;

pub use book::{Book, LaneFault};
pub use condition::Condition;
pub use course::{Course, LaneRuling, Order};
pub use detect::{Detected, detect};
pub use entry::{Entry, EntryKind, Gather, Member};
pub use file::parse;

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::time::Duration;

/// A lane. Two of them are the same gate when they serialize to the same text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lane {
    /// Its name, which is that of its file.
    pub name: String,
    /// What it is for; empty when nothing is said.
    pub description: String,
    /// Whether the first failure ends it.
    pub fail_fast: bool,
    /// The time of the whole lane.
    pub timeout: Duration,
    /// Variables for every step.
    pub env: BTreeMap<String, String>,
    /// How many steps run at once at most; as many as there are cores when absent.
    pub jobs: Option<NonZeroUsize>,
    /// What is run, in the order of the file; never empty. A step's number is its place here, from 0.
    pub steps: Vec<Step>,
    /// What is written in `steps`, item by item.
    pub entries: Vec<Entry>,
    /// The tasks among them that have no command of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gathers: Vec<Gather>,
}

/// One command of a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Its name, no other step's of the lane.
    pub name: String,
    /// The command line, for the shell.
    pub run: String,
    /// The shell and its arguments before the command line.
    pub shell: Vec<String>,
    /// The directory it runs in, relative to the root and inside it; the root when absent.
    pub dir: Option<String>,
    /// Variables for this step; they win over the lane's.
    pub env: BTreeMap<String, String>,
    /// Its own time, for each try, within that of the lane.
    pub timeout: Option<Duration>,
    /// How often it is tried again when it fails.
    pub retries: u32,
    /// The pause before it is tried again.
    pub retry_delay: Duration,
    /// When it runs: all must hold.
    pub when: Vec<Condition>,
    /// It runs only if one of these globs fits a changed path; empty: always.
    pub changed: Vec<String>,
    /// Whether its failure is only reported.
    pub allow_failure: bool,
    /// The machine report that it writes, relative to its directory.
    pub junit: Option<String>,
    /// The numbers of the steps that must have ended before it starts.
    pub after: Vec<usize>,
    /// Those of them without whose success it has no sense, because it names them.
    pub needs: Vec<usize>,
    /// Those of them that its task depends on.
    pub deps: Vec<usize>,
    /// Whether it is there only because tasks depend on it: it runs when one of these does.
    pub on_demand: bool,
}

/// Which steps of a lane are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All.
    All,
    /// This one and those after it in the file.
    From(String),
    /// This one alone.
    Only(String),
}

/// What is known of the world when a lane starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The variables that `when` asks for.
    pub variables: BTreeMap<String, String>,
    /// The paths that have changed, relative to the root; `None` when that is not known, and then every step runs.
    pub changed: Option<BTreeSet<String>>,
}

impl Lane {
    /// Why steps are left out: for each step in order a reason, or `None` for one that runs.
    ///
    /// # Errors
    /// A selected step that is not there: the names that are.
    pub fn left_out(&self, selection: &Selection, facts: &Facts) -> Result<Vec<Option<String>>, String> {
        let place = |wanted: &str| {
            let found = self.steps.iter().position(|step| step.name == wanted);
            found.ok_or_else(|| {
                let names: Vec<&str> = self.steps.iter().map(|step| step.name.as_str()).collect();
                format!("lane `{}` has no step `{wanted}`: it has {}", self.name, names.join(", "))
            })
        };
        let (first, last) = match selection {
            Selection::All => (0, self.steps.len()),
            Selection::From(name) => (place(name)?, self.steps.len()),
            Selection::Only(name) => place(name).map(|place| (place, place + 1))?,
        };
        let reason = |(number, step): (usize, &Step)| {
            if number < first || number >= last { Some("not selected".into()) } else { step.left_out(facts) }
        };
        Ok(self.steps.iter().enumerate().map(reason).collect())
    }
}

impl Step {
    /// Why this step does not run here, if it does not.
    fn left_out(&self, facts: &Facts) -> Option<String> {
        if let Some(condition) = self.when.iter().find(|condition| !condition.holds(&facts.variables)) {
            return Some(format!("when: `{condition}` does not hold"));
        }
        let changed = facts.changed.as_ref()?;
        let patterns = crate::workspace::pattern::Patterns::trees(self.changed.iter().map(String::as_str)).ok()?;
        let is_untouched = !self.changed.is_empty() && !changed.iter().any(|path| patterns.fit(path));
        is_untouched.then(|| "changed: no path that it is about has changed".into())
    }
}
