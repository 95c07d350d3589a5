//! The journal of a run: append-only, one JSON object a line, in the order in which the machine sees the events.
//!
//! The one door is [`Journal::append`]. A record is one line ended by one `\n`; JSON escapes every line break inside, so a
//! reader splits on `\n` alone. After a failed write or sync nothing is ever written again.

use super::{StoreError, create_private};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// An open journal. It has one writer: the file is created by it, and locked until it is dropped.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    broken: bool,
}

impl Journal {
    /// Begins a journal in a new file.
    ///
    /// # Errors
    /// When the file is there already, or cannot be made or locked.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let fail = |source| StoreError::new("begin the journal", path, source);
        let file = create_private(path).map_err(fail)?;
        file.try_lock().map_err(|error| fail(io::Error::other(error)))?;
        Ok(Self { file, path: path.to_owned(), broken: false })
    }

    /// Adds one record, which must not have a line break in it.
    ///
    /// # Errors
    /// When it cannot be written whole, or an earlier record could not be.
    pub fn append(&mut self, record: &str) -> Result<(), StoreError> {
        let mut line = String::with_capacity(record.len() + 1);
        line.push_str(record);
        line.push('\n');
        self.guard("append to", |file| file.write_all(line.as_bytes()))
    }

    /// Makes everything appended so far safe from a crash of the machine.
    ///
    /// # Errors
    /// When the disk says no, or an earlier record could not be written.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.guard("sync", |file| file.sync_data())
    }

    fn guard(&mut self, verb: &'static str, work: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), StoreError> {
        let done = if self.broken {
            Err(io::Error::other("an earlier write failed, and nothing is written after that"))
        } else {
            work(&mut self.file)
        };
        self.broken |= done.is_err();
        done.map_err(|source| StoreError::new(verb, &self.path, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_lines_in_order_and_a_second_writer_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        journal.append("{\"a\":\"\\n\\u2028\"}").unwrap();
        journal.append("{\"b\":2}").unwrap();
        journal.sync().unwrap();
        assert!(Journal::create(&path).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"a\":\"\\n\\u2028\"}\n{\"b\":2}\n");
    }

    #[test]
    fn after_a_failed_write_nothing_is_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        journal.append("1").unwrap();
        journal.file = File::open(&path).unwrap(); // read-only: the next write fails
        assert!(journal.append("2").is_err());
        journal.file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        assert!(journal.append("3").is_err());
        assert!(journal.sync().is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n");
    }
}
