//! What the store is told of a run: at its beginning all that it takes to go on with it, at its end what it came to.

use super::earlier::Earlier;
use super::{JOURNAL_SCHEMA_VERSION, MemoryTerms, Settings};
use crate::process::wall::WallChoice;
use crate::run::{Action, Charter, Event, TaskResult};
use crate::store::{Journal, Outcome, Retention, RunHead, Store, StoreError, TaskCopy, sha256};
use crate::task::Task;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The kind of record that says that another process has taken the run up. It is for people, and no event.
pub const RESUMED: &str = "Resumed";

/// What a run was begun with, beside the workspace and the keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// The task, with its parameters filled in.
    pub task: Task,
    /// Protected paths beyond the built-in ones and the task's, as globs.
    pub protect: Vec<String>,
    /// Where else the report is written.
    pub reports: Vec<PathBuf>,
    /// Lane steps at once.
    pub jobs: usize,
    /// What it goes on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Earlier>,
    /// How it remembers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryTerms>,
    /// Which wall was asked for.
    #[serde(default)]
    pub wall: WallChoice,
    /// Whether the agent reaches the network.
    #[serde(default)]
    pub network: bool,
}

/// What the machine asked for after an event, as the record after it keeps it: enough to see that it is the same again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Asked {
    /// The names of the actions, in order.
    pub(super) names: Vec<String>,
    /// A digest of all that is in them.
    pub(super) digest: String,
}

impl Asked {
    /// What is told to watchers is left out: it may be worded better some day.
    pub(super) fn of(actions: &[Action]) -> Self {
        let asked: Vec<&Action> = actions.iter().filter(|action| !matches!(action, Action::Emit { .. })).collect();
        let mut digest = sha256(&serde_json::to_vec(&asked).unwrap_or_default());
        digest.truncate(16);
        Self { names: asked.iter().map(|action| action.name().to_owned()).collect(), digest }
    }
}

/// A record of an event as it stands in the journal.
#[derive(Serialize)]
struct Written<'e> {
    #[serde(flatten)]
    event: &'e Event,
    /// What the event before it had led to.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<&'e Asked>,
}

/// The part of a record beside its event.
#[derive(Deserialize)]
struct Beside {
    before: Option<Asked>,
}

/// Begins the journal of a run, and removes runs that are too old.
pub(super) fn begin(
    settings: &Settings,
    charter: &Charter,
    task: &Task,
    run_key: Option<String>,
    now_ms: i64,
) -> Result<Journal, StoreError> {
    let store = Store::open(&settings.state_dir, &settings.workspace)?;
    match store.prune(&Retention::default(), now_ms) {
        Ok(pruned) => tracing::debug!(runs = pruned.runs.len(), bytes = pruned.bytes, "old runs removed"),
        Err(error) => tracing::warn!(%error, "old runs cannot be removed"),
    }
    let head = RunHead {
        id: charter.run.clone(),
        run_key,
        parent: settings.earlier.as_ref().map(|earlier| earlier.run.clone()),
        title: charter.title.clone(),
        source: task.source.clone(),
        task_digest: sha256(task.prompt.as_bytes()),
        workspace: settings.workspace.display().to_string(),
        models: charter.models.clone(),
        fledge: env!("CARGO_PKG_VERSION").into(),
        journal_version: JOURNAL_SCHEMA_VERSION,
        started_at_ms: now_ms,
    };
    let Settings { protect, reports, jobs, earlier, memory, wall, network, .. } = settings.clone();
    let terms = Terms { task: task.clone(), protect, reports, jobs, earlier, memory, wall, network };
    let settings = serde_json::to_string(&terms)
        .map_err(|error| StoreError::new("write down", Path::new("the task"), io::Error::from(error)))?;
    Journal::create(&store, &head, &TaskCopy { text: task.prompt.clone(), settings })
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

/// An event as it stands in the journal, with what the one before it had led to.
pub(super) fn to_json(event: &Event, before: Option<&Asked>) -> Result<String, StoreError> {
    serde_json::to_string(&Written { event, before })
        .map_err(|error| StoreError::new("write down", Path::new(event.name()), io::Error::from(error)))
}

/// The event of a record, and what the one before it had led to, where that is known.
pub(super) fn from_json(text: &str) -> Result<(Event, Option<Asked>), serde_json::Error> {
    Ok((serde_json::from_str(text)?, serde_json::from_str::<Beside>(text)?.before))
}
