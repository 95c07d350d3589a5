//! Operations on single files and folders: private creation, atomic writes, bounded reads.

use super::StoreError;
use crate::fail_point::reach;
use ring::digest::{SHA256, digest};
use rustix::fs::OFlags;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The beginning and the end of a temporary file's name.
const TEMPORARY: (&str, &str) = (".fledge-", ".tmp");

/// Creates a folder and its parents, accessible to its owner alone.
///
/// # Errors
/// When a folder cannot be created.
pub fn make_private(folder: &Path) -> Result<(), StoreError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| StoreError::new("make the folder", folder, source))
}

/// Creates a folder like [`make_private`], and makes the names of new folders safe from a crash of
/// the machine.
pub(super) fn make_safely(folder: &Path) -> Result<(), StoreError> {
    let new: Vec<&Path> = folder.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
    make_private(folder)?;
    let above = new.into_iter().filter_map(Path::parent);
    above.map(|above| if above.as_os_str().is_empty() { Path::new(".") } else { above }).try_for_each(sync_folder)
}

/// Makes the names in a folder safe from a crash of the machine.
pub(super) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|source| StoreError::new("sync the folder", folder, source))
}

/// Returns the SHA-256 digest of some bytes, in lower-case hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns true if a folder, which may not exist yet, is `outer` or would be inside it. `outer`
/// must be a canonical path.
pub fn is_inside(folder: &Path, outer: &Path) -> bool {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    absolute.ancestors().find_map(|ancestor| ancestor.canonicalize().ok()).is_some_and(|real| real.starts_with(outer))
}

/// Writes a file whole or not at all, for its owner alone. The bytes go to a temporary file beside
/// it, which is synced and then renamed over it. Links are followed. An existing target that is not
/// a regular file, such as a pipe, is written to directly.
///
/// # Errors
/// When any step fails. The old file then remains, unless only the sync of its folder failed.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    write_over(path, bytes, 0o600)
}

/// Writes a file like [`write_whole`], but readable by everyone whom the umask allows, for files
/// that other users read.
///
/// # Errors
/// When any step fails. The old file then remains, unless only the sync of its folder failed.
pub fn write_shared(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    write_over(path, bytes, 0o666)
}

fn write_over(path: &Path, bytes: &[u8], mode: u32) -> Result<(), StoreError> {
    let fail = |source| StoreError::new("write", path, source);
    let is_handle = ["/dev/fd", "/dev/stdout", "/dev/stderr", "/proc"].iter().any(|place| path.starts_with(place));
    if is_handle || fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return OpenOptions::new().append(true).open(path).and_then(|mut file| file.write_all(bytes)).map_err(fail);
    }
    let path = &destination(path);
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY.0).suffix(TEMPORARY.1).permissions(fs::Permissions::from_mode(mode));
    let temporary = builder.tempfile_in(folder).map_err(fail)?;
    let _some_systems_know_no_locks = temporary.as_file().try_lock();
    // Writes to the plain file, since errors of a temporary one name a path that users do not know.
    reach("file", "begun").and_then(|()| temporary.as_file().write_all(bytes)).map_err(fail)?;
    temporary.as_file().sync_all().and_then(|()| reach("file", "written")).map_err(fail)?;
    temporary.persist(path).map_err(|error| fail(error.error))?;
    File::open(folder).and_then(|folder| folder.sync_all()).and_then(|()| reach("file", "done")).map_err(fail)
}

/// Removes temporary files beside `path` that a process left when it died. A file that is being
/// written is locked, and stays.
pub(super) fn tidy_beside(path: &Path) {
    let path = destination(path);
    for entry in path.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_ours = |name: &str| name.starts_with(TEMPORARY.0) && name.ends_with(TEMPORARY.1);
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let is_left = || File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if is_file && name.to_str().is_some_and(is_ours) && is_left() {
            let _it_does_no_harm = fs::remove_file(entry.path());
        }
    }
}

/// Follows the links of a path, whose target need not exist.
fn destination(path: &Path) -> PathBuf {
    const MOST_LINKS: usize = 40; // as the kernel does (path_resolution(7))
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

/// Writes a new file whole or not at all, readable by everyone whom the umask allows. Returns
/// `Ok(false)` if the file exists, and leaves it unchanged.
///
/// # Errors
/// When any step fails. The file then does not exist, unless only the sync of its folder failed.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<bool, StoreError> {
    let fail = |source| StoreError::new("write", path, source);
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    let temporary = builder.permissions(fs::Permissions::from_mode(0o666)).tempfile_in(folder).map_err(fail)?;
    temporary.as_file().write_all(bytes).and_then(|()| temporary.as_file().sync_all()).map_err(fail)?;
    match temporary.persist_noclobber(path) {
        Ok(_) => File::open(folder).and_then(|folder| folder.sync_all()).map(|()| true).map_err(fail),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(fail(error.error)),
    }
}

/// A text that is not UTF-8, as the source of a [`StoreError`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.why())]
pub struct NotUtf8 {
    /// The line of the first wrong byte, from 1.
    pub line: usize,
    /// Its column, in characters, from 1.
    pub column: usize,
    /// A description of what was found there; `None` for a binary file.
    pub found: Option<String>,
}

impl NotUtf8 {
    fn why(&self) -> String {
        let Self { line, column, found } = self;
        match found {
            Some(found) => format!("not UTF-8: {found} in line {line}, column {column}; save it as UTF-8"),
            None => "it is a binary file, not text".into(),
        }
    }
}

/// Reads a text file of at most `limit` bytes, and does not wait for a pipe. Returns `Ok(None)` if
/// the file does not exist.
///
/// # Errors
/// When the file cannot be read, is larger, or is not UTF-8; the cause of the last is [`NotUtf8`].
pub fn read_text(path: &Path, limit: usize) -> Result<Option<String>, StoreError> {
    let fail = |source| StoreError::new("read", path, source);
    match read_file(path, limit) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fail(error)),
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|error| {
            let why = not_utf8(error.as_bytes(), error.utf8_error().valid_up_to());
            fail(io::Error::new(io::ErrorKind::InvalidData, why))
        }),
    }
}

fn read_file(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let too_large = |bytes: &str| io::Error::other(format!("it has {bytes} bytes, and the limit is {limit}"));
    let is_right = |meta: fs::Metadata| match kind(meta.file_type()) {
        Some(kind) => Err(io::Error::other(format!("it is {kind}, not a regular file"))),
        None if meta.len() > limit as u64 => Err(too_large(&meta.len().to_string())),
        None => Ok(()),
    };
    is_right(fs::metadata(path)?)?;
    // The path may lead to another file by now: a pipe would block, and a device has no end.
    let unwaiting = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(unwaiting).open(path)?;
    is_right(file.metadata()?)?;
    let mut bytes = Vec::new();
    file.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > limit { Err(too_large(&format!("more than {limit}"))) } else { Ok(bytes) }
}

/// Returns a name for a file that is not regular, such as a pipe.
fn kind(kind: fs::FileType) -> Option<&'static str> {
    match kind {
        kind if kind.is_file() => None,
        kind if kind.is_dir() => Some("a folder"),
        kind if kind.is_fifo() => Some("a pipe"),
        kind if kind.is_socket() => Some("a socket"),
        _ => Some("a device"),
    }
}

fn not_utf8(bytes: &[u8], valid: usize) -> NotUtf8 {
    let before = String::from_utf8_lossy(&bytes[..valid]);
    let line = before.rsplit('\n').next().unwrap_or_default();
    let found = match bytes {
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => Some("this is UTF-16".into()),
        _ if bytes.contains(&0) => None,
        _ => Some(format!("the byte 0x{:02X}", bytes[valid])),
    };
    NotUtf8 { line: before.matches('\n').count() + 1, column: line.chars().count() + 1, found }
}

/// Removes a folder with its content, including folders that are closed to their owner, as
/// overlayfs leaves them.
///
/// # Errors
/// [`io::Error`] if something cannot be removed. A missing folder is not an error.
pub fn clear(folder: &Path) -> io::Result<()> {
    let gone = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    };
    if folder.symlink_metadata().is_ok_and(|meta| !meta.is_dir()) {
        return gone(fs::remove_file(folder));
    }
    if gone(fs::remove_dir_all(folder)).is_ok() {
        return Ok(());
    }
    let mut ahead = vec![folder.to_owned()];
    while let Some(folder) = ahead.pop() {
        let _removing_will_say = fs::set_permissions(&folder, Permissions::from_mode(0o700));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        ahead.extend(
            entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
        );
    }
    gone(fs::remove_dir_all(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_closed_to_its_owner_is_cleared_too_and_links_are_not_followed() {
        let dir = crate::test_support::temp_dir();
        let (room, outside) = (dir.path().join("room"), dir.path().join("outside"));
        fs::create_dir_all(room.join("a/b")).unwrap();
        fs::write(room.join("a/b/c"), "c").unwrap();
        fs::write(&outside, "stays").unwrap();
        std::os::unix::fs::symlink(&outside, room.join("link")).unwrap();
        for closed in ["a/b", "a"] {
            fs::set_permissions(room.join(closed), Permissions::from_mode(0o000)).unwrap();
        }
        clear(&room).unwrap();
        assert!(!room.exists() && outside.exists());
        clear(&room).unwrap();
    }

    #[test]
    fn a_folder_is_inside_however_it_is_named() {
        let dir = crate::test_support::temp_dir();
        let root = dir.path().canonicalize().unwrap();
        let (outer, outside) = (root.join("outer"), root.join("outside"));
        fs::create_dir_all(outer.join("in")).unwrap();
        fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outer, root.join("link")).unwrap();
        for (folder, is) in
            [("outer/in/new/x", true), ("link/new", true), ("outer", true), ("outside/x", false), ("outer2", false)]
        {
            assert_eq!(is_inside(&root.join(folder), &outer), is, "{folder}");
        }
    }

    #[test]
    fn a_link_is_written_through_and_a_pipe_is_written_to() {
        let dir = crate::test_support::temp_dir();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        write_whole(&link, b"new").unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        write_whole(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_file_that_cannot_be_written_keeps_its_old_content() {
        let dir = crate::test_support::temp_dir();
        let path = dir.path().join("missing").join("report.json");
        assert!(write_whole(&path, b"new").is_err());
        let path = dir.path().join("report.json");
        write_whole(&path, b"old").unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn what_is_too_large_or_no_file_is_not_read() {
        let dir = crate::test_support::temp_dir();
        let path = dir.path().join("text");
        assert_eq!(read_text(&path, 4).unwrap(), None);
        fs::write(&path, "text").unwrap();
        assert_eq!(read_text(&path, 4).unwrap(), Some("text".into()));
        assert!(read_text(&path, 3).is_err());
        assert!(read_text(dir.path(), 4).is_err());
    }

    #[test]
    fn a_new_file_is_never_written_over_another_one() {
        let dir = crate::test_support::temp_dir();
        let path = dir.path().join("lane.yaml");
        assert!(write_new(&path, b"first").unwrap());
        assert!(!write_new(&path, b"second").unwrap());
        std::os::unix::fs::symlink("nowhere", dir.path().join("link")).unwrap();
        assert!(!write_new(&dir.path().join("link"), b"third").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
