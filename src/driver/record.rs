//! What the store is told of a run: at its beginning all that it takes to go on with it, at its end what it came to.

use super::{JOURNAL_SCHEMA_VERSION, Settings};
use crate::run::{Charter, Event, TaskResult};
use crate::store::{Journal, Outcome, Retention, RunHead, Store, StoreError, TaskCopy, sha256};
use crate::task::Task;
use std::io;
use std::path::Path;

/// Begins the journal of a run, and removes runs that are too old.
pub(super) fn begin(settings: &Settings, charter: &Charter, task: &Task, now_ms: i64) -> Result<Journal, StoreError> {
    let store = Store::open(&settings.state_dir, &settings.workspace)?;
    match store.prune(&Retention::default(), now_ms) {
        Ok(pruned) => tracing::debug!(runs = pruned.runs.len(), bytes = pruned.bytes, "old runs removed"),
        Err(error) => tracing::warn!(%error, "old runs cannot be removed"),
    }
    let head = RunHead {
        id: charter.run.clone(),
        run_key: None,
        parent: None,
        title: charter.title.clone(),
        source: task.source.clone(),
        task_digest: sha256(task.prompt.as_bytes()),
        workspace: settings.workspace.display().to_string(),
        models: charter.models.clone(),
        fledge: env!("CARGO_PKG_VERSION").into(),
        journal_version: JOURNAL_SCHEMA_VERSION,
        started_at_ms: now_ms,
    };
    let Settings { protect, reports, jobs, .. } = settings;
    let settings = serde_json::json!({ "task": task, "protect": protect, "reports": reports, "jobs": jobs });
    Journal::create(&store, &head, &TaskCopy { text: task.prompt.clone(), settings: settings.to_string() })
}

/// What the row of a run says of its end.
pub(super) fn outcome(result: &TaskResult, ended_at_ms: i64) -> Outcome {
    let usage = &result.usage.total;
    let said = if result.summary.trim().is_empty() { &result.message } else { &result.summary };
    Outcome {
        ended_at_ms,
        reason: result.reason.to_string(),
        exit_code: result.exit_code,
        verified: result.verified,
        cancelled: result.cancelled,
        attempts: result.attempts.len() as u64,
        turns: result.turns,
        tokens_in: usage.input_tokens,
        tokens_out: usage.output_tokens,
        tokens_cached: usage.cached_tokens,
        cost_micros: usage.cost_micros,
        summary: said.trim().lines().next().unwrap_or_default().to_owned(),
    }
}

/// An event as it stands in the journal.
pub(super) fn to_json(event: &Event) -> Result<String, StoreError> {
    serde_json::to_string(event)
        .map_err(|error| StoreError::new("write down", Path::new(event.name()), io::Error::from(error)))
}
