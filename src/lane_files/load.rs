//! Loading of one lane and of all lanes of a project.

use super::LaneFilesError;
use super::detection::detect_if_no_lanes;
use super::read::{LANES, TOML, astray, lane_files};
use crate::lane::detect::DETECTED_LANE;
use crate::lane::{Lane, LaneError, LaneRemark};
use std::collections::BTreeMap;
use std::path::Path;

/// The maximum number of remarks on files that are shown when a lane runs or lanes are listed.
const MOST_NOTES: usize = 5;

/// Checks that the project at `lanes_at` defines these lanes. Detects none.
///
/// # Errors
/// The first lane that does not exist.
pub fn require_lanes(lanes_at: &Path, lanes: &[String]) -> Result<(), LaneFilesError> {
    let lane_files = lane_files(lanes_at);
    let Some(lane) = lanes.iter().find(|lane| !lane_files.has(lane)) else { return Ok(()) };
    let known: Vec<String> = lane_files.names().map(ToOwned::to_owned).collect();
    let places = format!("{LANES}/ of {}", lanes_at.display());
    Err(LaneFilesError::UnknownLane { lane: lane.clone(), places, known, remarks: Vec::new() })
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
pub fn load(root: &Path, name: &str, path: &str) -> Result<LoadedLane, LaneFilesError> {
    let lane_files = lane_files(root);
    if lane_files.has(name) {
        let source = lane_files.source_of(name).map(ToOwned::to_owned);
        return Ok(LoadedLane { lane: lane_files.lane(name)?, notes: few(&lane_files.warnings_of(name)), source });
    }
    let (mut known, mut left_out) = (lane_files.names().map(ToOwned::to_owned).collect::<Vec<_>>(), Vec::new());
    let mut remarks = few(lane_files.general_warnings().chain(&astray(root)));
    if let Some(mut detected) = detect_if_no_lanes(root, path)? {
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
    Err(LaneFilesError::UnknownLane { lane: name.into(), places, known, remarks })
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
pub fn list(root: &Path, path: &str) -> Result<ListedLanes, LaneFilesError> {
    let lane_files = lane_files(root);
    let (lanes, fault) = lane_files.all();
    let has_lanes = lane_files.names().next().is_some() || !lane_files.is_whole();
    let remarks = few(lane_files.general_warnings().chain(&astray(root)));
    let source = |lane: &Lane| Some((lane.name.clone(), lane_files.source_of(&lane.name)?.to_owned()));
    let sources = lanes.iter().filter_map(source).collect();
    let mut listed = ListedLanes { lanes, sources, is_detected: false, fault, remarks };
    let detected = if has_lanes { None } else { detect_if_no_lanes(root, path)? };
    if let Some(mut detected) = detected {
        listed.remarks.append(&mut detected.remarks);
        if !detected.is_empty() {
            listed.is_detected = true;
            listed.lanes.push(detected.lane()?);
        }
    }
    Ok(listed)
}
