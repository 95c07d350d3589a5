//! Check-ins and periodic checks of monitors. [`crate::monitor`] decides their effect, within the
//! transaction that stores it.

use super::notifications::delivery;
use crate::monitor::{
    self, Health, Judgement, Monitor, MonitorHealth, MonitorHistory, Slug, SlugError, Source, Status, judge,
};
use crate::schedule::{Schedule, ScheduleError};
use crate::store::{CheckInRow, MonitorChange, MonitorRow, MonitorView, Store, StoreError};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

/// The period for which met due times are known. It is longer than any margin.
const BACK: SignedDuration = SignedDuration::from_hours(48);
/// The maximum number of bytes of a check-in id from a client.
const LONGEST_ID: usize = 64;

/// A monitor that cannot be read or checked, or a check-in that is refused.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum MonitorError {
    /// No monitor has this name.
    #[error("there is no monitor `{slug}`")]
    Unknown { slug: String },
    /// The stored schedule cannot be parsed.
    #[error("cannot read the monitor `{slug}`")]
    Schedule { slug: String, source: ScheduleError },
    /// The name is invalid.
    #[error(transparent)]
    Slug(#[from] SlugError),
    /// The id of the check-in is invalid.
    #[error("invalid check-in id: expected 1 to 64 letters, digits, `-`, `_`, `.` and `:`")]
    Id,
    /// Only fledge itself may report this status.
    #[error("only fledge itself reports `{status}`: send `in_progress`, `ok` or `error`")]
    Status { status: &'static str },
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A check-in from a client or a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckIn {
    /// The reported status.
    pub status: Status,
    /// The id of the run. Repeated check-ins with the same id and status count once.
    pub id: Option<String>,
    /// The duration of the run, if the sender knows it.
    pub duration: Option<Duration>,
    /// The sender.
    pub source: Source,
    /// The due time that it belongs to, if known.
    pub due: Option<Timestamp>,
}

impl CheckIn {
    /// Creates a check-in from a client.
    pub fn new(status: Status) -> Self {
        Self { status, id: None, duration: None, source: Source::Client, due: None }
    }
}

/// A change of a monitor's health.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub struct HealthChange {
    pub monitor: String,
    pub name: String,
    pub health: Health,
    pub was: Health,
    /// RFC 3339.
    pub since: String,
}

impl HealthChange {
    /// Describes the change of a monitor from `was` to `health` at `since_ms`.
    pub(super) fn from_row(row: &MonitorRow, was: Health, health: Health, since_ms: i64) -> Self {
        let since = format!("{:.3}", at(since_ms));
        Self { monitor: row.slug.clone(), name: row.name.clone(), health, was, since }
    }
}

/// The effect of a check-in or a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorUpdate {
    /// The health of the monitor now.
    pub health: Health,
    /// The change, if the health changed.
    pub change: Option<HealthChange>,
    /// The number of check-ins that fledge added or closed.
    pub added: usize,
}

/// Converts a row to a monitor.
///
/// # Errors
/// When the name or the schedule cannot be parsed.
pub fn monitor_of(row: &MonitorRow) -> Result<Monitor, MonitorError> {
    let zone = Some(row.zone.as_str());
    let schedule = Schedule::parse(&row.schedule, zone);
    let schedule = schedule.map_err(|source| MonitorError::Schedule { slug: row.slug.clone(), source })?;
    let (margin, max_runtime) = (length(row.margin_ms), row.max_runtime_ms.map(length));
    Ok(Monitor { slug: Slug::parse(&row.slug)?, schedule, margin, max_runtime })
}

/// Returns the row of a monitor without check-ins.
pub fn row_of(monitor: &Monitor, name: &str, owner: Option<&str>, now: Timestamp) -> MonitorRow {
    let healthy = Health::Healthy.word().to_owned();
    MonitorRow {
        slug: monitor.slug.to_string(),
        name: name.to_owned(),
        schedule: monitor.schedule.text().to_owned(),
        zone: monitor.schedule.zone().to_owned(),
        margin_ms: millis(monitor.margin),
        max_runtime_ms: monitor.max_runtime.map(millis),
        owner: owner.map(str::to_owned),
        on_change: String::new(),
        base: healthy.clone(),
        health: healthy,
        since_ms: now.as_millisecond(),
        weighed_ms: now.as_millisecond(),
        is_orphan: false,
    }
}

/// Records a check-in.
///
/// # Errors
/// When no such monitor exists, the check-in is invalid, or the store cannot be read or written.
pub fn check_in(store: &Store, slug: &str, said: &CheckIn, now: Timestamp) -> Result<MonitorUpdate, MonitorError> {
    if matches!(said.status, Status::Missed | Status::Timeout) {
        return Err(MonitorError::Status { status: said.status.word() });
    }
    let is_id = |id: &String| {
        (1..=LONGEST_ID).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':'))
    };
    if said.id.as_ref().is_some_and(|id| !is_id(id)) {
        return Err(MonitorError::Id);
    }
    weigh(store, slug, Some(said), now)
}

/// Checks a monitor for missed and overlong runs. It expects nothing if the file of the monitor's
/// task is gone.
///
/// # Errors
/// When no such monitor exists, or the store cannot be read or written.
pub fn check_monitor(store: &Store, slug: &str, now: Timestamp) -> Result<MonitorUpdate, MonitorError> {
    weigh(store, slug, None, now)
}

/// Returns the next expected check-in of a monitor; in the past if it is late.
///
/// # Errors
/// When the name or the schedule cannot be parsed.
pub fn next_expected(
    row: &MonitorRow,
    known: &BTreeSet<Timestamp>,
    now: Timestamp,
) -> Result<Option<Timestamp>, MonitorError> {
    let monitor = monitor_of(row)?;
    let seen = MonitorHistory { known: known.clone(), open: Vec::new() };
    Ok(judge(&monitor, standing(row, now), &seen, now).next)
}

fn weigh(store: &Store, slug: &str, said: Option<&CheckIn>, now: Timestamp) -> Result<MonitorUpdate, MonitorError> {
    let unknown = || MonitorError::Unknown { slug: slug.to_owned() };
    let back = now.checked_sub(BACK).unwrap_or(Timestamp::MIN).as_millisecond();
    let id = said.and_then(|said| said.id.as_deref());
    let decided = store.weigh_monitor(slug, back, id, |row, view| match monitor_of(row) {
        Ok(_) if said.is_none() && row.is_orphan => {
            (Ok(MonitorUpdate { health: health(&row.health), change: None, added: 0 }), Vec::new())
        }
        Ok(monitor) => {
            let (record_check_in, changes) = decide(&monitor, row, view, said, now);
            (Ok(record_check_in), changes)
        }
        Err(fault) => (Err(fault), Vec::new()),
    });
    decided?.ok_or_else(unknown)?
}

fn decide(
    monitor: &Monitor,
    row: &MonitorRow,
    view: &MonitorView,
    said: Option<&CheckIn>,
    now: Timestamp,
) -> (MonitorUpdate, Vec<MonitorChange>) {
    let mut seen = MonitorHistory {
        known: view.known.iter().map(|ms| at(*ms)).collect(),
        open: view.open.iter().map(|one| (one.no, at(one.at_ms))).collect(),
    };
    let Judgement { missed, timed_out, standing: mut stands, .. } = judge(monitor, standing(row, now), &seen, now);
    let mut changes = Vec::new();
    for one in &missed {
        seen.known.insert(one.due);
        let row = CheckInRow {
            due_ms: Some(one.due.as_millisecond()),
            count: one.count,
            ..of_system(Status::Missed, one.at)
        };
        changes.push(MonitorChange::Add(row));
    }
    for one in &timed_out {
        let took = seen.open.iter().find(|(no, _)| *no == one.no).map(|(_, since)| since_ms(*since, now));
        changes.push(MonitorChange::Close(CheckInRow {
            no: one.no,
            duration_ms: took,
            ..of_system(Status::Timeout, one.at)
        }));
    }
    seen.open.retain(|(no, _)| timed_out.iter().all(|one| one.no != *no));
    let added = changes.len();
    if let Some(said) = said
        && let Some(change) = record_check_in(monitor, view, &mut seen, said, now)
    {
        stands.base = stands.base.after(said.status);
        changes.push(change);
    }
    // Judge again with the new check-in: the monitor may no longer be late.
    let stands =
        judge(monitor, MonitorHealth { health: health(&row.health), since: at(row.since_ms), ..stands }, &seen, now)
            .standing;
    let was = health(&row.health);
    let since = stands.since.as_millisecond();
    let change = (stands.health != was).then(|| HealthChange::from_row(row, was, stands.health, since));
    let ms = |at: Timestamp| at.as_millisecond();
    let (base, now_is) = (stands.base.word().to_owned(), stands.health.word().to_owned());
    changes.push(MonitorChange::Stand(base, now_is, ms(stands.since), ms(stands.weighed)));
    if let Some(change) = change.as_ref().filter(|_| !row.on_change.is_empty()) {
        let id = delivery(change);
        let data = json!({ "type": "monitor", "delivery": id, "data": change }).to_string();
        changes.push(MonitorChange::Tell(id, data, ms(now)));
    }
    (MonitorUpdate { health: stands.health, change, added }, changes)
}

/// Returns the change that a check-in makes; `None` for a repetition.
fn record_check_in(
    monitor: &Monitor,
    view: &MonitorView,
    seen: &mut MonitorHistory,
    said: &CheckIn,
    now: Timestamp,
) -> Option<MonitorChange> {
    let is_open = |row: &CheckInRow| seen.open.iter().any(|(no, _)| *no == row.no);
    let ends = said.status != Status::InProgress;
    let called = match &said.id {
        Some(_) => view.called.as_ref(),
        None => view.open.iter().rev().find(|row| ends && is_open(row)),
    };
    let (status, source) = (said.status.word().to_owned(), said.source.word().to_owned());
    let duration_ms = said.duration.map(millis);
    match called {
        Some(row) if is_open(row) => {
            let took = duration_ms.unwrap_or_else(|| since_ms(at(row.at_ms), now));
            seen.open.retain(|(no, _)| !ends || *no != row.no);
            ends.then(|| {
                MonitorChange::Close(CheckInRow {
                    no: row.no,
                    status,
                    source,
                    duration_ms: Some(took),
                    ..CheckInRow::default()
                })
            })
        }
        Some(row) if row.status == status || !ends => None,
        // A client may correct `ok` to `error` or back. A run that exceeded its time keeps that
        // status, and the check-in is added as a new one.
        Some(row) if row.status == Status::Ok.word() || row.status == Status::Error.word() => {
            let duration_ms = duration_ms.or(row.duration_ms);
            Some(MonitorChange::Close(CheckInRow { no: row.no, status, source, duration_ms, ..CheckInRow::default() }))
        }
        Some(_) | None => {
            let due = said.due.filter(|due| !seen.known.contains(due));
            let due = due.or_else(|| monitor::expected(monitor, now, |due| seen.known.contains(&due)));
            seen.known.extend(due);
            Some(MonitorChange::Add(CheckInRow {
                no: 0,
                id: said.id.clone().unwrap_or_default(),
                status,
                source,
                at_ms: now.as_millisecond(),
                due_ms: due.map(|due| due.as_millisecond()),
                duration_ms,
                count: 1,
            }))
        }
    }
}

fn of_system(status: Status, at: Timestamp) -> CheckInRow {
    let (status, source) = (status.word().to_owned(), Source::System.word().to_owned());
    CheckInRow { status, source, at_ms: at.as_millisecond(), count: 1, ..CheckInRow::default() }
}

fn standing(row: &MonitorRow, now: Timestamp) -> MonitorHealth {
    let weighed = Timestamp::from_millisecond(row.weighed_ms).unwrap_or(now);
    MonitorHealth { base: health(&row.base), health: health(&row.health), since: at(row.since_ms), weighed }
}

fn health(word: &str) -> Health {
    Health::of(word).unwrap_or(Health::Healthy)
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn since_ms(since: Timestamp, now: Timestamp) -> i64 {
    now.as_millisecond().saturating_sub(since.as_millisecond()).max(0)
}

fn length(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

fn millis(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}
