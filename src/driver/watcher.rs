//! Hands things to a consumer that may be slow, stuck or panicking, without waiting for it.
//!
//! Each watcher has a thread and a queue. A consumer that is far behind loses pieces, which a later
//! whole thing repeats. It loses nothing else.

use crate::process::Backpressure;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use tokio::sync::Notify;

/// Bytes of waiting things above which pieces are dropped.
const MOST: usize = 4 * 1024 * 1024;
/// Bytes of waiting things above which the pace is shut. It is opened again at half of them.
const ENOUGH: usize = 512 * 1024;

/// A consumer that gets things in order.
#[derive(Debug)]
pub(crate) struct EventWatcher<T> {
    queue: Option<Sender<Waiting<T>>>,
    bytes: fn(&T) -> usize,
    state: Arc<WatcherState>,
    thread: Option<JoinHandle<()>>,
}

/// A waiting thing, its bytes, and the number of pieces that were dropped before it.
type Waiting<T> = (T, usize, u64);

#[derive(Debug, Default)]
struct WatcherState {
    /// Bytes of waiting things.
    waiting: AtomicUsize,
    lost: AtomicU64,
    pace: Backpressure,
    /// Notified when nothing is waiting any more.
    idle: Notify,
}

impl<T: Send + 'static> EventWatcher<T> {
    /// Creates a watcher. `receive` gets each thing with the number of pieces that were dropped
    /// before it. If `receive` panics, it loses only that thing. `bytes` returns the memory that a
    /// waiting thing takes.
    pub(crate) fn new(bytes: fn(&T) -> usize, receive: impl FnMut(T, u64) + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        let state = Arc::<WatcherState>::default();
        let listen = {
            let state = state.clone();
            move || listen(&receiver, receive, &state)
        };
        let thread = std::thread::Builder::new().name("fledge-watcher".into()).spawn(listen).ok();
        Self { queue: Some(sender), bytes, state, thread }
    }

    /// Queues a thing, without waiting.
    pub(crate) fn send(&self, thing: T, is_piece: bool) {
        let WatcherState { waiting, lost, pace, .. } = &*self.state;
        if is_piece && waiting.load(Ordering::SeqCst) >= MOST {
            lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let bytes = (self.bytes)(&thing).max(1);
        let missing = lost.swap(0, Ordering::Relaxed);
        let before = waiting.fetch_add(bytes, Ordering::SeqCst);
        if self.queue.as_ref().is_none_or(|queue| queue.send((thing, bytes, missing)).is_err()) {
            waiting.fetch_sub(bytes, Ordering::SeqCst);
        } else if before + bytes >= ENOUGH {
            pace.shut();
            if waiting.load(Ordering::SeqCst) <= ENOUGH / 2 {
                pace.open(); // it caught up before the pace was shut
            }
        }
    }

    /// Returns the pace, which is shut while the watcher is behind. A sender of pieces that waits
    /// for it loses none.
    #[cfg_attr(not(feature = "cli"), expect(dead_code, reason = "only the binary shows it"))]
    pub(crate) fn pace(&self) -> Backpressure {
        self.state.pace.clone()
    }

    /// Waits until the watcher has handled everything.
    pub(crate) async fn wait_until_idle(&self) {
        while self.is_behind() {
            self.state.idle.notified().await;
        }
    }

    fn is_behind(&self) -> bool {
        let is_alive = self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        is_alive && self.state.waiting.load(Ordering::Acquire) > 0
    }
}

impl<T> Drop for EventWatcher<T> {
    fn drop(&mut self) {
        self.queue = None; // this ends the thread, which is not waited for
    }
}

fn listen<T>(queue: &Receiver<Waiting<T>>, mut receive: impl FnMut(T, u64), state: &WatcherState) {
    while let Ok((thing, bytes, missing)) = queue.recv() {
        let _harmless = catch_unwind(AssertUnwindSafe(|| receive(thing, missing)));
        match state.waiting.fetch_sub(bytes, Ordering::SeqCst) - bytes {
            0 => {
                state.pace.caught_up();
                state.idle.notify_one();
            }
            rest if rest <= ENOUGH / 2 => state.pace.open(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    #[tokio::test]
    async fn one_who_is_stuck_loses_pieces_beyond_some_megabytes_and_is_told_how_many() {
        let (say, received) = channel();
        let (go, wait) = sync_channel::<()>(0);
        let watcher = EventWatcher::new(
            |_| MOST / 4,
            move |thing: usize, lost| {
                say.send((thing, lost)).unwrap();
                if thing == 0 {
                    wait.recv().unwrap();
                }
            },
        );
        watcher.send(0, true);
        assert_eq!(received.recv(), Ok((0, 0)));
        (1..10).for_each(|number| watcher.send(number, true));
        watcher.send(usize::MAX, false);
        go.send(()).unwrap();
        watcher.wait_until_idle().await;
        // The first thing still counted as waiting. The number of dropped pieces comes with the
        // next thing.
        assert_eq!(received.try_iter().collect::<Vec<_>>(), [(1, 0), (2, 0), (3, 0), (usize::MAX, 6)]);
    }

    #[tokio::test]
    async fn the_pace_is_shut_for_one_who_is_behind_until_it_is_not() {
        let (go, wait) = sync_channel::<()>(0);
        let watcher = EventWatcher::new(|_| ENOUGH / 4, move |_: usize, _| wait.recv().unwrap());
        let is_shut = || watcher.pace().is_shut();
        (0..3).for_each(|number| watcher.send(number, true));
        assert!(!is_shut());
        watcher.send(3, true);
        assert!(is_shut());
        (0..4).for_each(|_| go.send(()).unwrap());
        watcher.wait_until_idle().await;
        assert!(!is_shut());
    }
}
