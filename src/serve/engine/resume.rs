//! Resuming a run on request, also one that another process began.

use super::run_request::{RunRefusal, RunRequest};
use super::submission::{RejectedRun, spec};
use super::{Engine, EngineError, Overrides, beside, now_ms};
use crate::driver::{LimitError, ResumeError, check_resume};
use crate::id::RunId;
use crate::limits::NewLimits;
use crate::queue::{JobId, Queue, QueueState, QueuedJob, Submitted};
use crate::store::{RunRow, StoredRunState};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// The maximum number of checks whether the server has released a run that has ended.
const TRIES: u32 = 200;
/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(10);

/// The job of a run with its payload. `None` if this server did not start the run.
type KnownJob = Option<(QueuedJob, String)>;

/// The reason why a run was not resumed. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum RejectedResume {
    /// A limit does not let the run go on.
    #[error(transparent)]
    Limit(LimitError),
    /// The run waits or is under way.
    #[error("cannot resume run {run}: it is queued or running on this server")]
    Open {
        /// The run.
        run: RunId,
    },
    /// Another process drives the run.
    #[error("run {run} is driven by {holder}, not by this server")]
    Driven {
        /// The run.
        run: RunId,
        /// The other process.
        holder: String,
    },
    /// The run ended for good.
    #[error("{0}")]
    Over(String),
    /// The run cannot be resumed with the current configuration.
    #[error(transparent)]
    Refused(RunRefusal),
    /// The server is stopping.
    #[error("the server is stopping and resumes no runs")]
    Stopping,
    /// An internal failure.
    #[error(transparent)]
    Fault(#[from] EngineError),
}

impl From<ResumeError> for RejectedResume {
    fn from(error: ResumeError) -> Self {
        match error {
            ResumeError::Limits(limit) => Self::Limit(limit),
            error @ (ResumeError::Over { .. } | ResumeError::NotReady { .. }) => Self::Over(error.to_string()),
            ResumeError::Store(error) => Self::Fault(error.into()),
            error => Self::Fault(error.into()),
        }
    }
}

impl Engine {
    /// Queues the resume of a run, with new limits. The request is safe from a power failure before
    /// this returns.
    ///
    /// # Errors
    /// If the run cannot go on, or the request cannot be stored.
    pub async fn resume(&self, run: &RunId, limits: NewLimits) -> Result<(), RejectedResume> {
        let engine_state = &self.engine_state;
        if engine_state.stopping.is_cancelled() {
            return Err(RejectedResume::Stopping);
        }
        let open = || RejectedResume::Open { run: run.clone() };
        let job = JobId::parse(run.as_str()).map_err(EngineError::from)?;
        let Some(known) = self.closed(run, &job).await? else { return Err(open()) };
        let wanted = run.clone();
        let checked = engine_state.stored(move |store| {
            let row = store.run(&wanted)?;
            let fits = check_resume(store, &row, limits);
            Ok((row, fits))
        });
        let (row, fits) = checked.await?;
        if let StoredRunState::Running { holder } = &row.state {
            return Err(RejectedResume::Driven { run: run.clone(), holder: holder.clone() });
        }
        fits?;
        let (source, wanted) = (Arc::clone(&engine_state.source), run.clone());
        beside(move || source.resume(&wanted)).await?.map_err(RejectedResume::Refused)?;
        let request = match known {
            Some((_, payload)) => {
                serde_json::from_str(&payload).map_err(|source| EngineError::Unclear { run: run.clone(), source })?
            }
            None => request_of(row),
        };
        let spec = spec(run, &RunRequest { resume: Some(limits), ..request }).map_err(|fault| match fault {
            RejectedRun::Fault(fault) => RejectedResume::Fault(fault),
            fault => RejectedResume::Over(fault.to_string()),
        })?;
        if engine_state.queue.submit_again(&spec).await.map_err(EngineError::from)? == Submitted::Duplicate {
            return Err(open());
        }
        engine_state.ring.run(json!({ "id": run, "state": "queued" }));
        Ok(())
    }

    /// Returns the job of a run and its payload, if the server has released the run. `None` if the
    /// run is queued or under way. The store has the outcome of a run a moment before the server
    /// releases the run, so this waits for the release.
    async fn closed(&self, run: &RunId, job: &JobId) -> Result<Option<KnownJob>, EngineError> {
        for _ in 0..TRIES {
            let known = self.engine_state.queue.job_and_payload(job).await?;
            let state = known.as_ref().map(|(job, _)| job.state);
            if !state.is_some_and(is_open) && self.engine_state.live_run(run).is_none() {
                return Ok(Some(known));
            }
            if state == Some(QueueState::Queued) || self.outcome(run).await?.is_none() {
                break;
            }
            sleep(PAUSE).await;
        }
        Ok(None)
    }

    /// Returns true if the resume of an ended run waits: for a slot, or for the checkout.
    pub(super) async fn waits_again(&self, run: &RunId) -> Result<bool, EngineError> {
        if let Some(live) = self.engine_state.live_run(run) {
            return Ok(!live.has_begun());
        }
        let Ok(job) = JobId::parse(run.as_str()) else { return Ok(false) };
        let known = self.engine_state.queue.job(&job).await?;
        Ok(known.is_some_and(|job| is_open(job.state)))
    }
}

fn is_open(state: QueueState) -> bool {
    matches!(state, QueueState::Queued | QueueState::Running)
}

/// Returns the request to resume a run that this server did not start. It has no text, because a
/// resumed run reads its task from the store.
fn request_of(row: RunRow) -> RunRequest {
    RunRequest {
        text: String::new(),
        source: row.head.source,
        params: BTreeMap::new(),
        overrides: Overrides::default(),
        again: None,
        earlier: row.head.parent,
        resume: None,
        key: row.head.run_key,
        title: row.head.title,
        task_digest: row.head.task_digest,
        at_ms: now_ms(),
    }
}
