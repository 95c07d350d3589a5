//! Files that fledge writes after the agent's work, at a path that the user chose. Links that the
//! agent makes in the workspace do not change where these files go.

use super::jail::{JailEntryKind, OpenFolder};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// The maximum number of symbolic links that one path may go through: the limit of Linux.
const MOST_LINKS: usize = 40;
/// Paths that name the open files of a process.
const HANDLES: [&str; 4] = ["/dev/fd", "/dev/stdout", "/dev/stderr", "/proc"];
/// The wait between two tries to open a pipe or write to it.
const NAP: Duration = Duration::from_millis(10);

/// The destination of a file that fledge writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtomicOutput {
    /// An absolute path without links, except below [`HANDLES`].
    path: PathBuf,
    /// True if the path is in the workspace, where an agent may have put something.
    is_guarded: bool,
}

/// The reason why fledge does not write a file.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub enum OutputError {
    /// A link in the workspace. The agent may have made it, and it may lead anywhere.
    #[error("cannot write `{}`: a link in the workspace, and an agent may have made it; \
        name a file, or remove the link", .0.display())]
    Link(PathBuf),
    /// Neither a file nor a folder, in the workspace. The agent may have made it.
    #[error("cannot write `{}`: not a regular file, and an agent may have made it; \
        choose a path outside the workspace", .0.display())]
    Special(PathBuf),
    /// The operating system refuses to write the file.
    #[error("cannot write {}", path.display())]
    Unwritten { path: PathBuf, source: io::Error },
}

impl AtomicOutput {
    /// Finds the file to which `path` leads; it need not exist. Follows the user's own links, but
    /// no link in `workspace`, which must be a canonical path.
    ///
    /// # Errors
    /// [`OutputError`] if the path goes through a link in the workspace, or ends there at something
    /// that is neither a file nor a folder.
    pub fn find(path: &Path, workspace: &Path) -> Result<Self, OutputError> {
        let fail = |source| OutputError::Unwritten { path: path.to_owned(), source };
        let mut rest = parts(&std::path::absolute(path).map_err(fail)?);
        let (mut real, mut links) = (PathBuf::from("/"), 0);
        while let Some(part) = rest.pop() {
            if part == ".." {
                real.pop();
                continue;
            }
            let next = real.join(part);
            if is_handle(&next) {
                return Ok(Self {
                    path: rest.iter().rev().fold(next, |path, part| path.join(part)),
                    is_guarded: false,
                });
            }
            let Ok(target) = fs::read_link(&next) else {
                real = next;
                continue;
            };
            if next.starts_with(workspace) {
                return Err(OutputError::Link(next));
            }
            links += 1;
            if links > MOST_LINKS {
                return Err(fail(Errno::LOOP.into()));
            }
            if target.is_absolute() {
                real = PathBuf::from("/");
            }
            rest.extend(parts(&target));
        }
        let is_special = |meta: fs::Metadata| !meta.is_file() && !meta.is_dir();
        let found = Self::found(&real, workspace);
        if found.is_guarded && real.symlink_metadata().is_ok_and(is_special) {
            return Err(OutputError::Special(real));
        }
        Ok(found)
    }

    /// Returns the outlet for a path that was resolved before the agent started.
    pub fn found(path: &Path, workspace: &Path) -> Self {
        Self { path: path.to_owned(), is_guarded: path.starts_with(workspace) }
    }

    /// The resolved path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file completely or not at all, readable by its owner only. Replaces an existing
    /// entry without following links. Appends to a pipe or device outside of the workspace; waits
    /// for a pipe without a reader or without room as long as `may_wait` returns true.
    ///
    /// # Errors
    /// [`OutputError`], also if a folder of the path was replaced by a link.
    pub fn write(&self, bytes: &[u8], may_wait: &dyn Fn() -> bool) -> Result<(), OutputError> {
        let fail = |source| OutputError::Unwritten { path: self.path.clone(), source };
        if self.replaces() {
            let (folder, name) = self.place().map_err(fail)?;
            folder.put_as("file", name, bytes, 0o600, None).map_err(fail)
        } else {
            pour(&self.path, bytes, may_wait).map_err(fail)
        }
    }

    /// Returns whether [`Self::write`] replaces the file instead of appending to it.
    pub fn replaces(&self) -> bool {
        let is_special = || {
            let kind = self.place().and_then(|(folder, name)| folder.metadata(name));
            kind.is_ok_and(|found| found.is_some_and(|found| found.kind == JailEntryKind::Special))
        };
        !is_handle(&self.path) && (self.is_guarded || !is_special())
    }

    /// Removes the file if `is_it` accepts its first `limit` bytes. A file without valid UTF-8
    /// stays.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn remove_if(&self, limit: u64, is_it: impl FnOnce(&str) -> bool) -> io::Result<()> {
        let read = || -> io::Result<(OpenFolder, &OsStr, String)> {
            let (folder, name) = self.place()?;
            let mut text = String::new();
            folder.file(name)?.take(limit).read_to_string(&mut text)?;
            Ok((folder, name, text))
        };
        match read() {
            Ok((folder, name, text)) if !is_handle(&self.path) && is_it(&text) => folder.remove(name),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Removes the file that [`Self::write`] would replace; does nothing if it does not exist.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        if !self.replaces() {
            return Ok(());
        }
        match self.place().and_then(|(folder, name)| folder.remove(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Removes temporary files that a process left beside the file when it died during a write.
    pub fn tidy(&self) {
        let _it_does_no_harm = self.place().and_then(|(folder, _)| folder.tidy());
    }

    /// Opens the folder of the file without following links; returns it with the file's name.
    fn place(&self) -> io::Result<(OpenFolder, &OsStr)> {
        let (Some(above), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Err(Errno::ISDIR.into());
        };
        let folder = OpenFolder::open_unlinked(above).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::LOOP | Errno::NOTDIR) => io::Error::other("a folder of the path was replaced by a link"),
            _ => error,
        })?;
        Ok((folder, name))
    }
}

/// Returns the names in a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    parts.map(|part| part.as_os_str().to_owned()).rev().collect()
}

fn is_handle(path: &Path) -> bool {
    HANDLES.iter().any(|place| path.starts_with(place))
}

/// Appends to a pipe or device without blocking in the kernel.
fn pour(path: &Path, mut bytes: &[u8], may_wait: &dyn Fn() -> bool) -> io::Result<()> {
    let is_pipe = fs::metadata(path)?.file_type().is_fifo();
    let unwaiting = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let wait = |error: io::Error| -> io::Result<()> {
        if !may_wait() {
            return Err(io::Error::new(error.kind(), "no process reads it"));
        }
        std::thread::sleep(NAP);
        Ok(())
    };
    let mut file = loop {
        match OpenOptions::new().append(true).custom_flags(unwaiting).open(path) {
            Err(error) if is_pipe && Errno::from_io_error(&error) == Some(Errno::NXIO) => wait(error)?,
            opened => break opened?,
        }
    };
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(error)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const NEVER: &dyn Fn() -> bool = &|| false;

    /// Makes a workspace and a folder outside of it.
    fn scene() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let dir = crate::test_support::temp_dir();
        let root = dir.path().canonicalize().unwrap();
        let (inside, outside) = (root.join("in"), root.join("out"));
        fs::create_dir_all(inside.join("sub")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("mine"), "mine").unwrap();
        (dir, inside, outside)
    }

    fn pipe_at(path: &Path) {
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    }

    #[test]
    fn the_user_s_links_are_followed_before_and_none_of_the_workspace_ever() {
        let (_dir, inside, outside) = scene();
        symlink("out/mine", outside.with_file_name("link")).unwrap();
        symlink(&inside, outside.join("in")).unwrap();
        let found = |path: &Path| AtomicOutput::find(path, &inside).map(|outlet| outlet.path);
        assert_eq!(found(&outside.with_file_name("link")).unwrap(), outside.join("mine"));
        assert_eq!(found(&outside.join("in/sub/../new")).unwrap(), inside.join("new"));
        assert_eq!(found(Path::new("/dev/stdout")).unwrap(), Path::new("/dev/stdout"));
        symlink(outside.join("mine"), inside.join("link")).unwrap();
        symlink(&outside, inside.join("folder")).unwrap();
        for path in ["link", "folder/mine", "sub/../link"] {
            assert!(matches!(found(&inside.join(path)), Err(OutputError::Link(_))), "{path}");
        }
    }

    #[test]
    fn what_was_put_in_its_place_meanwhile_is_replaced_and_followed_nowhere() {
        let (_dir, inside, outside) = scene();
        let outlet = |path: &str| AtomicOutput::find(&inside.join(path), &inside).unwrap();
        let (link, pipe, below) = (outlet("link"), outlet("pipe"), outlet("sub/file"));
        symlink(outside.join("mine"), inside.join("link")).unwrap();
        pipe_at(&inside.join("pipe"));
        for outlet in [link, pipe] {
            outlet.write(b"new", NEVER).unwrap();
            assert!(outlet.path.symlink_metadata().unwrap().is_file());
        }
        fs::remove_dir(inside.join("sub")).unwrap();
        symlink(&outside, inside.join("sub")).unwrap();
        fs::write(outside.join("file"), "file").unwrap();
        assert!(below.write(b"new", NEVER).is_err());
        below.remove_if(9, |_| true).unwrap();
        assert!(below.remove().is_err());
        outlet("link").remove().unwrap();
        assert!(!inside.join("link").exists() && outlet("none").remove().is_ok());
        let read = |name: &str| fs::read_to_string(outside.join(name)).unwrap();
        assert_eq!((read("mine"), read("file")), ("mine".into(), "file".into()));
    }

    #[test]
    fn a_pipe_is_waited_for_no_longer_than_one_may_and_none_of_the_workspace_at_all() {
        let (_dir, inside, outside) = scene();
        for folder in [&inside, &outside] {
            pipe_at(&folder.join("pipe"));
        }
        assert!(matches!(AtomicOutput::find(&inside.join("pipe"), &inside), Err(OutputError::Special(_))));
        let outlet = AtomicOutput::find(&outside.join("pipe"), &inside).unwrap();
        assert!(!outlet.replaces() && outlet.write(b"new", NEVER).is_err());
        let reader = std::thread::spawn(move || fs::read_to_string(outside.join("pipe")).unwrap());
        let long = "long ".repeat(100_000);
        outlet.write(long.as_bytes(), &|| true).unwrap();
        assert!(reader.join().unwrap() == long);
        AtomicOutput::find(Path::new("/dev/null"), &inside).unwrap().write(b"gone", NEVER).unwrap();
    }
}
