//! Where a step's folder and files are, and whether links lead there out of the project.

use super::Room;
use crate::lane::Step;
use std::path::Path;

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

/// The step's own test report, as a path below the project's root.
pub(super) fn of_report(step: &Step, junit: &str) -> String {
    step.dir.as_ref().map_or_else(|| junit.to_owned(), |dir| format!("{dir}/{junit}"))
}
