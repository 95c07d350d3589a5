//! Access to files below one root, and to no others. The jail follows a path itself, name by name,
//! from one directory handle to the next; the kernel never does. So `..`, absolute paths and
//! symbolic links cannot lead outside, even if a link appears between a check and its use. The jail
//! knows the real path of a file before it does anything there.

mod folder;
mod path;
mod place;

pub use folder::{FolderEntry, JailEntryKind, Metadata, OpenFolder};
pub use path::RelPath;
pub use place::JailPlace;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// The maximum number of symbolic links that one path may go through: the limit of Linux.
const MAX_LINKS: usize = 40;

/// A root directory that stays open.
#[derive(Debug)]
pub struct Jail {
    root: OpenFolder,
    /// The root's path without links.
    real: PathBuf,
    /// The root's path as it was given. Absolute paths may start with either path.
    named: PathBuf,
}

/// The treatment of a link at the very end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinalLink {
    /// Follow the link: the place is its target.
    Follow,
    /// Do not follow the link: the place is the link itself.
    Keep,
}

/// The target of a path.
#[derive(Debug)]
pub enum LocatedPath {
    /// A directory, with its path free of links.
    Folder(OpenFolder, RelPath),
    /// Anything else, or nothing yet.
    Place(JailPlace),
}

/// The reason why a path or a file is refused, as a sentence for the model that named it.
#[derive(Debug, thiserror::Error)]
pub enum JailError {
    /// The root is not a directory that can be a workspace.
    #[error("cannot open `{}` as a workspace", path.display())]
    Root {
        /// The root.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The path is empty.
    #[error("the path is empty (the workspace itself is `.`)")]
    Empty,
    /// The path has a control character, such as NUL or a line break.
    #[error("{path:?} contains a control character")]
    ControlCharacter {
        /// The path.
        path: String,
    },
    /// The path is longer or deeper than allowed.
    #[error("the path `{start}…` is too long or too deep")]
    TooLong {
        /// The start of the path.
        start: String,
    },
    /// The path, or a link in it, leads outside of the root.
    #[error("`{path}` leads outside the workspace")]
    Outside {
        /// The path as it was given.
        path: String,
    },
    /// The path goes through too many links, probably in a circle.
    #[error("`{path}` goes through too many symbolic links")]
    TooManyLinks {
        /// The path.
        path: RelPath,
    },
    /// The path does not exist.
    #[error("`{path}` does not exist")]
    Missing {
        /// The path.
        path: RelPath,
    },
    /// There is an entry of another kind.
    #[error("`{path}` is {found}, not {wanted}")]
    WrongKind {
        /// The path.
        path: RelPath,
        /// The kind of the entry, with its article.
        found: &'static str,
        /// The kind that was asked for, with its article.
        wanted: &'static str,
    },
    /// The file is larger than the limit of one read.
    #[error("`{path}` has {bytes} bytes, more than the limit of {limit} for one read")]
    TooLarge {
        /// The path.
        path: RelPath,
        /// The size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The file system refuses the operation.
    #[error("`{path}`: {source}")]
    Io {
        /// The path.
        path: RelPath,
        /// The error of the system.
        source: io::Error,
    },
}

impl Jail {
    /// Opens a root.
    ///
    /// # Errors
    /// [`JailError::Root`] if `root` is not a directory. Also if it is the root of the file system,
    /// because then `/proc` would be inside.
    pub fn open(root: &Path) -> Result<Self, JailError> {
        let failed = |source| JailError::Root { path: root.into(), source };
        let real = root.canonicalize().map_err(failed)?;
        if real.parent().is_none() {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is the root of the file system")));
        }
        // Open the path as given: a canonical path of another mount namespace is valid only there.
        Ok(Self { root: OpenFolder::open_root(root).map_err(failed)?, real, named: root.into() })
    }

    /// Opens a root like [`Jail::open`], but reads its contents through the path `seen`. That path
    /// leads into a namespace with other mounts.
    ///
    /// # Errors
    /// As for [`Jail::open`].
    pub fn open_seen(root: &Path, seen: &Path) -> Result<Self, JailError> {
        let failed = |source| JailError::Root { path: root.into(), source };
        Ok(Self { root: OpenFolder::open_root(seen).map_err(failed)?, ..Self::open(root)? })
    }

    /// Makes a directory that only its owner may enter, and opens it as a root.
    ///
    /// # Errors
    /// As for [`Jail::open`].
    pub fn make(root: &Path) -> Result<Self, JailError> {
        use std::os::unix::fs::DirBuilderExt;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(root);
        made.map_err(|source| JailError::Root { path: root.into(), source })?;
        Self::open(root)
    }

    /// Returns an absolute path or pattern relative to the root, without further checks; `None` if
    /// it starts elsewhere.
    pub fn inside<'t>(&self, text: &'t str) -> Option<&'t str> {
        path::relative(text, &self.names()).filter(|_| text.starts_with('/'))
    }

    /// Returns the root's path without links.
    pub fn root(&self) -> &Path {
        &self.real
    }

    /// Checks a path that a model wrote, without looking at the file system.
    ///
    /// # Errors
    /// [`JailError`] if the path is empty, too long, has a control character, or leads outside when
    /// `..` is resolved by name.
    pub fn path(&self, text: &str) -> Result<RelPath, JailError> {
        RelPath::parse(text, &self.names())
    }

    /// Finds the place at the end of a path and follows links. Neither the file nor its directory
    /// need exist.
    ///
    /// # Errors
    /// [`JailError`] if a link leads outside, or the path goes through a file or leads to a
    /// directory.
    pub fn locate(&self, path: &RelPath, last: FinalLink) -> Result<JailPlace, JailError> {
        match self.find(path, last)? {
            LocatedPath::Place(place) => Ok(place),
            LocatedPath::Folder(..) => Err(wrong(path, JailEntryKind::Folder, JailEntryKind::File)),
        }
    }

    /// Opens the directory at the end of a path and follows links. Also returns its real path.
    ///
    /// # Errors
    /// [`JailError`] if no directory exists.
    pub fn folder(&self, path: &RelPath) -> Result<(OpenFolder, RelPath), JailError> {
        match self.find(path, FinalLink::Follow)? {
            LocatedPath::Folder(folder, real) => Ok((folder, real)),
            LocatedPath::Place(place) => Err(match place.metadata()? {
                Some(metadata) => wrong(path, metadata.kind, JailEntryKind::Folder),
                None => JailError::Missing { path: path.clone() },
            }),
        }
    }

    /// Finds the file, directory or missing entry at the end of a path.
    ///
    /// # Errors
    /// [`JailError`] if a link leads outside or the path goes through a file.
    pub fn find(&self, path: &RelPath, last: FinalLink) -> Result<LocatedPath, JailError> {
        let failed = |source| JailError::Io { path: path.clone(), source };
        let outside = || JailError::Outside { path: path.to_string() };
        let mut ahead: Vec<String> = path.names().rev().map(String::from).collect();
        let mut behind = vec![(self.root.again().map_err(failed)?, RelPath::default())];
        let mut links = 0;
        while let Some(name) = ahead.pop() {
            if name == ".." {
                behind.pop();
            }
            let Some((here, real)) = behind.last() else { return Err(outside()) };
            if name == ".." {
                continue;
            }
            let kind = here.metadata(name.as_ref()).map_err(failed)?.map(|metadata| metadata.kind);
            match kind {
                Some(JailEntryKind::Folder) => {
                    let next = (here.folder(name.as_ref()).map_err(failed)?, real.join(&name));
                    behind.push(next);
                }
                Some(JailEntryKind::Link) if last == FinalLink::Follow || !ahead.is_empty() => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(JailError::TooManyLinks { path: path.clone() });
                    }
                    let target = here.link(name.as_ref()).map_err(failed)?;
                    let target = target.to_str().ok_or_else(outside)?;
                    if target.starts_with('/') {
                        behind.truncate(1);
                    }
                    let target = path::relative(target, &self.names()).ok_or_else(outside)?;
                    ahead.extend(target.split('/').rev().filter(|name| !matches!(*name, "" | ".")).map(String::from));
                }
                Some(JailEntryKind::File | JailEntryKind::Special) if !ahead.is_empty() => {
                    return Err(wrong(&real.join(&name), JailEntryKind::File, JailEntryKind::Folder));
                }
                Some(JailEntryKind::File | JailEntryKind::Special | JailEntryKind::Link) | None => {
                    let (here, real) = (here.again().map_err(failed)?, real.join(&name));
                    return place::JailPlace::new(here, real, name, ahead).map(LocatedPath::Place);
                }
            }
            if behind.len() > path::MAX_DEPTH || ahead.len() > path::MAX_DEPTH {
                return Err(JailError::TooLong { start: path.as_str().chars().take(40).collect() });
            }
        }
        let (folder, real) = behind.pop().ok_or_else(outside)?;
        Ok(LocatedPath::Folder(folder, real))
    }

    fn names(&self) -> [&Path; 2] {
        [&self.real, &self.named]
    }
}

impl JailError {
    /// Returns whether the same call may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        use rustix::io::Errno;
        let Self::Io { source, .. } = self else { return false };
        let passing = [Errno::IO, Errno::AGAIN, Errno::INTR, Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::STALE];
        source.raw_os_error().is_some_and(|code| passing.iter().any(|errno| errno.raw_os_error() == code))
    }
}

impl JailEntryKind {
    /// Describes the kind, with its article.
    pub fn described(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Folder => "a directory",
            Self::Link => "a symbolic link",
            Self::Special => "a pipe, socket or device",
        }
    }
}

fn wrong(path: &RelPath, found: JailEntryKind, wanted: JailEntryKind) -> JailError {
    JailError::WrongKind { path: path.clone(), found: found.described(), wanted: wanted.described() }
}

/// Returns the name of a directory entry as text, for display only. Invalid UTF-8 becomes
/// replacement characters.
pub fn shown(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
