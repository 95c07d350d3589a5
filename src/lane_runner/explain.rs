//! Finds the part of a step's output that explains a failure, in memory or in its log: only when there is one to explain, so that what
//! passes costs nothing, however much it prints.

use super::excerpt::{EXPLAINED, Excerpt};
use super::lines::Lines;
use crate::process::{Captured, Ended};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// How much of a log is read at once, before others have their turn.
const PIECE: usize = 64 * 1024;

/// The part of its output that explains why a step did not pass. What was left out of the log is missing here, too; and once it is
/// to stop, only what is in memory is looked at.
pub(super) async fn explain(ended: &Ended, log: &Path, stop: &CancellationToken) -> String {
    let Captured { head, tail, total } = &ended.output;
    let mut reading = Reading { lines: Lines::default(), excerpt: Excerpt::new(EXPLAINED) };
    let is_whole = *total == (head.len() + tail.len()) as u64;
    if is_whole || !ended.is_logged || reading.log(log, stop).await.is_none() {
        reading = Reading { lines: Lines::default(), excerpt: Excerpt::new(EXPLAINED) };
        reading.take(head);
        reading.take(tail);
    }
    if let Some(line) = reading.lines.rest() {
        reading.excerpt.line(&line);
    }
    reading.excerpt.finish()
}

struct Reading {
    lines: Lines,
    excerpt: Excerpt,
}

impl Reading {
    fn take(&mut self, bytes: &[u8]) {
        self.lines.push(bytes).iter().for_each(|line| self.excerpt.line(line));
    }

    /// Reads the log. `None` when it cannot be read to its end.
    async fn log(&mut self, path: &Path, stop: &CancellationToken) -> Option<()> {
        let mut log = File::open(path).ok()?;
        let mut piece = vec![0; PIECE];
        while !stop.is_cancelled() {
            match log.read(&mut piece).ok()? {
                0 => return Some(()),
                count => self.take(&piece[..count]),
            }
            tokio::task::yield_now().await;
        }
        None
    }
}
