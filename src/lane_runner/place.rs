//! Paths of a step's folder and files, with a check that symbolic links do not lead out of the
//! project.

use super::{JunitReport, LaneRoom};
use crate::lane::Step;
use crate::workspace::jail::{FinalLink, Jail, JailError};
use std::path::{Component, Path, PathBuf};

/// Returns true if symbolic links lead this path out of the project. A path that does not exist yet
/// is judged by its parent folder.
pub(super) fn leads_out(room: &LaneRoom, path: impl AsRef<Path>) -> bool {
    let path = path.as_ref().to_string_lossy();
    let place = Jail::open(&room.root).and_then(|jail| jail.find(&jail.path(&path)?, FinalLink::Follow).map(drop));
    matches!(place, Err(JailError::Outside { .. } | JailError::TooManyLinks { .. }))
}

/// Returns the reason why a step cannot run in its folder. Either symbolic links lead the folder
/// out of the project, or the folder does not exist. The second check is only for steps in a
/// sandbox, where the starting process sees other folders.
pub(super) fn unfit(room: &LaneRoom, step: &Step) -> Option<String> {
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

/// Returns the path of the step's test report, relative to the project's root.
pub(super) fn of_report(step: &Step, junit: &str) -> String {
    let path = step.dir.as_ref().map_or_else(|| junit.to_owned(), |dir| format!("{dir}/{junit}"));
    Path::new(&path).components().collect::<PathBuf>().to_string_lossy().into_owned()
}

/// Makes the file paths in a report relative to the project's root. In the report of a step, they
/// are relative to the step's folder.
pub(super) fn in_root(step: &Step, mut report: JunitReport) -> JunitReport {
    let dir = Path::new(step.dir.as_deref().unwrap_or("."));
    for case in &mut report.cases {
        case.file = case.file.take().map(|file| below(dir, &file));
    }
    report
}

/// Joins a file to a folder, and resolves `.` and `..` where the names alone allow it.
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
