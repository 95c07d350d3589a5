//! `/v1/jobs`: what comes again, what became of it, and having it run now.

use super::super::House;
use super::super::http::{Operation, Problem};
use crate::scheduler::{JobData, JobRunData};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Rows of a history, where nothing is said, and at most.
const USUAL: u32 = 50;
const MOST: u32 = 1000;

/// What is answered here.
pub(in crate::serve) fn routes() -> Router<Arc<House>> {
    Router::new()
        .route("/v1/jobs", get(list))
        .route("/v1/jobs/{name}/history", get(history))
        .route("/v1/jobs/{name}/run", post(run))
}

/// The same, described.
pub(in crate::serve) fn operations() -> Vec<Operation> {
    let unknown = "There is no such job";
    vec![
        Operation::get("/v1/jobs", "All jobs: fledge's own, and tasks that have a schedule")
            .answers::<Jobs>(200, "Jobs, by name"),
        Operation::get("/v1/jobs/{name}/history", "What became of a job, the newest first")
            .query("limit", "At most so many; else 50")
            .answers::<History>(200, "Times that it was due, or was asked for")
            .refuses(404, unknown),
        Operation::post("/v1/jobs/{name}/run", "Has a job run now")
            .answers::<Asked>(202, "It will begin at once")
            .refuses(404, unknown)
            .refuses(409, "It runs already, or cannot be run as it is written"),
    ]
}

/// All jobs.
#[derive(Debug, Serialize, JsonSchema)]
struct Jobs {
    jobs: Vec<JobData>,
}

/// What became of one.
#[derive(Debug, Serialize, JsonSchema)]
struct History {
    runs: Vec<JobRunData>,
}

/// One that will run.
#[derive(Debug, Serialize, JsonSchema)]
struct Asked {
    /// The job.
    name: String,
    /// `asked`.
    state: &'static str,
}

#[derive(Debug, Deserialize)]
struct Limit {
    limit: Option<u32>,
}

async fn list(State(house): State<Arc<House>>) -> Result<Json<Jobs>, Problem> {
    let shown = house.scheduler()?.jobs();
    let jobs = house.stored(move |store| {
        let with_last = |one: crate::scheduler::Shown| {
            let last = store.job_history(&one.name, 1)?.into_iter().next();
            Ok(JobData::new(one, last.as_ref()))
        };
        shown.into_iter().map(with_last).collect::<Result<Vec<_>, _>>()
    });
    Ok(Json(Jobs { jobs: jobs.await? }))
}

async fn history(
    State(house): State<Arc<House>>,
    Path(name): Path<String>,
    Query(Limit { limit }): Query<Limit>,
) -> Result<Json<History>, Problem> {
    let is_known = house.scheduler()?.jobs().iter().any(|job| job.name == name);
    let (named, limit) = (name.clone(), limit.unwrap_or(USUAL).min(MOST));
    let runs = house.stored(move |store| store.job_history(&named, limit)).await?;
    if runs.is_empty() && !is_known {
        return Err(unknown(&name));
    }
    Ok(Json(History { runs: runs.iter().map(JobRunData::of).collect() }))
}

async fn run(State(house): State<Arc<House>>, Path(name): Path<String>) -> Result<(StatusCode, Json<Asked>), Problem> {
    let scheduler = house.scheduler()?;
    match scheduler.ask(&name) {
        Some(true) => Ok((StatusCode::ACCEPTED, Json(Asked { name, state: "asked" }))),
        Some(false) => {
            let fault = scheduler.jobs().into_iter().find(|job| job.name == name).and_then(|job| job.fault);
            let why = fault.map_or_else(|| "it runs already".to_owned(), |fault| format!("it cannot be run: {fault}"));
            Err(Problem::conflict(format!("the job `{name}`: {why}")))
        }
        None => Err(unknown(&name)),
    }
}

fn unknown(name: &str) -> Problem {
    Problem::not_found(format!("there is no job `{name}`"))
}
