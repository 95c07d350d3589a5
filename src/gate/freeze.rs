//! Freezing of a gate: the lanes are read, parsed and kept, so that later edits have no effect on
//! this run. Lanes that cannot run are refused here, before any money is spent.

use super::Gate;
use super::built;
use super::detection::{self, look_if_no_lanes};
use super::holdout;
use super::installed::InstalledPackages;
use super::pages::{LANES, TOML, astray, lane_files};
use super::protected::policy;
use super::seal::Seal;
use crate::id::TreeId;
use crate::lane::detect::DETECTED_LANE;
use crate::lane::{Lane, LaneError, LaneRemark, RoomKind, Step};
use crate::store::{self, StoreError};
use crate::verdict::Reason;
use crate::workspace::pattern::PatternError;
use crate::workspace::replica::SourceRepository;
use crate::workspace::trees::GitPrograms;
use crate::workspace::{ProtectedRule, Protection};
use crate::yaml::{listed, nearest};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::sync::OnceCell;

/// The maximum number of remarks on files that are shown when a lane runs or lanes are listed.
const MOST_NOTES: usize = 5;

/// An error of freezing a gate.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// A lane that does not exist.
    #[error("there is no lane `{lane}` in {places}{}{}", meant(lane, .known), detection::remarks(.remarks))]
    UnknownLane {
        /// The name of the lane.
        lane: String,
        /// The places where the lane was searched.
        places: String,
        /// The lanes that exist.
        known: Vec<String>,
        /// Possible explanations: files that are not read as lanes, tables that are not read, input
        /// that detection could not use.
        remarks: Vec<String>,
    },
    /// A lane that is invalid.
    #[error(transparent)]
    Lane(#[from] LaneError),
    /// A pattern that is not a glob.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A file that cannot be read.
    #[error(transparent)]
    Unreadable(#[from] StoreError),
    /// Protected files that cannot be read.
    #[error("cannot read protected files")]
    Seal(#[source] std::io::Error),
    /// A folder of hold-out lanes that cannot be used.
    #[error("cannot use the hold-out folder {}: {why}", folder.display())]
    Holdout {
        /// The folder.
        folder: PathBuf,
        /// The reason.
        why: String,
    },
    /// A step that cannot run.
    #[error("step `{step}` of lane `{lane}` cannot run: {why}")]
    CannotRun {
        /// The lane.
        lane: String,
        /// The step.
        step: String,
        /// The part that is missing.
        why: String,
    },
}

impl GateError {
    /// Returns the file and the line of the first problem, if the error is about the text of a
    /// lane.
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

    /// Returns the reason with which a run ends when its gate cannot be frozen.
    pub fn reason(&self) -> Reason {
        match self {
            Self::CannotRun { .. } => Reason::GateErrored,
            Self::UnknownLane { .. } | Self::Lane(_) | Self::Pattern(_) | Self::Holdout { .. } => Reason::BadInput,
            Self::Unreadable(_) | Self::Seal(_) => Reason::PlanFailed,
        }
    }
}

/// Returns the lane that was most likely meant, and the lanes that exist, as part of a message.
fn meant(lane: &str, known: &[String]) -> String {
    if known.is_empty() {
        return ": no lanes are defined; `fledge init` writes one".into();
    }
    let names = || known.iter().map(String::as_str);
    let stem = Path::new(lane).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default(); // if it is a path
    let near = names().find(|name| *name == stem).or_else(|| nearest(lane, names()));
    let near = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
    format!("{near}; known: {}", listed(names()))
}

/// The input for freezing a gate.
#[derive(Debug, Clone, Copy)]
pub struct GateDefinition<'a> {
    /// The workspace.
    pub root: &'a Path,
    /// The user's checkout, in which dependencies are installed.
    pub origin: &'a Path,
    /// The names of the lanes.
    pub lanes: &'a [String],
    /// The folder with the hold-out lanes, outside of the workspace.
    pub holdout: Option<&'a Path>,
    /// Protected paths beyond the built-in ones, as globs.
    pub protect: &'a [String],
    /// Protected paths that may be changed nevertheless, as globs.
    pub allow_edit: &'a [String],
    /// The search path of steps.
    pub path: &'a str,
    /// The current tree of the workspace.
    pub base: &'a TreeId,
    /// The paths of the files in that tree.
    pub paths: &'a [String],
    /// The files that the user's git reads, and the programs that it runs, in the workspace.
    pub git: &'a GitPrograms,
    /// The user's repository, of which each room gets a copy.
    pub repository: Option<&'a SourceRepository>,
}

/// Checks the lanes and patterns of a gate as [`freeze`] does, but reads no other file of the
/// workspace.
///
/// # Errors
/// The errors of [`freeze`], except for unreadable protected files.
pub fn check_definition(from: GateDefinition<'_>, lanes_at: Option<&Path>) -> Result<(), GateError> {
    read_lanes(&from, lanes_at)?;
    let rule = |pattern: &String| ProtectedRule { pattern: pattern.clone(), why: String::new() };
    Protection::new(from.protect.iter().map(rule), from.allow_edit)?;
    Ok(())
}

/// The lanes of a gate: those of the project with their notes, and the hold-out lanes.
type GateLanes = (Vec<LoadedLane>, Vec<Lane>);

/// Reads the lanes of a gate, and checks that their first steps can run.
fn read_lanes(from: &GateDefinition<'_>, lanes_at: Option<&Path>) -> Result<GateLanes, GateError> {
    let GateDefinition { root, path, .. } = *from;
    if let Some(at) = lanes_at {
        must_have(at, from.lanes)?;
    }
    let loaded = from.lanes.iter().map(|name| load(lanes_at.unwrap_or(root), name, path));
    let loaded = loaded.collect::<Result<Vec<_>, _>>()?;
    let held_out = from.holdout.map_or(Ok(Vec::new()), |folder| holdout::read(root, folder))?;
    for lane in loaded.iter().map(|loaded| &loaded.lane).chain(&held_out) {
        can_run(root, lane, path, &lane.always_run())?;
    }
    Ok((loaded, held_out))
}

/// Checks that another state of the project defines these lanes.
fn must_have(lanes_at: &Path, lanes: &[String]) -> Result<(), GateError> {
    let lane_files = lane_files(lanes_at);
    let Some(lane) = lanes.iter().find(|lane| !lane_files.has(lane)) else { return Ok(()) };
    let known: Vec<String> = lane_files.names().map(ToOwned::to_owned).collect();
    let places = format!("{LANES}/ of {}", lanes_at.display());
    Err(GateError::UnknownLane { lane: lane.clone(), places, known, remarks: Vec::new() })
}

/// Freezes a gate. `lanes_at` has the lanes of another state of the project; fledge detects no
/// lanes there. Without it, the lanes are those of the workspace.
///
/// # Errors
/// Unknown or invalid lanes, patterns that are not globs, steps that cannot run.
pub fn freeze(from: GateDefinition<'_>, lanes_at: Option<&Path>) -> Result<Gate, GateError> {
    let root = from.root;
    let (loaded, mut held_out) = read_lanes(&from, lanes_at)?;
    let (mut lanes, notes): (Vec<Lane>, Vec<_>) = loaded.into_iter().map(|loaded| (loaded.lane, loaded.notes)).unzip();
    let digest = digest_of(&lanes);
    built::add(&mut lanes, from.paths);
    built::add(&mut held_out, from.paths);
    let is_folder = |path: &&String| from.origin.join(path).is_dir();
    let included = lanes.iter().chain(&held_out).flat_map(|lane| &lane.include_ignored).filter(is_folder);
    let installed = InstalledPackages::find(from.origin, from.paths, included);
    let policy = policy(&lanes, &from)?;
    let is_clean = lanes.iter().all(|lane| lane.room == RoomKind::Clean);
    let scope = is_clean.then_some(from.paths);
    let seal = Seal::capture(root, policy.protection().clone(), scope).map_err(GateError::Seal)?;
    let mut notes = notes.concat();
    let mut reported = BTreeSet::new();
    notes.retain(|note| reported.insert(note.clone())); // lanes of one file share its remarks
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
        sandbox: None,
        checkout: OnceCell::new(),
        protected_files: OnceCell::new(),
        judged: OnceCell::new(),
        planted: OnceCell::new(),
        failed: Mutex::default(),
    })
}

/// Returns the digest of the lanes of a gate, in their order. Equal lanes have equal digests, from
/// any path.
pub fn digest_of(lanes: &[Lane]) -> String {
    store::sha256(serde_json::to_string(lanes).unwrap_or_default().as_bytes())
}

/// A lane, with notes on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedLane {
    /// The lane.
    pub lane: Lane,
    /// Notes for people: problems of the lane's file. For a detected lane, also that the project
    /// does not define it, and what was left out.
    pub notes: Vec<String>,
    /// The place from which the lane was imported, if its file names one.
    pub source: Option<String>,
}

/// Reads and parses one lane of the project at `root`, or detects it where the project defines no
/// lanes. `path` is the search path of steps.
///
/// # Errors
/// When the lane does not exist or is invalid.
pub fn load(root: &Path, name: &str, path: &str) -> Result<LoadedLane, GateError> {
    let lane_files = lane_files(root);
    if lane_files.has(name) {
        let source = lane_files.source_of(name).map(ToOwned::to_owned);
        return Ok(LoadedLane { lane: lane_files.lane(name)?, notes: few(&lane_files.warnings_of(name)), source });
    }
    let (mut known, mut left_out) = (lane_files.names().map(ToOwned::to_owned).collect::<Vec<_>>(), Vec::new());
    let mut remarks = few(lane_files.general_warnings().chain(&astray(root)));
    if let Some(mut detected) = look_if_no_lanes(root, path)? {
        if name == DETECTED_LANE && !detected.is_empty() {
            remarks.insert(0, "no lanes are defined, so fledge detected this one; keep it with `fledge init`".into());
            remarks.append(&mut detected.remarks);
            return Ok(LoadedLane { lane: detected.lane()?, notes: remarks, source: None });
        }
        known.extend((!detected.is_empty()).then(|| format!("{DETECTED_LANE} (detected)")));
        left_out = detected.remarks;
    }
    remarks.append(&mut left_out);
    let toml = if root.join(TOML).exists() { format!(" or {TOML}") } else { String::new() };
    let places = format!("{LANES}/{toml} of {}", root.display());
    Err(GateError::UnknownLane { lane: name.into(), places, known, remarks })
}

/// Returns the first remarks, and the number of the others.
fn few<'r>(remarks: impl IntoIterator<Item = &'r LaneRemark>) -> Vec<String> {
    let mut notes: Vec<String> = remarks.into_iter().map(ToString::to_string).collect();
    let more = notes.len().saturating_sub(MOST_NOTES);
    notes.truncate(MOST_NOTES);
    notes.extend((more > 0).then(|| format!("and {more} more; `fledge lanes validate` lists all")));
    notes
}

/// The lanes of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedLanes {
    /// The valid lanes, by name.
    pub lanes: Vec<Lane>,
    /// The places from which lanes were imported, by the names of the lanes.
    pub sources: BTreeMap<String, String>,
    /// True if the lanes were detected and are not defined by the project.
    pub is_detected: bool,
    /// The errors in the other lanes, and in files whose lanes are unknown.
    pub fault: LaneError,
    /// Remarks for people: problems of the files as a whole, and what detection left out.
    pub remarks: Vec<String>,
}

/// Reads all lanes of the project at `root`, or detects one where it defines none. `path` is the
/// search path of steps.
///
/// # Errors
/// When it is unknown whether the project defines lanes.
pub fn list(root: &Path, path: &str) -> Result<ListedLanes, GateError> {
    let lane_files = lane_files(root);
    let (lanes, fault) = lane_files.all();
    let has_lanes = lane_files.names().next().is_some() || !lane_files.is_whole();
    let remarks = few(lane_files.general_warnings().chain(&astray(root)));
    let source = |lane: &Lane| Some((lane.name.clone(), lane_files.source_of(&lane.name)?.to_owned()));
    let sources = lanes.iter().filter_map(source).collect();
    let mut listed = ListedLanes { lanes, sources, is_detected: false, fault, remarks };
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

/// Checks that the steps of a lane have their folder and the program with which their command
/// begins. `runs` says for each step whether it runs. Checks only steps before which nothing runs,
/// because an earlier step may provide what a later one needs.
///
/// # Errors
/// The first step that cannot run.
pub fn can_run(root: &Path, lane: &Lane, path: &str, runs: &[bool]) -> Result<(), GateError> {
    let is_first = |number| !lane.before(number).iter().any(|before| runs.get(*before).is_none_or(|runs| *runs));
    let lacking = missing(root, lane, path, runs).into_iter().find(|(number, ..)| is_first(*number));
    lacking.map_or(Ok(()), |(_, step, why)| {
        Err(GateError::CannotRun { lane: lane.name.clone(), step: step.name.clone(), why })
    })
}

/// Returns the steps that would run but cannot run now, each with its number and the part that it
/// lacks.
pub(super) fn missing<'l>(root: &Path, lane: &'l Lane, path: &str, runs: &[bool]) -> Vec<(usize, &'l Step, String)> {
    let lacks = |(number, step): (usize, &'l Step)| {
        let path = step.env.get("PATH").or_else(|| lane.env.get("PATH")).map_or(path, String::as_str);
        let is_first = number == 0 && lane.setup.is_empty();
        let made_before = if is_first { made_by_nobody(root, step) } else { None };
        // The setup may install programs into the project.
        let may_come = !lane.setup.is_empty()
            && std::env::split_paths(path).any(|folder| folder.is_relative() || folder.starts_with(root));
        let lacking = || if may_come { None } else { not_in_path(root, step, path) };
        made_before.or_else(lacking).map(|why| (number, step, why))
    };
    let run = lane.steps.iter().enumerate().zip(runs).filter(|(_, runs)| **runs);
    run.filter_map(|(step, _)| lacks(step)).collect()
}

/// Returns a message about the folder, or the program with a path, that the first step of a lane
/// lacks.
fn made_by_nobody(root: &Path, step: &Step) -> Option<String> {
    let dir = root.join(step.dir.as_deref().unwrap_or("."));
    if !dir.is_dir() {
        return Some(format!("there is no folder `{}`", step.dir.as_deref().unwrap_or(".")));
    }
    let program = step.program().filter(|program| program.contains('/') && !dir.join(program).exists())?;
    Some(format!("there is no program `{program}`"))
}

/// Returns a message about a program that no folder of the search path has. Relative folders are
/// below the step's folder.
fn not_in_path(root: &Path, step: &Step, path: &str) -> Option<String> {
    let shell = if step.has_plain_shell() { None } else { step.shell.first().map(String::as_str) };
    let own = || step.program().filter(|_| step.is_one_program()); // after `||` or in a pipe, its absence may not count
    let program = shell.or_else(own).filter(|program| !program.contains('/'))?;
    let dir = root.join(step.dir.as_deref().unwrap_or("."));
    let is_there = std::env::split_paths(path).any(|folder| dir.join(folder).join(program).is_file());
    (!is_there).then(|| format!("there is no program `{program}` in PATH ({path})"))
}
