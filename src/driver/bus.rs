//! Delivery of events to watchers.
//!
//! Each watcher has a thread and a queue, so a slow or panicking watcher affects no other. A slow
//! watcher loses pieces of text and gets the number of lost pieces. It never loses a state, a tool
//! call or a verdict.

use super::watcher::EventWatcher;
use crate::id::RunId;
use crate::run::AgentEvent;
use serde::Serialize;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// An event in its envelope: one line of `--json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct EventRecord {
    /// The version of this format.
    pub schema_version: u32,
    /// The id of the run.
    pub run: RunId,
    /// The number of the event in its run, from 1. No two events of a run have the same number, and
    /// later events have larger numbers. After a resume, numbers continue after the next multiple
    /// of 1,000,000,000.
    pub seq: u64,
    /// Present only in events read from the journal: the event holds the whole of what was sent
    /// live in pieces. This is the smallest number that the first piece can have had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The job that the run belongs to, in a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The path of the sub-agent that the event belongs to: `1`, or `1.2` for the second sub-agent
    /// of the first. Absent for the run itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The time of the event, as RFC 3339 in UTC with milliseconds.
    pub at: String,
    /// True if the run's journal has the event, so that [`super::events_after`] returns it again
    /// with this number. False for pieces, which are returned whole if the journal has them, and
    /// for the progress of steps.
    #[serde(skip)]
    pub is_kept: bool,
    /// The event: `type` and `data`.
    #[serde(flatten)]
    pub event: AgentEvent,
}

impl EventRecord {
    /// Creates an event of the run itself with the current time.
    pub(super) fn now(run: &RunId, seq: u64, event: AgentEvent) -> Self {
        let (run, at) = (run.clone(), super::timestamp());
        Self {
            schema_version: EVENT_SCHEMA_VERSION,
            run,
            seq,
            from: None,
            job: None,
            of: None,
            at,
            is_kept: false,
            event,
        }
    }
}

/// The version of the format of [`EventRecord`].
pub const EVENT_SCHEMA_VERSION: u32 = 1;

/// The size of the range of numbers of each process that drives a run. No process sends more
/// events.
const LIFE: u64 = 1_000_000_000;

/// Returns the number after which a resuming process counts. The previous process used only smaller
/// numbers, even for events after its newest record.
pub(super) fn next_life(number: u64) -> u64 {
    (number / LIFE + 1) * LIFE
}

/// The counter of a run's events, shared with its sub-agents. Events are sent in the order of their
/// numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct EventCount(Arc<Mutex<EventNumbers>>);

#[derive(Debug, Default)]
struct EventNumbers {
    last: u64,
    /// The last number that the journal accounts for.
    kept: u64,
}

impl EventCount {
    /// Creates a counter that continues after this number.
    pub(super) fn from(number: u64) -> Self {
        Self(Arc::new(Mutex::new(EventNumbers { last: number, kept: number })))
    }

    /// Returns the last number before a record. It covers the pieces since the previous record. The
    /// journal repeats the pieces as `whole` events, so the record takes at least that many
    /// numbers.
    pub(super) fn record(&self, whole: usize) -> u64 {
        let mut numbers = self.lock();
        numbers.last = numbers.last.max(numbers.kept + whole as u64);
        numbers.kept = numbers.last;
        numbers.last
    }

    /// Calls `tell` with the next number. Holds the lock meanwhile, so that events keep their
    /// order.
    pub(super) fn next(&self, is_kept: bool, tell: impl FnOnce(u64)) {
        let mut numbers = self.lock();
        numbers.last += 1;
        if is_kept {
            numbers.kept = numbers.last;
        }
        tell(numbers.last);
    }

    fn lock(&self) -> MutexGuard<'_, EventNumbers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watcher that is called at once, on the thread of the sender.
type EventSubscriber = dyn Fn(&EventRecord) + Send + Sync;

/// All watchers of one agent.
#[derive(Clone, Default)]
pub(super) struct EventBus {
    watchers: Vec<Arc<EventWatcher<Arc<EventRecord>>>>,
    listeners: Vec<Arc<EventSubscriber>>,
}

impl fmt::Debug for EventBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventBus({} watchers, {} listeners)", self.watchers.len(), self.listeners.len())
    }
}

impl EventBus {
    pub(super) fn watch(&mut self, mut watcher: impl FnMut(&EventRecord) + Send + 'static) {
        self.watchers.push(Arc::new(EventWatcher::new(bytes, move |record: Arc<EventRecord>, lost| {
            if lost > 0 {
                let event = AgentEvent::Warning(format!("{lost} pieces of text were left out: this watcher is slow"));
                // The number of the last piece that was left out.
                watcher(&EventRecord { event, seq: record.seq - 1, ..(*record).clone() });
            }
            watcher(&record);
        })));
    }

    /// Calls `listener` with every event on the thread of the sender, who waits for it.
    pub(super) fn add_listener(&mut self, listener: impl Fn(&EventRecord) + Send + Sync + 'static) {
        self.listeners.push(Arc::new(listener));
    }

    pub(super) fn is_watched(&self) -> bool {
        !(self.watchers.is_empty() && self.listeners.is_empty())
    }

    pub(super) fn publish(&self, record: EventRecord) {
        let record = Arc::new(record);
        self.listeners.iter().for_each(|listener| listener(&record));
        for watcher in &self.watchers {
            watcher.send(record.clone(), piece(&record.event).is_some());
        }
    }

    /// Waits until every watcher has handled every event, at most for `patience`.
    pub(super) async fn wait_for_watchers(&self, patience: Duration) {
        let seen = async {
            for watcher in &self.watchers {
                watcher.wait_until_idle().await;
            }
        };
        let _in_time = tokio::time::timeout(patience, seen).await;
    }
}

/// Estimates the memory of a waiting event. Few events hold more than a piece of text.
fn bytes(record: &Arc<EventRecord>) -> usize {
    size_of::<EventRecord>() + piece(&record.event).map_or(0, str::len)
}

/// Returns the piece of text or output in an event. A later whole event repeats it.
fn piece(event: &AgentEvent) -> Option<&str> {
    match event {
        AgentEvent::Text(text) | AgentEvent::Thinking(text) | AgentEvent::ToolOutput { text } => Some(text),
        AgentEvent::LaneStep(progress) => progress.printed(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_watcher_that_panics_hears_the_next_event_and_harms_no_other() {
        let mut bus = EventBus::default();
        let (first, second) = (channel(), channel());
        bus.watch(move |record| {
            first.0.send(record.seq).unwrap();
            assert!(record.seq != 1, "a watcher that cannot stand the first event");
        });
        bus.watch(move |record| second.0.send(record.seq).unwrap());
        for seq in 1..=2 {
            let (run, event) = (RunId::new("r"), AgentEvent::Text("word".into()));
            bus.publish(EventRecord {
                schema_version: EVENT_SCHEMA_VERSION,
                run,
                seq,
                from: None,
                job: None,
                of: None,
                at: String::new(),
                is_kept: false,
                event,
            });
        }
        for received in [first.1, second.1] {
            assert_eq!([received.recv(), received.recv()], [Ok(1), Ok(2)]);
        }
    }
}
