//! What the store is told of a run: at its beginning all that it takes to go on with it, at its end what it came to.

use super::earlier::Earlier;
use super::{JOURNAL_SCHEMA_VERSION, MemoryTerms, Settings};
use crate::gate::forget_bases;
use crate::id::CallId;
use crate::process::wall::WallChoice;
use crate::run::{Action, Charter, Event, TaskResult};
use crate::store::{
    Journal, Outcome, Retention, RunHead, Store, StoreError, TaskCopy, forget_lane_logs, project_dir, sha256,
};
use crate::task::Task;
use crate::workspace::worktree::Worktree;
use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{DeserializeSeed, Deserializer as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The kind of record that says that another process has taken the run up. It is no event.
pub const RESUMED: &str = "Resumed";

/// The kind of record of a run that rests. Like [`RESUMED`], it is not an event.
pub(super) const RESTED: &str = "Rested";

/// The data of a [`RESTED`] record.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Rested {
    #[serde(rename = "type")]
    kind: String,
    /// The calls that the machine asked for and that were never sent: they have cost nothing, and a resume sends them.
    pub(super) unsent: BTreeSet<CallId>,
}

impl Rested {
    /// With these calls not sent.
    pub(super) fn new(unsent: &BTreeSet<CallId>) -> Self {
        Self { kind: "rested".into(), unsent: unsent.clone() }
    }
}

/// Returns true if a record of this kind is an event of a run or a sub-agent.
pub(super) fn is_event(kind: &str) -> bool {
    kind != RESUMED && kind != RESTED
}

/// What is in such a record.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Resumed {
    #[serde(rename = "type")]
    kind: String,
    /// When, as RFC 3339.
    pub(super) at: String,
    process: u32,
    /// Whether a verdict that no report tells of is taken back, so that the gate judges once more.
    #[serde(default, skip_serializing_if = "is_false")]
    gate_again: bool,
    /// Whether a delivery that failed is taken back, so that it is tried once more.
    #[serde(default, skip_serializing_if = "is_false")]
    delivery_again: bool,
    /// Whether it is taken back that the model did not want to be asked, so that it is asked once more.
    #[serde(default, skip_serializing_if = "is_false")]
    request_again: bool,
    /// Whether it is taken back that it was ended from outside, so that it goes on where it was.
    #[serde(default, skip_serializing_if = "is_false")]
    stop_again: bool,
    /// What the run may cost from here on, all that it has cost included, in millionths of a US dollar; nothing: as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usd_micros: Option<u64>,
}

impl Resumed {
    /// By this process, now.
    pub(super) fn now(again: Again) -> Self {
        let Again { gate, delivery, request, stop, usd_micros } = again;
        let (at, process) = (super::timestamp(), std::process::id());
        Self {
            kind: "resumed".into(),
            at,
            process,
            gate_again: gate,
            delivery_again: delivery,
            request_again: request,
            stop_again: stop,
            usd_micros,
        }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_false(is: &bool) -> bool {
    !is
}

/// What is done again by who takes a run up: the answers that came to it no longer count. And what is different from there on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Again {
    /// The newest judgement of the gate.
    pub gate: bool,
    /// The delivery, which failed.
    pub delivery: bool,
    /// The request that the model did not want for so long that the run ended as blocked.
    pub request: bool,
    /// What was under way when the run was ended from outside.
    pub stop: bool,
    /// What the run may cost from here on, all that it has cost included, in millionths of a US dollar; `None`: as before.
    pub usd_micros: Option<u64>,
}

impl Again {
    /// Whatever can be, with this bound of money where there is one.
    pub(super) fn all(usd_micros: Option<u64>) -> Self {
        Self { gate: true, delivery: true, request: true, stop: true, usd_micros }
    }

    /// What the data of a [`RESUMED`] record says of that.
    pub fn said(data: &str) -> Self {
        let said = |resumed: Resumed| Self {
            gate: resumed.gate_again,
            delivery: resumed.delivery_again,
            request: resumed.request_again,
            stop: resumed.stop_again,
            usd_micros: resumed.usd_micros,
        };
        serde_json::from_str(data).map_or_else(|_| Self::default(), said)
    }
}

/// What a run was begun with, beside the workspace and the keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// The task, with its parameters filled in and the whole path of its source.
    pub task: Task,
    /// Protected paths beyond the built-in ones and the task's, as globs.
    pub protect: Vec<String>,
    /// Where else the report is written.
    pub reports: Vec<PathBuf>,
    /// Where a patch of the verified work is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<PathBuf>,
    /// Lane steps at once.
    pub jobs: usize,
    /// What it goes on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Earlier>,
    /// How it remembers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryTerms>,
    /// The folder with the lanes that only the gate knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdout: Option<PathBuf>,
    /// The commit whose lanes were the gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes_from: Option<String>,
    /// The worktree that it works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// Which wall was asked for.
    #[serde(default)]
    pub wall: WallChoice,
    /// Whether the agent reaches the network.
    #[serde(default)]
    pub network: bool,
    /// Where each of its models was asked, in order, as [`super::Model::place`] has it; none in runs of older programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
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
    /// How many events watchers had been told.
    told: u64,
}

/// What stands in a record beside its event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Beside {
    /// What the event before it had led to, where that is known.
    pub(super) before: Option<Asked>,
    /// How many events watchers had been told; not known of the first journals.
    pub(super) told: Option<u64>,
}

/// Reads a record in one go.
struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = (Event, Beside);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        let mut sieve = Sieve { fields, beside: Beside::default() };
        let event = Event::deserialize(MapAccessDeserializer::new(&mut sieve))?;
        Ok((event, sieve.beside))
    }
}

/// The fields of a record as they pass by: what is beside the event is kept back.
struct Sieve<A> {
    fields: A,
    beside: Beside,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Sieve<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(name) = self.fields.next_key::<&'de str>()? {
            match name {
                "before" => self.beside.before = self.fields.next_value()?,
                "told" => self.beside.told = self.fields.next_value()?,
                name => return seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some),
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.fields.next_value_seed(seed)
    }
}

/// Begins the journal of a run, and removes runs that are too old.
pub(super) fn begin(
    settings: &Settings,
    charter: &Charter,
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
    let Settings { protect, reports, patch, jobs, earlier, memory, wall, network, holdout, lanes_from, .. } =
        settings.clone();
    // The run may be taken up from another folder, and what is named relative to the task lies where it lay.
    let source = if task.source == "-" { None } else { std::path::absolute(&task.source).ok() };
    let source = source.and_then(|path| path.to_str().map(str::to_owned)).unwrap_or_else(|| task.source.clone());
    let terms = Terms {
        task: Task { source, ..task.clone() },
        protect,
        reports,
        patch,
        jobs,
        earlier,
        memory,
        wall,
        network,
        holdout,
        lanes_from,
        worktree: worktree.cloned(),
        places: settings.models.iter().map(|model| model.place.clone()).collect(),
    };
    let settings = serde_json::to_string(&terms)
        .map_err(|error| StoreError::new("write down", Path::new("the task"), io::Error::from(error)))?;
    Journal::create(&store, &head, &TaskCopy { text: task.prompt.clone(), settings })
}

/// Removes what is kept beside runs and is as old as they may be: judged bases that nobody uses, and logs of lanes by hand. Gives the bytes of
/// the logs.
pub fn forget_beside(project: &Path, keep: &Retention) -> u64 {
    let Some(age) = keep.age_ms.map(|age| Duration::from_millis(u64::try_from(age).unwrap_or(0))) else { return 0 };
    forget_bases(project, age);
    forget_lane_logs(project, age)
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

/// An event as it stands in the journal, with what the one before it had led to and how much had been told.
pub(super) fn to_json(event: &Event, before: Option<&Asked>, told: u64) -> Result<String, StoreError> {
    serde_json::to_string(&Written { event, before, told })
        .map_err(|error| StoreError::new("write down", Path::new(event.name()), io::Error::from(error)))
}

/// The event of a record, and what stands beside it.
pub(super) fn from_json(text: &str) -> Result<(Event, Beside), serde_json::Error> {
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
        let asked = Asked { names: vec!["RunTool".into()], digest: "d".into() };
        for (event, before) in [(&event, Some(&asked)), (&event, None), (&Event::DeadlinePassed, Some(&asked))] {
            let text = to_json(event, before, 3).unwrap();
            let beside = Beside { before: before.cloned(), told: Some(3) };
            assert_eq!(from_json(&text).unwrap(), (event.clone(), beside.clone()));
            let sorted = serde_json::from_str::<serde_json::Value>(&text).unwrap().to_string();
            assert_eq!(from_json(&sorted).unwrap(), (event.clone(), beside));
        }
        for wrong in ["", "[]", "{}", r#"{"type":"deadline_passed"} {}"#, r#"{"type":"deadline_passed","before":{}}"#] {
            assert!(from_json(wrong).is_err(), "{wrong}");
        }
    }
}
