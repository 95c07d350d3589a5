//! Carries events to whoever watches. Each watcher has a thread and a queue of its own, so a slow or panicking one slows or
//! harms nobody: it loses pieces of text, and is told how many, but never a state, a tool call or a verdict.

use super::watcher::Watcher;
use crate::id::RunId;
use crate::run::AgentEvent;
use crate::verdict::StepProgress;
use serde::Serialize;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// An event in its envelope: one line of `--json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct EventRecord {
    /// The version of this form.
    pub schema_version: u32,
    /// The run.
    pub run: RunId,
    /// The event's number in its run, from 1. No two events of a run have the same number, and later ones have larger numbers: a resume
    /// counts on from the next multiple of 1,000,000,000.
    pub seq: u64,
    /// Only in events that are read from the journal: the event tells whole what was told live in pieces. This is the smallest number that
    /// the first piece can have had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The job whose run it is, in a batch of many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The sub-agent whose event it is, by its path: `1`, or `1.2` for the second one of the first. Nothing for the run's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// When it was told, as RFC 3339 in UTC with milliseconds.
    pub at: String,
    /// Whether the run's journal says it too, so that [`super::told`] gives it again, with this number. Not so: pieces, which it gives whole
    /// where the journal has them, and what a step does.
    #[serde(skip)]
    pub is_kept: bool,
    /// The event: `type` and `data`.
    #[serde(flatten)]
    pub event: AgentEvent,
}

impl EventRecord {
    /// An event of the run itself that is told now.
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

/// The version of [`EventRecord`].
pub const EVENT_SCHEMA_VERSION: u32 = 1;

/// Numbers between the beginnings of two processes that drive a run: more than one of them tells.
const LIFE: u64 = 1_000_000_000;

/// The number behind which a process counts that takes a run up. What the one before told after the newest record has smaller numbers.
pub(super) fn next_life(number: u64) -> u64 {
    (number / LIFE + 1) * LIFE
}

/// The numbers of a run's events. Its sub-agents count with it: events are told in the order of their numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct Count(Arc<Mutex<Numbers>>);

#[derive(Debug, Default)]
struct Numbers {
    last: u64,
    /// The last number that the journal accounts for.
    kept: u64,
}

impl Count {
    /// Goes on behind this number.
    pub(super) fn from(number: u64) -> Self {
        Self(Arc::new(Mutex::new(Numbers { last: number, kept: number })))
    }

    /// The last number before a record, which stands for the pieces since the last one. `whole` of them are told again from the journal: so
    /// many numbers are theirs, also where there were fewer pieces.
    pub(super) fn record(&self, whole: usize) -> u64 {
        let mut numbers = self.lock();
        numbers.last = numbers.last.max(numbers.kept + whole as u64);
        numbers.kept = numbers.last;
        numbers.last
    }

    /// Tells something with the next number, before anybody has the one after it.
    pub(super) fn next(&self, is_kept: bool, tell: impl FnOnce(u64)) {
        let mut numbers = self.lock();
        numbers.last += 1;
        if is_kept {
            numbers.kept = numbers.last;
        }
        tell(numbers.last);
    }

    fn lock(&self) -> MutexGuard<'_, Numbers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who is told at once, and is waited for.
type Ear = dyn Fn(&EventRecord) + Send + Sync;

/// All watchers of one agent, for whoever tells them something.
#[derive(Clone, Default)]
pub(super) struct Bus {
    watchers: Vec<Arc<Watcher<Arc<EventRecord>>>>,
    ears: Vec<Arc<Ear>>,
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bus({} watchers, {} ears)", self.watchers.len(), self.ears.len())
    }
}

impl Bus {
    pub(super) fn watch(&mut self, mut watcher: impl FnMut(&EventRecord) + Send + 'static) {
        self.watchers.push(Arc::new(Watcher::new(bytes, move |record: Arc<EventRecord>, lost| {
            if lost > 0 {
                let event = AgentEvent::Warning(format!("{lost} pieces of text were left out: this watcher is slow"));
                watcher(&EventRecord { event, ..(*record).clone() });
            }
            watcher(&record);
        })));
    }

    /// Has `ear` told of everything by whoever tells it, who waits for it.
    pub(super) fn whisper(&mut self, ear: impl Fn(&EventRecord) + Send + Sync + 'static) {
        self.ears.push(Arc::new(ear));
    }

    pub(super) fn is_watched(&self) -> bool {
        !(self.watchers.is_empty() && self.ears.is_empty())
    }

    pub(super) fn tell(&self, record: EventRecord) {
        let record = Arc::new(record);
        self.ears.iter().for_each(|ear| ear(&record));
        for watcher in &self.watchers {
            watcher.tell(record.clone(), piece(&record.event).is_some());
        }
    }

    /// Waits until every watcher has seen everything, at most for `patience`.
    pub(super) async fn settle(&self, patience: Duration) {
        let seen = async {
            for watcher in &self.watchers {
                watcher.settled().await;
            }
        };
        let _in_time = tokio::time::timeout(patience, seen).await;
    }
}

/// About the memory that an event takes while it waits. Those with more than a piece of text are few.
fn bytes(record: &Arc<EventRecord>) -> usize {
    size_of::<EventRecord>() + piece(&record.event).map_or(0, str::len)
}

/// The piece of text or output that an event brings: a later whole event says the same.
fn piece(event: &AgentEvent) -> Option<&str> {
    let (AgentEvent::Text(text)
    | AgentEvent::Thinking(text)
    | AgentEvent::ToolOutput { text }
    | AgentEvent::LaneStep(StepProgress::Output { line: text, .. })) = event
    else {
        return None;
    };
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_watcher_that_panics_hears_the_next_event_and_harms_no_other() {
        let mut bus = Bus::default();
        let (first, second) = (channel(), channel());
        bus.watch(move |record| {
            first.0.send(record.seq).unwrap();
            assert!(record.seq != 1, "a watcher that cannot stand the first event");
        });
        bus.watch(move |record| second.0.send(record.seq).unwrap());
        for seq in 1..=2 {
            let (run, event) = (RunId::new("r"), AgentEvent::Text("word".into()));
            bus.tell(EventRecord {
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
        for heard in [first.1, second.1] {
            assert_eq!([heard.recv(), heard.recv()], [Ok(1), Ok(2)]);
        }
    }
}
