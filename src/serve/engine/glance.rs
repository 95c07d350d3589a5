//! One run as data. A request that waits or never began has the same form as a run.

use super::work::error_line;
use super::{Engine, EngineError, RunRequest, now_ms};
use crate::driver::{JOURNAL_SCHEMA_VERSION, story};
use crate::duration::milliseconds;
use crate::id::RunId;
use crate::queue::{BuryReason, JobId, Queue, QueueState, QueuedJob};
use crate::report::runs::{rfc3339, row as row_as_json, started_by, story_as_json};
use crate::store::{RunRow, Store, StoreError};
use crate::verdict::{Reason, StopCause};
use serde_json::{Value, json};

/// The largest number of requests without a run that are searched for a name.
const MOST_WAITING: u32 = 10_000;

/// Turns the row of an ended run into that of a queued run.
pub(super) fn show_as_queued(data: &mut Value) {
    (data["state"], data["outcome"]) = (json!("queued"), Value::Null);
}

impl Engine {
    /// Finds a run by its id, a prefix of its id, or its key.
    ///
    /// # Errors
    /// If no run or several runs match, or the data cannot be read.
    pub async fn find(&self, name: &str) -> Result<RunId, EngineError> {
        let wanted = name.to_owned();
        let found = self.engine_state.stored(move |store| Ok(store.find(&wanted)?)).await;
        let Err(EngineError::Store(StoreError::Unknown { name })) = found else { return found };
        if let Ok(job) = JobId::parse(name.as_str())
            && self.engine_state.queue.job(&job).await?.is_some()
        {
            return Ok(RunId::new(name));
        }
        let states = [QueueState::Queued, QueueState::Running, QueueState::Dead, QueueState::Cancelled];
        let all = self.engine_state.queue.newest(&self.engine_state.pool, &states, None, MOST_WAITING).await?;
        let starts = |job: &QueuedJob| !name.is_empty() && job.id.as_str().starts_with(&name);
        let mut candidates: Vec<RunId> =
            all.iter().filter(|(job, _)| starts(job)).map(|(job, _)| RunId::new(job.id.as_str())).collect();
        match (candidates.pop(), candidates.is_empty()) {
            (Some(run), true) => Ok(run),
            (Some(run), false) => {
                candidates.push(run);
                candidates.truncate(5);
                Err(StoreError::Ambiguous { name, candidates }.into())
            }
            (None, _) => Err(StoreError::Unknown { name }.into()),
        }
    }

    /// Returns the row of a run as JSON.
    ///
    /// # Errors
    /// If the run does not exist, or its data cannot be read.
    pub async fn row(&self, run: &RunId) -> Result<Value, EngineError> {
        let wanted = run.clone();
        let found = self.engine_state.stored(move |store| Ok(as_json(store, &store.run(&wanted)?)?)).await;
        match found {
            Ok(data) => self.with_resume(run, self.with_now(run, data)).await,
            Err(EngineError::Store(StoreError::Unknown { .. })) => self.request(run).await,
            Err(fault) => Err(fault),
        }
    }

    /// Shows an ended run whose resume waits as a queued run.
    async fn with_resume(&self, run: &RunId, mut data: Value) -> Result<Value, EngineError> {
        if data["state"] == "ended" && self.waits_again(run).await? {
            show_as_queued(&mut data);
        }
        Ok(data)
    }

    /// Returns the row of a run together with its story, as JSON.
    ///
    /// # Errors
    /// The errors of [`Engine::row`].
    pub async fn whole(&self, run: &RunId) -> Result<Value, EngineError> {
        let wanted = run.clone();
        let found = self.engine_state.stored(move |store| {
            let row = store.run(&wanted)?.seen_at(now_ms());
            let (story, fault) = story(store, &row);
            if let Some(fault) = fault {
                return Err(fault.into());
            }
            let mut whole = story_as_json(&row, &store.short(&wanted)?, &story);
            let mut data = whole["run"].take();
            for part in ["story", "course", "time", "turns", "result"] {
                data[part] = whole[part].take();
            }
            Ok(data)
        });
        match found.await {
            Ok(data) => self.with_resume(run, self.with_now(run, data)).await,
            Err(EngineError::Store(StoreError::Unknown { .. })) => {
                let mut data = self.request(run).await?;
                let nothing = json!({ "story": [], "course": [], "time": null, "turns": 0, "result": null });
                data.as_object_mut()
                    .into_iter()
                    .for_each(|data| data.extend(nothing.as_object().cloned().unwrap_or_default()));
                Ok(data)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Returns the outcome of a run; `None` if it has not ended.
    pub(super) async fn outcome(&self, run: &RunId) -> Result<Option<Value>, EngineError> {
        let row = self.row(run).await?;
        Ok(Some(row["outcome"].clone()).filter(|outcome| !outcome.is_null()))
    }

    async fn request(&self, run: &RunId) -> Result<Value, EngineError> {
        let unknown = || StoreError::Unknown { name: run.to_string() };
        let job = JobId::parse(run.as_str()).map_err(|_| unknown())?;
        let (job, payload) = self.engine_state.queue.job_and_payload(&job).await?.ok_or_else(unknown)?;
        let unclear = |source| EngineError::Unclear { run: run.clone(), source };
        let request: RunRequest = serde_json::from_str(&payload).map_err(unclear)?;
        Ok(self.wish_as_json(&job, &request))
    }

    /// Adds the data that exists only while this server drives the run.
    pub(super) fn with_now(&self, run: &RunId, mut data: Value) -> Value {
        let live = self.engine_state.live_run(run);
        data["pending"] = json!(live.as_ref().map_or(0, |live| live.questions.count()));
        data["doing"] = json!(live.and_then(|live| live.doing()));
        data
    }

    /// Returns a request without a run in the form of a row.
    pub(super) fn wish_as_json(&self, job: &QueuedJob, request: &RunRequest) -> Value {
        let ended_at = || rfc3339(now_ms().saturating_sub(i64::try_from(milliseconds(job.since)).unwrap_or(0)));
        let end = |reason: String, exit_code: u8, is_cancelled: bool, summary: String| {
            json!({
                "ended_at": ended_at(), "reason": reason, "exit_code": exit_code, "verified": false, "cancelled": is_cancelled,
                "attempts": 0, "turns": 0, "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "cost_micros": null,
                "summary": summary,
            })
        };
        let outcome = match (job.state, &job.why) {
            (QueueState::Queued | QueueState::Running, _) => Value::Null,
            (QueueState::Cancelled, _) => {
                let code = Reason::Cancelled.exit_code(Some(StopCause::Token));
                end(Reason::Cancelled.to_string(), code, true, "cancelled before it began".into())
            }
            (QueueState::Dead | QueueState::Done, Some(BuryReason::Refused(why))) => {
                let (reason, message) = why.split_once(": ").unwrap_or(("internal", why));
                let known = Reason::ALL.into_iter().find(|known| known.to_string() == reason);
                let code = known.unwrap_or(Reason::Internal).exit_code(Some(StopCause::Token));
                end(reason.into(), code, known == Some(Reason::Cancelled), message.into())
            }
            (QueueState::Dead | QueueState::Done, _) => {
                end(Reason::Internal.to_string(), Reason::Internal.exit_code(None), false, "the run never began".into())
            }
        };
        json!({
            "id": job.id,
            "short_id": job.id,
            "run_key": request.key,
            "parent": request.earlier,
            "title": request.title,
            "source": request.source,
            "task_digest": request.task_digest,
            "workspace": self.engine_state.project.display().to_string(),
            "models": request.overrides.models,
            "branch": null,
            "started_by": started_by(request.earlier.as_ref().map(RunId::as_str), request.key.as_deref()),
            "fledge": env!("CARGO_PKG_VERSION"),
            "journal_version": JOURNAL_SCHEMA_VERSION,
            "started_at": rfc3339(request.at_ms),
            "state": if outcome.is_null() { "queued" } else { "ended" },
            "holder": null,
            "outcome": outcome,
            "pending": 0,
            "doing": null,
            "machine": null,
            "heard_at": null,
        })
    }
}

/// Returns the row of a run as JSON.
pub(super) fn as_json(store: &Store, row: &RunRow) -> Result<Value, StoreError> {
    Ok(row_as_json(&row.clone().seen_at(now_ms()), &store.short(&row.head.id)?))
}

impl EngineError {
    /// Returns the error and its causes in one line.
    pub fn error_line(&self) -> String {
        error_line(self)
    }
}
