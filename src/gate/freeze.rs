//! Freezing: the lanes are read, parsed and kept, so that later edits change nothing in this run. What cannot run is refused
//! here, before a cent is spent.

use super::Gate;
use super::detection::{look_if_no_lanes, remarks};
use super::protected::protection;
use super::seal::Seal;
use crate::lane::detect::DETECTED_LANE;
use crate::lane::{Book, Lane, LaneFault, Step};
use crate::limits::MAX_SOURCE;
use crate::store::{self, StoreError};
use crate::verdict::Reason;
use crate::workspace::pattern::PatternError;
use std::path::Path;
use std::sync::Arc;

/// The gate cannot be frozen.
#[derive(Debug, thiserror::Error)]
pub enum GateFault {
    /// A lane that is not there.
    #[error("there is no lane `{lane}` in {folder}{}{}", hint(.known), remarks(.left_out))]
    UnknownLane {
        /// Its name.
        lane: String,
        /// Where it was looked for.
        folder: String,
        /// The lanes that are there.
        known: Vec<String>,
        /// What detection could not use, where there are no lanes at all.
        left_out: Vec<String>,
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

impl GateFault {
    /// The reason that a run ends with when its gate cannot be frozen for this.
    pub fn reason(&self) -> Reason {
        match self {
            Self::CannotRun { .. } => Reason::GateErrored,
            Self::UnknownLane { .. } | Self::Lane(_) | Self::Pattern(_) => Reason::BadInput,
            Self::Unreadable(_) | Self::Seal(_) => Reason::PlanFailed,
        }
    }
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
    let loaded = lanes.iter().map(|name| load(root, name, path)).collect::<Result<Vec<_>, _>>()?;
    let (lanes, notes): (Vec<Lane>, Vec<_>) = loaded.into_iter().map(|loaded| (loaded.lane, loaded.notes)).unzip();
    for lane in &lanes {
        can_run(root, lane, path)?;
    }
    let digest = store::sha256(serde_json::to_string(&lanes).unwrap_or_default().as_bytes());
    let protection = protection(&lanes, root, protect, allow_edit)?;
    let seal = Seal::take(root, protection).map_err(GateFault::Seal)?;
    Ok(Gate { lanes, digest, notes: notes.concat(), seal: Arc::new(seal) })
}

/// A lane, and what is to be known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The lane.
    pub lane: Lane,
    /// For people: that it was detected and is not the project's own word, and what was left out.
    pub notes: Vec<String>,
}

/// Reads and parses one lane of the project at `root`, or detects it where the project defines no lanes. `path` is the search
/// path that steps will have.
///
/// # Errors
/// When it is not there or is wrong.
pub fn load(root: &Path, name: &str, path: &str) -> Result<Loaded, GateFault> {
    let book = book(root)?;
    if book.has(name) {
        return Ok(Loaded { lane: book.lane(name)?, notes: Vec::new() });
    }
    let (mut known, mut left_out) = (book.names().map(ToOwned::to_owned).collect::<Vec<_>>(), Vec::new());
    if let Some(mut detected) = look_if_no_lanes(root, path)? {
        if name == DETECTED_LANE && !detected.is_empty() {
            let note = "there are no lanes: this one was detected; keep it with `fledge lanes init`";
            detected.remarks.insert(0, note.into());
            return Ok(Loaded { lane: detected.lane()?, notes: detected.remarks });
        }
        known.extend((!detected.is_empty()).then(|| format!("{DETECTED_LANE} (detected)")));
        left_out = detected.remarks;
    }
    Err(GateFault::UnknownLane { lane: name.into(), folder: root.join("lanes").display().to_string(), known, left_out })
}

/// The names of the project's lanes, sorted.
///
/// # Errors
/// When a file of theirs cannot be read.
pub fn names(root: &Path) -> Result<Vec<String>, GateFault> {
    Ok(book(root)?.names().map(ToOwned::to_owned).collect())
}

/// Reads all that the project says about lanes: `lanes/*.yaml`, and the tasks of `fledge.yaml`.
fn book(root: &Path) -> Result<Book, GateFault> {
    let mut book = Book::default();
    if let Some(text) = store::read_text(&root.join("fledge.yaml"), MAX_SOURCE)? {
        book.add_tasks("fledge.yaml", &text);
    }
    let entries = std::fs::read_dir(root.join("lanes")).into_iter().flatten().flatten();
    let mut files: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    files.sort();
    for file in files.iter().rev() {
        // In this order, so that of two files of one name `.yaml` is the later one and counts.
        let name = file.strip_suffix(".yml").or_else(|| file.strip_suffix(".yaml"));
        let Some(name) = name.filter(|name| is_plain(name)) else { continue };
        let path = format!("lanes/{file}");
        if let Some(text) = store::read_text(&root.join(&path), MAX_SOURCE)? {
            book.add_lane(name, &path, &text);
        }
    }
    Ok(book)
}

/// Whether a text can name a lane: the name of a file without its ending, neither hidden nor leading elsewhere.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
}

/// Whether a lane's steps have what is plain to see that they need: the program that a command begins with. Of a later step only a
/// program that no earlier one can make is asked for: one that is looked up in the search path.
///
/// # Errors
/// The first step that cannot run.
pub fn can_run(root: &Path, lane: &Lane, path: &str) -> Result<(), GateFault> {
    for (number, step) in lane.steps.iter().enumerate() {
        let path = step.env.get("PATH").or_else(|| lane.env.get("PATH")).map_or(path, String::as_str);
        let made_before = if number == 0 { made_by_nobody(root, step) } else { None };
        if let Some(why) = made_before.or_else(|| not_in_path(step, path)) {
            return Err(GateFault::CannotRun { lane: lane.name.clone(), step: step.name.clone(), why });
        }
    }
    Ok(())
}

/// The folder or the program by path that the first step of a lane lacks.
fn made_by_nobody(root: &Path, step: &Step) -> Option<String> {
    let dir = root.join(step.dir.as_deref().unwrap_or("."));
    if !dir.is_dir() {
        return Some(format!("there is no folder `{}`", step.dir.as_deref().unwrap_or(".")));
    }
    let program = program(step).filter(|program| program.contains('/') && !dir.join(program).exists())?;
    Some(format!("there is no program `{program}`"))
}

fn not_in_path(step: &Step, path: &str) -> Option<String> {
    let program = program(step).filter(|program| !program.contains('/') && !SHELL_WORDS.contains(program))?;
    let is_there = std::env::split_paths(path).any(|folder| folder.join(program).is_file());
    (!is_there).then(|| format!("there is no program `{program}` in PATH ({path})"))
}

/// The program that a command begins with, where that is plain to see.
fn program(step: &Step) -> Option<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+".contains(c);
    step.run.split_whitespace().next().filter(|word| word.chars().all(plain))
}

/// Words that a POSIX shell understands without a program (POSIX.1-2017, XCU 1.6, 2.4 and 2.14).
const SHELL_WORDS: [&str; 49] = [
    ".", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done", "elif", "else", "esac", "eval",
    "exec", "exit", "export", "false", "fc", "fg", "fi", "for", "getopts", "hash", "if", "in", "jobs", "kill",
    "newgrp", "printf", "pwd", "read", "readonly", "return", "set", "shift", "test", "then", "times", "trap", "true",
    "type", "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
];
