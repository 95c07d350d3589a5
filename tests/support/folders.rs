//! Where tests write: in memory if the machine has room for that, since most of what they write is
//! gone a second later.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tempfile::TempDir;

/// The free space, in bytes, that a file system in memory must have: the whole suite needs a fifth.
const ROOM: u64 = 1 << 30;

/// `TMPDIR` if it is set, else `/dev/shm` if it has room, else the temporary folder of the system.
static PLACE: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let has_room =
        || rustix::fs::statvfs(memory).is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) >= ROOM);
    let is_usable = env::var_os("TMPDIR").is_none() && has_room() && tempfile::tempdir_in(memory).is_ok();
    if is_usable { memory.to_owned() } else { env::temp_dir() }
});

/// Returns the folder in which tests make theirs.
pub(crate) fn place() -> &'static Path {
    &PLACE
}

/// Returns a new folder there, which is removed when it is dropped.
pub(crate) fn temp_dir() -> TempDir {
    tempfile::tempdir_in(place()).unwrap()
}

/// Returns a new folder outside of `/dev`, of which a program behind Landlock sees nothing.
pub(crate) fn temp_dir_on_disk() -> TempDir {
    let place = env::temp_dir();
    tempfile::tempdir_in(if place.starts_with("/dev") { Path::new("/var/tmp") } else { &place }).unwrap()
}
