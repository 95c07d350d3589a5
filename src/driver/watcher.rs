//! Hands things to somebody who may be slow, stuck or panicking, without waiting: a thread and a queue of its own for each. Pieces,
//! which a later whole thing repeats, are left out for one who is far behind; everything else is kept.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use tokio::sync::Notify;

/// Queued things beyond which pieces are left out.
const PATIENCE: usize = 4096;

/// One who is told things, in their order.
#[derive(Debug)]
pub(crate) struct Watcher<T> {
    queue: Option<Sender<T>>,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    waiting: AtomicUsize,
    lost: AtomicU64,
    /// Told when nothing is waiting any more.
    idle: Notify,
}

impl<T: Send + 'static> Watcher<T> {
    /// `hear` gets each thing with the number of pieces that were left out before it. One panic of it costs it one thing.
    pub(crate) fn new(hear: impl FnMut(T, u64) + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        let state = Arc::<State>::default();
        let listen = {
            let state = state.clone();
            move || listen(&receiver, hear, &state)
        };
        let thread = std::thread::Builder::new().name("fledge-watcher".into()).spawn(listen).ok();
        Self { queue: Some(sender), state, thread }
    }

    /// Tells it something. Never waits.
    pub(crate) fn tell(&self, thing: T, is_piece: bool) {
        if is_piece && self.state.waiting.load(Ordering::Relaxed) >= PATIENCE {
            self.state.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.state.waiting.fetch_add(1, Ordering::Relaxed);
        if self.queue.as_ref().is_none_or(|queue| queue.send(thing).is_err()) {
            self.state.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Waits until it has heard everything.
    pub(crate) async fn settled(&self) {
        while self.is_behind() {
            self.state.idle.notified().await;
        }
    }

    fn is_behind(&self) -> bool {
        let is_alive = self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        is_alive && self.state.waiting.load(Ordering::Acquire) > 0
    }
}

impl<T> Drop for Watcher<T> {
    fn drop(&mut self) {
        self.queue = None; // the thread ends when its queue does; it is not waited for
    }
}

fn listen<T>(queue: &Receiver<T>, mut hear: impl FnMut(T, u64), state: &State) {
    while let Ok(thing) = queue.recv() {
        let missing = state.lost.swap(0, Ordering::Relaxed);
        let _harmless = catch_unwind(AssertUnwindSafe(|| hear(thing, missing)));
        if state.waiting.fetch_sub(1, Ordering::Release) == 1 {
            state.idle.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    #[tokio::test]
    async fn one_who_is_stuck_loses_pieces_and_is_told_how_many() {
        let (say, heard) = channel();
        let (go, wait) = sync_channel::<()>(0);
        let watcher = Watcher::new(move |thing: usize, lost| {
            say.send((thing, lost)).unwrap();
            if thing == 0 {
                wait.recv().unwrap();
            }
        });
        watcher.tell(0, true);
        assert_eq!(heard.recv(), Ok((0, 0)));
        (1..PATIENCE + 10).for_each(|number| watcher.tell(number, true));
        watcher.tell(usize::MAX, false);
        go.send(()).unwrap();
        watcher.settled().await;
        let all: Vec<(usize, u64)> = heard.try_iter().collect();
        // The first still counted as waiting, and what was lost is said with the next thing.
        assert_eq!((all.len(), all[0], all[PATIENCE - 1]), (PATIENCE, (1, 10), (usize::MAX, 0)));
    }
}
