//! A file that is written when all is over, wherever the user wants it: who has worked in a folder meanwhile has no say in where that is.

use super::jail::{Folder, Kind};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// How many symbolic links one path may go through: Linux's own limit.
const MOST_LINKS: usize = 40;
/// Names of what this process has open.
const HANDLES: [&str; 4] = ["/dev/fd", "/dev/stdout", "/dev/stderr", "/proc"];
/// How long a pipe that takes nothing is let be before the next try.
const NAP: Duration = Duration::from_millis(10);

/// Where such a file comes to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlet {
    /// Whole and without a link, but for handles of this process.
    path: PathBuf,
    /// Whether it is where an agent may put something.
    is_guarded: bool,
}

/// Why a file is not written there.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub enum OutletFault {
    /// Nobody can tell who has made it, and it may lead anywhere.
    #[error("`{}` is a link in the workspace, where an agent may have put it: name a file, or remove the link", .0.display())]
    Link(PathBuf),
    /// The same of what is neither a file nor a folder.
    #[error("`{}` is no regular file, and in the workspace, where an agent may have put it: name another place", .0.display())]
    Special(PathBuf),
    /// The system says no.
    #[error("cannot write {}", path.display())]
    Unwritten { path: PathBuf, source: io::Error },
}

impl Outlet {
    /// Finds where `path` leads, also when there is nothing yet: through the user's own links, and through none in the workspace, which
    /// must be a canonical path.
    ///
    /// # Errors
    /// [`OutletFault`] when a link or something special in the workspace is on the way.
    pub fn find(path: &Path, workspace: &Path) -> Result<Self, OutletFault> {
        let fail = |source| OutletFault::Unwritten { path: path.to_owned(), source };
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
                return Err(OutletFault::Link(next));
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
            return Err(OutletFault::Special(real));
        }
        Ok(found)
    }

    /// What was found before anybody was at work.
    pub fn found(path: &Path, workspace: &Path) -> Self {
        Self { path: path.to_owned(), is_guarded: path.starts_with(workspace) }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file, for its owner alone, whole or not at all; what has come to be in its place is replaced and followed nowhere. A
    /// pipe or a device outside of the workspace is written to as it is: as long as it `may_wait`, one that takes nothing is waited for.
    ///
    /// # Errors
    /// [`OutletFault`], also when a folder on the way is another one now.
    pub fn write(&self, bytes: &[u8], may_wait: &dyn Fn() -> bool) -> Result<(), OutletFault> {
        let fail = |source| OutletFault::Unwritten { path: self.path.clone(), source };
        if self.replaces() {
            let (folder, name) = self.place().map_err(fail)?;
            folder.put_as("file", name, bytes, 0o600, None).map_err(fail)
        } else {
            pour(&self.path, bytes, may_wait).map_err(fail)
        }
    }

    /// Whether it takes the place of what is there, instead of adding to it.
    pub fn replaces(&self) -> bool {
        let is_special = || {
            let kind = self.place().and_then(|(folder, name)| folder.metadata(name));
            kind.is_ok_and(|found| found.is_some_and(|found| found.kind == Kind::Special))
        };
        !is_handle(&self.path) && (self.is_guarded || !is_special())
    }

    /// Removes the file when it is this one, by the text in it; what has more than `limit` bytes, or is no UTF-8, is not.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove_if(&self, limit: u64, is_it: impl FnOnce(&str) -> bool) -> io::Result<()> {
        let read = || -> io::Result<(Folder, &OsStr, String)> {
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

    /// Removes the file that [`Self::write`] would replace, where there is one.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        if !self.replaces() {
            return Ok(());
        }
        match self.place().and_then(|(folder, name)| folder.remove(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Removes what a process has left beside it that died while it wrote there.
    pub fn tidy(&self) {
        let _it_does_no_harm = self.place().and_then(|(folder, _)| folder.tidy());
    }

    /// Its folder, reached through no link, and its name there.
    fn place(&self) -> io::Result<(Folder, &OsStr)> {
        let (Some(above), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Err(Errno::ISDIR.into());
        };
        let folder = Folder::open_unlinked(above).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::LOOP | Errno::NOTDIR) => {
                io::Error::other("its folder is another one now: somebody has put a link in its place")
            }
            _ => error,
        })?;
        Ok((folder, name))
    }
}

/// The names in a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    parts.map(|part| part.as_os_str().to_owned()).rev().collect()
}

fn is_handle(path: &Path) -> bool {
    HANDLES.iter().any(|place| path.starts_with(place))
}

/// Adds to what is no regular file, and never waits in the kernel.
fn pour(path: &Path, mut bytes: &[u8], may_wait: &dyn Fn() -> bool) -> io::Result<()> {
    let is_pipe = fs::metadata(path)?.file_type().is_fifo();
    let unwaiting = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let wait = |error: io::Error| -> io::Result<()> {
        if !may_wait() {
            return Err(io::Error::new(error.kind(), "nobody reads it"));
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

    /// A workspace and a folder outside of it.
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
        let found = |path: &Path| Outlet::find(path, &inside).map(|outlet| outlet.path);
        assert_eq!(found(&outside.with_file_name("link")).unwrap(), outside.join("mine"));
        assert_eq!(found(&outside.join("in/sub/../new")).unwrap(), inside.join("new"));
        assert_eq!(found(Path::new("/dev/stdout")).unwrap(), Path::new("/dev/stdout"));
        symlink(outside.join("mine"), inside.join("link")).unwrap();
        symlink(&outside, inside.join("folder")).unwrap();
        for path in ["link", "folder/mine", "sub/../link"] {
            assert!(matches!(found(&inside.join(path)), Err(OutletFault::Link(_))), "{path}");
        }
    }

    #[test]
    fn what_was_put_in_its_place_meanwhile_is_replaced_and_followed_nowhere() {
        let (_dir, inside, outside) = scene();
        let outlet = |path: &str| Outlet::find(&inside.join(path), &inside).unwrap();
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
        assert!(matches!(Outlet::find(&inside.join("pipe"), &inside), Err(OutletFault::Special(_))));
        let outlet = Outlet::find(&outside.join("pipe"), &inside).unwrap();
        assert!(!outlet.replaces() && outlet.write(b"new", NEVER).is_err());
        let reader = std::thread::spawn(move || fs::read_to_string(outside.join("pipe")).unwrap());
        let long = "long ".repeat(100_000);
        outlet.write(long.as_bytes(), &|| true).unwrap();
        assert!(reader.join().unwrap() == long);
        Outlet::find(Path::new("/dev/null"), &inside).unwrap().write(b"gone", NEVER).unwrap();
    }
}
