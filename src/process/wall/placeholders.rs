//! What stands in a workspace as long as a wall needs it: empty folders where none may be made, and what bubblewrap has put in the place of a
//! socket that was gone. Who is behind a wall holds the folders, and only the last one removes them: without its folder a mount is gone, too.

use super::holes::Holes;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, Metadata};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// How often a folder is made that others are removing.
const TRIES: usize = 1000;
/// The permissions of a file that bubblewrap makes to mount something on.
const MADE: u32 = 0o444;

/// What was made for walls, until this is dropped. Also what a process has left that was killed before it could remove it.
#[derive(Debug, Default)]
pub struct Placeholders {
    _folders: Vec<Held>,
    covers: Mutex<Vec<PathBuf>>,
}

/// A folder that is held. The system lets go of it when this process is gone, however it ends.
#[derive(Debug)]
struct Held {
    path: PathBuf,
    folder: File,
}

impl Placeholders {
    /// Those of a wall with mounts: the folders that may not be made are there, and empty.
    pub(super) fn hold(holes: &Holes) -> Self {
        let held = holes.read_only.iter().filter(|path| is_missing(path)).filter_map(|path| Held::make(path));
        Self { _folders: held.collect(), covers: Mutex::default() }
    }

    /// Takes down where sockets are covered: one that is gone when the wall is built leaves an empty file.
    pub(super) fn mind<'p>(&self, covers: impl Iterator<Item = &'p Path>) {
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
    /// Makes the folder, where it is not there, and holds it. `None` where nobody can make one.
    fn make(path: &Path) -> Option<Self> {
        for _ in 0..TRIES {
            let _it_may_be_there = DirBuilder::new().mode(0o755).create(path);
            let flags = i32::try_from((rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW).bits()).ok()?;
            match File::options().read(true).custom_flags(flags).open(path) {
                Ok(folder) => {
                    let held = Self { path: path.to_owned(), folder };
                    // Who has it for themselves is removing it, and takes no time for that.
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

    /// Whether the folder of that name is still this one.
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

/// Whether nothing is there, or what has been put there for a wall; somebody may be removing it.
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

    fn holes(root: &Path) -> Holes {
        Holes { read_only: vec![root.join(".git"), root.join(".fledge")], ..Holes::default() }
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
        fs::create_dir(root.join(".fledge")).unwrap(); // left by somebody who was killed
        let (first, second) = (Placeholders::hold(&holes(root)), Placeholders::hold(&holes(root)));
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
        let held = Placeholders::hold(&holes(root));
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
                        let held = Placeholders::hold(&holes(&root));
                        assert_eq!(held._folders.len(), 2);
                        assert!(held._folders.iter().all(Held::is_there), "somebody removed what is in use");
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
        held.mind([made.as_path(), &own, &full].into_iter());
        drop(held);
        assert_eq!(names(dir.path()), ["full", "own"]);
    }
}
