//! `/v1/monitors`: expected events, and the check-ins that report them.
//!
//! A monitor that runs a program can be created only on the command line. The holder of the token
//! may define expectations, but not the programs that run on this machine.

use super::super::AppState;
use super::super::clock::now;
use super::super::http::{ApiOperation, HttpProblem};
use super::read;
use crate::monitor::ReportedStatus;
use crate::scheduler::{CheckIn, CheckInData, MonitorData, MonitorError, NewMonitor, STRIP, SchedulerUpdate, check_in};
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

/// The largest number of check-ins in a list.
const MOST: u32 = 1000;

/// Returns the routes of this file.
pub(in crate::serve) fn routes() -> Router<Arc<AppState>> {
    Router::new()
        .route("/v1/monitors", get(list).post(put))
        .route("/v1/monitors/{slug}", get(show).delete(remove))
        .route("/v1/monitors/{slug}/checkins", get(list_check_ins).post(add_check_in))
}

/// Returns the descriptions of the routes.
pub(in crate::serve) fn operations() -> Vec<ApiOperation> {
    let unknown = "Unknown monitor";
    vec![
        ApiOperation::get("/v1/monitors", "List monitors").answers::<Monitors>(200, "Monitors, by name"),
        ApiOperation::post("/v1/monitors", "Create a monitor, or replace the monitor of the same name")
            .takes::<NewMonitor>()
            .answers::<Made>(201, "Created")
            .answers::<Made>(200, "Replaced")
            .refuses(409, "The monitor belongs to a scheduled task: edit the task's file")
            .refuses(422, "Invalid monitor"),
        ApiOperation::get("/v1/monitors/{slug}", "Get a monitor")
            .answers::<MonitorData>(200, "Monitor")
            .refuses(404, unknown),
        ApiOperation::delete("/v1/monitors/{slug}", "Remove a monitor and its check-ins")
            .nothing(204, "Removed")
            .refuses(404, unknown)
            .refuses(409, "The monitor belongs to a scheduled task whose file exists"),
        ApiOperation::get("/v1/monitors/{slug}/checkins", "List the check-ins of a monitor, newest first")
            .query("limit", "The maximum number of entries; default 50")
            .answers::<CheckIns>(200, "Check-ins")
            .refuses(404, unknown),
        ApiOperation::post("/v1/monitors/{slug}/checkins", "Send a check-in, in the body or in the query")
            .query_of::<ReportedStatus>("status", "The status of the run")
            .query("id", "The id of the run; repeated check-ins with the same id count once")
            .query("duration_ms", "The duration of the run")
            .takes::<NewCheckIn>()
            .answers::<Word>(200, "The health of the monitor now")
            .refuses(404, unknown)
            .refuses(422, "Invalid check-in"),
    ]
}

/// All monitors.
#[derive(Debug, Serialize, JsonSchema)]
struct Monitors {
    monitors: Vec<MonitorData>,
}

/// A monitor that was created.
#[derive(Debug, Serialize, JsonSchema)]
struct Made {
    #[serde(flatten)]
    monitor: MonitorData,
    /// The generated secret of its webhook. Only this answer contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook_secret: Option<String>,
}

/// The check-ins of a monitor.
#[derive(Debug, Serialize, JsonSchema)]
struct CheckIns {
    checkins: Vec<CheckInData>,
}

/// A check-in.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewCheckIn {
    /// The status of the run.
    status: Option<ReportedStatus>,
    /// The run of the monitored job.
    #[serde(default)]
    id: Option<String>,
    /// The run time, in milliseconds.
    #[serde(default)]
    duration_ms: Option<u64>,
}

/// The effect of a check-in.
#[derive(Debug, Serialize, JsonSchema)]
struct Word {
    /// The monitor's name.
    slug: String,
    /// `healthy`, `late`, `missed`, `failing` or `timed_out`.
    health: &'static str,
    /// True if the health changed.
    changed: bool,
}

#[derive(Debug, Deserialize)]
struct Limit {
    limit: Option<u32>,
}

async fn list(State(app_state): State<Arc<AppState>>) -> Result<Json<Monitors>, HttpProblem> {
    let monitors = app_state.stored(|store| {
        let rows = store.monitors()?;
        rows.iter().map(|row| MonitorData::from_row(store, row, STRIP, now())).collect::<Result<Vec<_>, _>>()
    });
    Ok(Json(Monitors { monitors: monitors.await? }))
}

async fn put(State(app_state): State<Arc<AppState>>, body: Bytes) -> Result<(StatusCode, Json<Made>), HttpProblem> {
    let new: NewMonitor = read(&body)?;
    let (row, webhook_secret) = new.row(now()).map_err(HttpProblem::unprocessable)?;
    let slug = row.slug.clone();
    let put = app_state.stored(move |store| {
        let written = store.put_monitor(&row)?;
        let row = store.monitor(&row.slug)?.unwrap_or(row);
        Ok((written, MonitorData::from_row(store, &row, STRIP, now())?))
    });
    let (written, monitor) = put.await?;
    let status = match written {
        MonitorWrite::New => StatusCode::CREATED,
        MonitorWrite::Done | MonitorWrite::Unknown => StatusCode::OK,
        MonitorWrite::Foreign => return Err(of_a_task(&slug)),
    };
    Ok((status, Json(Made { monitor, webhook_secret })))
}

async fn show(
    State(app_state): State<Arc<AppState>>,
    Path(slug): Path<String>,
) -> Result<Json<MonitorData>, HttpProblem> {
    let wanted = slug.clone();
    let found = app_state.stored(move |store| {
        let row = store.monitor(&wanted)?;
        row.map(|row| MonitorData::from_row(store, &row, STRIP, now())).transpose()
    });
    found.await?.map(Json).ok_or_else(|| unknown(&slug))
}

async fn remove(State(app_state): State<Arc<AppState>>, Path(slug): Path<String>) -> Result<StatusCode, HttpProblem> {
    let wanted = slug.clone();
    match app_state.stored(move |store| store.remove_monitor(&wanted, None)).await? {
        MonitorWrite::New | MonitorWrite::Done => Ok(StatusCode::NO_CONTENT),
        MonitorWrite::Unknown => Err(unknown(&slug)),
        MonitorWrite::Foreign => Err(of_a_task(&slug)),
    }
}

async fn list_check_ins(
    State(app_state): State<Arc<AppState>>,
    Path(slug): Path<String>,
    Query(Limit { limit }): Query<Limit>,
) -> Result<Json<CheckIns>, HttpProblem> {
    let (wanted, limit) = (slug.clone(), limit.unwrap_or(STRIP).min(MOST));
    let list_check_ins = app_state.stored(move |store| match store.monitor(&wanted)? {
        Some(_) => store.check_ins(&wanted, limit).map(Some),
        None => Ok(None),
    });
    let list_check_ins = list_check_ins.await?.ok_or_else(|| unknown(&slug))?;
    Ok(Json(CheckIns { checkins: list_check_ins.iter().map(CheckInData::from_row).collect() }))
}

async fn add_check_in(
    State(app_state): State<Arc<AppState>>,
    Path(slug): Path<String>,
    Query(query): Query<NewCheckIn>,
    body: Bytes,
) -> Result<Json<Word>, HttpProblem> {
    let new: NewCheckIn = if body.is_empty() { query } else { read(&body)? };
    let status = new
        .status
        .ok_or_else(|| HttpProblem::unprocessable("missing `status`: expected `in_progress`, `ok` or `error`"))?;
    let message =
        CheckIn { id: new.id, duration: new.duration_ms.map(Duration::from_millis), ..CheckIn::new(status.into()) };
    let wanted = slug.clone();
    let list_check_ins = app_state.stored(move |store| match check_in(store, &wanted, &message, now()) {
        Err(MonitorError::Store(error)) => Err(error),
        list_check_ins => Ok(list_check_ins),
    });
    let list_check_ins = list_check_ins.await?.map_err(|fault| match fault {
        MonitorError::Unknown { .. } => unknown(&slug),
        MonitorError::Status { .. } | MonitorError::Id => HttpProblem::unprocessable(fault.to_string()),
        MonitorError::Slug(_) | MonitorError::Schedule { .. } | MonitorError::Store(_) => {
            HttpProblem::internal(fault.to_string())
        }
    })?;
    let changed = list_check_ins.change.is_some();
    if let Some(change) = list_check_ins.change {
        app_state.publish(SchedulerUpdate::Monitor(change));
    }
    Ok(Json(Word { slug, health: list_check_ins.health.word(), changed }))
}

fn unknown(slug: &str) -> HttpProblem {
    HttpProblem::not_found(format!("there is no monitor `{slug}`"))
}

fn of_a_task(slug: &str) -> HttpProblem {
    HttpProblem::conflict(format!("monitor `{slug}` belongs to a scheduled task: edit the task's file"))
}
