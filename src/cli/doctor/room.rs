//! Whether files can be written in a folder, and how much more of them there can be.

use rustix::fs::{Access, access, statvfs};
use std::io::{Error, ErrorKind, Write as _};
use std::path::Path;

/// Bytes that are written to see whether they can be.
const TRIAL: usize = 64 * 1024;

/// Why no file can be written there, if none can.
pub(super) fn refusal(folder: &Path) -> Option<Error> {
    // Root may write everywhere by its rights, and yet cannot on some file systems, or on one that is full.
    let write = || tempfile::tempfile_in(folder).and_then(|mut file| file.write_all(&[1; TRIAL]));
    access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(Error::from).and_then(|()| write()).err()
}

/// Whether that is for want of room.
pub(super) fn is_for_room(why: &Error) -> bool {
    matches!(why.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Bytes that are free in a folder's file system.
pub(super) fn free(folder: &Path) -> u64 {
    statvfs(folder).map_or(0, |about| about.f_bavail.saturating_mul(about.f_frsize))
}

/// Whether its file system takes no further file: its bytes or its entries are used up.
pub(super) fn is_full(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|about| about.f_bavail == 0 || (about.f_files > 0 && about.f_favail == 0))
}
