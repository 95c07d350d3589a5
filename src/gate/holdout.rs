//! Lanes that only the gate knows, from a folder outside of the workspace. Their steps find it where they name it: no variable tells what
//! they run that it is before them, and behind bubblewrap the folder lies at a place of which nobody knows.

use super::freeze::GateFault;
use crate::lane::{self, Lane, RoomKind, Step};
use crate::limits::MAX_SOURCE;
use crate::store;
use std::fs;
use std::path::{Path, PathBuf};

/// What stands in a step for the folder.
const NAMES: [&str; 2] = ["${FLEDGE_HOLDOUT}", "$FLEDGE_HOLDOUT"];
/// What none of its steps may have beside that.
const NAME: &str = "FLEDGE_HOLDOUT";

/// The lanes of a folder that only the gate knows.
///
/// # Errors
/// When there are none, they are wrong, or could not be kept from the agent.
pub(super) fn read(root: &Path, folder: &Path) -> Result<Vec<Lane>, GateFault> {
    let unusable = |why: String| GateFault::Holdout { folder: folder.to_owned(), why };
    let real = folder.canonicalize().map_err(|error| unusable(error.to_string()))?;
    if store::is_inside(&real, root) {
        return Err(unusable("it is in the workspace, where the agent would see it".into()));
    }
    let is_plain = |char: char| char.is_alphanumeric() || "/._-+@, ".contains(char);
    if !real.to_str().is_some_and(|path| path.chars().all(is_plain)) {
        return Err(unusable("its path has characters that shells read".into()));
    }
    let mut files: Vec<PathBuf> = fs::read_dir(&real)
        .map_err(|error| unusable(error.to_string()))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml"))
        .collect();
    files.sort();
    if files.is_empty() {
        return Err(unusable("there is no lane in it, no file `NAME.yaml`".into()));
    }
    let lane = |path: &PathBuf| -> Result<Lane, GateFault> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = store::read_text(path, MAX_SOURCE)?.unwrap_or_default();
        let lane = Lane { held_out: Some(real.clone()), ..lane::parse(&name, &path.to_string_lossy(), &text)? };
        match refusal(&lane) {
            Some(why) => Err(unusable(format!("lane `{name}` {why}"))),
            None => Ok(lane),
        }
    };
    files.iter().map(lane).collect()
}

/// Why a lane cannot be one that only the gate knows.
fn refusal(lane: &Lane) -> Option<&'static str> {
    if lane.room == RoomKind::InPlace {
        return Some("says `room: in-place`: what it writes there the agent would read");
    }
    let bare = led_to(lane, Path::new(""));
    let says = |step: &Step| {
        let env = step.env.iter().flat_map(|(name, value)| [name, value]);
        [&step.run].into_iter().chain(&step.shell).chain(env).any(|text| text.contains(NAME))
    };
    let env = bare.env.iter().flat_map(|(name, value)| [name, value]).any(|text| text.contains(NAME));
    let is_told = env || bare.steps.iter().chain(&bare.setup).any(says);
    is_told
        .then_some("names its folder in another way than `$FLEDGE_HOLDOUT` or `${FLEDGE_HOLDOUT}`: no variable is set")
}

/// The lane with the place where its folder is found in its steps.
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
