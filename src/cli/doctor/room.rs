//! Checks that a folder can be written and has room.

use rustix::fs::{Access, access, statvfs};
use std::io::{Error, ErrorKind, Write as _};
use std::path::Path;

/// Bytes to write as a trial.
const TRIAL: usize = 64 * 1024;

/// Returns the error if no file can be written to the folder.
pub(super) fn refusal(folder: &Path) -> Option<Error> {
    // Root has the right to write everywhere, but cannot on some file systems, or on a full one.
    let write = || tempfile::tempfile_in(folder).and_then(|mut file| file.write_all(&[1; TRIAL]));
    access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(Error::from).and_then(|()| write()).err()
}

/// Returns true if the cause is a lack of room.
pub(super) fn is_for_room(why: &Error) -> bool {
    matches!(why.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Returns the free bytes of a folder's file system.
pub(super) fn free(folder: &Path) -> u64 {
    statvfs(folder).map_or(0, |about| about.f_bavail.saturating_mul(about.f_frsize))
}

/// Returns true if the folder's file system takes no further file: its bytes or its entries are
/// used up.
pub(super) fn is_full(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|about| about.f_bavail == 0 || (about.f_files > 0 && about.f_favail == 0))
}
