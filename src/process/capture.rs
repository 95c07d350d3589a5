//! Capture of a step's output from its pipe. The log and the listener get all of it; its two ends
//! stay in memory. Memory is bounded, however much the step writes and however long its lines are.

use super::log::StepLogFile;
use super::pace::Backpressure;
use super::{Stopwatch, text};
use std::future::Future;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;

/// Bytes to keep of each end.
const KEPT: usize = 64 * 1024;
/// Size of the first read buffer. Most outputs are small, and allocating a large buffer would cost
/// each step more than reading its output.
const FIRST: usize = 4 * 1024;

/// The two ends of a step's output. They never overlap; together they are the whole output if it is
/// short enough.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    /// The first bytes, at most 64 KiB.
    pub head: Vec<u8>,
    /// The last bytes of what follows the head, at most 64 KiB.
    pub tail: Vec<u8>,
    /// The number of bytes written in all.
    pub total: u64,
}

impl CapturedOutput {
    /// Returns the output as valid, harmless text of at most `limit` bytes. Escapes and control
    /// characters are removed, rewritten lines appear in their last state, and a marker replaces
    /// what is left out.
    pub fn text(&self, limit: usize) -> String {
        match self.total - (self.head.len() + self.tail.len()) as u64 {
            0 => text::shorten(&text::clean(&[self.head.as_slice(), &self.tail].concat()), limit),
            hidden => text::join(&text::clean(&self.head), &text::clean(&self.tail), hidden, limit),
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(KEPT - self.head.len()));
        self.head.extend_from_slice(head);
        if rest.len() >= KEPT {
            self.tail.clear();
        }
        self.tail.extend_from_slice(&rest[rest.len().saturating_sub(KEPT)..]);
        if self.tail.len() >= 2 * KEPT {
            self.trim();
        }
    }

    fn trim(&mut self) {
        self.tail.drain(..self.tail.len().saturating_sub(KEPT));
    }
}

/// The reading end of a running step's output.
pub(super) struct StepOutput<'a> {
    /// `None` once every writer has closed the pipe.
    pipe: Option<Receiver>,
    /// True if the pipe was enlarged.
    is_wide: bool,
    /// The buffer for one read. Small until one read has filled it.
    buffer: Vec<u8>,
    kept: CapturedOutput,
    log: Option<StepLogFile>,
    pace: Option<&'a Backpressure>,
    listener: &'a (dyn Fn(&[u8]) + Send + Sync),
}

impl<'a> StepOutput<'a> {
    pub(super) fn new(
        pipe: Receiver,
        log: Option<StepLogFile>,
        pace: Option<&'a Backpressure>,
        listener: &'a (dyn Fn(&[u8]) + Send + Sync),
    ) -> Self {
        let buffer = Vec::with_capacity(FIRST);
        Self { pipe: Some(pipe), is_wide: false, buffer, kept: CapturedOutput::default(), log, pace, listener }
    }

    /// Reads output until `until` is done. Polls `until` before each read, so a flood of output
    /// does not delay it.
    pub(super) async fn pump<T>(&mut self, until: impl Future<Output = T>) -> T {
        tokio::pin!(until);
        loop {
            tokio::select! {
                biased;
                done = &mut until => return done,
                () = self.take_in_time(), if self.is_open() => {}
            }
        }
    }

    /// Reads the rest of the output. Returns false if the pipe is still open after `limit` of
    /// waiting.
    pub(super) async fn drain(&mut self, limit: Duration) -> bool {
        let mut left = limit;
        while self.is_open() {
            self.ready().await;
            let clock = Stopwatch::start();
            if tokio::time::timeout(left, self.read_piece()).await.is_err() {
                return false;
            }
            left = left.saturating_sub(clock.read());
        }
        true
    }

    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Returns the kept output, and whether the log is complete. A program that wrote nothing gets
    /// a log only if one `is_wanted`.
    pub(super) fn finish(mut self, is_wanted: bool) -> (CapturedOutput, bool) {
        let logged = self.log.take().map(|log| log.finish(is_wanted));
        if let Some(Err(error)) = &logged {
            tracing::warn!(%error, "cannot finish a step's log");
        }
        self.kept.trim();
        (self.kept, matches!(logged, Some(Ok(()))))
    }

    async fn ready(&self) {
        if let Some(pace) = self.pace {
            pace.ready().await;
        }
    }

    async fn take_in_time(&mut self) {
        self.ready().await;
        self.read_piece().await;
    }

    /// Reads one piece. Loses nothing if it is dropped while it waits.
    async fn read_piece(&mut self) {
        let Some(pipe) = self.pipe.as_mut() else { return };
        self.buffer.clear();
        match pipe.read_buf(&mut self.buffer).await {
            Ok(0) | Err(_) => self.pipe = None,
            Ok(count) => {
                if count >= KEPT && !std::mem::replace(&mut self.is_wide, true) {
                    enlarge(pipe);
                }
                let bytes = &self.buffer[..];
                self.kept.add(bytes);
                (self.listener)(bytes);
                if let Some(Err(error)) = self.log.as_mut().map(|log| log.write(bytes)) {
                    tracing::warn!(%error, "cannot write a step's log; the rest of it will be missing");
                    self.log = None;
                }
                if count == self.buffer.capacity() && count < KEPT && self.pace.is_none() {
                    self.buffer = Vec::with_capacity(KEPT);
                }
            }
        }
    }
}

/// Enlarges a pipe that was full, so that its writer and its reader switch less often.
fn enlarge(pipe: &Receiver) {
    #[cfg(target_os = "linux")]
    let _more_may_not_be_allowed = rustix::pipe::fcntl_setpipe_size(pipe, 4 * KEPT);
    #[cfg(not(target_os = "linux"))]
    let _ = pipe;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_ends_of_a_long_output_are_kept_and_never_overlap() {
        let mut kept = CapturedOutput::default();
        let bytes: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
        bytes.chunks(777).for_each(|chunk| kept.add(chunk));
        kept.trim();
        let whole = CapturedOutput {
            head: bytes[..KEPT].to_vec(),
            tail: bytes[bytes.len() - KEPT..].to_vec(),
            total: 1_000_000,
        };
        assert_eq!(kept, whole);
    }

    #[test]
    fn the_text_of_a_cut_output_says_how_much_is_missing() {
        let kept = CapturedOutput { head: b"first\n".to_vec(), tail: b"last\n".to_vec(), total: 1011 };
        assert_eq!(kept.text(4096), "first\n\n[… 1000 bytes left out …]\nlast\n");
    }
}
