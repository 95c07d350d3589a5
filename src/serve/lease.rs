//! The lock that allows one server per project. A locked file names the server and its address. The
//! lock ends with its holder, however that process ends.

use super::ServeError;
use crate::store::make_private;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The number of attempts to lock, and the pause between them. A process that checks for a running
/// server holds the lock for an instant.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);
/// The number of bytes that are read of the file.
const LONGEST: u64 = 4096;

/// The exclusive right to serve a project while it is held.
#[derive(Debug)]
pub struct ServeLease {
    file: File,
    path: PathBuf,
}

impl Drop for ServeLease {
    /// Unlocks the file before it is closed, because programs that are being started have copies of
    /// the handle.
    fn drop(&mut self) {
        let _closing_unlocks_it_too = self.file.unlock();
    }
}

impl ServeLease {
    /// Takes the lock, and creates the server's folder if it is missing.
    ///
    /// # Errors
    /// [`ServeError::Held`] if another process has it.
    pub fn acquire(folder: &Path) -> Result<Self, ServeError> {
        make_private(folder)?;
        let path = place(folder);
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true).mode(0o600);
        let file = options.open(&path).map_err(ServeError::file("open", &path))?;
        let mut tries = 0;
        while let Err(error) = file.try_lock() {
            match error {
                TryLockError::Error(source) => return Err(ServeError::file("lock", &path)(source)),
                TryLockError::WouldBlock if tries < TRIES => std::thread::sleep(PAUSE),
                TryLockError::WouldBlock => {
                    let text = holder(&file);
                    return Err(ServeError::Held { holder: text.lines().collect::<Vec<_>>().join(", at ") });
                }
            }
            tries += 1;
        }
        file.set_len(0).map_err(ServeError::file("write", &path))?; // removes the address of an earlier server
        Ok(Self { file, path })
    }

    /// Writes this process and its address to the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn is_at(&mut self, url: &str) -> Result<(), ServeError> {
        let host = rustix::system::uname();
        let text = format!("process {} on {}\n{url}\n", std::process::id(), host.nodename().to_string_lossy());
        let written = self.file.rewind().and_then(|()| self.file.set_len(0));
        let written = written.and_then(|()| self.file.write_all(text.as_bytes()));
        written.map_err(ServeError::file("write", &self.path))
    }

    /// Returns the address of the server of this folder; `None` if no server runs.
    pub fn address(folder: &Path) -> Option<String> {
        let file = File::open(place(folder)).ok()?;
        let is_held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        holder(&file).lines().nth(1).filter(|_| is_held).map(str::to_owned)
    }
}

fn place(folder: &Path) -> PathBuf {
    folder.join("lock")
}

fn holder(file: &File) -> String {
    let mut text = String::new();
    let _as_far_as_it_goes = file.take(LONGEST).read_to_string(&mut text);
    if text.is_empty() { "a server that is just starting".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_has_a_project_and_the_next_is_told_which() {
        let home = crate::test_support::temp_dir();
        let folder = home.path().join("serve");
        assert_eq!(ServeLease::address(&folder), None);
        let mut lease = ServeLease::acquire(&folder).unwrap();
        lease.is_at("http://127.0.0.1:7777").unwrap();
        let Err(ServeError::Held { holder }) = ServeLease::acquire(&folder) else { panic!("two have it") };
        assert!(holder.starts_with(&format!("process {} on ", std::process::id())), "{holder}");
        assert!(holder.ends_with(", at http://127.0.0.1:7777"), "{holder}");
        assert_eq!(ServeLease::address(&folder).as_deref(), Some("http://127.0.0.1:7777"));
        drop(lease);
        assert_eq!(ServeLease::address(&folder), None);
        ServeLease::acquire(&folder).unwrap();
    }

    #[test]
    fn a_lease_is_free_while_a_starting_program_has_a_copy_of_its_handle() {
        let home = crate::test_support::temp_dir();
        let folder = home.path().join("serve");
        let mut lease = ServeLease::acquire(&folder).unwrap();
        lease.is_at("http://127.0.0.1:7777").unwrap();
        let copy = lease.file.try_clone().unwrap();
        drop(lease);
        assert_eq!(ServeLease::address(&folder), None);
        ServeLease::acquire(&folder).unwrap();
        drop(copy);
    }
}
