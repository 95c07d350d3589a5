//! Where wishes are taken in, cancelled and answered for. A wish is safe from a failure of the power before anybody hears that it was taken.

use super::asking::Pending;
use super::wish::{Asked, Choices, Unfit, Wish};
use super::{Engine, EngineFault, POOL, beside, now_ms};
use crate::driver::Consent;
use crate::id::RunId;
use crate::queue::{BatchId, JobId, JobSpec, MOST_BYTES, Priority, Queue, Scope, State, Submitted};
use crate::store::{RunState, StoreError, sha256};
use serde_json::json;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// A wish that was taken in, now or before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The run that it becomes.
    pub run: RunId,
    /// Whether it was not known before.
    pub is_new: bool,
}

/// A wish that was not taken in; nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    /// It cannot be run as it is written.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// It is larger than the queue takes.
    #[error("the task has {bytes} bytes with its parameters, and {most} are taken")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The most.
        most: usize,
    },
    /// Its key stands for another one.
    #[error("the key `{key}` belongs to run {run}, which has another task")]
    KeyTaken {
        /// The key.
        key: String,
        /// The run that has it.
        run: RunId,
    },
    /// The server ends.
    #[error("the server stops, and takes nothing in")]
    Stopping,
    /// Something of our own went wrong.
    #[error(transparent)]
    Fault(#[from] EngineFault),
}

/// What became of the wish to end a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancelled {
    /// It never began, and never will.
    Never,
    /// It is told, and ends soon.
    Told,
    /// It was over.
    Over,
    /// Another process drives it, or nobody does: it is none of this server's.
    Foreign(Option<String>),
    /// There is no such run.
    Unknown,
}

impl Engine {
    /// Takes a wish in. The same wish with the same key is the same run.
    ///
    /// # Errors
    /// When it cannot be run, or cannot be written down.
    pub async fn accept(&self, asked: Asked) -> Result<Accepted, NotTaken> {
        let shop = &self.shop;
        if shop.stopping.is_cancelled() {
            return Err(NotTaken::Stopping);
        }
        let (source, now) = (Arc::clone(&shop.source), now_ms());
        let wish = beside(move || source.check(&asked, now)).await??;
        let run = wish.key.as_ref().map_or_else(
            || RunId::new(uuid::Uuid::now_v7().to_string()),
            |key| of_key(&shop.project.display().to_string(), key),
        );
        if let Some(accepted) = self.known(&run, &wish).await? {
            return Ok(accepted);
        }
        let submitted = shop.queue.submit(&[spec(&run, &wish)?]).await.map_err(EngineFault::from)?;
        if submitted.contains(&Submitted::Duplicate) {
            // Somebody was faster by an instant.
            return self.known(&run, &wish).await?.ok_or(NotTaken::Fault(EngineFault::Failed));
        }
        shop.ring.run(json!({ "id": run, "state": "queued" }));
        Ok(Accepted { run, is_new: true })
    }

    /// Returns the choices for a new run.
    ///
    /// # Errors
    /// When it panicked.
    pub async fn choices(&self) -> Result<Choices, EngineFault> {
        let source = Arc::clone(&self.shop.source);
        beside(move || source.choices()).await
    }

    /// The run of a key, where there is one: for the same wish.
    async fn known(&self, run: &RunId, wish: &Wish) -> Result<Option<Accepted>, NotTaken> {
        let Some(key) = wish.key.clone() else { return Ok(None) };
        let taken = |run: RunId| NotTaken::KeyTaken { key: key.clone(), run };
        let accepted = Some(Accepted { run: run.clone(), is_new: false });
        let job = JobId::parse(run.as_str()).map_err(EngineFault::from)?;
        if let Some((_, payload)) = self.shop.queue.job_and_payload(&job).await.map_err(EngineFault::from)? {
            let unclear = |source| EngineFault::Unclear { run: run.clone(), source };
            let then: Wish = serde_json::from_str(&payload).map_err(unclear)?;
            let is_same = (&then.text, &then.source, &then.params) == (&wish.text, &wish.source, &wish.params)
                && (&then.overrides, &then.again, &then.earlier) == (&wish.overrides, &wish.again, &wish.earlier);
            return if is_same { Ok(accepted) } else { Err(taken(run.clone())) };
        }
        let wanted = key.clone();
        let rows = self.shop.stored(move |store| Ok(store.keyed(&wanted)?)).await?;
        let Some((_, row)) = rows.into_iter().find(|(number, _)| *number == 1) else { return Ok(None) };
        match row.head.id == *run && row.head.task_digest == wish.task_digest {
            true => Ok(accepted),
            false => Err(taken(row.head.id)),
        }
    }

    /// Ends a run: one that waits never begins, one that is driven here ends soon.
    ///
    /// # Errors
    /// When what is kept cannot be read or written.
    pub async fn cancel(&self, run: &RunId) -> Result<Cancelled, EngineFault> {
        let job = JobId::parse(run.as_str())?;
        // First written down: a server that is killed now is followed by one that knows.
        let cancelled = self.shop.queue.cancel(&Scope::Job(job.clone())).await?;
        if cancelled.ended > 0 {
            self.shop.ring.run(json!({ "id": run, "state": "ended" }));
            return Ok(Cancelled::Never);
        }
        // One that is over may be alive here for a moment longer.
        if let Some(live) = self.shop.live_run(run)
            && self.outcome(run).await?.is_none()
        {
            live.cancel();
            return Ok(Cancelled::Told);
        }
        let found = run.clone();
        let state = self.shop.stored(move |store| match store.run(&found) {
            Ok(row) => Ok(Some(row.state)),
            Err(StoreError::Unknown { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        });
        Ok(match (state.await?, self.shop.queue.job(&job).await?.map(|job| job.state)) {
            (Some(RunState::Ended(_)), _) | (None, Some(State::Cancelled | State::Dead | State::Done)) => {
                Cancelled::Over
            }
            (_, Some(State::Queued | State::Running)) => Cancelled::Told,
            (Some(RunState::Running { holder }), _) => Cancelled::Foreign(Some(holder)),
            (Some(RunState::Interrupted), _) => Cancelled::Foreign(None),
            (None, None) => Cancelled::Unknown,
        })
    }

    /// The questions of a run that are open, the oldest first.
    pub fn questions(&self, run: &RunId) -> Vec<Pending> {
        self.shop.live_run(run).map(|live| live.questions.all()).unwrap_or_default()
    }

    /// Answers a question of a run; `false` when it is not open any more.
    pub fn answer(&self, run: &RunId, question: &str, consent: Consent) -> bool {
        self.shop.live_run(run).is_some_and(|live| live.questions.answer(question, consent))
    }
}

/// The wish as a job of the queue.
fn spec(run: &RunId, wish: &Wish) -> Result<JobSpec, NotTaken> {
    let unclear = |source| EngineFault::Unclear { run: run.clone(), source };
    let payload = serde_json::to_string(wish).map_err(unclear)?;
    if payload.len() > MOST_BYTES {
        return Err(NotTaken::TooLarge { bytes: payload.len(), most: MOST_BYTES });
    }
    Ok(JobSpec {
        id: JobId::parse(run.as_str()).map_err(EngineFault::from)?,
        batch: BatchId::parse(POOL).map_err(EngineFault::from)?,
        pool: crate::queue::PoolName::parse(POOL).map_err(EngineFault::from)?,
        priority: Priority::Normal,
        payload,
        deliveries: NonZeroU32::MAX,
        delay: Duration::ZERO,
    })
}

/// The id of the run of a key: the same for the same key, in the form of every other id (RFC 9562, version 8).
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
