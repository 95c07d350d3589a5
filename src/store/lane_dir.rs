//! Logs of lanes that were run by hand, in one folder for each run. A project keeps its newest
//! folders, and those that are being written.

use super::{StoreError, clear, make_private};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use walkdir::WalkDir;

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
