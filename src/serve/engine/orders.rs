//! Runs that the scheduler wants: wishes like all others, with keys that say for which moment each is.

use super::{Asked, Engine, NotTaken, Overrides, TaskOf};
use crate::id::RunId;
use crate::scheduler::{JobError, Order, Submit, TaskEnd};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;

/// The most letters that are said of why a run went wrong.
const LONGEST: usize = 300;
/// How often it is looked whether a run is over.
const POLL: Duration = Duration::from_secs(1);

impl Submit for Engine {
    fn submit(&self, order: Order) -> BoxFuture<'_, Result<RunId, JobError>> {
        let Order { path, key } = order;
        let (params, overrides) = (BTreeMap::new(), Overrides::default());
        let asked = Asked { task: TaskOf::Path(path), params, overrides, key: Some(key) };
        async move {
            match self.accept(asked).await {
                Ok(accepted) => Ok(accepted.run),
                // The file is another one since: what was begun for this moment is what counts.
                Err(NotTaken::KeyTaken { run, .. }) => Ok(run),
                Err(NotTaken::Stopping) => Err(JobError::Resting),
                Err(fault @ NotTaken::Fault(_)) => Err(JobError::retryable(&fault)),
                Err(unfit @ (NotTaken::Unfit(_) | NotTaken::TooLarge { .. })) => {
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
    let word = outcome["reason"].as_str().unwrap_or("it has ended");
    let why = outcome["summary"].as_str().and_then(|why| why.lines().next()).filter(|why| !is_well && !why.is_empty());
    let why = why.map(|why| format!(": {}", why.chars().take(LONGEST).collect::<String>()));
    TaskEnd { is_well, said: format!("{word}{}", why.unwrap_or_default()) }
}
