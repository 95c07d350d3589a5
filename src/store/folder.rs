//! The folders of projects and runs, and those with the logs of lanes that were run by hand. A
//! project keeps its newest folders of lanes, and those that are being written.

use super::StoreError;
use super::files::{clear, make_private, make_safely, sha256};
use crate::id::RunId;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use walkdir::WalkDir;

/// The folder of one run: `<state>/<project>/runs/<id>/`, readable by its owner alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    pub(super) fn new(project: &Path, run: &RunId) -> Self {
        Self { path: project.join("runs").join(run.as_str()) }
    }

    /// Creates the folder of the run with its subfolders; an existing folder is no error.
    pub(super) fn create_folders(&self) -> Result<(), StoreError> {
        make_safely(&self.path)?; // the folder contains the frozen gate
        [&self.logs(), &self.outputs()].into_iter().try_for_each(|folder| make_private(folder))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the run of this folder.
    pub fn run(&self) -> RunId {
        RunId::new(self.path.file_name().unwrap_or_default().to_string_lossy())
    }

    /// Returns the path of the report.
    pub fn report(&self) -> PathBuf {
        self.path.join("report.json")
    }

    /// Returns the folder of the frozen gate, for resuming the run.
    pub fn gate(&self) -> PathBuf {
        self.path.join("gate")
    }

    /// Returns the folder of the logs of lane steps.
    pub fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// Returns the folder of another run of the project.
    pub fn of_other(&self, run: &RunId) -> Self {
        Self { path: self.path.with_file_name(run.as_str()) }
    }

    /// Returns the folder of the full texts of tool results that were cut.
    pub fn outputs(&self) -> PathBuf {
        self.path.join("outputs")
    }

    /// Returns the folder of the project, for [`super::Durations`].
    pub fn project(&self) -> &Path {
        self.path.ancestors().nth(2).unwrap_or(&self.path)
    }

    /// Returns the folder of data that is too large for the database, named by digest.
    pub(super) fn blobs(&self) -> PathBuf {
        self.path.join("blobs")
    }
}

/// Returns the folder of the project at `workspace`, which must be a canonical path. The folder's
/// name is that of the workspace, with the start of a digest of the whole path. So a project that
/// is moved counts as another one.
pub fn project_dir(state: &Path, workspace: &Path) -> PathBuf {
    let name = workspace.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy().into_owned());
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let stem: String = name.chars().take(40).map(plain).collect();
    state.join(format!("{stem}-{}", &sha256(workspace.as_os_str().as_encoded_bytes())[..12]))
}

/// The number of folders that a project keeps. More would fill the disk when a lane runs at every
/// change of a file.
const KEPT: usize = 50;

/// The folder of one run of a lane: `<state>/<project>/lanes/<name>/`. The folder is kept at least
/// as long as this value exists.
#[derive(Debug)]
pub struct LaneDir {
    path: PathBuf,
    /// The system releases the lock when this process ends in any way. `None` if the folder cannot
    /// be locked.
    _lock: Option<FolderLock>,
}

impl LaneDir {
    /// Creates the folder in that of the project, and removes the oldest folders beyond the limit.
    /// Names must sort by time.
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub fn create(project: &Path, name: &str) -> Result<Self, StoreError> {
        let lanes = project.join("lanes");
        let path = lanes.join(name);
        make_private(&path)?;
        let lock = lock(&path).ok();
        prune(&lanes);
        Ok(Self { path, _lock: lock })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The subfolders that exist only during a run. A killed run leaves them behind.
const FLEETING: [&str; 2] = ["rooms", "caches"];

/// Removes the folders beyond the newest ones, as far as no run has them locked. From the others,
/// removes what killed runs left behind, since rooms are as large as the project.
fn prune(lanes: &Path) {
    let entries = fs::read_dir(lanes).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.sort_unstable();
    let surplus = folders.len().saturating_sub(KEPT);
    for folder in &folders[..surplus] {
        if let Ok(_lock) = lock(folder)
            && let Err(error) = clear(folder)
        {
            tracing::debug!(%error, "cannot remove old logs");
        }
    }
    let left = |folder: &PathBuf| FLEETING.map(|name| folder.join(name)).into_iter().filter(|left| left.exists());
    for folder in &folders[surplus..] {
        let left: Vec<PathBuf> = left(folder).collect();
        if !left.is_empty()
            && let Ok(_lock) = lock(folder)
        {
            for error in left.iter().filter_map(|left| clear(left).err()) {
                tracing::debug!(%error, "cannot remove a room that was left behind");
            }
        }
    }
}

/// Removes a project's logs of lanes by hand that are older than this and not being written.
/// Returns the number of bytes removed.
pub fn forget_lane_logs(project: &Path, age: Duration) -> u64 {
    let is_old = |path: &PathBuf| {
        let begun = fs::metadata(path).and_then(|meta| meta.modified());
        begun.is_ok_and(|begun| begun.elapsed().is_ok_and(|now| now > age))
    };
    let entries = fs::read_dir(project.join("lanes")).into_iter().flatten().flatten();
    let mut bytes = 0;
    for folder in entries.map(|entry| entry.path()).filter(is_old) {
        let Ok(_lock) = lock(&folder) else { continue };
        let size: u64 =
            WalkDir::new(&folder).into_iter().flatten().filter_map(|it| it.metadata().ok()).map(|it| it.len()).sum();
        match clear(&folder) {
            Ok(()) => bytes += size,
            Err(error) => tracing::debug!(%error, "cannot remove old logs"),
        }
    }
    bytes
}

/// A lock on a folder. It is released before the handle is closed, since programs that are being
/// started have copies of the handle.
#[derive(Debug)]
struct FolderLock(File);

impl Drop for FolderLock {
    fn drop(&mut self) {
        let _closing_unlocks_it_too = flock(&self.0, FlockOperation::Unlock);
    }
}

fn lock(folder: &Path) -> io::Result<FolderLock> {
    let folder = File::open(folder)?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
    Ok(FolderLock(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_projects_of_the_same_name_have_different_folders() {
        let folders = ["/a/app", "/b/app"].map(|path| project_dir(Path::new("/s"), Path::new(path)));
        assert!(folders.iter().all(|folder| folder.display().to_string().starts_with("/s/app-")));
        assert_ne!(folders[0], folders[1]);
    }

    #[test]
    fn old_logs_are_forgotten_unless_they_are_being_written() {
        let project = crate::test_support::temp_dir();
        let kept = LaneDir::create(project.path(), "1").unwrap();
        drop(LaneDir::create(project.path(), "2").unwrap());
        drop(LaneDir::create(project.path(), "3").unwrap());
        let at = |name: &str| project.path().join("lanes").join(name);
        fs::write(at("2").join("log"), "four").unwrap();
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        ["1", "2"].iter().for_each(|name| File::open(at(name)).unwrap().set_modified(long_ago).unwrap());
        let bytes = forget_lane_logs(project.path(), Duration::from_secs(3600));
        assert!(bytes >= 4 && kept.path().exists() && !at("2").exists() && at("3").exists());
    }

    #[test]
    fn the_room_that_a_killed_run_left_behind_goes_and_its_logs_stay() {
        let project = crate::test_support::temp_dir();
        let filled = |name: &str| {
            let run = LaneDir::create(project.path(), name).unwrap();
            FLEETING.iter().for_each(|left| fs::create_dir_all(run.path().join(left).join("a/b")).unwrap());
            fs::write(run.path().join("log"), "text").unwrap();
            run
        };
        let (killed, alive) = (filled("001"), filled("002"));
        let path = killed.path().to_owned();
        drop(killed);
        let next = filled("003");
        let has = |path: &Path| ["rooms", "caches", "log"].map(|name| path.join(name).exists());
        assert_eq!([has(&path), has(alive.path()), has(next.path())], [[false, false, true], [true; 3], [true; 3]]);
    }

    #[test]
    fn the_newest_folders_are_kept_and_those_that_are_in_use() {
        let project = crate::test_support::temp_dir();
        let create = |number: usize| LaneDir::create(project.path(), &format!("{number:03}")).unwrap();
        let first = create(0);
        fs::write(first.path().join("log"), "text").unwrap();
        (1..KEPT + 10).for_each(|number| drop(create(number)));
        let names = || {
            let entries = fs::read_dir(project.path().join("lanes")).unwrap().flatten();
            let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let newest: Vec<String> = (10..KEPT + 10).map(|number| format!("{number:03}")).collect();
        assert_eq!(names(), [&["000".to_owned()][..], &newest].concat());
        drop(first);
        drop(create(KEPT + 10));
        assert_eq!((names().len(), names()[0].as_str()), (KEPT, "011"));
    }
}
