//! The queue of news for the screen of a batch. It keeps their order, and no run waits for the
//! screen.

use super::super::failure::CliError;
use super::super::output::{hear_out, no_output};
use super::super::output_buffer::OutputBuffer;
use super::screen::BatchScreen;
use crate::batch::{BatchListener, BatchSummary, BatchUpdate, FinishedJob};
use crate::driver::{EventRecord, EventWatcher, StopToken};
use crate::run::{AgentEvent, TaskResult};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// News for the screen.
#[derive(Debug)]
pub(super) enum ScreenEvent {
    /// The batch begins. `before` holds the jobs that have already ended, with true for each
    /// verified one.
    Begun {
        before: BTreeMap<usize, bool>,
    },
    Started {
        job: usize,
        tries: u32,
    },
    Record {
        job: usize,
        record: Box<EventRecord>,
    },
    Again {
        job: usize,
        tries: u32,
        after: Duration,
        outcome: Box<FinishedJob>,
    },
    Over {
        job: usize,
        outcome: Box<FinishedJob>,
        result: Option<Box<TaskResult>>,
    },
    /// The number of requests that wait because of the models' rate limits.
    Paced(usize),
    Stopping,
    Closed(Box<BatchSummary>),
}

/// The sender of news for the screen.
#[derive(Debug, Clone)]
pub(super) struct ScreenSender {
    queue: Arc<EventWatcher<ScreenEvent>>,
    /// The lines of JSON that wait for the reader of standard output.
    buffer: OutputBuffer,
    /// The error at the end, if any.
    failed: Arc<Mutex<Option<CliError>>>,
}

impl ScreenSender {
    /// Opens the screen of a batch. `before` holds the jobs that have already ended.
    pub(super) fn open(screen: BatchScreen, before: BTreeMap<usize, bool>) -> Self {
        let (failed, buffer) = (Arc::clone(&screen.failed()), screen.buffer());
        let queue = EventWatcher::new(bytes, move |heard, _| screen.show(heard));
        queue.send(ScreenEvent::Begun { before }, false);
        Self { queue: Arc::new(queue), buffer, failed }
    }

    /// Returns the callback that receives all news of the batch.
    pub(super) fn listener(&self) -> BatchListener {
        let queue = Arc::clone(&self.queue);
        BatchListener::new(move |news| match news {
            BatchUpdate::Started { job, tries } => queue.send(ScreenEvent::Started { job, tries }, false),
            BatchUpdate::Record { job, record } => {
                let is_piece = piece(&record.event).is_some();
                queue.send(ScreenEvent::Record { job, record: Box::new(record.clone()) }, is_piece);
            }
            BatchUpdate::Again { job, tries, after, outcome } => {
                queue.send(ScreenEvent::Again { job, tries, after, outcome: Box::new(outcome.clone()) }, false);
            }
            BatchUpdate::Over { job, outcome, result } => {
                let result = result.cloned().map(Box::new);
                queue.send(ScreenEvent::Over { job, outcome: Box::new(outcome.clone()), result }, false);
            }
        })
    }

    /// Queues the number of requests that wait because of the models' rate limits.
    pub(super) fn paced(&self, count: usize) {
        self.queue.send(ScreenEvent::Paced(count), true);
    }

    /// Queues the news that a person asked to stop.
    pub(super) fn stopping(&self) {
        self.queue.send(ScreenEvent::Stopping, false);
    }

    /// Shows the end of the batch, and waits for it. Returns `false` if the user asked to stop and
    /// the output did not finish soon after.
    ///
    /// # Errors
    /// When requested output could not be written.
    pub(super) async fn close(&self, summary: BatchSummary, stop: &StopToken) -> Result<bool, CliError> {
        self.queue.send(ScreenEvent::Closed(Box::new(summary)), false);
        let mut unwritten = Ok(());
        let heard = async {
            self.queue.wait_until_idle().await;
            unwritten = self.buffer.wait_until_written().await;
        };
        let was_heard = hear_out(stop, heard).await;
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        failed.map_or(Ok(()), Err)?;
        unwritten.map_err(no_output)?;
        Ok(was_heard)
    }
}

/// Estimates the memory of a piece of news in the queue, in bytes.
fn bytes(heard: &ScreenEvent) -> usize {
    let own = size_of::<ScreenEvent>() + size_of::<EventRecord>();
    own + if let ScreenEvent::Record { record, .. } = heard { piece(&record.event).map_or(0, str::len) } else { 0 }
}

/// Returns the piece of text or output in an event. A later event repeats the text as a whole.
fn piece(event: &AgentEvent) -> Option<&str> {
    match event {
        AgentEvent::Text(text) | AgentEvent::Thinking(text) | AgentEvent::ToolOutput { text } => Some(text),
        AgentEvent::LaneStep(progress) => progress.printed(),
        _ => None,
    }
}
