//! Carries events to whoever watches. Each watcher has a thread and a queue of its own, so a slow or panicking one slows or
//! harms nobody: it loses pieces of text, and is told how many, but never a state, a tool call or a verdict.

use crate::id::RunId;
use crate::run::AgentEvent;
use crate::verdict::StepProgress;
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Queued records beyond which pieces of text are left out for a watcher.
const PATIENCE: usize = 4096;
/// How often a waiting `settle` looks.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// An event in its envelope: one line of `--json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventRecord {
    /// The version of this form.
    pub schema_version: u32,
    /// The run.
    pub run: RunId,
    /// The event's number in its run, from 1.
    pub seq: u64,
    /// When it was told, as RFC 3339 in UTC with milliseconds.
    pub at: String,
    /// The event: `type` and `data`.
    #[serde(flatten)]
    pub event: AgentEvent,
}

/// The version of [`EventRecord`].
pub const EVENT_SCHEMA_VERSION: u32 = 1;

/// All watchers of one agent.
#[derive(Debug, Default)]
pub(super) struct Bus {
    watchers: Vec<Watcher>,
}

#[derive(Debug)]
struct Watcher {
    queue: Option<Sender<Arc<EventRecord>>>,
    waiting: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Bus {
    pub(super) fn watch(&mut self, watcher: impl FnMut(&EventRecord) + Send + 'static) {
        let (sender, receiver) = channel();
        let (waiting, lost) = (Arc::<AtomicUsize>::default(), Arc::<AtomicU64>::default());
        let listen = {
            let (waiting, lost) = (waiting.clone(), lost.clone());
            move || listen(&receiver, watcher, &waiting, &lost)
        };
        let thread = std::thread::Builder::new().name("fledge-watcher".into()).spawn(listen).ok();
        self.watchers.push(Watcher { queue: Some(sender), waiting, lost, thread });
    }

    pub(super) fn is_watched(&self) -> bool {
        !self.watchers.is_empty()
    }

    pub(super) fn tell(&self, record: EventRecord) {
        let record = Arc::new(record);
        for watcher in &self.watchers {
            if is_piece(&record.event) && watcher.waiting.load(Ordering::Relaxed) >= PATIENCE {
                watcher.lost.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            if let Some(queue) = &watcher.queue
                && queue.send(record.clone()).is_ok()
            {
                watcher.waiting.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Waits until every watcher has seen everything, at most for `patience`.
    pub(super) async fn settle(&self, patience: Duration) {
        let seen = async {
            while self.watchers.iter().any(Watcher::is_behind) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let _in_time = tokio::time::timeout(patience, seen).await;
    }
}

impl Watcher {
    fn is_behind(&self) -> bool {
        let is_alive = self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        is_alive && self.waiting.load(Ordering::Acquire) > 0
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.queue = None; // the thread ends when its queue does; it is not waited for
    }
}

/// Pieces of text and output: a later whole event says the same.
fn is_piece(event: &AgentEvent) -> bool {
    matches!(
        event,
        AgentEvent::Text(_)
            | AgentEvent::Thinking(_)
            | AgentEvent::ToolOutput { .. }
            | AgentEvent::LaneStep(StepProgress::Output { .. })
    )
}

fn listen(
    queue: &Receiver<Arc<EventRecord>>,
    mut watcher: impl FnMut(&EventRecord),
    waiting: &AtomicUsize,
    lost: &AtomicU64,
) {
    while let Ok(record) = queue.recv() {
        let missing = lost.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let event = AgentEvent::Warning(format!("{missing} pieces of text were left out: this watcher is slow"));
            let note = EventRecord { event, ..(*record).clone() };
            let _harmless = catch_unwind(AssertUnwindSafe(|| watcher(&note)));
        }
        let _harmless = catch_unwind(AssertUnwindSafe(|| watcher(&record)));
        waiting.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            bus.tell(EventRecord { schema_version: EVENT_SCHEMA_VERSION, run, seq, at: String::new(), event });
        }
        for heard in [first.1, second.1] {
            assert_eq!([heard.recv(), heard.recv()], [Ok(1), Ok(2)]);
        }
    }
}
