//! The part of a step's output that explains a failure, from memory or from the log. fledge
//! searches only the output of steps that did not pass, so a passing step costs nothing, no matter
//! how much it prints.

use super::excerpt::{EXPLAINED, Excerpt};
use super::lines::LineReader;
use crate::process::{CapturedOutput, EndedProcess};
use crate::verdict::StepStatus;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The number of bytes read from a log at once.
const PIECE: usize = 64 * 1024;
/// The number of bytes searched at each end of a log. Of the middle, only the lines are counted,
/// because searching a log of the maximum size would take minutes.
const LOOKED_AT: u64 = 4 * 1024 * 1024;

/// Returns true if the report of a step with this status shows an explanation.
pub(super) fn is_explained(status: StepStatus) -> bool {
    status.is_failure() || status == StepStatus::AllowedFailure
}

/// Returns true if the log can explain more than the output kept in memory.
pub(super) fn is_worth_its_log(status: StepStatus, ended: &EndedProcess) -> bool {
    let CapturedOutput { head, tail, total } = &ended.output;
    is_explained(status) && ended.is_logged && *total > (head.len() + tail.len()) as u64
}

/// Returns the explanation from the output kept in memory.
pub(super) fn from_ends(CapturedOutput { head, tail, .. }: &CapturedOutput) -> String {
    let mut reading = Reading::new();
    reading.push(head);
    reading.push(tail);
    reading.finish()
}

/// Returns the step's number, and the part of its log that explains why it did not pass. Output
/// omitted from the log is missing here too. `None` when the log cannot be read to its end, or when
/// `stop` is cancelled.
pub(super) async fn from_log(number: usize, log: PathBuf, stop: &CancellationToken) -> (usize, Option<String>) {
    let stop = stop.clone();
    let read = tokio::task::spawn_blocking(move || Reading::new().log(&log, LOOKED_AT, &stop));
    (number, read.await.ok().and_then(Result::ok).flatten())
}

struct Reading {
    lines: LineReader,
    excerpt: Excerpt,
}

impl Reading {
    fn new() -> Self {
        Self { lines: LineReader::default(), excerpt: Excerpt::new(EXPLAINED) }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes).iter().for_each(|line| self.excerpt.line(line));
    }

    fn skip(&mut self, bytes: &[u8]) {
        self.end_line();
        self.excerpt.skip(memchr::memchr_iter(b'\n', bytes).count() as u64);
    }

    fn finish(mut self) -> String {
        self.end_line();
        self.excerpt.finish()
    }

    fn end_line(&mut self) {
        self.lines.rest().iter().for_each(|line| self.excerpt.line(line));
    }

    /// Reads a log and searches `most` bytes at each end.
    fn log(mut self, path: &Path, most: u64, stop: &CancellationToken) -> io::Result<Option<String>> {
        let mut log = File::open(path)?;
        let end = log.metadata()?.len().saturating_sub(most);
        let (mut at, mut piece) = (0, vec![0; PIECE]);
        while !stop.is_cancelled() {
            let count = log.read(&mut piece)?;
            if count == 0 {
                return Ok(Some(self.finish()));
            }
            if at < most || at + count as u64 > end {
                self.push(&piece[..count]);
            } else {
                self.skip(&piece[..count]);
            }
            at += count as u64;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_very_long_log_the_two_ends_are_looked_at_and_the_lines_between_counted() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let part = |name: &str| (0..20_000).map(|number| format!("{name} {number:>20}\n")).collect::<String>();
        let text = format!("a.c:1:2: error: first\n{}a.c:1:2: error: unseen\n{}the end", part("early"), part("late"));
        std::fs::write(log.path(), text).unwrap();
        let read = |most, stop: &CancellationToken| Reading::new().log(log.path(), most, stop).unwrap();
        let excerpt = read(100_000, &CancellationToken::new()).unwrap();
        assert!(excerpt.starts_with("a.c:1:2: error: first\n[… 39"), "{excerpt}");
        assert!(!excerpt.contains("unseen") && excerpt.ends_with(" 19999\nthe end"), "{excerpt}");
        let stop = CancellationToken::new();
        stop.cancel();
        assert_eq!(read(100_000, &stop), None);
    }
}
