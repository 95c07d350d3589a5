//! The runs of the scheduler: requests like all others, with a key for the scheduled time.

use super::{Engine, Overrides, RejectedRun, RunRequestBody, TaskOrigin};
use crate::id::RunId;
use crate::scheduler::{JobError, RunOrder, TaskEnd, TaskSubmitter};
use crate::verdict::Reason;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;

/// The largest number of characters of a failure's description.
const LONGEST: usize = 300;
/// The interval between checks for the end of a run.
const POLL: Duration = Duration::from_secs(1);

impl TaskSubmitter for Engine {
    fn submit(&self, order: RunOrder) -> BoxFuture<'_, Result<RunId, JobError>> {
        let RunOrder { path, key } = order;
        let (params, overrides) = (BTreeMap::new(), Overrides::default());
        let asked = RunRequestBody { task: TaskOrigin::Path(path), params, overrides, key: Some(key) };
        async move {
            match self.accept(asked).await {
                Ok(accepted) => Ok(accepted.run),
                // The task's file has changed since. The run that was begun for this time counts.
                Err(RejectedRun::KeyTaken { run, .. }) => Ok(run),
                Err(RejectedRun::Stopping) => Err(JobError::Resting),
                Err(fault @ RejectedRun::Fault(_)) => Err(JobError::retryable(&fault)),
                Err(unfit @ (RejectedRun::Unfit(_) | RejectedRun::TooLarge { .. })) => {
                    Err(JobError::Final(unfit.to_string()))
                }
            }
        }
        .boxed()
    }

    fn ended(&self, run: RunId) -> BoxFuture<'_, Result<TaskEnd, JobError>> {
        async move {
            loop {
                let outcome = self.outcome(&run).await.map_err(|fault| JobError::retryable(&fault))?;
                if let Some(outcome) = outcome {
                    return Ok(end(&outcome));
                }
                sleep(POLL).await;
            }
        }
        .boxed()
    }
}

fn end(outcome: &Value) -> TaskEnd {
    let is_well = outcome["exit_code"] == 0;
    let word = outcome["reason"].as_str().map_or("ended", Reason::label_of);
    let why = outcome["summary"].as_str().and_then(|why| why.lines().next()).filter(|why| !is_well && !why.is_empty());
    let why = why.map(|why| format!(": {}", why.chars().take(LONGEST).collect::<String>()));
    TaskEnd { is_well, outcome: format!("{word}{}", why.unwrap_or_default()) }
}
