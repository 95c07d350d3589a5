//! Files below one root, and no others. A path is followed here, name by name, from one directory handle to the next and never
//! by the kernel, so neither `..`, nor an absolute path, nor a symbolic link, nor one put in place between a check and its use
//! leads outside; and where a path really ends, links followed, is known before anything is done there.

mod folder;
mod path;
mod place;

pub use folder::{Entry, Folder, Kind, Metadata};
pub use path::RelPath;
pub use place::Place;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// How many symbolic links one path may go through: Linux's own limit.
const MAX_LINKS: usize = 40;

/// A root directory, held open.
#[derive(Debug)]
pub struct Jail {
    root: Folder,
    /// The root's path without links.
    real: PathBuf,
    /// The same as it was named: absolute paths may start with either.
    named: PathBuf,
}

/// Whether a link at the very end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    /// The place is where it points.
    Follow,
    /// The place is the link itself.
    Keep,
}

/// What a path leads to.
#[derive(Debug)]
pub enum Found {
    /// A directory, with its path free of links.
    Folder(Folder, RelPath),
    /// Anything else, or nothing yet.
    Place(Place),
}

/// Why a path or a file is refused: sentences for the model that named it.
#[derive(Debug, thiserror::Error)]
pub enum JailError {
    /// The root is not a directory that can be a workspace.
    #[error("`{}` can't be opened as a workspace", path.display())]
    Root {
        /// The root.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// No path at all.
    #[error("the path is empty (the workspace itself is `.`)")]
    Empty,
    /// A NUL, a line end or the like in a path.
    #[error("{path:?} holds a control character")]
    ControlCharacter {
        /// The path.
        path: String,
    },
    /// Longer or deeper than file systems have it.
    #[error("the path `{start}…` is too long or too deep")]
    TooLong {
        /// How it begins.
        start: String,
    },
    /// It is not below the root, or a link on the way is not.
    #[error("`{path}` leads outside the workspace")]
    Outside {
        /// The path as it was given.
        path: String,
    },
    /// Links that go round in circles.
    #[error("`{path}` goes through too many symbolic links")]
    TooManyLinks {
        /// The path.
        path: RelPath,
    },
    /// Nothing there.
    #[error("`{path}` does not exist")]
    Missing {
        /// The path.
        path: RelPath,
    },
    /// Something else is there.
    #[error("`{path}` is {found}, not {wanted}")]
    WrongKind {
        /// The path.
        path: RelPath,
        /// What is there, with its article.
        found: &'static str,
        /// What was asked for, with its article.
        wanted: &'static str,
    },
    /// More than is read at once.
    #[error("`{path}` has {bytes} bytes, more than the {limit} that are read at once")]
    TooLarge {
        /// The path.
        path: RelPath,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The file system says no.
    #[error("`{path}`: {source}")]
    Io {
        /// The path.
        path: RelPath,
        /// What it says.
        source: io::Error,
    },
}

impl Jail {
    /// Opens the root.
    ///
    /// # Errors
    /// [`JailError::Root`] when it is not a directory, or the root of the whole file system, where `/proc` would be inside.
    pub fn open(root: &Path) -> Result<Self, JailError> {
        let failed = |source| JailError::Root { path: root.into(), source };
        let real = root.canonicalize().map_err(failed)?;
        if real.parent().is_none() {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it holds the whole file system")));
        }
        // As it is named: a path of another mount namespace is canonical only there.
        Ok(Self { root: Folder::open_root(root).map_err(failed)?, real, named: root.into() })
    }

    /// Opens a directory as [`Jail::open`] does, where what is in it is seen by another path: that of a namespace with other mounts.
    ///
    /// # Errors
    /// As [`Jail::open`].
    pub fn open_seen(root: &Path, seen: &Path) -> Result<Self, JailError> {
        let failed = |source| JailError::Root { path: root.into(), source };
        Ok(Self { root: Folder::open_root(seen).map_err(failed)?, ..Self::open(root)? })
    }

    /// Makes a directory that only its owner may enter, and opens it as a root.
    ///
    /// # Errors
    /// As [`Jail::open`].
    pub fn make(root: &Path) -> Result<Self, JailError> {
        use std::os::unix::fs::DirBuilderExt;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(root);
        made.map_err(|source| JailError::Root { path: root.into(), source })?;
        Self::open(root)
    }

    /// An absolute path or pattern seen from the root, without further checks; `None` when it begins elsewhere.
    pub fn inside<'t>(&self, text: &'t str) -> Option<&'t str> {
        path::relative(text, &self.names()).filter(|_| text.starts_with('/'))
    }

    /// The root's path without links.
    pub fn root(&self) -> &Path {
        &self.real
    }

    /// Checks a path as a model writes it, without looking at what is there.
    ///
    /// # Errors
    /// [`JailError`] when it is empty, too long, holds a control character, or leads outside by the letter.
    pub fn path(&self, text: &str) -> Result<RelPath, JailError> {
        RelPath::parse(text, &self.names())
    }

    /// Finds the place that a path leads to, links followed. There need be nothing there yet, nor a directory to hold it.
    ///
    /// # Errors
    /// [`JailError`] when a link leads outside, the path goes through a file, or it leads to a directory.
    pub fn locate(&self, path: &RelPath, last: Last) -> Result<Place, JailError> {
        match self.find(path, last)? {
            Found::Place(place) => Ok(place),
            Found::Folder(..) => Err(wrong(path, Kind::Folder, Kind::File)),
        }
    }

    /// Opens the directory that a path leads to, links followed, and says where it really is.
    ///
    /// # Errors
    /// [`JailError`] when there is none.
    pub fn folder(&self, path: &RelPath) -> Result<(Folder, RelPath), JailError> {
        match self.find(path, Last::Follow)? {
            Found::Folder(folder, real) => Ok((folder, real)),
            Found::Place(place) => Err(match place.metadata()? {
                Some(metadata) => wrong(path, metadata.kind, Kind::Folder),
                None => JailError::Missing { path: path.clone() },
            }),
        }
    }

    /// Finds what a path leads to, directory or not.
    ///
    /// # Errors
    /// [`JailError`] when a link leads outside or the path goes through a file.
    pub fn find(&self, path: &RelPath, last: Last) -> Result<Found, JailError> {
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
                Some(Kind::Folder) => {
                    let next = (here.folder(name.as_ref()).map_err(failed)?, real.join(&name));
                    behind.push(next);
                }
                Some(Kind::Link) if last == Last::Follow || !ahead.is_empty() => {
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
                Some(Kind::File | Kind::Special) if !ahead.is_empty() => {
                    return Err(wrong(&real.join(&name), Kind::File, Kind::Folder));
                }
                Some(Kind::File | Kind::Special | Kind::Link) | None => {
                    let (here, real) = (here.again().map_err(failed)?, real.join(&name));
                    return place::Place::new(here, real, name, ahead).map(Found::Place);
                }
            }
            if behind.len() > path::MAX_DEPTH || ahead.len() > path::MAX_DEPTH {
                return Err(JailError::TooLong { start: path.as_str().chars().take(40).collect() });
            }
        }
        let (folder, real) = behind.pop().ok_or_else(outside)?;
        Ok(Found::Folder(folder, real))
    }

    fn names(&self) -> [&Path; 2] {
        [&self.real, &self.named]
    }
}

impl JailError {
    /// Whether the same call may well succeed a moment later.
    pub fn is_transient(&self) -> bool {
        use rustix::io::Errno;
        let Self::Io { source, .. } = self else { return false };
        let passing = [Errno::IO, Errno::AGAIN, Errno::INTR, Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::STALE];
        source.raw_os_error().is_some_and(|code| passing.iter().any(|errno| errno.raw_os_error() == code))
    }
}

impl Kind {
    /// What it is, with its article.
    pub fn described(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Folder => "a directory",
            Self::Link => "a symbolic link",
            Self::Special => "a pipe, socket or device",
        }
    }
}

fn wrong(path: &RelPath, found: Kind, wanted: Kind) -> JailError {
    JailError::WrongKind { path: path.clone(), found: found.described(), wanted: wanted.described() }
}

/// The name of a directory entry as text, for showing only: what is no text has replacement characters.
pub fn shown(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
