//! Freezing: the lanes are read, parsed and kept, so that later edits change nothing in this run. What cannot run is refused
//! here, before a cent is spent.

use super::Gate;
use super::built;
use super::detection::{self, look_if_no_lanes};
use super::holdout;
use super::installed::Installed;
use super::pages::{LANES, TOML, astray, book};
use super::protected::policy;
use super::seal::Seal;
use crate::id::TreeId;
use crate::lane::detect::DETECTED_LANE;
use crate::lane::{Lane, LaneFault, Remark, RoomKind, Step};
use crate::store::{self, StoreError};
use crate::verdict::Reason;
use crate::workspace::pattern::PatternError;
use crate::workspace::replica::SourceRepository;
use crate::workspace::trees::GitPrograms;
use crate::yaml::{listed, nearest};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::sync::OnceCell;

/// The most remarks on files that a lane is run with, or lanes are listed with.
const MOST_NOTES: usize = 5;

/// The gate cannot be frozen.
#[derive(Debug, thiserror::Error)]
pub enum GateFault {
    /// A lane that is not there.
    #[error("there is no lane `{lane}` in {places}{}{}", meant(lane, .known), detection::remarks(.remarks))]
    UnknownLane {
        /// Its name.
        lane: String,
        /// Where it was looked for.
        places: String,
        /// The lanes that are there.
        known: Vec<String>,
        /// What may explain it: files that are not read as lanes, tables that are not read, what detection could not use.
        remarks: Vec<String>,
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
    /// Lanes that only the gate is to know.
    #[error("the hold-out folder {} cannot be used: {why}", folder.display())]
    Holdout {
        /// The folder.
        folder: PathBuf,
        /// Why.
        why: String,
    },
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
    /// The file and the line that it is about first, where it is about what is written.
    pub fn place(&self) -> Option<(&str, u32)> {
        match self {
            Self::Lane(fault) => fault.place(),
            Self::UnknownLane { .. }
            | Self::Pattern(_)
            | Self::Unreadable(_)
            | Self::Seal(_)
            | Self::Holdout { .. }
            | Self::CannotRun { .. } => None,
        }
    }

    /// The reason that a run ends with when its gate cannot be frozen for this.
    pub fn reason(&self) -> Reason {
        match self {
            Self::CannotRun { .. } => Reason::GateErrored,
            Self::UnknownLane { .. } | Self::Lane(_) | Self::Pattern(_) | Self::Holdout { .. } => Reason::BadInput,
            Self::Unreadable(_) | Self::Seal(_) => Reason::PlanFailed,
        }
    }
}

/// The lane that was most likely meant, and those that there are.
fn meant(lane: &str, known: &[String]) -> String {
    if known.is_empty() {
        return ": there are no lanes at all; `fledge init` writes one".into();
    }
    let names = || known.iter().map(String::as_str);
    let stem = Path::new(lane).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default(); // of a path to its file
    let near = names().find(|name| *name == stem).or_else(|| nearest(lane, names()));
    let near = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
    format!("{near}: it has {}", listed(names()))
}

/// What a gate is frozen from.
#[derive(Debug, Clone, Copy)]
pub struct Definition<'a> {
    /// The workspace.
    pub root: &'a Path,
    /// The user's checkout, in which dependencies are installed.
    pub origin: &'a Path,
    /// The names of the lanes.
    pub lanes: &'a [String],
    /// The folder with the lanes that only the gate knows, outside of the workspace.
    pub holdout: Option<&'a Path>,
    /// Protected paths beyond the built-in ones, as globs.
    pub protect: &'a [String],
    /// Protected paths that may be changed all the same, as globs.
    pub allow_edit: &'a [String],
    /// The search path that steps will have.
    pub path: &'a str,
    /// The tree of the workspace as it is now.
    pub base: &'a TreeId,
    /// The paths of its files.
    pub paths: &'a [String],
    /// What the user's git reads and runs in the workspace.
    pub git: &'a GitPrograms,
    /// The user's repository, of which each room has a copy.
    pub repository: Option<&'a SourceRepository>,
}

/// Freezes a gate.
///
/// # Errors
/// Unknown or wrong lanes, patterns that are no globs, steps that cannot run.
pub fn freeze(from: Definition<'_>) -> Result<Gate, GateFault> {
    let Definition { root, path, .. } = from;
    let loaded = from.lanes.iter().map(|name| load(root, name, path)).collect::<Result<Vec<_>, _>>()?;
    freeze_lanes(from, loaded)
}

/// Freezes a gate by the lanes as another state of the project has them, which lies in `lanes_at`. None is detected there.
///
/// # Errors
/// As those of [`freeze`].
pub fn freeze_by(from: Definition<'_>, lanes_at: &Path) -> Result<Gate, GateFault> {
    let book = book(lanes_at);
    if let Some(lane) = from.lanes.iter().find(|lane| !book.has(lane)) {
        let known: Vec<String> = book.names().map(ToOwned::to_owned).collect();
        let places = format!("{LANES}/ of {}", lanes_at.display());
        return Err(GateFault::UnknownLane { lane: lane.clone(), places, known, remarks: Vec::new() });
    }
    let loaded = from.lanes.iter().map(|name| load(lanes_at, name, from.path)).collect::<Result<Vec<_>, _>>()?;
    freeze_lanes(from, loaded)
}

fn freeze_lanes(from: Definition<'_>, loaded: Vec<Loaded>) -> Result<Gate, GateFault> {
    let Definition { root, path, .. } = from;
    let (mut lanes, notes): (Vec<Lane>, Vec<_>) = loaded.into_iter().map(|loaded| (loaded.lane, loaded.notes)).unzip();
    let mut held_out = from.holdout.map_or(Ok(Vec::new()), |folder| holdout::read(root, folder))?;
    for lane in lanes.iter().chain(&held_out) {
        can_run(root, lane, path, &lane.always_run())?;
    }
    let digest = digest_of(&lanes);
    built::add(&mut lanes, from.paths);
    built::add(&mut held_out, from.paths);
    let is_folder = |path: &&String| from.origin.join(path).is_dir();
    let included = lanes.iter().chain(&held_out).flat_map(|lane| &lane.include_ignored).filter(is_folder);
    let installed = Installed::find(from.origin, from.paths, included);
    let policy = policy(&lanes, &from)?;
    let is_clean = lanes.iter().all(|lane| lane.room == RoomKind::Clean);
    let scope = is_clean.then_some(from.paths);
    let seal = Seal::take(root, policy.protection().clone(), scope).map_err(GateFault::Seal)?;
    let mut notes = notes.concat();
    let mut told = BTreeSet::new();
    notes.retain(|note| told.insert(note.clone())); // lanes of one file share what is said of it
    Ok(Gate {
        lanes,
        held_out,
        digest,
        notes,
        policy: Arc::new(policy),
        seal: Arc::new(seal),
        base: from.base.clone(),
        installed,
        repository: from.repository.cloned(),
        wall: None,
        checkout: OnceCell::new(),
        protected_files: OnceCell::new(),
        judged: OnceCell::new(),
        failed: Mutex::default(),
    })
}

/// The digest of the lanes of a gate, in their order: the same lanes have the same one wherever they are read.
pub fn digest_of(lanes: &[Lane]) -> String {
    store::sha256(serde_json::to_string(lanes).unwrap_or_default().as_bytes())
}

/// A lane, and what is to be known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The lane.
    pub lane: Lane,
    /// For people: what is strange about its file; that it was detected and is not the project's own word, and what was left out.
    pub notes: Vec<String>,
    /// Where it was brought in from, if its file says so.
    pub source: Option<String>,
}

/// Reads and parses one lane of the project at `root`, or detects it where the project defines no lanes. `path` is the search
/// path that steps will have.
///
/// # Errors
/// When it is not there or is wrong.
pub fn load(root: &Path, name: &str, path: &str) -> Result<Loaded, GateFault> {
    let book = book(root);
    if book.has(name) {
        let source = book.source_of(name).map(ToOwned::to_owned);
        return Ok(Loaded { lane: book.lane(name)?, notes: few(&book.warnings_of(name)), source });
    }
    let (mut known, mut left_out) = (book.names().map(ToOwned::to_owned).collect::<Vec<_>>(), Vec::new());
    let mut remarks = few(book.general_warnings().chain(&astray(root)));
    if let Some(mut detected) = look_if_no_lanes(root, path)? {
        if name == DETECTED_LANE && !detected.is_empty() {
            remarks.insert(0, "there are no lanes: this one was detected; keep it with `fledge init`".into());
            remarks.append(&mut detected.remarks);
            return Ok(Loaded { lane: detected.lane()?, notes: remarks, source: None });
        }
        known.extend((!detected.is_empty()).then(|| format!("{DETECTED_LANE} (detected)")));
        left_out = detected.remarks;
    }
    remarks.append(&mut left_out);
    let toml = if root.join(TOML).exists() { format!(" or {TOML}") } else { String::new() };
    let places = format!("{LANES}/{toml} of {}", root.display());
    Err(GateFault::UnknownLane { lane: name.into(), places, known, remarks })
}

/// The first remarks, and how many more there are.
fn few<'r>(remarks: impl IntoIterator<Item = &'r Remark>) -> Vec<String> {
    let mut notes: Vec<String> = remarks.into_iter().map(ToString::to_string).collect();
    let more = notes.len().saturating_sub(MOST_NOTES);
    notes.truncate(MOST_NOTES);
    notes.extend((more > 0).then(|| format!("and {more} more: `fledge lanes validate` has them all")));
    notes
}

/// The lanes of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Those that are right, by name.
    pub lanes: Vec<Lane>,
    /// Where those that were brought in are from, by name.
    pub sources: BTreeMap<String, String>,
    /// Whether they were detected and are not the project's own word.
    pub is_detected: bool,
    /// What is wrong with the others, and with files that do not say which there are.
    pub fault: LaneFault,
    /// For people: what is strange about the files as a whole, and what detection left out.
    pub remarks: Vec<String>,
}

/// Reads all lanes of the project at `root`, or detects one where it defines none. `path` is the search path that steps will have.
///
/// # Errors
/// When it cannot be told whether it defines any.
pub fn list(root: &Path, path: &str) -> Result<Listed, GateFault> {
    let book = book(root);
    let (lanes, fault) = book.all();
    let has_lanes = book.names().next().is_some() || !book.is_whole();
    let remarks = few(book.general_warnings().chain(&astray(root)));
    let source = |lane: &Lane| Some((lane.name.clone(), book.source_of(&lane.name)?.to_owned()));
    let sources = lanes.iter().filter_map(source).collect();
    let mut listed = Listed { lanes, sources, is_detected: false, fault, remarks };
    let detected = if has_lanes { None } else { look_if_no_lanes(root, path)? };
    if let Some(mut detected) = detected {
        listed.remarks.append(&mut detected.remarks);
        if !detected.is_empty() {
            listed.is_detected = true;
            listed.lanes.push(detected.lane()?);
        }
    }
    Ok(listed)
}

/// Whether the steps of a lane that run, by their number, have what is plain to see that they need: the program that a command begins
/// with. Asked are those before which nothing runs: an earlier step may bring what a later one needs.
///
/// # Errors
/// The first step that cannot run.
pub fn can_run(root: &Path, lane: &Lane, path: &str, runs: &[bool]) -> Result<(), GateFault> {
    let is_first = |number| !lane.before(number).iter().any(|before| runs.get(*before).is_none_or(|runs| *runs));
    let lacking = missing(root, lane, path, runs).into_iter().find(|(number, ..)| is_first(*number));
    lacking.map_or(Ok(()), |(_, step, why)| {
        Err(GateFault::CannotRun { lane: lane.name.clone(), step: step.name.clone(), why })
    })
}

/// The steps that run and, as things are, cannot, each with its number and what it lacks.
pub(super) fn missing<'l>(root: &Path, lane: &'l Lane, path: &str, runs: &[bool]) -> Vec<(usize, &'l Step, String)> {
    let lacks = |(number, step): (usize, &'l Step)| {
        let path = step.env.get("PATH").or_else(|| lane.env.get("PATH")).map_or(path, String::as_str);
        let is_first = number == 0 && lane.setup.is_empty();
        let made_before = if is_first { made_by_nobody(root, step) } else { None };
        // What is installed into the project may be there by then.
        let may_come = !lane.setup.is_empty()
            && std::env::split_paths(path).any(|folder| folder.is_relative() || folder.starts_with(root));
        let lacking = || if may_come { None } else { not_in_path(root, step, path) };
        made_before.or_else(lacking).map(|why| (number, step, why))
    };
    let run = lane.steps.iter().enumerate().zip(runs).filter(|(_, runs)| **runs);
    run.filter_map(|(step, _)| lacks(step)).collect()
}

/// The folder or the program by path that the first step of a lane lacks.
fn made_by_nobody(root: &Path, step: &Step) -> Option<String> {
    let dir = root.join(step.dir.as_deref().unwrap_or("."));
    if !dir.is_dir() {
        return Some(format!("there is no folder `{}`", step.dir.as_deref().unwrap_or(".")));
    }
    let program = step.program().filter(|program| program.contains('/') && !dir.join(program).exists())?;
    Some(format!("there is no program `{program}`"))
}

/// The program that no folder of the search path has. Relative ones are below the step's own folder.
fn not_in_path(root: &Path, step: &Step, path: &str) -> Option<String> {
    let shell = if step.has_plain_shell() { None } else { step.shell.first().map(String::as_str) };
    let own = || step.program().filter(|_| step.is_one_program()); // after `||` or in a pipe, its absence may not count
    let program = shell.or_else(own).filter(|program| !program.contains('/'))?;
    let dir = root.join(step.dir.as_deref().unwrap_or("."));
    let is_there = std::env::split_paths(path).any(|folder| dir.join(folder).join(program).is_file());
    (!is_there).then(|| format!("there is no program `{program}` in PATH ({path})"))
}
