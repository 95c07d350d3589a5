//! One run, from its request to its end. It is begun, continued after another server, or found to
//! have ended.

use super::live::LiveRun;
use super::run_request::{RunRefusal, RunRequest};
use super::{EngineError, EngineState, beside};
use crate::driver::{Agent, Asker, DriverSettings, RunError, check_resume, limits_to_set};
use crate::id::RunId;
use crate::limits::NewLimits;
use crate::queue::JobLease;
use crate::run::TaskResult;
use crate::store::{StoreError, StoredRunState};
use crate::task::Isolation;
use crate::verdict::Reason;
use futures_util::FutureExt;
use serde_json::json;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex as Turnstile, MutexGuard};

/// The number of attempts for failures that may pass: a full disk, another process at work.
const TRIES: u32 = 5;
/// The pause before another attempt.
const PAUSE: Duration = Duration::from_secs(5);

/// The outcome of a request.
#[derive(Debug)]
pub(super) enum RequestOutcome {
    /// The run has ended; the queue keeps this manifest.
    Ended { manifest: String },
    /// The run could not begin or resume.
    Refused(RunRefusal),
    /// The work must be retried later.
    Later { why: String, after: Duration },
    /// The run rests, and the next server continues it.
    Rests,
}

impl RequestOutcome {
    pub(super) fn failed(why: &str) -> Self {
        Self::Refused(RunRefusal { reason: Reason::Internal, message: why.into() })
    }

    fn ended(result: &TaskResult) -> Self {
        let TaskResult { reason, exit_code, verified, .. } = result;
        let manifest = json!({ "reason": reason.to_string(), "exit_code": exit_code, "verified": verified });
        Self::Ended { manifest: manifest.to_string() }
    }

    fn cancelled() -> Self {
        Self::Refused(RunRefusal { reason: Reason::Cancelled, message: "cancelled before it began".into() })
    }
}

impl From<EngineError> for RequestOutcome {
    fn from(fault: EngineError) -> Self {
        Self::Refused(RunRefusal { reason: Reason::IoError, message: error_line(&fault) })
    }
}

/// The state shared by the runs of a server.
#[derive(Debug, Default)]
pub(super) struct EngineShared {
    /// Held by the one run that works in the checkout itself.
    checkout: Turnstile<()>,
}

impl EngineShared {
    /// Works on a request.
    pub(super) async fn run(&self, engine_state: &Arc<EngineState>, lease: &JobLease) -> RequestOutcome {
        let run = RunId::new(lease.job.as_str());
        let (found, request) = match serde_json::from_str::<RunRequest>(&lease.payload) {
            Ok(request) => (found(engine_state, &run, request.resume).await, request),
            Err(source) => return EngineError::Unclear { run, source }.into(),
        };
        let found = match found {
            Ok(found) => found,
            Err(fault) => return RequestOutcome::Later { why: error_line(&fault), after: PAUSE },
        };
        let live = engine_state.take_on(&run, lease.token, matches!(found, FoundRun::New));
        let came = match found {
            FoundRun::New => self.begin(engine_state, &live, &request).await,
            FoundRun::Left(limits) => self.go_on(engine_state, &live, limits).await,
            FoundRun::Ended { manifest } => RequestOutcome::Ended { manifest },
            FoundRun::Driven { holder } => {
                RequestOutcome::Later { why: format!("{holder} drives the run"), after: PAUSE }
            }
        };
        match came {
            RequestOutcome::Refused(RunRefusal { reason: Reason::IoError | Reason::Blocked, message })
                if lease.attempt < TRIES && !live.is_unwanted() =>
            {
                RequestOutcome::Later { why: message, after: PAUSE * lease.attempt }
            }
            came => came,
        }
    }

    /// Ends a run that was cancelled before its server was gone.
    pub(super) async fn end(&self, engine_state: &Arc<EngineState>, run: &RunId) -> RequestOutcome {
        let live = engine_state.take_on(run, 0, false);
        live.cancel();
        let came = AssertUnwindSafe(self.go_on(engine_state, &live, NewLimits::default())).catch_unwind().await;
        let came = came.unwrap_or_else(|_| RequestOutcome::failed("internal error of fledge"));
        engine_state.let_go(run, &came);
        came
    }

    async fn begin(
        &self,
        engine_state: &Arc<EngineState>,
        live: &Arc<LiveRun>,
        request: &RunRequest,
    ) -> RequestOutcome {
        let (source, asked) = (Arc::clone(&engine_state.source), request.clone());
        let (task, settings) = match beside(move || source.begin(&asked)).await {
            Ok(Ok(made)) => made,
            Ok(Err(refusal)) => return RequestOutcome::Refused(refusal),
            Err(fault) => return fault.into(),
        };
        let Some(_alone) = self.place(engine_state, live, task.isolation).await else {
            return if live.is_unwanted() { RequestOutcome::cancelled() } else { RequestOutcome::Rests };
        };
        if live.is_unwanted() {
            return RequestOutcome::cancelled();
        }
        let mut agent = agent(live, settings).with_run_id(live.run.clone()).with_run_key(request.key.clone());
        came(agent.run_task(task).await, live)
    }

    /// Waits for a run's place: a worktree is always free, the checkout admits one run. Returns
    /// `None` if the run is cancelled first or the server stops.
    async fn place(
        &self,
        engine_state: &EngineState,
        live: &LiveRun,
        isolation: Isolation,
    ) -> Option<Option<MutexGuard<'_, ()>>> {
        if isolation == Isolation::Worktree {
            return Some(None);
        }
        tokio::select! {
            biased;
            () = engine_state.stopping.cancelled() => None,
            () = live.unwanted() => None,
            alone = self.checkout.lock() => Some(Some(alone)),
        }
    }

    /// Continues a run that another process left, in its earlier place and with these new limits.
    async fn go_on(&self, engine_state: &Arc<EngineState>, live: &Arc<LiveRun>, limits: NewLimits) -> RequestOutcome {
        let (source, run) = (Arc::clone(&engine_state.source), live.run.clone());
        let (isolation, settings) = match beside(move || source.resume(&run)).await {
            Ok(Ok(made)) => made,
            Ok(Err(refusal)) => return RequestOutcome::Refused(refusal),
            Err(fault) => return fault.into(),
        };
        let alone = self.place(engine_state, live, isolation).await;
        // A cancelled run needs no place, because it only ends.
        if alone.is_none() && !live.is_unwanted() {
            return RequestOutcome::Rests;
        }
        let mut agent = agent(live, settings);
        if !limits.is_empty() {
            agent = agent.with_limits(limits);
        }
        came(agent.resume_or_end(&live.run).await, live)
    }
}

fn agent(live: &Arc<LiveRun>, settings: DriverSettings) -> Agent {
    let asker: Asker = live.questions.asker();
    let mut agent = Agent::new(DriverSettings { asker, ..settings }).with_stop(live.stop.clone());
    let hearing = Arc::clone(live);
    agent.on_record_at_once(move |record| hearing.add_record(record));
    agent
}

fn came(ended: Result<TaskResult, RunError>, live: &LiveRun) -> RequestOutcome {
    let error = match ended {
        Ok(result) => return RequestOutcome::ended(&result),
        Err(error) => error,
    };
    match (&error, error.result()) {
        (RunError::Rests, _) => RequestOutcome::Rests,
        (_, Some(result)) => RequestOutcome::ended(result),
        (_, None) => {
            let message = error_line(&error);
            tracing::warn!(run = %live.run, "{message}");
            RequestOutcome::Refused(RunRefusal { reason: error.reason(), message })
        }
    }
}

impl EngineState {
    /// Adds a run to the live runs.
    fn take_on(&self, run: &RunId, life: u64, is_new: bool) -> Arc<LiveRun> {
        let live = LiveRun::new(run.clone(), life, is_new, self.ring.clone());
        self.live().insert(run.clone(), Arc::clone(&live));
        if self.stopping.is_cancelled() {
            live.stop.ask_for_rest();
        }
        self.begun.send_replace(());
        live
    }

    /// Removes a run from the live runs.
    pub(super) fn let_go(&self, run: &RunId, came: &RequestOutcome) {
        let live = self.live().remove(run);
        if let Some(live) = live {
            live.log.close();
        }
        let state = match came {
            RequestOutcome::Ended { .. } | RequestOutcome::Refused(_) => "ended",
            RequestOutcome::Later { .. } | RequestOutcome::Rests => "interrupted",
        };
        self.ring.run(json!({ "id": run, "state": state }));
    }
}

/// A run as its request finds it.
#[derive(Debug)]
enum FoundRun {
    /// The run has not begun.
    New,
    /// The run can go on, with these new limits.
    Left(NewLimits),
    /// The run has ended; the queue keeps this manifest.
    Ended { manifest: String },
    /// Another process drives the run.
    Driven { holder: String },
}

/// Returns the state of a run. `resume` has the new limits if the request resumes the run.
async fn found(
    engine_state: &Arc<EngineState>,
    run: &RunId,
    resume: Option<NewLimits>,
) -> Result<FoundRun, EngineError> {
    let run = run.clone();
    engine_state
        .stored(move |store| {
            let row = match store.run(&run) {
                Ok(row) => row,
                Err(StoreError::Unknown { .. }) => return Ok(FoundRun::New),
                Err(error) => return Err(error.into()),
            };
            let left = |limits| limits_to_set(store, &row, limits).map(FoundRun::Left).map_err(EngineError::from);
            match (&row.state, resume) {
                (StoredRunState::Running { holder }, _) => Ok(FoundRun::Driven { holder: holder.clone() }),
                (StoredRunState::Interrupted, limits) => left(limits.unwrap_or_default()),
                // If a server died when the resumed run had just ended, the run does not go on
                // again.
                (StoredRunState::Ended(_), Some(limits)) if check_resume(store, &row, limits).is_ok() => left(limits),
                (StoredRunState::Ended(end), _) => {
                    let manifest =
                        json!({ "reason": end.reason, "exit_code": end.exit_code, "verified": end.verified });
                    Ok(FoundRun::Ended { manifest: manifest.to_string() })
                }
            }
        })
        .await
}

/// Formats an error and its causes in one line.
pub(super) fn error_line(error: &dyn std::error::Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
