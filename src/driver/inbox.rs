//! The effects in flight, and the queue of their answers. Every wait ends with an answer, the
//! deadline, or a request to stop or rest.

use super::stop::StopToken;
use crate::fail_point::reach;
use crate::run::Event;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The maximum number of transient events in the queue. Further ones are dropped, because no
/// decision depends on them.
const PASSING: usize = 4096;
/// The time that a stopped effect has to end: one second for its processes, and half a second for
/// the rest.
const STOP_WITHIN: Duration = Duration::from_millis(1500);
/// The time that a stopped sub-agent needs to report its result.
const HEARD_WITHIN: Duration = Duration::from_millis(100);

/// The result of a wait.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and nearly all of them are events")]
pub(super) enum InboxItem {
    Event(Event),
    Deadline,
    Stop,
    Rest,
}

/// The requests that may end a wait.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AcceptedRequests {
    /// Requests to stop.
    pub(super) stop: bool,
    /// Requests to rest.
    pub(super) rest: bool,
}

/// The sending end of the queue, for effects.
#[derive(Debug, Clone)]
pub(super) struct InboxSender {
    queue: UnboundedSender<Event>,
    passing: Arc<AtomicUsize>,
}

impl InboxSender {
    /// Sends a transient event, which is only shown. Drops it if too many are waiting.
    pub(super) fn pass(&self, event: Event) {
        if self.passing.load(Ordering::Relaxed) < PASSING {
            self.send(event);
        }
    }

    /// Sends an event that must not be lost.
    pub(super) fn send(&self, event: Event) {
        if event.is_transient() {
            self.passing.fetch_add(1, Ordering::Relaxed);
        }
        let _run_is_over = self.queue.send(event);
    }
}

/// The effects in flight, and the queue of their answers.
#[derive(Debug)]
pub(super) struct Inbox {
    tasks: JoinSet<()>,
    outbox: InboxSender,
    queue: UnboundedReceiver<Event>,
    stop: CancellationToken,
    stop_within: Duration,
}

impl Inbox {
    /// Creates the inbox of an agent with this many agents above it. Each level has less time to
    /// stop, so that the agents above get the result of this one.
    pub(super) fn new(depth: u32) -> Self {
        let (sender, queue) = unbounded_channel();
        let outbox = InboxSender { queue: sender, passing: Arc::default() };
        let stop_within = STOP_WITHIN.saturating_sub(HEARD_WITHIN * depth);
        Self { tasks: JoinSet::new(), outbox, queue, stop: CancellationToken::new(), stop_within }
    }

    pub(super) fn outbox(&self) -> InboxSender {
        self.outbox.clone()
    }

    /// Returns the token that stops the effects in flight.
    pub(super) fn stop_token(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Starts the effect with this name. Its answer is queued when it ends, or `on_panic` if it
    /// panics.
    pub(super) fn start(
        &mut self,
        name: &'static str,
        effect: impl Future<Output = Event> + Send + 'static,
        on_panic: Event,
    ) {
        let outbox = self.outbox();
        self.tasks.spawn(async move {
            let answer = match reach(name, "begun") {
                Ok(()) => AssertUnwindSafe(effect).catch_unwind().await.ok(),
                Err(_) => None,
            };
            outbox.send(answer.filter(|_| reach(name, "done").is_ok()).unwrap_or(on_panic));
        });
    }

    /// Waits for the next event, the deadline or a request.
    pub(super) async fn next(
        &mut self,
        deadline: Option<Instant>,
        stop: &StopToken,
        accepted: AcceptedRequests,
    ) -> InboxItem {
        let due = async {
            match deadline {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = stop.token().cancelled(), if accepted.stop => InboxItem::Stop,
            () = stop.rest().cancelled(), if accepted.rest => InboxItem::Rest,
            Some(event) = self.queue.recv() => self.took(event),
            () = due => InboxItem::Deadline,
        }
    }

    /// Stops every effect in flight. Returns the answers of effects that had ended, or ended in
    /// time.
    pub(super) async fn abort(&mut self) -> Vec<Event> {
        self.stop.cancel();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        let _in_time = tokio::time::timeout(self.stop_within, ended).await;
        self.tasks.shutdown().await;
        self.stop = CancellationToken::new();
        let mut late = Vec::new();
        while let Ok(event) = self.queue.try_recv() {
            if let InboxItem::Event(event) = self.took(event)
                && !event.is_transient()
            {
                late.push(event);
            }
        }
        late
    }

    /// Returns true if no effect is in flight and no answer is queued.
    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.queue.is_empty()
    }

    fn took(&mut self, event: Event) -> InboxItem {
        if event.is_transient() {
            self.outbox.passing.fetch_sub(1, Ordering::Relaxed);
        }
        while self.tasks.try_join_next().is_some() {} // reap tasks that have answered
        InboxItem::Event(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Poll;

    #[tokio::test]
    async fn an_effect_that_panics_is_answered_for() {
        let mut inbox = Inbox::new(0);
        inbox.start(
            "effect",
            std::future::poll_fn(|_| -> Poll<Event> { panic!("no such luck") }),
            Event::DeadlinePassed,
        );
        let happened = inbox.next(None, &StopToken::default(), AcceptedRequests::default()).await;
        assert!(matches!(happened, InboxItem::Event(Event::DeadlinePassed)), "{happened:?}");
    }
    /// Sends an event when it is dropped.
    struct LastWord(InboxSender);

    impl Drop for LastWord {
        fn drop(&mut self) {
            self.0.send(Event::DeadlinePassed);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_effect_says_that_did_not_stop_in_time_is_heard() {
        let mut inbox = Inbox::new(0);
        let word = LastWord(inbox.outbox());
        let deaf = async move {
            let _word = word;
            std::future::pending::<Event>().await
        };
        inbox.start("effect", deaf, Event::DeadlinePassed);
        assert_eq!(inbox.abort().await, [Event::DeadlinePassed]);
    }
}
