//! Model calls. The journal records each request before the request goes out, so that a resume
//! charges what was sent and nothing else. A request that is held back after its record costs
//! nothing.

use super::effects::EffectRunner;
use super::inbox::Inbox;
use super::journal::{JournalWriter, WeakJournalWriter};
use super::meter::Meter;
use super::stop::StopToken;
use super::summary;
use crate::chat::{Delta, ModelError, ModelErrorKind, Spent};
use crate::elapsed::Elapsed;
use crate::fail_point::reach;
use crate::id::CallId;
use crate::provider::ModelRequest;
use crate::run::{Action, Event, Run};
use crate::store::StoreError;
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The model calls of one agent whose requests the journal records, in this process or an earlier
/// one.
#[derive(Debug, Clone, Default)]
pub(super) struct SentCalls(Arc<Mutex<SentState>>);

#[derive(Debug, Default)]
struct SentState {
    /// False between the record of a request and the moment at which the request goes out.
    calls: BTreeMap<CallId, bool>,
    /// The error of a record that could not be written.
    error: Option<StoreError>,
}

impl From<BTreeSet<CallId>> for SentCalls {
    /// Creates the calls of an earlier process, whose requests may all have gone out.
    fn from(calls: BTreeSet<CallId>) -> Self {
        let calls = calls.into_iter().map(|call| (call, true)).collect();
        Self(Arc::new(Mutex::new(SentState { calls, error: None })))
    }
}

impl SentCalls {
    /// Returns true if the request of this call went out.
    pub(super) fn has(&self, call: CallId) -> bool {
        self.lock().calls.get(&call) == Some(&true)
    }

    /// Returns true if the journal records the request of this call, but the request did not go
    /// out.
    pub(super) fn is_held(&self, call: CallId) -> bool {
        self.lock().calls.get(&call) == Some(&false)
    }

    /// Takes the error because of which a request could not be recorded.
    pub(super) fn take_error(&self) -> Option<StoreError> {
        self.lock().error.take()
    }

    fn lock(&self) -> MutexGuard<'_, SentState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The permission to send the request of one model call, once the journal has a record of it.
#[derive(Debug)]
pub(super) struct SendPermit {
    call: CallId,
    sent: SentCalls,
    journal: WeakJournalWriter,
    /// The moment at which this process took over the run.
    since: Elapsed,
    /// The time of that moment.
    started: Instant,
    is_recorded: AtomicBool,
    /// Cancelled if the record cannot be written.
    refused: CancellationToken,
    /// Requests to stop or rest. After one of them, the request does not go out.
    unwanted: [CancellationToken; 3],
}

impl SendPermit {
    /// Creates the permit for a call of the run that began at `since` in this process. The call
    /// ends without a request after a stop of the run, a stop of its agent, or a rest.
    pub(super) fn new(
        call: CallId,
        sent: &SentCalls,
        journal: &JournalWriter,
        (since, started): (Elapsed, Instant),
        (run, agent): (&StopToken, &StopToken),
    ) -> Self {
        let (sent, journal) = (sent.clone(), journal.downgrade());
        let unwanted = [run.token(), agent.token(), agent.rest()].map(CancellationToken::clone);
        let (is_recorded, refused) = (AtomicBool::new(false), CancellationToken::new());
        Self { call, sent, journal, since, started, is_recorded, refused, unwanted }
    }

    /// Records and syncs that the request goes out. A key that expired may make a provider repeat
    /// the request, which is recorded once.
    fn record(&self) {
        if self.is_recorded.swap(true, Ordering::SeqCst) {
            return;
        }
        let at = self.since.plus(self.started.elapsed());
        let recorded = self.journal.upgrade().map(|journal| {
            journal.sent(at.0, self.call)?;
            reach("request", "recorded").map_err(|error| StoreError::new("record", Path::new("a request"), error))
        });
        match recorded {
            Some(Ok(())) => _ = self.sent.lock().calls.insert(self.call, false),
            Some(Err(error)) => {
                self.sent.lock().error = Some(error);
                self.refused.cancel();
            }
            None => self.refused.cancel(), // no one waits for the answer
        }
    }

    /// Returns false if the request is recorded but must not go out. The sync of the record takes
    /// some milliseconds, in which the run may be asked to stop.
    fn may_go_on(&self) -> bool {
        let mut sent = self.sent.lock(); // so that a rest sees either the request or no request
        match sent.calls.get_mut(&self.call) {
            Some(is_out) if !*is_out => {
                *is_out = !self.unwanted.iter().any(CancellationToken::is_cancelled);
                *is_out
            }
            Some(_) | None => true,
        }
    }

    /// Runs a turn, which yields once before its request goes out. If the request must not go out,
    /// waits for the end of the call instead.
    async fn run<T>(&self, turn: impl Future<Output = T>) -> T {
        let mut turn = pin!(turn);
        poll_fn(|cx| if self.may_go_on() { turn.as_mut().poll(cx) } else { Poll::Pending }).await
    }

    /// Returns what a stopped call has used. `None` if its request did not go out.
    fn spent(&self, meter: &Meter) -> Option<Spent> {
        meter.spent().filter(|_| !self.sent.is_held(self.call))
    }

    /// Passes a piece of an answer to the meter. Returns the piece if it is to be shown.
    fn read(&self, meter: &Meter, delta: Delta) -> Option<Delta> {
        if let Delta::Spent(_) = delta {
            self.record();
        }
        meter.read(delta)
    }
}

impl EffectRunner {
    /// Starts a model call or a summary. The answer arrives in the inbox.
    pub(super) fn ask_model(&self, action: Action, permit: SendPermit, run: &Run, inbox: &mut Inbox) {
        match action {
            Action::CallModel { model, most, .. } => self.call_model((model, most), permit, run, inbox),
            Action::Compact { upto, most, .. } => self.summarise((upto, most), permit, run, inbox),
            _ => {} // asks no model
        }
    }

    fn call_model(&self, (model, max_output): (usize, Option<u64>), permit: SendPermit, run: &Run, inbox: &mut Inbox) {
        let call = permit.call;
        let failed = move |why: &str, spent| Event::ModelFailed { call, error: refused(why, spent) };
        let Some(provider) = self.settings.models.get(model).map(|model| model.provider.clone()) else {
            return inbox.outbox().send(failed("there is no such model in this run", None));
        };
        let request = ModelRequest {
            system: run.system().to_owned(),
            messages: Arc::from(run.conversation()),
            tools: Arc::clone(run.tools()),
            turn: run.next_turn(),
            max_output,
        };
        let (outbox, stop) = (inbox.outbox(), inbox.stop_token());
        let effect = async move {
            let meter = Meter::default();
            let deltas = |delta| {
                if let Some(delta) = permit.read(&meter, delta) {
                    outbox.send(Event::ModelDelta { call, delta });
                }
            };
            tokio::select! {
                biased;
                () = permit.refused.cancelled() => failed(UNRECORDED, None),
                () = stop.cancelled() => failed("stopped", permit.spent(&meter)),
                answer = permit.run(provider.complete(&request, &deltas)) => match answer {
                    Ok(reply) => Event::ModelCompleted { call, reply: Box::new(reply) },
                    Err(error) => Event::ModelFailed { call, error: meter.broken(error) },
                },
            }
        };
        inbox.start("model", effect, failed("the provider panicked", Some(Spent::default())));
    }

    fn summarise(&self, (upto, most): (usize, u64), permit: SendPermit, run: &Run, inbox: &mut Inbox) {
        let call = permit.call;
        let failed = move |why: &str, spent| summary::failed(call, refused(why, spent));
        let Some(model) = self.settings.models.get(run.model()).cloned() else {
            return inbox.outbox().send(failed("there is no such model in this run", None));
        };
        let messages: Arc<[_]> = run.conversation().iter().take(upto).cloned().collect();
        let request = summary::request(&messages, run.next_turn(), most, model.terms.context_window);
        let stop = inbox.stop_token();
        let effect = async move {
            let meter = Meter::default();
            let deltas = |delta| drop(permit.read(&meter, delta));
            tokio::select! {
                biased;
                () = permit.refused.cancelled() => failed(UNRECORDED, None),
                () = stop.cancelled() => failed("stopped", permit.spent(&meter)),
                event = permit.run(summary::summarise(&model.provider, &request, call, &deltas)) => event,
            }
        };
        inbox.start("summary", effect, failed("the provider panicked", Some(Spent::default())));
    }
}

/// The error of a call whose request could not be recorded.
const UNRECORDED: &str = "cannot write the journal";

/// Returns the error of a call that fledge itself ended or did not make.
fn refused(why: &str, spent: Option<Spent>) -> ModelError {
    ModelError { spent: spent.map(Box::new), ..ModelError::new(ModelErrorKind::BadRequest, why) }
}
