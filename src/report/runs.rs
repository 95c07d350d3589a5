//! Rows of runs as JSON, for `fledge runs list --json` and the server.

use super::story::{RunStory, STORY_SCHEMA_VERSION, TimePart};
use crate::id::RunId;
use crate::run::{RunOutcome, RunRow, StoredRunState};
use crate::verdict::Reason;
use serde_json::{Value, json};

/// The version of this format.
pub const RUNS_SCHEMA_VERSION: u32 = 1;

/// Converts a row to JSON. Values that are known only at the end are null until then.
pub fn row(row: &RunRow, short: &str) -> Value {
    let head = &row.head;
    let (state, holder, end) = match &row.state {
        StoredRunState::Running { holder } => (if row.is_lost { "lost" } else { "running" }, Some(holder), None),
        StoredRunState::Interrupted => ("interrupted", None, None),
        StoredRunState::Ended(end) => ("ended", None, Some(end)),
    };
    json!({
        "id": head.id,
        "short_id": short,
        "run_key": head.run_key,
        "parent": head.parent,
        "title": head.title,
        "source": head.source,
        "task_digest": head.task_digest,
        "workspace": head.workspace,
        "models": head.models,
        "branch": row.branch,
        "started_by": started_by(head.parent.as_ref().map(RunId::as_str), head.run_key.as_deref()),
        "fledge": head.fledge,
        "journal_version": head.journal_version,
        "started_at": rfc3339(head.started_at_ms),
        "state": state,
        "holder": holder,
        "machine": row.machine,
        "heard_at": row.heard_at_ms.map(rfc3339),
        "outcome": end.map(outcome_data),
    })
}

fn outcome_data(end: &RunOutcome) -> Value {
    json!({
        "ended_at": rfc3339(end.ended_at_ms),
        "reason": end.reason,
        "exit_code": end.exit_code,
        "verified": end.verified,
        "cancelled": end.cancelled,
        "attempts": end.attempts,
        "turns": end.turns,
        "input_tokens": end.tokens_in,
        "output_tokens": end.tokens_out,
        "cached_tokens": end.tokens_cached,
        "cost_micros": end.cost_micros,
        "summary": end.summary,
    })
}

/// Returns the outcome of a run in two or three words, or the state of a run that has not ended.
pub fn outcome(row: &RunRow) -> &str {
    match &row.state {
        StoredRunState::Running { .. } if row.is_lost => "lost",
        StoredRunState::Running { .. } => "running",
        StoredRunState::Interrupted => "interrupted",
        StoredRunState::Ended(end) => Reason::label_of(&end.reason),
    }
}

/// The start of the key that a server gives to a request without a key.
pub const API_KEY_START: &str = "api-";

/// Returns the starter of a run, by its parent and its key: an earlier run, a batch, a schedule,
/// the page or the API of a server, or the command line. A key of another form is the starter.
pub fn started_by(parent: Option<&str>, key: Option<&str>) -> Value {
    if let Some(run) = parent {
        return json!({ "kind": "run", "name": run });
    }
    let Some(key) = key else { return json!({ "kind": "command_line" }) };
    for (start, kind) in [("page-", "page"), (API_KEY_START, "api")] {
        if key.starts_with(start) {
            return json!({ "kind": kind });
        }
    }
    if let Some(name) = key.strip_prefix("schedule:").and_then(|rest| rest.split(':').next()) {
        return json!({ "kind": "schedule", "name": name });
    }
    match key.split_once('/') {
        Some((batch, job)) if is_batch(batch) => json!({ "kind": "batch", "name": batch, "job": job }),
        _ => json!({ "kind": "key", "name": key }),
    }
}

/// Returns whether a name has the form of a batch name: the start of a digest, and a suffix that
/// distinguishes batches.
fn is_batch(name: &str) -> bool {
    let digest = name.split_once('-').map(|(digest, _)| digest);
    digest.is_some_and(|digest| digest.len() == 24 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Formats a time in milliseconds since 1970 as RFC 3339 in UTC.
pub fn rfc3339(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map(|time| format!("{time:.3}")).unwrap_or_default()
}

/// Converts a run with its story to JSON.
pub fn story_as_json(row: &RunRow, short: &str, story: &RunStory) -> Value {
    let mut time: serde_json::Map<String, Value> =
        TimePart::ALL.iter().map(|part| (format!("{}_ms", part.as_str()), story.spent_ms(*part).into())).collect();
    time.insert("total_ms".into(), story.total_ms().into());
    json!({
        "schema_version": STORY_SCHEMA_VERSION,
        "run": self::row(row, short),
        "story": story.scenes,
        "course": story.course,
        "time": time,
        "state": story.run.state(),
        "doing": story.run.label(),
        "turns": story.run.next_turn() - 1,
        "result": story.run.result(),
    })
}

/// Describes what the run did last.
pub fn doing(story: &RunStory) -> String {
    let turn = story.run.next_turn();
    match story.run.label() {
        "CallingModel" => format!("waiting for the model, turn {turn}"),
        "BackingOff" => "waiting before another try".into(),
        "Confirming" => "waiting for a person's answer".into(),
        "RunningTools" => format!("running tools of turn {}", turn - 1),
        "Dispatching" => "a sub-agent works".into(),
        "RunningHooks" => "finishing the turn".into(),
        "AnsweringQuery" => "looking something up".into(),
        "Compacting" => "shortening the conversation".into(),
        "Planning" => "planning".into(),
        "Verifying" => "running the gate".into(),
        "Delivering" => "committing".into(),
        "Reporting" => "writing the report".into(),
        _ => "not begun".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_started_a_run_is_read_from_its_parent_and_its_key() {
        let batch = "0123456789abcdef01234567-a1b2c3d4e5f6";
        let rows = [
            (None, None, json!({ "kind": "command_line" })),
            (None, Some("nightly"), json!({ "kind": "key", "name": "nightly" })),
            (None, Some("release/1.2"), json!({ "kind": "key", "name": "release/1.2" })),
            (None, Some("api-0a1b"), json!({ "kind": "api" })),
            (None, Some("page-0a1b"), json!({ "kind": "page" })),
            (None, Some("schedule:nightly:1767225600"), json!({ "kind": "schedule", "name": "nightly" })),
            (None, Some(&*format!("{batch}/one#2")), json!({ "kind": "batch", "name": batch, "job": "one#2" })),
            (Some("0198"), Some("page-0a1b"), json!({ "kind": "run", "name": "0198" })),
        ];
        for (parent, key, expected) in rows {
            assert_eq!(started_by(parent, key), expected, "{parent:?} {key:?}");
        }
    }
}
