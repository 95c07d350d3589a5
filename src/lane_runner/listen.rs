//! Delivery of a step's output to a listener while the step runs: every line, or the newest line at
//! intervals.

use super::lines::LineReader;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The part of a step's output that a listener receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputInterest {
    /// Every line, in order. Each line costs the listener time.
    Lines,
    /// The newest line, complete or not, at most ten times a second, for a screen. Even very much
    /// output costs almost nothing.
    LastLine,
}

/// The pause between two lines of [`OutputInterest::LastLine`].
const PAUSE: Duration = Duration::from_millis(100);

/// Passes the lines of one step to a listener.
pub(super) struct OutputSender<'a> {
    listen: OutputInterest,
    tell: &'a (dyn Fn(String) + Send + Sync),
    lines: Mutex<LineReader>,
    news: Notify,
}

impl<'a> OutputSender<'a> {
    pub(super) fn new(listen: OutputInterest, tell: &'a (dyn Fn(String) + Send + Sync)) -> Self {
        Self { listen, tell, lines: Mutex::default(), news: Notify::new() }
    }

    /// Adds a piece of output.
    pub(super) fn push(&self, bytes: &[u8]) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        match self.listen {
            OutputInterest::Lines => {
                let whole = lines.push(bytes);
                drop(lines);
                whole.into_iter().for_each(self.tell);
            }
            OutputInterest::LastLine => {
                lines.push_newest(bytes);
                drop(lines);
                self.news.notify_one();
            }
        }
    }

    /// Passes on the newest line when there is one, with a pause between two lines. Never returns.
    pub(super) async fn run(&self) -> std::convert::Infallible {
        loop {
            self.news.notified().await;
            self.tell_newest();
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Passes on the remaining line at the end of the output.
    pub(super) fn finish(self) {
        let mut lines = self.lines.into_inner().unwrap_or_else(PoisonError::into_inner);
        let last = match self.listen {
            OutputInterest::Lines => lines.rest(),
            OutputInterest::LastLine => lines.newest(),
        };
        last.into_iter().for_each(self.tell);
    }

    fn tell_newest(&self) {
        let newest = self.lines.lock().unwrap_or_else(PoisonError::into_inner).newest();
        newest.into_iter().for_each(self.tell);
    }
}
