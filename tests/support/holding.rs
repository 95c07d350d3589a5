//! Holding the program between the record of a request to a model and the request itself.

use super::{temp_dir, until};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use tempfile::TempDir;

/// A pipe that holds the program when it has recorded a request and has not sent it.
#[derive(Debug)]
pub(crate) struct Hold {
    pipe: PathBuf,
    number: u64,
    _folder: TempDir,
}

impl Hold {
    /// Prepares to hold the program before its request with this number, from 1.
    pub(crate) fn before_request(number: u64) -> Self {
        let folder = temp_dir();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        Self { pipe, number, _folder: folder }
    }

    /// Returns the value of `FLEDGE_FAIL`.
    pub(crate) fn order(&self) -> String {
        format!("hold:request: recorded#{}@{}", self.number, self.pipe.display())
    }

    /// Waits until the program is held. The program continues when the pipe is dropped.
    pub(crate) fn reached(&self) -> File {
        let mut pipe = None;
        // Without a reader, this fails at once.
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().try_into().unwrap();
        until("the program to be held", || {
            pipe = OpenOptions::new().write(true).custom_flags(nonblocking).open(&self.pipe).ok();
            pipe.is_some()
        });
        pipe.unwrap()
    }
}
