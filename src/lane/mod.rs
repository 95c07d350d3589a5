//! A lane: a named pipeline of commands, checked and with nothing left to guess. Pure: it knows what is to be run and in what
//! order, and starts nothing.

mod course;
mod file;

pub use course::{Course, LaneRuling, Order};
pub use file::{LaneFault, parse};

use serde::Serialize;
use std::collections::BTreeMap;
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
    /// What is run, one after the other; never empty.
    pub steps: Vec<Item>,
}

/// One stage of a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// One step.
    Step(Step),
    /// Steps that run at the same time; never empty.
    Parallel(Vec<Step>),
}

/// One command of a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Its name, no other step's of the lane.
    pub name: String,
    /// The command line, for the shell.
    pub run: String,
    /// The directory it runs in, relative to the root and inside it; the root when absent.
    pub dir: Option<String>,
    /// Variables for this step; they win over the lane's.
    pub env: BTreeMap<String, String>,
    /// Its own time, within that of the lane.
    pub timeout: Option<Duration>,
}

impl Lane {
    /// All steps in the order of the file. A step's number is its place here, from 0.
    pub fn all_steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().flat_map(Item::steps)
    }
}

impl Item {
    /// The steps of this stage.
    pub fn steps(&self) -> &[Step] {
        match self {
            Self::Step(step) => std::slice::from_ref(step),
            Self::Parallel(steps) => steps,
        }
    }
}
