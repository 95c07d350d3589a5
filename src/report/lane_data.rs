//! Lanes as JSON: the list of lanes, the plan of a run, and the result of a run. The outer keys are
//! those that existing scripts for projects with a `fledge.toml` read. Further keys hold the rest.

use crate::duration::milliseconds;
use crate::lane::{EntryKind, GroupMember, Lane, LaneOutcome, LaneRuling, StepEntry};
use crate::verdict::{StepReport, StepStatus};
use serde_json::{Value, json};
use std::time::Duration;

/// The version of these formats. A new key does not change it.
pub const LANE_SCHEMA_VERSION: u32 = 1;
/// The maximum number of commands listed as predecessors of a command. With two large groups in
/// sequence, complete lists would contain millions of names.
const NAMED: usize = 100;
/// The reason of steps that `--from` skips. Existing scripts expect this word.
const BEFORE: &str = "--from";

/// Describes one lane for `lanes list`. `source` is the origin of an imported lane. Nobody has
/// reviewed the detected lane, so its trust tier is always `unverified`.
pub fn listed(lane: &Lane, is_detected: bool, source: Option<&str>) -> Value {
    let mut value = json!({
        "name": lane.name,
        "description": Some(&lane.description).filter(|text| !text.is_empty()),
        "step_count": lane.entries.len(),
        "fail_fast": lane.fail_fast,
        "trust_tier": if source.is_some() { "unverified" } else { "local" },
        "detected": is_detected,
        "timeout": seconds(lane.timeout),
        "jobs": lane.jobs,
        "env": lane.env,
        "commands": (0..lane.steps.len()).map(|number| command(lane, number)).collect::<Vec<_>>(),
        "joints": joints(lane),
        "room": lane.room,
        "setup": lane.setup.iter().map(|step| step.run.as_str()).collect::<Vec<_>>(),
        "cache": lane.cache,
        "network": lane.network,
        "writes": lane.writes,
        "canary": lane.canary,
        "flaky": lane.flaky,
        "include_ignored": lane.include_ignored,
        "hidden": lane.hidden,
    });
    if let Some(source) = source {
        value["source"] = source.into();
    }
    value
}

/// Describes what a run of the lane would do, for `--dry-run --json`. `left_out[n]` is the reason
/// why command `n` would not run; `None` if it would. `from` is the index of the first entry to
/// run.
pub fn planned(lane: &Lane, left_out: &[Option<String>], from: Option<usize>) -> Value {
    let why = |number: &usize| left_out.get(*number).and_then(Option::as_ref);
    let steps = lane.entries.iter().enumerate().map(|(number, entry)| {
        let mut value = json!({ "step": number + 1, "kind": entry.kind });
        match entry.kind {
            EntryKind::Parallel => {
                let item = |item: &GroupMember| json!({ "kind": item.kind, "name": item.name });
                value["items"] = entry.items.iter().map(item).collect();
            }
            EntryKind::Task | EntryKind::Inline | EntryKind::Lane => value["name"] = entry.name.as_str().into(),
        }
        let written = [
            ("when", entry.when.as_deref().map(Value::from)),
            ("timeout", entry.timeout.map(seconds)),
            ("retries", entry.retries.map(Value::from)),
            ("retry_delay", entry.retry_delay.map(seconds)),
        ];
        for (key, written) in written {
            if let Some(written) = written {
                value[key] = written;
            }
        }
        let reasons: Option<Vec<&String>> = entry.steps.iter().map(why).collect();
        let is_before = from.is_some_and(|from| number < from);
        if let Some(reason) = reasons.as_ref().and_then(|reasons| reasons.first()) {
            (value["skipped"], value["reason"]) =
                (true.into(), if is_before { BEFORE } else { reason.as_str() }.into());
        }
        value
    });
    let commands = (0..lane.steps.len()).map(|number| {
        let mut value = command(lane, number);
        value["left_out"] = json!(why(&number));
        value
    });
    let mut value = json!({
        "schema_version": LANE_SCHEMA_VERSION,
        "lane": lane.name,
        "description": lane.description,
        "total_steps": lane.entries.len(),
        "fail_fast": lane.fail_fast,
        "dry_run": true,
        "steps": steps.collect::<Vec<_>>(),
        "commands": commands.collect::<Vec<_>>(),
        "joints": joints(lane),
    });
    begun_with(&mut value, from);
    value
}

/// Describes the result of a run of the lane, for `lanes run --json`. `result` is the outcome as a
/// word. `from` is the number of the first entry that ran, from 0. The result lists only entries
/// whose turn came.
pub fn ended(lane: &Lane, outcome: &LaneOutcome, result: &str, exit_code: u8, from: Option<usize>) -> Value {
    let is_wound_down = lane.fail_fast || outcome.ruling == LaneRuling::Cancelled;
    let (mut steps, mut failures) = (Vec::new(), Vec::new());
    for (number, entry) in lane.entries.iter().enumerate() {
        let Some(turn) = turn(entry, &outcome.steps, is_wound_down) else { continue };
        if matches!(turn, LaneTurn::Failed(_)) {
            failures.push(&entry.name);
        }
        let is_before = from.is_some_and(|from| number < from);
        steps.push(step(number, entry, if is_before { LaneTurn::Skipped(BEFORE.into()) } else { turn }, outcome));
    }
    let mut value = json!({
        "schema_version": LANE_SCHEMA_VERSION,
        "lane": lane.name,
        "description": lane.description,
        "total_steps": lane.entries.len(),
        "success": exit_code == 0,
        "duration_ms": milliseconds(outcome.duration),
        "fail_fast": lane.fail_fast,
        "steps": steps,
        "failures": failures,
        "result": result,
        "exit_code": exit_code,
        "commands": outcome.steps,
    });
    begun_with(&mut value, from);
    value
}

/// Describes a lane without an outcome, by its result word, exit code and error, for
/// `lanes run --json`.
pub fn unbegun(lane: &str, result: &str, exit_code: u8, error: &str) -> Value {
    json!({
        "schema_version": LANE_SCHEMA_VERSION,
        "lane": lane,
        "description": "",
        "total_steps": 0,
        "success": false,
        "duration_ms": 0,
        "fail_fast": true,
        "steps": [],
        "failures": [],
        "result": result,
        "exit_code": exit_code,
        "commands": [],
        "error": error,
    })
}

fn begun_with(value: &mut Value, from: Option<usize>) {
    if let Some(from) = from {
        value["from_step"] = (from + 1).into();
    }
}

fn step(number: usize, entry: &StepEntry, turn: LaneTurn, outcome: &LaneOutcome) -> Value {
    let mut value =
        json!({ "step": number + 1, "name": entry.name, "success": null, "duration_ms": null, "error": null });
    match turn {
        LaneTurn::Passed => value["success"] = true.into(),
        LaneTurn::Failed(error) => (value["success"], value["error"]) = (false.into(), error.into()),
        LaneTurn::Skipped(why) => {
            (value["skipped"], value["reason"]) = (true.into(), why.into());
            return value;
        }
    }
    let spans = || entry.steps.iter().filter_map(|step| outcome.spans.get(*step).copied().flatten());
    let begin = spans().map(|span| span.begin).min().unwrap_or_default();
    let end = spans().map(|span| span.end).max().unwrap_or_default();
    value["duration_ms"] = milliseconds(end.saturating_sub(begin)).into();
    let tries = entry.steps.iter().map(|step| outcome.steps[*step].tries).max().unwrap_or(0);
    if tries > 1 {
        value["attempts"] = tries.into();
    }
    value
}

/// The outcome of an entry.
enum LaneTurn {
    Passed,
    Failed(String),
    Skipped(String),
}

/// Returns the outcome of an entry from the reports of its commands. `None` if the lane was wound
/// down before the entry's turn came.
fn turn(entry: &StepEntry, reports: &[StepReport], is_wound_down: bool) -> Option<LaneTurn> {
    let own: Vec<&StepReport> = entry.steps.iter().map(|step| &reports[*step]).collect();
    let all = || entry.needed.iter().map(|step| &reports[*step]).chain(own.iter().copied());
    let was_started = own.iter().any(|report| report.tries > 0);
    let first = |wanted: &[StepStatus]| all().find(|report| wanted.contains(&report.status));
    let is_left_out = own.iter().all(|report| report.status == StepStatus::Skipped);
    if let (true, Some(report)) = (is_left_out, own.first()) {
        return Some(LaneTurn::Skipped(report.note.clone()));
    }
    let broken = first(&[StepStatus::Failed, StepStatus::TimedOut, StepStatus::Errored]);
    let broken = broken.or_else(|| first(&[StepStatus::Cancelled, StepStatus::NotRun]));
    match broken {
        Some(_) if is_wound_down && !was_started => None,
        Some(report) => Some(LaneTurn::Failed(why(report))),
        None => Some(LaneTurn::Passed),
    }
}

fn why(report: &StepReport) -> String {
    let name = &report.step;
    let note = if report.note.is_empty() { String::new() } else { format!(": {}", report.note) };
    match (report.status, report.exit_code) {
        (StepStatus::Failed, Some(code)) => format!("`{name}` failed with exit code {code}"),
        (StepStatus::Failed, None) => format!("`{name}` failed{note}"),
        (StepStatus::TimedOut, _) => format!("`{name}` timed out{note}"),
        (StepStatus::Errored, _) => format!("`{name}` could not run{note}"),
        (StepStatus::Cancelled, _) => format!("`{name}` was stopped{note}"),
        (StepStatus::NotRun | StepStatus::Skipped, _) => format!("`{name}` was not run{note}"),
        (StepStatus::Passed | StepStatus::Flaky | StepStatus::AllowedFailure, _) => format!("`{name}`{note}"),
    }
}

/// Describes a step. `after` is null if the step waits for more than [`NAMED`] others; most of them
/// are then in the groups `joints`.
fn command(lane: &Lane, number: usize) -> Value {
    let step = &lane.steps[number];
    let after = lane.before(number);
    json!({
        "name": step.name,
        "run": step.run,
        "shell": step.shell,
        "dir": step.dir,
        "env": step.env,
        "timeout": step.timeout.map(seconds),
        "retries": step.retries,
        "retry_delay": seconds(step.retry_delay),
        "when": step.when,
        "changed": step.changed,
        "allow_failure": step.allow_failure,
        "junit": step.junit,
        "after": (after.len() <= NAMED).then(|| names(lane, &after)),
        "joints": step.joints,
        "needs": names(lane, &step.needs),
    })
}

/// Lists the groups of commands that others wait for together. Commands refer to them by number,
/// from 0.
fn joints(lane: &Lane) -> Vec<Value> {
    lane.joints.iter().map(|joint| json!({ "after": names(lane, &joint.steps), "joints": joint.joints })).collect()
}

fn names<'l>(lane: &'l Lane, numbers: &[usize]) -> Vec<&'l str> {
    numbers.iter().map(|number| lane.steps[*number].name.as_str()).collect()
}

/// Converts a time to seconds. A whole number of seconds is an integer, as in existing projects.
fn seconds(time: Duration) -> Value {
    if time.subsec_nanos() == 0 { time.as_secs().into() } else { time.as_secs_f64().into() }
}
