//! The rate limits of models: requests per minute, concurrent requests, and the wait that a
//! provider asks for. All users of a model share them.
//!
//! Requests and waits are counted per model, address and key, because providers limit each of
//! these. The limits belong to the caller. Requests are served in the order of arrival. A request
//! that is dropped while it waits leaves no trace.
#![expect(clippy::disallowed_methods, reason = "the clock by which requests are counted is read here")]

use super::{DeltaSink, ModelRequest, PendingRenewal, PendingReply, Provider};
use crate::chat::{ModelError, ModelErrorKind};
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex as Turnstile, Notify, watch};
use tokio::time::{Instant, sleep_until};

/// The period in which requests are counted.
const MINUTE: Duration = Duration::from_secs(60);
/// The longest wait that fledge grants a provider. The provider's limits have changed by then.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The request rate of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateLimit {
    /// The number of requests that may begin within any minute; `None` for no limit.
    pub per_minute: Option<NonZeroU32>,
    /// The number of concurrent requests; `None` for no limit.
    pub at_once: Option<NonZeroU32>,
    /// The longest wait for a provider that asks to be left alone. If it asks for more, the request
    /// fails at once.
    pub max_wait: Duration,
}

/// The rate state of all models. It is cheap to clone; runs that share a provider's limits share
/// one pacer.
#[derive(Debug, Clone, Default)]
pub struct Pacer {
    places: Arc<Mutex<BTreeMap<String, Place>>>,
    /// The number of waiting requests.
    waiting: watch::Sender<usize>,
}

/// The models of one address and key.
#[derive(Debug, Default)]
struct Place {
    models: BTreeMap<String, Arc<Traffic>>,
}

/// The requests to one model at one address with one key.
#[derive(Debug, Default)]
struct Traffic {
    /// The end of the wait that the provider asked for.
    quiet: watch::Sender<Option<Instant>>,
    /// The start times of the last minute's requests. The next request holds the lock until it
    /// begins.
    begun: Turnstile<VecDeque<Instant>>,
    under_way: AtomicU32,
    /// Notified when a request ends.
    over: Notify,
}

impl Pacer {
    /// Wraps a provider so that it keeps this rate. `place` identifies the shared limits: the base
    /// URL or the provider's name, and a mark for the key, but not the key itself.
    pub fn pace(&self, provider: Arc<dyn Provider>, place: &str, rate: RateLimit) -> Arc<dyn Provider> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let place = places.entry(place.trim_end_matches('/').to_owned()).or_default();
        let traffic = place.models.entry(provider.name()).or_default().clone();
        Arc::new(Paced { provider, rate, traffic, waiting: self.waiting.clone() })
    }

    /// Returns the number of requests that wait for the rate limits.
    pub fn waiting(&self) -> watch::Receiver<usize> {
        self.waiting.subscribe()
    }
}

/// A provider that keeps its rate.
#[derive(Debug)]
struct Paced {
    provider: Arc<dyn Provider>,
    rate: RateLimit,
    traffic: Arc<Traffic>,
    waiting: watch::Sender<usize>,
}

/// A waiting request, counted until it passes or is dropped.
struct Wait<'w>(&'w watch::Sender<usize>);

impl<'w> Wait<'w> {
    fn start(waiting: &'w watch::Sender<usize>) -> Self {
        waiting.send_modify(|count| *count += 1);
        Self(waiting)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// A request under way.
struct Passage<'t>(&'t Traffic);

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::AcqRel);
        self.0.over.notify_one();
    }
}

impl Paced {
    /// Waits until the request may begin.
    async fn enter(&self) -> Result<Passage<'_>, ModelError> {
        let _while_it_waits = Wait::start(&self.waiting);
        let mut quiet = self.traffic.quiet.subscribe();
        let refused = async {
            let too_long = |until: &Option<Instant>| self.left_of(*until).is_some_and(|left| left > self.rate.max_wait);
            // The sender lives as long as `self`.
            let until = quiet.wait_for(too_long).await.ok().and_then(|until| *until);
            self.left_of(until).unwrap_or_default()
        };
        tokio::select! {
            biased;
            left = refused => Err(busy(self.provider.name(), left)),
            passage = self.pass() => Ok(passage),
        }
    }

    async fn pass(&self) -> Passage<'_> {
        let mut begun = self.traffic.begun.lock().await;
        loop {
            let over = self.traffic.over.notified(); // before the check, so that no end is missed
            let now = Instant::now();
            while begun.front().is_some_and(|first| now.duration_since(*first) >= MINUTE) {
                begun.pop_front();
            }
            let quiet = self.traffic.quiet.borrow().filter(|until| *until > now);
            let counted = self.rate.per_minute.and_then(|most| begun.len().checked_sub(most.get() as usize));
            let full = counted.and_then(|surplus| begun.get(surplus)).map(|oldest| *oldest + MINUTE);
            if let Some(until) = quiet.max(full) {
                sleep_until(until).await;
            } else if self.rate.at_once.is_some_and(|most| self.traffic.under_way.load(Ordering::Acquire) >= most.get())
            {
                over.await;
            } else {
                begun.push_back(now);
                self.traffic.under_way.fetch_add(1, Ordering::AcqRel);
                return Passage(&self.traffic);
            }
        }
    }

    /// Records the wait that a busy provider asks for.
    fn note_wait(&self, error: &ModelError) {
        let wish = error.retry_after_ms.filter(|_| error.fault == ModelErrorKind::Busy).map(Duration::from_millis);
        let Some(until) = wish.map(|wish| Instant::now() + wish.min(LONGEST)) else { return };
        self.traffic.quiet.send_if_modified(|quiet| {
            let is_longer = quiet.is_none_or(|known| known < until);
            if is_longer {
                *quiet = Some(until);
            }
            is_longer
        });
    }

    fn left_of(&self, until: Option<Instant>) -> Option<Duration> {
        until.map(|until| until.saturating_duration_since(Instant::now()))
    }
}

impl Provider for Paced {
    fn name(&self) -> String {
        self.provider.name()
    }

    fn complete<'a>(&'a self, request: &'a ModelRequest, deltas: DeltaSink<'a>) -> PendingReply<'a> {
        Box::pin(async move {
            let _under_way = self.enter().await?;
            let done = self.provider.complete(request, deltas).await;
            done.inspect_err(|error| self.note_wait(error))
        })
    }

    fn renew(&self, ahead: Duration) -> PendingRenewal<'_> {
        self.provider.renew(ahead)
    }
}

fn busy(name: String, left: Duration) -> ModelError {
    let retry_after_ms = Some(u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1));
    let message = format!("{name}: the provider asks to wait {} s more", left.as_secs_f64().ceil());
    ModelError { fault: ModelErrorKind::Busy, message, retry_after_ms, spent: None }
}

#[cfg(test)]
#[path = "pace_tests.rs"]
mod tests;
