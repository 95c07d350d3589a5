//! `/v1/jobs`: the scheduled jobs, their history, and starting one at once.

use super::super::AppState;
use super::super::http::{ApiOperation, HttpProblem};
use crate::scheduler::{JobData, JobRunData};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The default and the largest number of rows in a history.
const USUAL: u32 = 50;
const MOST: u32 = 1000;

/// Returns the routes of this file.
pub(in crate::serve) fn routes() -> Router<Arc<AppState>> {
    Router::new()
        .route("/v1/jobs", get(list))
        .route("/v1/jobs/{name}/history", get(history))
        .route("/v1/jobs/{name}/run", post(run))
}

/// Returns the descriptions of the routes.
pub(in crate::serve) fn operations() -> Vec<ApiOperation> {
    let unknown = "Unknown job";
    vec![
        ApiOperation::get("/v1/jobs", "List jobs: built-in jobs and scheduled tasks")
            .answers::<Jobs>(200, "Jobs, by name"),
        ApiOperation::get("/v1/jobs/{name}/history", "List the history of a job, newest first")
            .query("limit", "The maximum number of entries; default 50")
            .answers::<History>(200, "Due times and requested runs")
            .refuses(404, unknown),
        ApiOperation::post("/v1/jobs/{name}/run", "Run a job now")
            .answers::<Asked>(202, "The job begins at once")
            .refuses(404, unknown)
            .refuses(409, "The job is already running, or its task is invalid"),
    ]
}

/// All jobs.
#[derive(Debug, Serialize, JsonSchema)]
struct Jobs {
    jobs: Vec<JobData>,
}

/// The history of a job.
#[derive(Debug, Serialize, JsonSchema)]
struct History {
    runs: Vec<JobRunData>,
}

/// A job that will run.
#[derive(Debug, Serialize, JsonSchema)]
struct Asked {
    /// The job's name.
    name: String,
    /// Always `asked`.
    state: &'static str,
}

#[derive(Debug, Deserialize)]
struct Limit {
    limit: Option<u32>,
}

async fn list(State(app_state): State<Arc<AppState>>) -> Result<Json<Jobs>, HttpProblem> {
    let shown = app_state.scheduler()?.jobs();
    let jobs = app_state.stored(move |store| {
        let with_last = |one: crate::scheduler::ShownJob| {
            let last = store.job_history(&one.name, 1)?.into_iter().next();
            Ok(JobData::new(one, last.as_ref()))
        };
        shown.into_iter().map(with_last).collect::<Result<Vec<_>, _>>()
    });
    Ok(Json(Jobs { jobs: jobs.await? }))
}

async fn history(
    State(app_state): State<Arc<AppState>>,
    Path(name): Path<String>,
    Query(Limit { limit }): Query<Limit>,
) -> Result<Json<History>, HttpProblem> {
    let is_known = app_state.scheduler()?.jobs().iter().any(|job| job.name == name);
    let (named, limit) = (name.clone(), limit.unwrap_or(USUAL).min(MOST));
    let runs = app_state.stored(move |store| store.job_history(&named, limit)).await?;
    if runs.is_empty() && !is_known {
        return Err(unknown(&name));
    }
    Ok(Json(History { runs: runs.iter().map(JobRunData::from_run).collect() }))
}

async fn run(
    State(app_state): State<Arc<AppState>>,
    Path(name): Path<String>,
) -> Result<(StatusCode, Json<Asked>), HttpProblem> {
    let scheduler = app_state.scheduler()?;
    match scheduler.ask(&name) {
        Some(true) => Ok((StatusCode::ACCEPTED, Json(Asked { name, state: "asked" }))),
        Some(false) => {
            let fault = scheduler.jobs().into_iter().find(|job| job.name == name).and_then(|job| job.fault);
            let why = fault.map_or_else(|| "already running".to_owned(), |fault| format!("cannot be run: {fault}"));
            Err(HttpProblem::conflict(format!("job `{name}`: {why}")))
        }
        None => Err(unknown(&name)),
    }
}

fn unknown(name: &str) -> HttpProblem {
    HttpProblem::not_found(format!("there is no job `{name}`"))
}
