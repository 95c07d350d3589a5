//! `/v1/monitors`: what is expected to happen, and the word that it did. A monitor with a program to run is made at the command line only:
//! whoever has the token may say what is expected, and not what runs here.

use super::super::House;
use super::super::clock::now;
use super::super::http::{Operation, Problem};
use crate::monitor::Status;
use crate::scheduler::{CheckIn, CheckInData, MonitorData, MonitorFault, NewMonitor, STRIP, Tidings, check_in};
use crate::store::MonitorWrite;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Check-ins of a list, at most.
const MOST: u32 = 1000;

/// What is answered here.
pub(in crate::serve) fn routes() -> Router<Arc<House>> {
    Router::new()
        .route("/v1/monitors", get(list).post(put))
        .route("/v1/monitors/{slug}", get(show).delete(remove))
        .route("/v1/monitors/{slug}/checkins", get(heard).post(hear))
}

/// The same, described.
pub(in crate::serve) fn operations() -> Vec<Operation> {
    let unknown = "There is no such monitor";
    vec![
        Operation::get("/v1/monitors", "All monitors").answers::<Monitors>(200, "Monitors, by name"),
        Operation::post("/v1/monitors", "Makes a monitor, or replaces the one of the same name")
            .takes::<NewMonitor>()
            .answers::<Made>(201, "It was made")
            .answers::<Made>(200, "It was replaced")
            .refuses(409, "It belongs to a scheduled task, whose file says what is expected")
            .refuses(422, "It cannot be as it is written"),
        Operation::get("/v1/monitors/{slug}", "One monitor").answers::<MonitorData>(200, "It").refuses(404, unknown),
        Operation::delete("/v1/monitors/{slug}", "Removes a monitor with all that was heard of it")
            .nothing(204, "It is gone")
            .refuses(404, unknown)
            .refuses(409, "It belongs to a scheduled task whose file is there"),
        Operation::get("/v1/monitors/{slug}/checkins", "What was heard of a monitor, the newest first")
            .query("limit", "At most so many; else 50")
            .answers::<CheckIns>(200, "Check-ins")
            .refuses(404, unknown),
        Operation::post("/v1/monitors/{slug}/checkins", "Says how it is: in the body, or in the query")
            .query("status", "`in_progress`, `ok` or `error`")
            .query("id", "Which run of it; what is said twice with the same id counts once")
            .query("duration_ms", "How long it took")
            .takes::<NewCheckIn>()
            .answers::<Word>(200, "How it is with the monitor now")
            .refuses(404, unknown)
            .refuses(422, "It cannot be said so"),
    ]
}

/// All monitors.
#[derive(Debug, Serialize, JsonSchema)]
struct Monitors {
    monitors: Vec<MonitorData>,
}

/// A monitor that was made.
#[derive(Debug, Serialize, JsonSchema)]
struct Made {
    #[serde(flatten)]
    monitor: MonitorData,
    /// The secret that was made for its webhook; it is not told again.
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook_secret: Option<String>,
}

/// What was heard.
#[derive(Debug, Serialize, JsonSchema)]
struct CheckIns {
    checkins: Vec<CheckInData>,
}

/// A check-in.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewCheckIn {
    /// `in_progress`, `ok` or `error`.
    status: Option<Status>,
    /// Which run of it.
    #[serde(default)]
    id: Option<String>,
    /// How long it took.
    #[serde(default)]
    duration_ms: Option<u64>,
}

/// What came of a check-in.
#[derive(Debug, Serialize, JsonSchema)]
struct Word {
    /// The monitor.
    slug: String,
    /// `healthy`, `late`, `missed`, `failing` or `timed_out`.
    health: &'static str,
    /// Whether it is another one than before.
    changed: bool,
}

#[derive(Debug, Deserialize)]
struct Limit {
    limit: Option<u32>,
}

async fn list(State(house): State<Arc<House>>) -> Result<Json<Monitors>, Problem> {
    let monitors = house.stored(|store| {
        let rows = store.monitors()?;
        rows.iter().map(|row| MonitorData::of(store, row, STRIP, now())).collect::<Result<Vec<_>, _>>()
    });
    Ok(Json(Monitors { monitors: monitors.await? }))
}

async fn put(State(house): State<Arc<House>>, body: Bytes) -> Result<(StatusCode, Json<Made>), Problem> {
    let new: NewMonitor = read(&body)?;
    let (row, webhook_secret) = new.row(now()).map_err(Problem::unprocessable)?;
    let slug = row.slug.clone();
    let put = house.stored(move |store| {
        let written = store.put_monitor(&row)?;
        let row = store.monitor(&row.slug)?.unwrap_or(row);
        Ok((written, MonitorData::of(store, &row, STRIP, now())?))
    });
    let (written, monitor) = put.await?;
    let status = match written {
        MonitorWrite::New => StatusCode::CREATED,
        MonitorWrite::Done | MonitorWrite::Unknown => StatusCode::OK,
        MonitorWrite::Foreign => return Err(of_a_task(&slug)),
    };
    Ok((status, Json(Made { monitor, webhook_secret })))
}

async fn show(State(house): State<Arc<House>>, Path(slug): Path<String>) -> Result<Json<MonitorData>, Problem> {
    let wanted = slug.clone();
    let found = house.stored(move |store| {
        let row = store.monitor(&wanted)?;
        row.map(|row| MonitorData::of(store, &row, STRIP, now())).transpose()
    });
    found.await?.map(Json).ok_or_else(|| unknown(&slug))
}

async fn remove(State(house): State<Arc<House>>, Path(slug): Path<String>) -> Result<StatusCode, Problem> {
    let wanted = slug.clone();
    match house.stored(move |store| store.remove_monitor(&wanted, None)).await? {
        MonitorWrite::New | MonitorWrite::Done => Ok(StatusCode::NO_CONTENT),
        MonitorWrite::Unknown => Err(unknown(&slug)),
        MonitorWrite::Foreign => Err(of_a_task(&slug)),
    }
}

async fn heard(
    State(house): State<Arc<House>>,
    Path(slug): Path<String>,
    Query(Limit { limit }): Query<Limit>,
) -> Result<Json<CheckIns>, Problem> {
    let (wanted, limit) = (slug.clone(), limit.unwrap_or(STRIP).min(MOST));
    let heard = house.stored(move |store| match store.monitor(&wanted)? {
        Some(_) => store.check_ins(&wanted, limit).map(Some),
        None => Ok(None),
    });
    let heard = heard.await?.ok_or_else(|| unknown(&slug))?;
    Ok(Json(CheckIns { checkins: heard.iter().map(CheckInData::of).collect() }))
}

async fn hear(
    State(house): State<Arc<House>>,
    Path(slug): Path<String>,
    Query(query): Query<NewCheckIn>,
    body: Bytes,
) -> Result<Json<Word>, Problem> {
    let new: NewCheckIn = if body.is_empty() { query } else { read(&body)? };
    let status =
        new.status.ok_or_else(|| Problem::unprocessable("`status` is missing: `in_progress`, `ok` or `error`"))?;
    let said = CheckIn { id: new.id, duration: new.duration_ms.map(Duration::from_millis), ..CheckIn::new(status) };
    let wanted = slug.clone();
    let heard = house.stored(move |store| match check_in(store, &wanted, &said, now()) {
        Err(MonitorFault::Store(error)) => Err(error),
        heard => Ok(heard),
    });
    let heard = heard.await?.map_err(|fault| match fault {
        MonitorFault::Unknown { .. } => unknown(&slug),
        MonitorFault::Status { .. } | MonitorFault::Id => Problem::unprocessable(fault.to_string()),
        MonitorFault::Slug(_) | MonitorFault::Schedule { .. } | MonitorFault::Store(_) => {
            Problem::internal(fault.to_string())
        }
    })?;
    let changed = heard.change.is_some();
    if let Some(change) = heard.change {
        house.tell(Tidings::Monitor(change));
    }
    Ok(Json(Word { slug, health: heard.health.word(), changed }))
}

fn read<'a, T: Deserialize<'a>>(body: &'a Bytes) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => Problem::unprocessable(error.to_string()),
        _ => Problem::bad_request(format!("the body is no JSON: {error}")),
    })
}

fn unknown(slug: &str) -> Problem {
    Problem::not_found(format!("there is no monitor `{slug}`"))
}

fn of_a_task(slug: &str) -> Problem {
    Problem::conflict(format!("the monitor `{slug}` belongs to a scheduled task: its file says what is expected"))
}
