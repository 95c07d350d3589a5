//! The folders that tests write to: in memory if the machine has room, since tests remove most
//! files within a second.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tempfile::TempDir;

/// The free space, in bytes, that a file system in memory must have. The whole suite needs a fifth
/// of it.
const ROOM: u64 = 1 << 30;

/// `TMPDIR` if it is set, else `/dev/shm` if it has room, else the temporary folder of the system.
static PLACE: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let has_room =
        || rustix::fs::statvfs(memory).is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) >= ROOM);
    let is_usable = env::var_os("TMPDIR").is_none() && has_room() && tempfile::tempdir_in(memory).is_ok();
    if is_usable { memory.to_owned() } else { env::temp_dir() }
});

/// Returns the folder in which tests make their folders.
pub(crate) fn place() -> &'static Path {
    &PLACE
}

/// Returns a new folder in [`place`], which is removed when it is dropped.
pub(crate) fn temp_dir() -> TempDir {
    tempfile::tempdir_in(place()).unwrap()
}

/// Returns a new folder outside of `/dev`, which Landlock hides from the programs in the sandbox.
pub(crate) fn temp_dir_on_disk() -> TempDir {
    tempfile::tempdir_in(place_on_disk()).unwrap()
}

/// Returns the folder for tests behind Landlock.
pub(crate) fn place_on_disk() -> PathBuf {
    Some(env::temp_dir()).filter(|place| !place.starts_with("/dev")).unwrap_or_else(|| "/var/tmp".into())
}
