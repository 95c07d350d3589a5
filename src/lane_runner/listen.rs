//! Delivery of a step's output to a listener while the step runs: every line, or the newest line at
//! intervals.

use super::lines::LineReader;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The part of a step's output that a listener receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputInterest {
    /// Every line, in order. Each line costs the listener time.
    Lines,
    /// Every line, in order, and at most ten times a second the line that has not ended.
    GrowingLines,
    /// The newest line, complete or not, at most ten times a second, for a screen. Even very much
    /// output costs almost nothing.
    LastLine,
}

/// The pause between two lines of [`OutputInterest::LastLine`], and before an incomplete line.
const PAUSE: Duration = Duration::from_millis(100);

/// A line for a listener.
pub(super) enum OutputLine {
    Whole(String),
    /// A line that has not ended. A later one replaces it.
    Partial(String),
}

/// Passes the lines of one step to a listener.
pub(super) struct OutputSender<'a> {
    listen: OutputInterest,
    tell: &'a (dyn Fn(OutputLine) + Send + Sync),
    lines: Mutex<LineReader>,
    news: Notify,
}

impl<'a> OutputSender<'a> {
    pub(super) fn new(listen: OutputInterest, tell: &'a (dyn Fn(OutputLine) + Send + Sync)) -> Self {
        Self { listen, tell, lines: Mutex::default(), news: Notify::new() }
    }

    /// Adds a piece of output.
    pub(super) fn push(&self, bytes: &[u8]) {
        let mut lines = self.lines();
        match self.listen {
            OutputInterest::Lines | OutputInterest::GrowingLines => {
                let whole = lines.push(bytes);
                drop(lines);
                whole.into_iter().for_each(|line| (self.tell)(OutputLine::Whole(line)));
            }
            OutputInterest::LastLine => {
                lines.push_newest(bytes);
                drop(lines);
            }
        }
        if self.listen != OutputInterest::Lines {
            self.news.notify_one();
        }
    }

    /// Passes on the newest line or the incomplete one when there is one, with pauses. Never
    /// returns.
    pub(super) async fn run(&self) -> std::convert::Infallible {
        loop {
            self.news.notified().await;
            if self.listen == OutputInterest::LastLine {
                let newest = self.lines().newest();
                newest.into_iter().for_each(|line| (self.tell)(OutputLine::Whole(line)));
            }
            tokio::time::sleep(PAUSE).await;
            if self.listen == OutputInterest::GrowingLines {
                let partial = self.lines().partial();
                partial.into_iter().for_each(|line| (self.tell)(OutputLine::Partial(line)));
            }
        }
    }

    /// Passes on the remaining line at the end of the output.
    pub(super) fn finish(self) {
        let mut lines = self.lines.into_inner().unwrap_or_else(PoisonError::into_inner);
        let last = match self.listen {
            OutputInterest::Lines | OutputInterest::GrowingLines => lines.rest(),
            OutputInterest::LastLine => lines.newest(),
        };
        last.into_iter().for_each(|line| (self.tell)(OutputLine::Whole(line)));
    }

    fn lines(&self) -> MutexGuard<'_, LineReader> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
