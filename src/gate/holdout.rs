//! Hold-out lanes, which only the gate knows, from a folder outside of the workspace.
//!
//! A step sees the path of the folder only where it names the folder. No variable reveals the
//! folder to the programs of a step, and behind bubblewrap its path is random.

use super::freeze::GateError;
use crate::lane::{self, Lane, RoomKind, Step};
use crate::lane_files::LaneFilesError;
use crate::limits::MAX_SOURCE;
use crate::store;
use std::fs;
use std::path::{Path, PathBuf};

/// The placeholders for the folder in a step.
const NAMES: [&str; 2] = ["${FLEDGE_HOLDOUT}", "$FLEDGE_HOLDOUT"];
/// A word that no step may contain except in a placeholder.
const NAME: &str = "FLEDGE_HOLDOUT";

/// Reads the hold-out lanes of a folder.
///
/// # Errors
/// When none exist, when one is invalid, or when they could not be hidden from the agent.
pub(super) fn read(root: &Path, folder: &Path) -> Result<Vec<Lane>, GateError> {
    let unusable = |why: String| GateError::Holdout { folder: folder.to_owned(), why };
    let real = folder.canonicalize().map_err(|error| unusable(error.to_string()))?;
    if store::is_inside(&real, root) {
        return Err(unusable("it is in the workspace, where the agent would see it".into()));
    }
    let is_plain = |char: char| char.is_alphanumeric() || "/._-+@, ".contains(char);
    if !real.to_str().is_some_and(|path| path.chars().all(is_plain)) {
        return Err(unusable("its path has characters that are special in a shell".into()));
    }
    let mut files: Vec<PathBuf> = fs::read_dir(&real)
        .map_err(|error| unusable(error.to_string()))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml"))
        .collect();
    files.sort();
    if files.is_empty() {
        return Err(unusable("it contains no lane (a file `NAME.yaml`)".into()));
    }
    let lane = |path: &PathBuf| -> Result<Lane, GateError> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = store::read_text(path, MAX_SOURCE).map_err(LaneFilesError::from)?.unwrap_or_default();
        let lane = lane::parse(&name, &path.to_string_lossy(), &text).map_err(LaneFilesError::from)?;
        let lane = Lane { held_out: Some(real.clone()), ..lane };
        match refusal(&lane) {
            Some(why) => Err(unusable(format!("lane `{name}` {why}"))),
            None => Ok(lane),
        }
    };
    files.iter().map(lane).collect()
}

/// Returns why a lane cannot be a hold-out lane.
fn refusal(lane: &Lane) -> Option<&'static str> {
    if lane.room == RoomKind::InPlace {
        return Some("has `room: in-place`, so the agent could read what it writes");
    }
    let bare = led_to(lane, Path::new(""));
    let says = |step: &Step| {
        let env = step.env.iter().flat_map(|(name, value)| [name, value]);
        [&step.run].into_iter().chain(&step.shell).chain(env).any(|text| text.contains(NAME))
    };
    let env = bare.env.iter().flat_map(|(name, value)| [name, value]).any(|text| text.contains(NAME));
    let is_told = env || bare.steps.iter().chain(&bare.setup).any(says);
    is_told.then_some("must name its folder as `$FLEDGE_HOLDOUT` or `${FLEDGE_HOLDOUT}`: fledge sets no variable")
}

/// Returns the lane with the path `at` in place of the placeholders for its folder.
pub(super) fn led_to(lane: &Lane, at: &Path) -> Lane {
    let mut lane = lane.clone();
    let lead = |text: &mut String| {
        for name in NAMES {
            *text = text.replace(name, &at.to_string_lossy());
        }
    };
    for step in lane.steps.iter_mut().chain(&mut lane.setup) {
        lead(&mut step.run);
        step.shell.iter_mut().chain(step.env.values_mut()).for_each(lead);
    }
    lane.env.values_mut().for_each(lead);
    lane
}
