//! Records of a run in the store: at its start what a resume needs, at its end the outcome.

use super::lineage::whose;
use crate::chat::Message;
use crate::driver::{DriverSettings, JOURNAL_SCHEMA_VERSION, MemorySettings, timestamp};
use crate::gate::forget_bases;
use crate::id::{CallId, RunId};
use crate::limits::NewLimits;
use crate::process::sandbox::SandboxChoice;
use crate::run::{Action, AgentEvent, Event, RunSpec, TaskResult};
use crate::store::{
    Journal, Retention, RunHead, RunOutcome, Store, StoreError, TaskCopy, forget_lane_logs, project_dir, sha256,
};
use crate::task::Task;
use crate::workspace::worktree::Worktree;
use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{DeserializeSeed, Deserializer as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The kind of record of a resume by another process. It is not an event.
pub const RESUMED: &str = "Resumed";

/// The kind of record of a request to a model, written before the request goes out. It is not an
/// event.
pub(in crate::driver) const SENT: &str = "Sent";

/// The data of a [`SENT`] record. A call without one costs nothing, and a resume sends its request.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::driver) struct SentRecord {
    #[serde(rename = "type")]
    kind: String,
    pub(in crate::driver) call: CallId,
}

impl SentRecord {
    pub(in crate::driver) fn new(call: CallId) -> Self {
        Self { kind: "sent".into(), call }
    }
}

/// The kind of record of a request that did not go out after its [`SENT`] record, because the run
/// was to rest. It is not an event.
pub(super) const NOT_SENT: &str = "NotSent";

/// The data of a [`NOT_SENT`] record. The call costs nothing, and a resume sends its request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NotSentRecord {
    #[serde(rename = "type")]
    kind: String,
    pub(super) call: CallId,
}

impl NotSentRecord {
    pub(super) fn new(call: CallId) -> Self {
        Self { kind: "not_sent".into(), call }
    }
}

/// The kind of record of what watchers got in pieces and no event repeats. It is not an event.
pub(in crate::driver) const SHOWN: &str = "Shown";

/// The data of a [`SHOWN`] record.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::driver) struct ShownRecord {
    #[serde(rename = "type")]
    kind: String,
    /// The number of events sent to watchers before it, as in the record of an event.
    pub(in crate::driver) event_count: u64,
    /// The pieces, as whole events.
    pub(in crate::driver) events: Vec<AgentEvent>,
}

impl ShownRecord {
    pub(in crate::driver) fn new(event_count: u64, events: Vec<AgentEvent>) -> Self {
        Self { kind: "shown".into(), event_count, events }
    }
}

/// Returns true if a record of this kind is an event of a run or a sub-agent.
pub(in crate::driver) fn is_event(kind: &str) -> bool {
    !matches!(whose(kind).1, RESUMED | SENT | NOT_SENT | SHOWN)
}

/// The data of a [`RESUMED`] record.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::driver) struct ResumedRecord {
    #[serde(rename = "type")]
    kind: String,
    /// The time of the resume, as RFC 3339.
    pub(in crate::driver) at: String,
    process: u32,
    /// True if a verdict that no report mentions is taken back, so that the gate judges again.
    #[serde(default, skip_serializing_if = "is_false")]
    gate_again: bool,
    /// True if a failed delivery is taken back, so that it is tried again.
    #[serde(default, skip_serializing_if = "is_false")]
    delivery_again: bool,
    /// True if the end as blocked is taken back, so that the model is asked again.
    #[serde(default, skip_serializing_if = "is_false")]
    request_again: bool,
    /// True if the end from outside is taken back, so that the run continues.
    #[serde(default, skip_serializing_if = "is_false")]
    stop_again: bool,
    /// True if the run goes on after the limit that ended it.
    #[serde(default, skip_serializing_if = "is_false")]
    limit_again: bool,
    /// The new limits of the run.
    #[serde(default, skip_serializing_if = "NewLimits::is_empty")]
    limits: NewLimits,
}

impl ResumedRecord {
    /// Creates the data of a resume by this process, now.
    pub(in crate::driver) fn now(again: RestartedEffects) -> Self {
        let RestartedEffects { gate, delivery, request, stop, limit, limits } = again;
        let (at, process) = (timestamp(), std::process::id());
        Self {
            kind: "resumed".into(),
            at,
            process,
            gate_again: gate,
            delivery_again: delivery,
            request_again: request,
            stop_again: stop,
            limit_again: limit,
            limits,
        }
    }

    pub(in crate::driver) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_false(is: &bool) -> bool {
    !is
}

/// The steps that a resume repeats, whose earlier answers no longer count, and the changed limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestartedEffects {
    /// The newest gate run.
    pub gate: bool,
    /// The failed delivery.
    pub delivery: bool,
    /// The request to the model that asked for so long a pause that the run ended as blocked.
    pub request: bool,
    /// The work under way when the run was ended from outside.
    pub stop: bool,
    /// The end by a limit that is now higher.
    pub limit: bool,
    /// The new limits. What the run has used so far counts towards them.
    pub limits: NewLimits,
}

impl RestartedEffects {
    /// Repeats every step that can be, with these limits.
    pub(in crate::driver) fn all(limits: NewLimits) -> Self {
        Self { gate: true, delivery: true, request: true, stop: true, limit: true, limits }
    }

    /// Reads the data of a [`RESUMED`] record. Invalid data repeats nothing.
    pub fn parse(data: &str) -> Self {
        let restarted = |resumed: ResumedRecord| Self {
            gate: resumed.gate_again,
            delivery: resumed.delivery_again,
            request: resumed.request_again,
            stop: resumed.stop_again,
            limit: resumed.limit_again,
            limits: resumed.limits,
        };
        serde_json::from_str(data).map_or_else(|_| Self::default(), restarted)
    }
}

/// The terms that a run was started with, without the workspace and the keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunTerms {
    /// The task, with its parameters filled in and the absolute path of its source.
    pub task: Task,
    /// Globs of protected paths beyond the built-in ones and the task's.
    pub protect: Vec<String>,
    /// Paths for further copies of the report.
    pub reports: Vec<PathBuf>,
    /// The path for a patch of the verified work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<PathBuf>,
    /// The number of lane steps to run at once.
    pub jobs: usize,
    /// The conversation that the run continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<EarlierRun>,
    /// The memory settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemorySettings>,
    /// The folder with the hold-out lanes, which only the gate knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdout: Option<PathBuf>,
    /// The commit whose lanes were the gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes_from: Option<String>,
    /// The worktree of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// The sandbox that was asked for.
    pub sandbox: SandboxChoice,
    /// True if the agent can reach the network.
    pub network: bool,
    /// The digests of the models' addresses, in order, as in [`crate::driver::DriverModel::place`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
}

/// The conversation that a run continues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EarlierRun {
    /// The run that had the conversation.
    pub run: RunId,
    /// The conversation, with a result for each tool use.
    pub messages: Vec<Message>,
}

/// A short form of the actions after an event. The next record keeps it, so that a replay can
/// compare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::driver) struct RequestedActions {
    /// The names of the actions, in order.
    pub(in crate::driver) names: Vec<String>,
    /// A digest of the actions.
    pub(in crate::driver) digest: String,
}

impl RequestedActions {
    /// Leaves out events for watchers, whose wording may change.
    pub(in crate::driver) fn from_actions(actions: &[Action]) -> Self {
        let asked: Vec<&Action> = actions.iter().filter(|action| !matches!(action, Action::Emit { .. })).collect();
        let mut digest = sha256(&serde_json::to_vec(&asked).unwrap_or_default());
        digest.truncate(16);
        Self { names: asked.iter().map(|action| action.name().to_owned()).collect(), digest }
    }
}

/// A record of an event as the journal has it.
#[derive(Serialize)]
struct Written<'e> {
    #[serde(flatten)]
    event: &'e Event,
    /// The actions after the event before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<&'e RequestedActions>,
    /// The number of events sent to watchers before it.
    event_count: u64,
}

/// The fields of a record beside its event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::driver) struct RecordExtras {
    /// The actions after the event before it, if known.
    pub(in crate::driver) before: Option<RequestedActions>,
    /// The number of events sent to watchers before it.
    pub(in crate::driver) event_count: u64,
}

/// Reads a record in one pass.
struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = (Event, RecordExtras);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        let mut sieve = Sieve { fields, beside: RecordExtras::default() };
        let event = Event::deserialize(MapAccessDeserializer::new(&mut sieve))?;
        Ok((event, sieve.beside))
    }
}

/// Passes on the fields of the event, and keeps the fields beside it.
struct Sieve<A> {
    fields: A,
    beside: RecordExtras,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Sieve<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(name) = self.fields.next_key::<&'de str>()? {
            match name {
                "before" => self.beside.before = self.fields.next_value()?,
                "event_count" => self.beside.event_count = self.fields.next_value()?,
                name => return seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some),
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.fields.next_value_seed(seed)
    }
}

/// Creates the journal of a run, and removes runs that are too old.
pub(in crate::driver) fn begin_journal(
    settings: &DriverSettings,
    spec: &RunSpec,
    task: &Task,
    worktree: Option<&Worktree>,
    run_key: Option<String>,
    now_ms: i64,
) -> Result<Journal, StoreError> {
    let store = Store::open(&settings.state_dir, settings.project())?;
    match store.prune(&Retention::default(), now_ms) {
        Ok(pruned) => {
            tracing::debug!(runs = pruned.runs.len(), bytes = pruned.bytes, "old runs removed");
            forget_beside(&project_dir(&settings.state_dir, settings.project()), &Retention::default());
        }
        Err(error) => tracing::warn!(%error, "cannot remove old runs"),
    }
    let head = RunHead {
        id: spec.run.clone(),
        run_key,
        parent: settings.earlier.as_ref().map(|earlier| earlier.run.clone()),
        title: spec.title.clone(),
        source: task.source.clone(),
        task_digest: sha256(task.prompt.as_bytes()),
        workspace: settings.workspace.display().to_string(),
        models: spec.models.clone(),
        fledge: env!("CARGO_PKG_VERSION").into(),
        journal_version: JOURNAL_SCHEMA_VERSION,
        started_at_ms: now_ms,
    };
    let DriverSettings {
        protect, reports, patch, jobs, earlier, memory, sandbox, network, holdout, lanes_from, ..
    } = settings.clone();
    // A resume may run in another folder, and paths relative to the task must stay valid.
    let source = if task.source == "-" { None } else { std::path::absolute(&task.source).ok() };
    let source = source.and_then(|path| path.to_str().map(str::to_owned)).unwrap_or_else(|| task.source.clone());
    let terms = RunTerms {
        task: Task { source, ..task.clone() },
        protect,
        reports,
        patch,
        jobs,
        earlier,
        memory,
        sandbox,
        network,
        holdout,
        lanes_from,
        worktree: worktree.cloned(),
        places: settings.models.iter().map(|model| model.place.clone()).collect(),
    };
    let settings = serde_json::to_string(&terms)
        .map_err(|error| StoreError::new("serialize", Path::new("the task"), io::Error::from(error)))?;
    Journal::create(&store, &head, &TaskCopy { text: task.prompt.clone(), settings })
}

/// Removes old data beside runs: unused judged bases, and logs of lanes run by hand. Without an
/// age, removes bases that were unused for a day, and no logs. Returns the bytes of the removed
/// logs.
pub fn forget_beside(project: &Path, keep: &Retention) -> u64 {
    let age = keep.age_ms.map(|age| Duration::from_millis(u64::try_from(age).unwrap_or(0)));
    forget_bases(project, age.unwrap_or_default());
    age.map_or(0, |age| forget_lane_logs(project, age))
}

/// Returns the outcome for the row of a run.
pub(in crate::driver) fn outcome(result: &TaskResult, ended_at_ms: i64) -> RunOutcome {
    let usage = &result.usage.total;
    let text = if result.summary.trim().is_empty() { &result.message } else { &result.summary };
    RunOutcome {
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
        summary: text.trim().lines().next().unwrap_or_default().to_owned(),
    }
}

/// Formats a record of an event.
pub(in crate::driver) fn to_json(
    event: &Event,
    before: Option<&RequestedActions>,
    event_count: u64,
) -> Result<String, StoreError> {
    serde_json::to_string(&Written { event, before, event_count })
        .map_err(|error| StoreError::new("serialize", Path::new(event.name()), io::Error::from(error)))
}

/// Parses a record into its event and the fields beside it.
pub(in crate::driver) fn from_json(text: &str) -> Result<(Event, RecordExtras), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let record = reader.deserialize_map(Reading)?;
    reader.end().map(|()| record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{Block, Reply, StopReason, ToolCall, ToolInput};
    use crate::id::CallId;

    #[test]
    fn an_event_is_read_as_it_was_written_with_what_the_one_before_had_led_to() {
        let input = ToolInput::parse(r#"{"before": {"names": [], "digest": "\"1\""}, "type": "x"}"#);
        let call = ToolCall { id: "1".into(), name: "before".into(), input };
        let said = Block::Text { text: "\"before\":\u{2028}".into() };
        let reply = Reply {
            content: vec![said, Block::ToolUse(call)],
            stop: StopReason::ToolUse,
            usage: None,
            model: "m".into(),
            lacks_end: false,
        };
        let event = Event::ModelCompleted { call: CallId(7), reply: Box::new(reply) };
        let asked = RequestedActions { names: vec!["RunTool".into()], digest: "d".into() };
        for (event, before) in [(&event, Some(&asked)), (&event, None), (&Event::DeadlinePassed, Some(&asked))] {
            let text = to_json(event, before, 3).unwrap();
            let beside = RecordExtras { before: before.cloned(), event_count: 3 };
            assert_eq!(from_json(&text).unwrap(), (event.clone(), beside.clone()));
            let sorted = serde_json::from_str::<serde_json::Value>(&text).unwrap().to_string();
            assert_eq!(from_json(&sorted).unwrap(), (event.clone(), beside));
        }
        for wrong in ["", "[]", "{}", r#"{"type":"deadline_passed"} {}"#, r#"{"type":"deadline_passed","before":{}}"#] {
            assert!(from_json(wrong).is_err(), "{wrong}");
        }
    }
}
