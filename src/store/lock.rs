//! Locks on runs: a locked file in the run's folder that names its holder. The system releases the
//! lock when the holder ends in any way.

use super::{RunDir, Store, StoreError};
use crate::id::RunId;
use jiff::Timestamp;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The number of tries and the pause between them. A process that checks whether a run is driven
/// holds the lock for an instant. A program that a killed process was just starting has the lock
/// until it begins.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(5);

/// The right to write to a run, as long as the lock is held.
#[derive(Debug)]
pub(super) struct RunLock {
    file: File,
}

impl Drop for RunLock {
    /// Unlocks the file before it is closed: a program that another thread is starting has a copy
    /// of the handle until it begins, and would hold the lock until then.
    fn drop(&mut self) {
        let _closing_unlocks_it_too = self.file.unlock();
    }
}

impl RunLock {
    /// Takes the lock of a run whose folder exists.
    pub(super) fn take(folder: &RunDir, run: &RunId) -> Result<Self, StoreError> {
        Self::take_within(TRIES, folder, run)
    }

    /// Takes the lock like [`RunLock::take`], but without a wait, for callers that can try again
    /// later.
    pub(super) fn take_now(folder: &RunDir, run: &RunId) -> Result<Self, StoreError> {
        Self::take_within(0, folder, run)
    }

    fn take_within(most: u32, folder: &RunDir, run: &RunId) -> Result<Self, StoreError> {
        let path = path(folder);
        let fail = |source| StoreError::new("lock", &path, source);
        let mut options = OpenOptions::new();
        let mut file = options.create(true).truncate(false).write(true).mode(0o600).open(&path).map_err(fail)?;
        let mut tries = 0;
        while let Err(error) = file.try_lock() {
            match error {
                TryLockError::Error(source) => return Err(fail(source)),
                TryLockError::WouldBlock if tries < most => std::thread::sleep(PAUSE),
                TryLockError::WouldBlock => {
                    return Err(StoreError::Held { run: run.clone(), holder: describe_holder(&path) });
                }
            }
            tries += 1;
        }
        let host = rustix::system::uname();
        let text = format!("process {} on {}\n", std::process::id(), host.nodename().to_string_lossy());
        file.set_len(0).and_then(|()| file.write_all(text.as_bytes())).map_err(fail)?;
        Ok(Self { file })
    }
}

/// The right to change the remains of a run that no process drives. While it is held, the run
/// cannot be resumed.
#[derive(Debug)]
pub struct RunHold {
    _lock: RunLock,
}

impl Store {
    /// Locks a run that no process drives.
    ///
    /// # Errors
    /// [`StoreError::Held`] if a process drives the run; [`StoreError::File`] if it cannot be
    /// locked.
    pub fn hold(&self, run: &RunId) -> Result<RunHold, StoreError> {
        Ok(RunHold { _lock: RunLock::take(&self.folder(run), run)? })
    }
}

/// Returns the process that drives a run, if there is one.
pub(super) fn holder(folder: &RunDir) -> Option<String> {
    let path = path(folder);
    let file = File::open(&path).ok()?;
    let is_held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    let _closing_unlocks_it_too = file.unlock();
    is_held.then(|| describe_holder(&path))
}

fn path(folder: &RunDir) -> PathBuf {
    folder.path().join("lock")
}

/// Describes the process that wrote the file, and the time since when it holds the lock.
fn describe_holder(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let since =
        fs::metadata(path).and_then(|meta| meta.modified()).ok().and_then(|time| Timestamp::try_from(time).ok());
    let who = if text.is_empty() { "another process" } else { text.trim_end() };
    since.map_or_else(|| who.to_owned(), |since| format!("{who} since {since:.0}"))
}
