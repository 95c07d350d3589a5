//! A place for a file: found once, held by its directory's handle. What is checked about it and what is done to it are about
//! the same place, whatever becomes of the path in between.

use super::{Folder, JailError, Kind, Metadata, RelPath, wrong};
use std::fs::File;
use std::io::{self, Read};

/// Where a file is or could be.
#[derive(Debug)]
pub struct Place {
    folder: Folder,
    /// The directories that must be made below `folder` first.
    unmade: Vec<String>,
    name: String,
    real: RelPath,
}

impl Place {
    /// The place `first` in `folder` when nothing is `ahead`, else one in directories that are not there yet.
    pub(super) fn new(folder: Folder, real: RelPath, first: String, ahead: Vec<String>) -> Result<Self, JailError> {
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

    /// Its path with every link followed.
    pub fn real(&self) -> &RelPath {
        &self.real
    }

    /// What is there; `None` when nothing is.
    ///
    /// # Errors
    /// [`JailError::Io`].
    pub fn metadata(&self) -> Result<Option<Metadata>, JailError> {
        if !self.unmade.is_empty() {
            return Ok(None);
        }
        self.folder.metadata(self.name.as_ref()).map_err(|source| self.failed(source))
    }

    /// Opens the regular file that is there.
    ///
    /// # Errors
    /// [`JailError`] when nothing or something else is there.
    pub fn open(&self) -> Result<File, JailError> {
        match self.metadata()? {
            None => Err(JailError::Missing { path: self.real.clone() }),
            Some(Metadata { kind: Kind::File, .. }) => {
                self.folder.file(self.name.as_ref()).map_err(|source| self.failed(source))
            }
            Some(other) => Err(wrong(&self.real, other.kind, Kind::File)),
        }
    }

    /// The bytes of the regular file that is there, `limit` at most.
    ///
    /// # Errors
    /// [`JailError`] when nothing, something else, or more than `limit` bytes are there.
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

    /// Puts a file with these bytes there, whole or not at all and on the disk when this returns; makes its directories. A
    /// file that was there gives its permission bits, a new one gets `new_mode` less the umask.
    ///
    /// # Errors
    /// [`JailError`] when something that is no file is there, or it can't be written.
    pub fn write(&self, bytes: &[u8], new_mode: u32) -> Result<(), JailError> {
        if let Some(Metadata { kind: other @ (Kind::Folder | Kind::Link | Kind::Special), .. }) = self.metadata()? {
            return Err(wrong(&self.real, other, Kind::File));
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

    /// Removes the file, link or special file that is there.
    ///
    /// # Errors
    /// [`JailError`] when nothing or a directory is there.
    pub fn delete(&self) -> Result<(), JailError> {
        match self.metadata()? {
            None => Err(JailError::Missing { path: self.real.clone() }),
            Some(Metadata { kind: Kind::Folder, .. }) => Err(wrong(&self.real, Kind::Folder, Kind::File)),
            Some(_) => self.folder.remove(self.name.as_ref()).map_err(|source| self.failed(source)),
        }
    }

    /// Removes what a process has left beside it that died while it wrote there.
    ///
    /// # Errors
    /// [`JailError::Io`].
    pub fn tidy(&self) -> Result<(), JailError> {
        self.folder.tidy().map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> JailError {
        JailError::Io { path: self.real.clone(), source }
    }
}
