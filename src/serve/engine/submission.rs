//! Accepting and cancelling requests, and answering questions. A request is safe from a power
//! failure before its acceptance is reported.

use super::asking::PendingQuestion;
use super::run_request::{RunChoices, RunRequest, RunRequestBody, UnfitTask};
use super::{Engine, EngineError, POOL, beside, now_ms};
use crate::driver::Consent;
use crate::id::RunId;
use crate::queue::{BatchId, CancelScope, JobId, JobSpec, MOST_BYTES, Priority, Queue, QueueState, Submitted};
use crate::report::runs::API_KEY_START;
use crate::store::{StoreError, StoredRunState, sha256};
use serde_json::json;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// A request that was accepted, now or earlier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedRun {
    /// The run of the request.
    pub run: RunId,
    /// True if the request was not known before.
    pub is_new: bool,
}

/// The reason why a request was not accepted. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum RejectedRun {
    /// The task cannot be run as written.
    #[error(transparent)]
    Unfit(#[from] UnfitTask),
    /// The request exceeds the size limit of the queue.
    #[error("the task is too large: {bytes} bytes with its parameters, at most {most} are allowed")]
    TooLarge {
        /// The size, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        most: usize,
    },
    /// The key belongs to another request.
    #[error("the key `{key}` belongs to run {run}, which has another task")]
    KeyTaken {
        /// The key.
        key: String,
        /// The run of the key.
        run: RunId,
    },
    /// The server is stopping.
    #[error("the server is stopping and accepts no runs")]
    Stopping,
    /// An internal failure.
    #[error(transparent)]
    Fault(#[from] EngineError),
}

/// The effect of cancelling a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The run had not begun, and will not begin.
    Never,
    /// The run was notified, and ends soon.
    Told,
    /// The run had already ended.
    Over,
    /// This server does not drive the run. It holds the other process that does, or `None` if the
    /// run was interrupted.
    Foreign(Option<String>),
    /// The run does not exist.
    Unknown,
}

impl Engine {
    /// Accepts a request. Equal requests with the same key have one run.
    ///
    /// # Errors
    /// If the task cannot be run, or the request cannot be stored.
    pub async fn accept(&self, asked: RunRequestBody) -> Result<AcceptedRun, RejectedRun> {
        let engine_state = &self.engine_state;
        if engine_state.stopping.is_cancelled() {
            return Err(RejectedRun::Stopping);
        }
        let (source, now) = (Arc::clone(&engine_state.source), now_ms());
        let mut request = beside(move || source.check(&asked, now)).await??;
        let run = match &request.key {
            Some(key) => of_key(&engine_state.project.display().to_string(), key),
            None => RunId::new(uuid::Uuid::now_v7().to_string()),
        };
        // The key records that the run was started over the API.
        request.key.get_or_insert_with(|| format!("{API_KEY_START}{run}"));
        if let Some(accepted) = self.known(&run, &request).await? {
            return Ok(accepted);
        }
        let submitted = engine_state.queue.submit(&[spec(&run, &request)?]).await.map_err(EngineError::from)?;
        if submitted.contains(&Submitted::Duplicate) {
            // A concurrent request with the same key was first.
            return self.known(&run, &request).await?.ok_or(RejectedRun::Fault(EngineError::Failed));
        }
        engine_state.ring.run(json!({ "id": run, "state": "queued" }));
        Ok(AcceptedRun { run, is_new: true })
    }

    /// Returns the choices for a new run.
    ///
    /// # Errors
    /// If the lookup panicked.
    pub async fn choices(&self) -> Result<RunChoices, EngineError> {
        let source = Arc::clone(&self.engine_state.source);
        beside(move || source.choices()).await
    }

    /// Returns the existing run of the request's key, if any. It is an error if that run belongs to
    /// another request.
    async fn known(&self, run: &RunId, request: &RunRequest) -> Result<Option<AcceptedRun>, RejectedRun> {
        let Some(key) = request.key.clone() else { return Ok(None) };
        let taken = |run: RunId| RejectedRun::KeyTaken { key: key.clone(), run };
        let accepted = Some(AcceptedRun { run: run.clone(), is_new: false });
        let job = JobId::parse(run.as_str()).map_err(EngineError::from)?;
        if let Some((_, payload)) = self.engine_state.queue.job_and_payload(&job).await.map_err(EngineError::from)? {
            let unclear = |source| EngineError::Unclear { run: run.clone(), source };
            let then: RunRequest = serde_json::from_str(&payload).map_err(unclear)?;
            let is_same = (&then.text, &then.source, &then.params) == (&request.text, &request.source, &request.params)
                && (&then.overrides, &then.again, &then.earlier)
                    == (&request.overrides, &request.again, &request.earlier);
            return if is_same { Ok(accepted) } else { Err(taken(run.clone())) };
        }
        let wanted = key.clone();
        let rows = self.engine_state.stored(move |store| Ok(store.keyed(&wanted)?)).await?;
        let Some((_, row)) = rows.into_iter().find(|(number, _)| *number == 1) else { return Ok(None) };
        match row.head.id == *run && row.head.task_digest == request.task_digest {
            true => Ok(accepted),
            false => Err(taken(row.head.id)),
        }
    }

    /// Cancels a run. A waiting run never begins; a run that this server drives ends soon.
    ///
    /// # Errors
    /// If the store or the queue cannot be read or written.
    pub async fn cancel(&self, run: &RunId) -> Result<CancelOutcome, EngineError> {
        let job = JobId::parse(run.as_str())?;
        // The queue records the cancellation first. If this server is killed now, the next server
        // ends the run.
        let cancelled = self.engine_state.queue.cancel(&CancelScope::Job(job.clone())).await?;
        if cancelled.ended > 0 {
            self.engine_state.ring.run(json!({ "id": run, "state": "ended" }));
            return Ok(CancelOutcome::Never);
        }
        // A run that has ended may stay in the list of live runs for a moment.
        if let Some(live) = self.engine_state.live_run(run)
            && self.outcome(run).await?.is_none()
        {
            live.cancel();
            return Ok(CancelOutcome::Told);
        }
        let found = run.clone();
        let state = self.engine_state.stored(move |store| match store.run(&found) {
            Ok(row) => Ok(Some(row.state)),
            Err(StoreError::Unknown { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        });
        Ok(match (state.await?, self.engine_state.queue.job(&job).await?.map(|job| job.state)) {
            (Some(StoredRunState::Ended(_)), _)
            | (None, Some(QueueState::Cancelled | QueueState::Dead | QueueState::Done)) => CancelOutcome::Over,
            (_, Some(QueueState::Queued | QueueState::Running)) => CancelOutcome::Told,
            (Some(StoredRunState::Running { holder }), _) => CancelOutcome::Foreign(Some(holder)),
            (Some(StoredRunState::Interrupted), _) => CancelOutcome::Foreign(None),
            (None, None) => CancelOutcome::Unknown,
        })
    }

    /// Returns the open questions of a run, the oldest first.
    pub fn questions(&self, run: &RunId) -> Vec<PendingQuestion> {
        self.engine_state.live_run(run).map(|live| live.questions.all()).unwrap_or_default()
    }

    /// Answers a question of a run. Returns `false` if it is no longer open.
    pub fn answer(&self, run: &RunId, question: &str, consent: Consent) -> bool {
        self.engine_state.live_run(run).is_some_and(|live| live.questions.answer(question, consent))
    }
}

/// Builds the queue's job for a request.
pub(super) fn spec(run: &RunId, request: &RunRequest) -> Result<JobSpec, RejectedRun> {
    let unclear = |source| EngineError::Unclear { run: run.clone(), source };
    let payload = serde_json::to_string(request).map_err(unclear)?;
    if payload.len() > MOST_BYTES {
        return Err(RejectedRun::TooLarge { bytes: payload.len(), most: MOST_BYTES });
    }
    Ok(JobSpec {
        id: JobId::parse(run.as_str()).map_err(EngineError::from)?,
        batch: BatchId::parse(POOL).map_err(EngineError::from)?,
        pool: crate::queue::PoolName::parse(POOL).map_err(EngineError::from)?,
        priority: Priority::Normal,
        payload,
        deliveries: NonZeroU32::MAX,
        delay: Duration::ZERO,
    })
}

/// Derives a run's id from its key, so equal keys give equal ids. It has the form of every other id
/// (RFC 9562, version 8).
fn of_key(project: &str, key: &str) -> RunId {
    let digest = sha256(format!("{project}\n{key}").as_bytes());
    let mut bytes = [0; 16];
    for (byte, hex) in bytes.iter_mut().zip(digest.as_bytes().chunks(2)) {
        let hex = std::str::from_utf8(hex).unwrap_or_default();
        *byte = u8::from_str_radix(hex, 16).unwrap_or_default();
    }
    RunId::new(uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_of_a_key_has_the_same_id_each_time() {
        let [one, again, other] = ["a", "a", "b"].map(|key| of_key("/p", key));
        assert_eq!((one == again, one == other, of_key("/q", "a") == one), (true, false, false));
        let id: uuid::Uuid = one.as_str().parse().unwrap();
        assert_eq!(id.get_version_num(), 8);
    }
}
