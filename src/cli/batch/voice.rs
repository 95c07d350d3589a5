//! What the screen of a batch is told, in the order in which it happened, without that anybody waits for it.

use super::super::failure::Failure;
use super::super::hear_out;
use super::screen::Screen;
use crate::batch::{News, Outcome, Summary, Tell};
use crate::driver::{EventRecord, Stop, Watcher};
use crate::run::{AgentEvent, TaskResult};
use crate::verdict::StepProgress;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What the screen is told.
#[derive(Debug)]
pub(super) enum Heard {
    /// With the jobs that are over already, and whether each is verified.
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
        outcome: Box<Outcome>,
    },
    Over {
        job: usize,
        outcome: Box<Outcome>,
        result: Option<Box<TaskResult>>,
    },
    /// So many requests wait since models may not be asked faster.
    Paced(usize),
    Stopping,
    Closed(Box<Summary>),
}

/// Where news goes that the screen is to show.
#[derive(Debug, Clone)]
pub(super) struct Voice {
    queue: Arc<Watcher<Heard>>,
    /// What could not be written at the end.
    failed: Arc<Mutex<Option<Failure>>>,
}

impl Voice {
    /// Opens the screen of a batch of which these jobs are over already.
    pub(super) fn open(screen: Screen, before: BTreeMap<usize, bool>) -> Self {
        let failed = Arc::clone(&screen.failed());
        let queue = Watcher::new(bytes, move |heard, _| screen.show(heard));
        queue.tell(Heard::Begun { before }, false);
        Self { queue: Arc::new(queue), failed }
    }

    /// Who is told of everything.
    pub(super) fn tell(&self) -> Tell {
        let queue = Arc::clone(&self.queue);
        Tell::new(move |news| match news {
            News::Started { job, tries } => queue.tell(Heard::Started { job, tries }, false),
            News::Record { job, record } => {
                let is_piece = piece(&record.event).is_some();
                queue.tell(Heard::Record { job, record: Box::new(record.clone()) }, is_piece);
            }
            News::Again { job, tries, after, outcome } => {
                queue.tell(Heard::Again { job, tries, after, outcome: Box::new(outcome.clone()) }, false);
            }
            News::Over { job, outcome, result } => {
                let result = result.cloned().map(Box::new);
                queue.tell(Heard::Over { job, outcome: Box::new(outcome.clone()), result }, false);
            }
        })
    }

    /// So many requests wait since models may not be asked faster.
    pub(super) fn paced(&self, count: usize) {
        self.queue.tell(Heard::Paced(count), true);
    }

    /// A person wants it to stop.
    pub(super) fn stopping(&self) {
        self.queue.tell(Heard::Stopping, false);
    }

    /// The end: the table, files, and for programs all of it. `false` when nobody heard that and it was to stop.
    ///
    /// # Errors
    /// When something that was asked for could not be written.
    pub(super) async fn close(&self, summary: Summary, stop: &Stop) -> Result<bool, Failure> {
        self.queue.tell(Heard::Closed(Box::new(summary)), false);
        let was_heard = hear_out(stop, self.queue.settled()).await;
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        failed.map_or(Ok(was_heard), Err)
    }
}

/// About the memory that news takes while it waits.
fn bytes(heard: &Heard) -> usize {
    let own = size_of::<Heard>() + size_of::<EventRecord>();
    own + if let Heard::Record { record, .. } = heard { piece(&record.event).map_or(0, str::len) } else { 0 }
}

/// The piece of text or output that an event brings: a later whole event says the same.
fn piece(event: &AgentEvent) -> Option<&str> {
    match event {
        AgentEvent::Text(text) | AgentEvent::Thinking(text) | AgentEvent::ToolOutput { text } => Some(text),
        AgentEvent::LaneStep(StepProgress::Output { line, .. }) => Some(line),
        _ => None,
    }
}
