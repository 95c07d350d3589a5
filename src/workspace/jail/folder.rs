//! An open directory. Its entries are opened by a single name and without following links, so
//! changes of the path above cannot lead elsewhere. Only this file of the jail opens files by name.

use crate::fail_point::reach;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path};
use std::sync::atomic::{AtomicU64, Ordering};

/// The flags of every open. A symbolic link is an error, and opening a pipe does not wait for its
/// other end.
const SAFE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

/// Prefix and suffix of the names of temporary files.
const TEMPORARY: (&[u8], &[u8]) = (b".fledge-", b".tmp");

/// An open directory.
#[derive(Debug)]
pub struct OpenFolder(OwnedFd);

/// The kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JailEntryKind {
    /// A regular file.
    File,
    /// A directory.
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe, a socket, or a device.
    Special,
}

/// The properties of an entry, read without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// The kind of the entry.
    pub kind: JailEntryKind,
    /// The size in bytes.
    pub bytes: u64,
    /// The permission bits.
    pub mode: u32,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// The name, which need not be UTF-8.
    pub name: OsString,
    /// The kind of the entry.
    pub kind: JailEntryKind,
}

impl OpenFolder {
    /// Opens a directory by its path and follows links. Only for a root that the user names.
    pub(in crate::workspace) fn open_root(path: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// Opens a directory by an absolute path in which no name may be a link.
    pub(in crate::workspace) fn open_unlinked(path: &Path) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        const PASSED: OFlags = OFlags::PATH; // also opens a folder that may be entered but not read
        #[cfg(not(target_os = "linux"))]
        const PASSED: OFlags = OFlags::empty();
        let flags = SAFE | OFlags::DIRECTORY | PASSED;
        let mut folder = rustix::fs::open("/", flags, Mode::empty())?;
        for part in path.components() {
            match part {
                Component::RootDir => {}
                Component::Normal(name) => folder = rustix::fs::openat(&folder, name, flags, Mode::empty())?,
                Component::Prefix(_) | Component::CurDir | Component::ParentDir => {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
            }
        }
        Ok(Self(rustix::fs::openat(&folder, ".", SAFE | OFlags::DIRECTORY, Mode::empty())?))
    }

    /// Returns a second handle on the same directory.
    ///
    /// # Errors
    /// If the process has no more handles.
    pub fn again(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Returns the entries, sorted by the bytes of their names.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn entries(&self) -> io::Result<Vec<FolderEntry>> {
        let mut entries = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => self.metadata(&name)?.map(|metadata| metadata.kind),
                known => Some(known.into()),
            };
            entries.extend(kind.map(|kind| FolderEntry { name, kind }));
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Returns the properties of `name`; `None` if the entry does not exist.
    ///
    /// # Errors
    /// If the system cannot read the properties.
    pub fn metadata(&self, name: &OsStr) -> io::Result<Option<Metadata>> {
        match rustix::fs::statat(&self.0, single(name)?, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Metadata {
                kind: FileType::from_raw_mode(stat.st_mode).into(),
                bytes: u64::try_from(stat.st_size).unwrap_or(0),
                mode: stat.st_mode & 0o777,
            })),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the directory `name`; a link to a directory is an error.
    ///
    /// # Errors
    /// If `name` is not a directory or cannot be opened.
    pub fn folder(&self, name: &OsStr) -> io::Result<Self> {
        Ok(Self(rustix::fs::openat(&self.0, single(name)?, SAFE | OFlags::DIRECTORY, Mode::empty())?))
    }

    /// Opens the regular file `name` for reading. A pipe or device is not opened, unless it
    /// replaces the file between the check and the open.
    ///
    /// # Errors
    /// `InvalidInput` if `name` is not a regular file, else the reason why it cannot be opened.
    pub fn file(&self, name: &OsStr) -> io::Result<File> {
        let other = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
        match self.metadata(name)? {
            Some(Metadata { kind: JailEntryKind::File, .. }) => {}
            Some(_) => return Err(other()),
            None => return Err(io::ErrorKind::NotFound.into()),
        }
        let file = File::from(rustix::fs::openat(&self.0, single(name)?, SAFE | OFlags::RDONLY, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(other()) }
    }

    /// Returns the target of the symbolic link `name`.
    ///
    /// # Errors
    /// If `name` is not a link.
    pub fn link(&self, name: &OsStr) -> io::Result<OsString> {
        let target = rustix::fs::readlinkat(&self.0, single(name)?, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()))
    }

    /// Makes the directory `name` if it does not exist, and opens it.
    pub(in crate::workspace) fn make(&self, name: &OsStr) -> io::Result<Self> {
        match rustix::fs::mkdirat(&self.0, single(name)?, Mode::from_raw_mode(0o777)) {
            Ok(()) => self.sync_names()?,
            Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        self.folder(name)
    }

    /// Writes a file completely or not at all. An existing file keeps its permission bits; a new
    /// one gets `new_mode` less the umask.
    pub(super) fn replace(&self, name: &OsStr, bytes: &[u8], new_mode: u32) -> io::Result<()> {
        let old_mode = self.metadata(name)?.filter(|old| old.kind == JailEntryKind::File).map(|old| old.mode);
        self.put(name, bytes, new_mode, old_mode)
    }

    /// Writes a file like [`Self::replace`], but with the permission bits `mode` if they are given,
    /// and otherwise `new_mode` less the umask.
    pub(in crate::workspace) fn put(
        &self,
        name: &OsStr,
        bytes: &[u8],
        new_mode: u32,
        mode: Option<u32>,
    ) -> io::Result<()> {
        self.put_as("workspace file", name, bytes, new_mode, mode)
    }

    /// Writes a file like [`Self::put`]; `work` is its name at fail points.
    pub(in crate::workspace) fn put_as(
        &self,
        work: &str,
        name: &OsStr,
        bytes: &[u8],
        new_mode: u32,
        mode: Option<u32>,
    ) -> io::Result<()> {
        let (temporary, file) = self.temporary(if mode.is_some() { 0o600 } else { new_mode })?;
        let placed = reach(work, "begun")
            .and_then(|()| fill(file, bytes, mode))
            .and_then(|()| reach(work, "written"))
            .and_then(|()| Ok(rustix::fs::renameat(&self.0, temporary.as_os_str(), &self.0, single(name)?)?));
        match placed {
            Ok(()) => self.sync_names().and_then(|()| reach(work, "done")),
            Err(error) => {
                let _ = self.remove(&temporary); // the first error is the one to report
                Err(error)
            }
        }
    }

    /// Makes or replaces a symbolic link in one step.
    pub(in crate::workspace) fn put_link(&self, name: &OsStr, target: &OsStr) -> io::Result<()> {
        let temporary = loop {
            let temporary = temporary_name();
            match rustix::fs::symlinkat(target, &self.0, temporary.as_os_str()) {
                Ok(()) => break temporary,
                Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        };
        let placed = rustix::fs::renameat(&self.0, temporary.as_os_str(), &self.0, single(name)?);
        placed.map_err(io::Error::from).or_else(|error| self.remove(&temporary).and(Err(error)))?;
        self.sync_names()
    }

    /// Removes the empty directory `name`.
    pub(in crate::workspace) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        rustix::fs::unlinkat(&self.0, single(name)?, AtFlags::REMOVEDIR)?;
        self.sync_names()
    }

    /// Removes the file or link `name`.
    pub(in crate::workspace) fn remove(&self, name: &OsStr) -> io::Result<()> {
        rustix::fs::unlinkat(&self.0, single(name)?, AtFlags::empty())?;
        self.sync_names()
    }

    /// Syncs the names in the directory to the disk. Some file systems do not support this.
    fn sync_names(&self) -> io::Result<()> {
        match rustix::fs::fsync(&self.0) {
            Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the temporary files of processes that died while they wrote here. A file that is
    /// being written is locked and stays.
    pub(in crate::workspace) fn tidy(&self) -> io::Result<()> {
        for FolderEntry { name, kind } in self.entries()? {
            let is_ours = name.as_bytes().starts_with(TEMPORARY.0) && name.as_bytes().ends_with(TEMPORARY.1);
            if is_ours && kind == JailEntryKind::File && self.file(&name).is_ok_and(|file| file.try_lock().is_ok()) {
                self.remove(&name)?;
            }
        }
        Ok(())
    }

    fn temporary(&self, mode: u32) -> io::Result<(OsString, File)> {
        loop {
            let name = temporary_name();
            let flags = SAFE | OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
            match rustix::fs::openat(&self.0, name.as_os_str(), flags, Mode::from_raw_mode(mode)) {
                Ok(handle) => {
                    let file = File::from(handle);
                    let _some_systems_know_no_locks = file.try_lock();
                    return Ok((name, file));
                }
                Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl From<FileType> for JailEntryKind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Special,
        }
    }
}

fn temporary_name() -> OsString {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!(".fledge-{}-{number}.tmp", std::process::id()).into()
}

fn fill(mut file: File, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    file.write_all(bytes)?;
    if let Some(mode) = mode {
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
    }
    file.sync_all()
}

/// Returns an error unless `name` is a single name. All callers pass a single name, but the safety
/// of the jail depends on it, so it is checked here again.
fn single(name: &OsStr) -> io::Result<&OsStr> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a single name"));
    }
    Ok(name)
}
