//! Freezing of a gate: the lanes are read, parsed and kept, so that later edits have no effect on
//! this run. Lanes that cannot run are refused here, before any money is spent.

use super::Gate;
use super::built;
use super::holdout;
use super::installed::InstalledPackages;
use super::protected::policy;
use super::seal::Seal;
use crate::id::TreeId;
use crate::lane::{Lane, RoomKind};
use crate::lane_files::{LaneFilesError, LoadedLane, can_run, load, require_lanes};
use crate::pattern::PatternError;
use crate::store;
use crate::verdict::Reason;
use crate::workspace::replica::SourceRepository;
use crate::workspace::trees::GitPrograms;
use crate::workspace::{ProtectedRule, Protection};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::sync::OnceCell;

/// An error of freezing a gate.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// A lane that cannot be read or cannot run.
    #[error(transparent)]
    Lanes(#[from] LaneFilesError),
    /// A pattern that is not a glob.
    #[error(transparent)]
    Pattern(#[from] PatternError),
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
}

impl GateError {
    /// Returns the file and the line of the first problem, if the error is about the text of a
    /// lane.
    pub fn place(&self) -> Option<(&str, u32)> {
        match self {
            Self::Lanes(fault) => fault.place(),
            Self::Pattern(_) | Self::Seal(_) | Self::Holdout { .. } => None,
        }
    }

    /// Returns the reason with which a run ends when its gate cannot be frozen.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Lanes(fault) => fault.reason(),
            Self::Pattern(_) | Self::Holdout { .. } => Reason::BadInput,
            Self::Seal(_) => Reason::PlanFailed,
        }
    }
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
        require_lanes(at, from.lanes)?;
    }
    let loaded = from.lanes.iter().map(|name| load(lanes_at.unwrap_or(root), name, path));
    let loaded = loaded.collect::<Result<Vec<_>, LaneFilesError>>()?;
    let held_out = from.holdout.map_or(Ok(Vec::new()), |folder| holdout::read(root, folder))?;
    for lane in loaded.iter().map(|loaded| &loaded.lane).chain(&held_out) {
        can_run(root, lane, path, &lane.always_run())?;
    }
    Ok((loaded, held_out))
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
        hidden: None,
        hidden_evidence: OnceCell::new(),
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
