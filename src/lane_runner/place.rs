//! Where a step's folder and files are, and whether links lead there out of the project.

use super::{JunitReport, Room};
use crate::lane::Step;
use crate::workspace::jail::{Jail, JailError, Last};
use std::path::{Component, Path, PathBuf};

/// Whether links lead this path below the project's root out of it. What does not exist yet is where the folder that it will be in is.
pub(super) fn leads_out(room: &Room, path: impl AsRef<Path>) -> bool {
    let path = path.as_ref().to_string_lossy();
    let place = Jail::open(&room.root).and_then(|jail| jail.find(&jail.path(&path)?, Last::Follow).map(drop));
    matches!(place, Err(JailError::Outside { .. } | JailError::TooManyLinks { .. }))
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
    let path = step.dir.as_ref().map_or_else(|| junit.to_owned(), |dir| format!("{dir}/{junit}"));
    Path::new(&path).components().collect::<PathBuf>().to_string_lossy().into_owned()
}

/// The report with the files of its tests as they stand below the project's root: the step names them as they stand below its own folder.
pub(super) fn in_root(step: &Step, mut report: JunitReport) -> JunitReport {
    let dir = Path::new(step.dir.as_deref().unwrap_or("."));
    for case in &mut report.cases {
        case.file = case.file.take().map(|file| below(dir, &file));
    }
    report
}

/// A file that is named in this folder, without `.` and `..` where names alone say what they come to.
fn below(dir: &Path, file: &str) -> String {
    let mut path = PathBuf::new();
    for part in dir.join(file).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(path.components().next_back(), Some(Component::Normal(_))) => {
                path.pop();
            }
            Component::ParentDir | Component::Normal(_) | Component::RootDir | Component::Prefix(_) => path.push(part),
        }
    }
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_test_is_named_from_the_root() {
        let named = |dir, file| below(Path::new(dir), file);
        assert_eq!(named("web", "src/a.test.js"), "web/src/a.test.js");
        assert_eq!(named("./web/", "./a.js"), "web/a.js");
        assert_eq!(named("web/app", "../../lib/a.js"), "lib/a.js");
        assert_eq!(named("web", "../../a.js"), "../a.js");
        assert_eq!(named("web", "/room/web/a.js"), "/room/web/a.js");
        assert_eq!(named(".", "a.js"), "a.js");
    }
}
