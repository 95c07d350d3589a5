//! A place for a file, found once and held by the handle of its directory. All checks and
//! operations concern the same place, even if the path to it changes in between.

use super::{JailEntryKind, JailError, Metadata, OpenFolder, RelPath, wrong};
use std::fs::File;
use std::io::{self, Read};

/// The place of a file that exists or could be made.
#[derive(Debug)]
pub struct JailPlace {
    folder: OpenFolder,
    /// The directories to make below `folder` first.
    unmade: Vec<String>,
    name: String,
    real: RelPath,
}

impl JailPlace {
    /// Returns the place `first` in `folder` if `ahead` is empty, else a place in directories that
    /// do not exist yet.
    pub(super) fn new(folder: OpenFolder, real: RelPath, first: String, ahead: Vec<String>) -> Result<Self, JailError> {
        if ahead.iter().any(|name| name == "..") {
            return Err(JailError::Missing { path: real }); // only a link can ask for `missing/..`
        }
        let mut place = Self { folder, unmade: Vec::new(), name: first, real };
        for name in ahead.into_iter().rev() {
            place.real = place.real.join(&name);
            place.unmade.push(std::mem::replace(&mut place.name, name));
        }
        Ok(place)
    }

    /// Returns the path with every link followed.
    pub fn real(&self) -> &RelPath {
        &self.real
    }

    /// Returns the properties of the entry; `None` if none exists.
    ///
    /// # Errors
    /// [`JailError::Io`] if the system cannot read them.
    pub fn metadata(&self) -> Result<Option<Metadata>, JailError> {
        if !self.unmade.is_empty() {
            return Ok(None);
        }
        self.folder.metadata(self.name.as_ref()).map_err(|source| self.failed(source))
    }

    /// Opens the regular file.
    ///
    /// # Errors
    /// [`JailError`] if no entry exists, or one of another kind.
    pub fn open(&self) -> Result<File, JailError> {
        match self.metadata()? {
            None => Err(JailError::Missing { path: self.real.clone() }),
            Some(Metadata { kind: JailEntryKind::File, .. }) => {
                self.folder.file(self.name.as_ref()).map_err(|source| self.failed(source))
            }
            Some(other) => Err(wrong(&self.real, other.kind, JailEntryKind::File)),
        }
    }

    /// Reads the regular file, at most `limit` bytes.
    ///
    /// # Errors
    /// [`JailError`] if no entry exists, one of another kind, or a file with more than `limit`
    /// bytes.
    pub fn read(&self, limit: u64) -> Result<Vec<u8>, JailError> {
        let mut bytes = Vec::new();
        let mut file = self.open()?;
        (&mut file).take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|source| self.failed(source))?;
        if bytes.len() as u64 > limit {
            let length = file.metadata().map_or(0, |metadata| metadata.len()).max(bytes.len() as u64);
            return Err(JailError::TooLarge { path: self.real.clone(), bytes: length, limit });
        }
        Ok(bytes)
    }

    /// Writes the file completely or not at all, and makes its directories. When this returns, the
    /// file is on the disk. An existing file keeps its permission bits; a new one gets `new_mode`
    /// less the umask.
    ///
    /// # Errors
    /// [`JailError`] if there is an entry that is not a file, or the file cannot be written.
    pub fn write(&self, bytes: &[u8], new_mode: u32) -> Result<(), JailError> {
        if let Some(Metadata {
            kind: other @ (JailEntryKind::Folder | JailEntryKind::Link | JailEntryKind::Special),
            ..
        }) = self.metadata()?
        {
            return Err(wrong(&self.real, other, JailEntryKind::File));
        }
        self.put(bytes, new_mode).map_err(|source| self.failed(source))
    }

    fn put(&self, bytes: &[u8], new_mode: u32) -> io::Result<()> {
        let mut folder = self.folder.again()?;
        for name in &self.unmade {
            folder = folder.make(name.as_ref())?;
        }
        folder.replace(self.name.as_ref(), bytes, new_mode)
    }

    /// Removes the file, link or special file.
    ///
    /// # Errors
    /// [`JailError`] if no entry exists, or a directory.
    pub fn delete(&self) -> Result<(), JailError> {
        match self.metadata()? {
            None => Err(JailError::Missing { path: self.real.clone() }),
            Some(Metadata { kind: JailEntryKind::Folder, .. }) => {
                Err(wrong(&self.real, JailEntryKind::Folder, JailEntryKind::File))
            }
            Some(_) => self.folder.remove(self.name.as_ref()).map_err(|source| self.failed(source)),
        }
    }

    /// Removes temporary files that a process left in the directory when it died during a write.
    ///
    /// # Errors
    /// [`JailError::Io`] if one cannot be removed.
    pub fn tidy(&self) -> Result<(), JailError> {
        self.folder.tidy().map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> JailError {
        JailError::Io { path: self.real.clone(), source }
    }
}
