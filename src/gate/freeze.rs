//! Freezing: the lanes are read, parsed and kept, so that later edits change nothing in this run. What cannot run is refused
//! here, before a cent is spent.

use super::Gate;
use super::protected::{Seal, protection};
use crate::lane::{self, Item, Lane, LaneFault, Step};
use crate::limits::MAX_SOURCE;
use crate::store::{self, StoreError};
use crate::workspace::pattern::PatternError;
use std::path::Path;

/// The gate cannot be frozen.
#[derive(Debug, thiserror::Error)]
pub enum GateFault {
    /// A lane that is not there.
    #[error("there is no lane `{lane}` in {folder}{}", hint(.known))]
    UnknownLane {
        /// Its name.
        lane: String,
        /// Where it was looked for.
        folder: String,
        /// The lanes that are there.
        known: Vec<String>,
    },
    /// A lane that is wrong.
    #[error(transparent)]
    Lane(#[from] LaneFault),
    /// A pattern that is no glob.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A file that cannot be read.
    #[error(transparent)]
    Unreadable(#[from] StoreError),
    /// Protected files that cannot be read.
    #[error("cannot read protected files")]
    Seal(#[source] std::io::Error),
    /// A step that could not run.
    #[error("step `{step}` of lane `{lane}` cannot run: {why}")]
    CannotRun {
        /// The lane.
        lane: String,
        /// The step.
        step: String,
        /// What is missing.
        why: String,
    },
}

fn hint(known: &[String]) -> String {
    if known.is_empty() {
        ": there are no lanes at all; write one, or skip verification with `lane: false` or --no-verify".into()
    } else {
        format!(": it has {}", known.join(", "))
    }
}

/// Freezes the gate of these lanes in the workspace at `root`. `path` is the search path that steps will have.
///
/// # Errors
/// Unknown or wrong lanes, patterns that are no globs, steps that cannot run.
pub fn freeze(
    root: &Path,
    lanes: &[String],
    protect: &[String],
    allow_edit: &[String],
    path: &str,
) -> Result<Gate, GateFault> {
    let lanes = lanes.iter().map(|name| load(root, name)).collect::<Result<Vec<_>, _>>()?;
    for lane in &lanes {
        can_run(root, lane, path)?;
    }
    let digest = store::sha256(serde_json::to_string(&lanes).unwrap_or_default().as_bytes());
    let protection = protection(&lanes, root, protect, allow_edit)?;
    let seal = Seal::take(root, protection).map_err(GateFault::Seal)?;
    Ok(Gate { lanes, digest, seal })
}

/// Reads and parses one lane of the project at `root`.
///
/// # Errors
/// When it is not there or is wrong.
pub fn load(root: &Path, name: &str) -> Result<Lane, GateFault> {
    let plain =
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)) && !name.starts_with('.');
    let mut found = None;
    for ending in ["yaml", "yml"] {
        let file = format!("lanes/{name}.{ending}");
        if plain && found.is_none() {
            found = store::read_text(&root.join(&file), MAX_SOURCE)?.map(|text| (file, text));
        }
    }
    let Some((file, text)) = found else {
        let folder = root.join("lanes").display().to_string();
        return Err(GateFault::UnknownLane { lane: name.into(), folder, known: names(root) });
    };
    Ok(lane::parse(name, &file, &text)?)
}

/// The names of the project's lanes, sorted.
pub fn names(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root.join("lanes")).into_iter().flatten().flatten();
    let name = |entry: std::fs::DirEntry| {
        let file = entry.file_name().into_string().ok()?;
        file.strip_suffix(".yaml").or_else(|| file.strip_suffix(".yml")).map(ToOwned::to_owned)
    };
    let mut names: Vec<String> = entries.filter_map(name).collect();
    names.sort();
    names.dedup();
    names
}

/// Whether each step's folder is there, and the program that its command begins with, where that is plain to see.
fn can_run(root: &Path, lane: &Lane, path: &str) -> Result<(), GateFault> {
    for step in lane.steps.iter().flat_map(Item::steps) {
        if let Some(why) = obstacle(root, step, path) {
            return Err(GateFault::CannotRun { lane: lane.name.clone(), step: step.name.clone(), why });
        }
    }
    Ok(())
}

fn obstacle(root: &Path, step: &Step, path: &str) -> Option<String> {
    let dir = root.join(step.dir.as_deref().unwrap_or("."));
    if !dir.is_dir() {
        return Some(format!("there is no folder `{}`", step.dir.as_deref().unwrap_or(".")));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+".contains(c);
    let program = step.run.split_whitespace().next().filter(|word| word.chars().all(plain))?;
    let is_there = if program.contains('/') {
        return (!dir.join(program).exists()).then(|| format!("there is no program `{program}`"));
    } else {
        std::env::split_paths(path).any(|folder| folder.join(program).is_file())
    };
    (!is_there && !SHELL_WORDS.contains(&program)).then(|| format!("there is no program `{program}` in PATH ({path})"))
}

/// Words that a POSIX shell understands without a program (POSIX.1-2017, XCU 1.6, 2.4 and 2.14).
const SHELL_WORDS: [&str; 47] = [
    ".", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done", "elif", "else", "esac", "eval",
    "exec", "exit", "export", "false", "fc", "fg", "fi", "for", "getopts", "hash", "if", "jobs", "kill", "newgrp",
    "printf", "pwd", "read", "readonly", "return", "set", "shift", "test", "then", "times", "trap", "true", "type",
    "ulimit", "umask", "unalias", "unset", "wait", "while",
];
