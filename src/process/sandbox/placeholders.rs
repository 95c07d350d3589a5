//! Placeholders that a sandbox needs in a workspace. They are empty folders where programs must not
//! create any, and files that bubblewrap made in place of vanished sockets. Each run with a sandbox
//! holds the folders, and only the last one removes them: removing a folder also removes the mount
//! on it.

use super::path_rules::PathRules;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, Metadata};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The maximum number of attempts to make a folder that others are removing.
const TRIES: usize = 1000;
/// The permissions of a file that bubblewrap makes as a mount point.
const MADE: u32 = 0o444;

/// Placeholders that are removed on drop. They include those left by a process that was killed
/// before it could remove them.
#[derive(Debug, Default)]
pub struct Placeholders {
    _folders: Vec<Held>,
    covers: Mutex<Vec<PathBuf>>,
}

/// A folder that is held by a lock. The system releases the lock when this process ends, in any
/// way.
#[derive(Debug)]
struct Held {
    path: PathBuf,
    folder: File,
}

impl Placeholders {
    /// Makes and holds the folders that programs in a sandbox with mounts must not create. They are
    /// empty.
    pub(super) fn hold(rules: &PathRules) -> Self {
        let held = rules.read_only.iter().filter(|path| is_missing(path)).filter_map(|path| Held::make(path));
        Self { _folders: held.collect(), covers: Mutex::default() }
    }

    /// Records the paths of covered sockets. If a socket is gone when the sandbox is built, an
    /// empty file remains in its place.
    pub(super) fn record_sockets<'p>(&self, covers: impl Iterator<Item = &'p Path>) {
        let mut minded = self.covers.lock().unwrap_or_else(PoisonError::into_inner);
        for path in covers {
            if !minded.iter().any(|known| known == path) {
                minded.push(path.to_owned());
            }
        }
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        for path in self.covers.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let is_made = |meta: &Metadata| meta.is_file() && meta.len() == 0 && meta.mode() & 0o7777 == MADE;
            if path.symlink_metadata().is_ok_and(|meta| is_made(&meta)) {
                let _somebody_else_was_faster = fs::remove_file(path);
            }
        }
    }
}

impl Held {
    /// Makes the folder if it is missing, and holds it. `None` if it cannot be made.
    fn make(path: &Path) -> Option<Self> {
        for _ in 0..TRIES {
            let _it_may_be_there = DirBuilder::new().mode(0o755).create(path);
            let flags = i32::try_from((rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW).bits()).ok()?;
            match File::options().read(true).custom_flags(flags).open(path) {
                Ok(folder) => {
                    let held = Self { path: path.to_owned(), folder };
                    // A process with an exclusive lock is removing the folder, which takes no time.
                    if flock(&held.folder, FlockOperation::NonBlockingLockShared).is_ok() && held.is_there() {
                        return Some(held);
                    }
                }
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return None,
                Err(_) if !path.parent().is_some_and(Path::is_dir) => return None,
                Err(_) => {}
            }
            std::thread::yield_now();
        }
        None
    }

    /// Returns whether the path still leads to this folder.
    fn is_there(&self) -> bool {
        let same = |own: &Metadata, found: &Metadata| (own.dev(), own.ino()) == (found.dev(), found.ino());
        matches!((self.folder.metadata(), self.path.symlink_metadata()), (Ok(own), Ok(found)) if same(&own, &found))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if flock(&self.folder, FlockOperation::NonBlockingLockExclusive).is_ok() && self.is_there() {
            let _it_is_not_empty = fs::remove_dir(&self.path);
        }
    }
}

/// Returns whether nothing is at the path, or only an empty folder, which may be a placeholder that
/// another process is removing.
fn is_missing(path: &Path) -> bool {
    if path.is_symlink() {
        return false;
    }
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(root: &Path) -> PathRules {
        PathRules { read_only: vec![root.join(".git"), root.join(".fledge")], ..PathRules::default() }
    }

    fn names(root: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(root).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_last_who_needs_a_folder_removes_it_and_nobody_before() {
        let dir = crate::test_support::temp_dir();
        let root = dir.path();
        fs::create_dir(root.join(".fledge")).unwrap(); // left by a process that was killed
        let (first, second) = (Placeholders::hold(&rules(root)), Placeholders::hold(&rules(root)));
        assert_eq!(names(root), [".fledge", ".git"]);
        drop(first);
        assert_eq!(names(root), [".fledge", ".git"]);
        drop(second);
        assert_eq!(names(root), [""; 0]);
    }

    #[test]
    fn what_is_there_is_not_held_and_what_has_come_to_be_is_not_removed() {
        let dir = crate::test_support::temp_dir();
        let root = dir.path();
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(root.join(".git/HEAD"), "x").unwrap();
        let held = Placeholders::hold(&rules(root));
        fs::write(root.join(".fledge/new"), "y").unwrap();
        drop(held);
        assert!(root.join(".git/HEAD").exists() && root.join(".fledge/new").exists());
    }

    #[test]
    fn whoever_comes_while_a_folder_is_removed_has_one_all_the_same() {
        let dir = crate::test_support::temp_dir();
        let root = dir.path().to_owned();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        let held = Placeholders::hold(&rules(&root));
                        assert_eq!(held._folders.len(), 2);
                        assert!(held._folders.iter().all(Held::is_there), "a placeholder in use was removed");
                    }
                });
            }
        });
        assert_eq!(names(&root), [""; 0]);
    }

    #[test]
    fn only_what_bubblewrap_has_put_in_the_place_of_a_socket_is_removed() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = crate::test_support::temp_dir();
        let [made, own, full] = ["made", "own", "full"].map(|name| dir.path().join(name));
        for (path, text, mode) in [(&made, "", 0o444), (&own, "", 0o644), (&full, "x", 0o444)] {
            fs::write(path, text).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let held = Placeholders::default();
        held.record_sockets([made.as_path(), &own, &full].into_iter());
        drop(held);
        assert_eq!(names(dir.path()), ["full", "own"]);
    }
}
