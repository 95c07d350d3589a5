//! What a listener is told of a step's output while it runs: every line, or now and then the newest.

use super::lines::Lines;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How much of a step's output a listener wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// Every line, in order. A flood costs the listener's time for each.
    Lines,
    /// The newest line, whole or only begun, at most ten times a second: for a screen. A flood costs next to nothing.
    LastLine,
}

/// The pause between two lines of [`Listen::LastLine`].
const PAUSE: Duration = Duration::from_millis(100);

/// Hands the lines of one step on.
pub(super) struct Teller<'a> {
    listen: Listen,
    tell: &'a (dyn Fn(String) + Send + Sync),
    lines: Mutex<Lines>,
    news: Notify,
}

impl<'a> Teller<'a> {
    pub(super) fn new(listen: Listen, tell: &'a (dyn Fn(String) + Send + Sync)) -> Self {
        Self { listen, tell, lines: Mutex::default(), news: Notify::new() }
    }

    /// Takes a piece of output.
    pub(super) fn take(&self, bytes: &[u8]) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        match self.listen {
            Listen::Lines => {
                let whole = lines.push(bytes);
                drop(lines);
                whole.into_iter().for_each(self.tell);
            }
            Listen::LastLine => {
                lines.push_newest(bytes);
                drop(lines);
                self.news.notify_one();
            }
        }
    }

    /// Tells the newest line whenever there is one and the last one is old enough. Never ends.
    pub(super) async fn run(&self) -> std::convert::Infallible {
        loop {
            self.news.notified().await;
            self.tell_newest();
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Tells what was not told, at the end of the output.
    pub(super) fn finish(self) {
        let mut lines = self.lines.into_inner().unwrap_or_else(PoisonError::into_inner);
        let last = match self.listen {
            Listen::Lines => lines.rest(),
            Listen::LastLine => lines.newest(),
        };
        last.into_iter().for_each(self.tell);
    }

    fn tell_newest(&self) {
        let newest = self.lines.lock().unwrap_or_else(PoisonError::into_inner).newest();
        newest.into_iter().for_each(self.tell);
    }
}
