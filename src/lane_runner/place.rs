//! Where a step's folder and files are, and whether links lead there out of the project.

use super::Room;
use crate::lane::Step;
use std::path::{Path, PathBuf};

/// Whether links lead this path below the project's root out of it. What does not exist yet is where the folder that it will be in is.
pub(super) fn leads_out(room: &Room, path: impl AsRef<Path>) -> bool {
    let place = room.root.join(path);
    let nearest = place.ancestors().find_map(|place| place.canonicalize().ok());
    let root = room.root.canonicalize().ok();
    nearest.zip(root).is_some_and(|(nearest, root)| !nearest.starts_with(root))
}

/// Why a step cannot run in its folder: links lead it out of the project; or it is not there, and whoever starts a step behind a wall sees
/// other folders.
pub(super) fn unfit(room: &Room, step: &Step) -> Option<String> {
    let dir = step.dir.as_deref()?;
    let place = room.root.join(dir);
    let why = match () {
        () if leads_out(room, dir) => "leads out of the project",
        () if room.behind.is_some() && !place.is_dir() => "does not exist",
        () => return None,
    };
    let seen = room.behind.as_ref().map_or(place, |behind| behind.at.join(dir));
    Some(format!("the directory `{}` {why}", seen.display()))
}

/// Where the step's own test report is to be; `None` when links lead its folder out of the project.
pub(super) fn of_report(room: &Room, step: &Step, junit: &str) -> Option<PathBuf> {
    let place = Path::new(step.dir.as_deref().unwrap_or(".")).join(junit);
    let is_out = place.parent().is_some_and(|folder| leads_out(room, folder));
    (!is_out).then(|| room.root.join(place))
}
