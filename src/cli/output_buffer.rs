//! A buffer of lines for a slow reader of standard output. It loses no line, and the run does not
//! wait for the reader. Waiting lines are in memory and, beyond some megabytes, in an unnamed file.

use super::output::print_bytes;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Bytes to hold in memory.
const MOST: usize = 4 * 1024 * 1024;
/// Bytes of the file to print at once.
const PIECE: usize = 64 * 1024;

/// Lines that wait for the reader of standard output.
#[derive(Debug, Clone, Default)]
pub(super) struct OutputBuffer(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<WaitingLines>,
    /// Notified when there is something to print, and when something was printed.
    changed: Condvar,
    /// Notified when nothing waits any more.
    idle: Notify,
}

/// Lines that wait for the reader. Those in the file are newer than those in memory.
#[derive(Debug, Default)]
struct WaitingLines {
    memory: Vec<u8>,
    file: Option<File>,
    /// Bytes of the file that were printed, and that were written.
    printed: u64,
    written: u64,
    has_printer: bool,
    is_printing: bool,
    /// True once standard output has failed, with its error until
    /// [`OutputBuffer::wait_until_written`] returns it.
    is_broken: bool,
    error: Option<io::Error>,
}

impl OutputBuffer {
    /// Adds a line and its line end. Waits for the reader only if the memory is full and no file
    /// can be written.
    pub(super) fn push(&self, line: &str) {
        let mut waiting = self.lock();
        if waiting.is_broken {
            return;
        }
        let bytes = [line.as_bytes(), b"\n"].concat();
        while !waiting.store(&bytes) {
            waiting = self.0.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if !waiting.has_printer {
            let shared = self.0.clone();
            let printer = std::thread::Builder::new().name("fledge-printer".into());
            waiting.has_printer = printer.spawn(move || shared.print(print_bytes)).is_ok();
        }
        drop(waiting);
        self.0.changed.notify_all();
    }

    /// Waits until the reader has taken everything.
    ///
    /// # Errors
    /// The first error of standard output.
    pub(super) async fn wait_until_written(&self) -> io::Result<()> {
        loop {
            {
                let mut waiting = self.lock();
                if let Some(error) = waiting.error.take() {
                    return Err(error);
                }
                if waiting.is_empty() || !waiting.has_printer {
                    return Ok(());
                }
            }
            self.0.idle.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, WaitingLines> {
        self.0.lock()
    }
}

impl WaitingLines {
    fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.written == self.printed && !self.is_printing
    }

    /// Adds bytes; returns false if neither the memory nor the file has room for them.
    fn store(&mut self, bytes: &[u8]) -> bool {
        if self.written == self.printed && self.memory.len() < MOST {
            self.memory.extend_from_slice(bytes);
            return true;
        }
        if self.file.is_none() {
            self.file = tempfile::tempfile().ok();
        }
        let is_held = self.file.as_ref().is_some_and(|file| file.write_all_at(bytes, self.written).is_ok());
        self.written += if is_held { bytes.len() as u64 } else { 0 };
        is_held
    }

    /// Takes the bytes to print next.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        if !self.memory.is_empty() {
            return Ok(Some(std::mem::take(&mut self.memory)));
        }
        let left = usize::try_from(self.written - self.printed).unwrap_or(usize::MAX);
        let Some(file) = self.file.as_ref().filter(|_| left > 0) else { return Ok(None) };
        let mut piece = vec![0; left.min(PIECE)];
        file.read_exact_at(&mut piece, self.printed)?;
        self.printed += piece.len() as u64;
        if self.printed == self.written {
            file.set_len(0)?;
            (self.printed, self.written) = (0, 0);
        }
        Ok(Some(piece))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, WaitingLines> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints waiting bytes until the process ends.
    fn print(&self, print: impl Fn(&[u8]) -> io::Result<()>) {
        loop {
            let mut waiting = self.lock();
            let next = loop {
                match waiting.next() {
                    Ok(None) => {
                        self.idle.notify_one();
                        waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                    }
                    next => break next,
                }
            };
            waiting.is_printing = true;
            drop(waiting);
            let printed = next.and_then(|piece| print(&piece.unwrap_or_default()));
            let mut waiting = self.lock();
            waiting.is_printing = false;
            if let Err(error) = printed {
                *waiting =
                    WaitingLines { error: Some(error), is_broken: true, has_printer: true, ..WaitingLines::default() };
            }
            drop(waiting);
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[tokio::test]
    async fn what_a_stuck_reader_does_not_take_is_kept_in_order_beyond_the_memory() {
        let buffer = OutputBuffer::default();
        buffer.lock().has_printer = true;
        let line = |number: usize| format!("{number:09}{}", "x".repeat(1_000));
        let lines = 3 * MOST / 1_000;
        (0..lines).for_each(|number| buffer.push(&line(number)));
        assert!(buffer.lock().memory.len() <= MOST + 2_000 && buffer.lock().written > MOST as u64);
        let (say, heard) = channel();
        let shared = buffer.0.clone();
        std::thread::spawn(move || {
            shared.print(|bytes| {
                say.send(bytes.to_vec()).ok();
                Ok(())
            });
        });
        buffer.wait_until_written().await.unwrap();
        let all = String::from_utf8(heard.try_iter().collect::<Vec<_>>().concat()).unwrap();
        assert_eq!(all.lines().count(), lines);
        assert!(all.lines().enumerate().all(|(number, said)| said == line(number)));
        buffer.push("and on");
        buffer.wait_until_written().await.unwrap();
        assert_eq!(heard.try_iter().collect::<Vec<_>>().concat(), b"and on\n");
        assert_eq!(buffer.lock().written, 0, "the file is empty again");
    }

    #[tokio::test]
    async fn the_first_error_is_told_and_nothing_is_waited_for_after_it() {
        let buffer = OutputBuffer::default();
        buffer.lock().has_printer = true;
        buffer.push("one");
        let shared = buffer.0.clone();
        std::thread::spawn(move || shared.print(|_| Err(io::Error::other("the disk is full"))));
        let until = async {
            while buffer.wait_until_written().await.is_ok() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_mins(5), until).await.unwrap();
        buffer.push("two");
        buffer.wait_until_written().await.unwrap();
    }
}
