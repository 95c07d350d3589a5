//! `/v1/runs`: submitting, listing, showing and cancelling runs.

use super::super::AppState;
use super::super::engine::{
    AcceptedRun, CancelOutcome, EngineError, RejectedResume, RejectedRun, RunFilter, RunListing, TaskFlaw,
};
use super::super::http::{ApiOperation, HttpProblem};
use super::artifacts;
use super::new_limits::{NewLimitsBody, of_field};
use super::new_run::NewRun;
use super::read;
use crate::id::RunId;
use crate::limits::LimitName;
use crate::store::StoreError;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The default and the largest number of runs on one page of the list.
const USUAL: u32 = 50;
const MOST: u32 = 500;

/// Returns the routes of this file.
pub(in crate::serve) fn routes() -> Router<Arc<AppState>> {
    Router::new()
        .route("/v1/runs", get(list).post(submit))
        .route("/v1/runs/{id}", get(show))
        .route("/v1/runs/{id}/cancel", post(cancel))
        .route("/v1/runs/{id}/resume", post(resume))
}

/// Returns the descriptions of the routes.
pub(in crate::serve) fn operations() -> Vec<ApiOperation> {
    vec![
        ApiOperation::get("/v1/runs", "List runs, newest first, including queued runs")
            .query("limit", "The maximum number of runs: 1 to 500, default 50")
            .query("before", "Only older runs: the value of `next`, or the id of a run")
            .query("state", "queued, running, interrupted, lost or ended")
            .query("outcome", "verified or failed")
            .query("q", "Only runs with each of these words in their title, task, model, id, key, reason, branch or starter")
            .answers_any(200, "`runs`, and `next` if there are more"),
        ApiOperation::post(
            "/v1/runs",
            "Queue a task: it is stored before the answer, and becomes a run when a slot is free",
        )
        .takes::<NewRun>()
        .answers_any(201, "The queued run; `Location` is its path")
        .answers_any(200, "The earlier run with this key")
        .refuses(404, "The run in `again` or `after` does not exist")
        .refuses(409, "The key belongs to a run with another task")
        .refuses_with::<Vec<TaskFlaw>>(
            422,
            "The task is invalid: `errors` names each place, and the `field` of the request",
            "errors",
        ),
        ApiOperation::get("/v1/runs/{id}", "Get a run with its story so far").answers_any(200, "The run"),
        ApiOperation::post("/v1/runs/{id}/cancel", "Cancel a run; repeated requests have no further effect")
            .answers_any(200, "The run has ended")
            .answers_any(202, "The run was notified and ends soon")
            .refuses(409, "Another process drives the run, or no process does"),
        ApiOperation::post(
            "/v1/runs/{id}/resume",
            "Resume a run that was interrupted, ended for now, or reached a limit that is now higher; the body is optional",
        )
        .takes::<NewLimitsBody>()
        .answers_any(202, "The run waits for a slot and then continues")
        .refuses(409, "The run has not ended, has ended for good, or belongs to another process or machine")
        .refuses_with::<Vec<TaskFlaw>>(
            422,
            "A limit is invalid, below what the run has used, or still ends the run: `errors` names it as `field`",
            "errors",
        ),
    ]
}

#[derive(Debug, Deserialize)]
struct ListQuery {
    limit: Option<u32>,
    before: Option<String>,
    state: Option<String>,
    outcome: Option<String>,
    q: Option<String>,
}

impl ListQuery {
    fn listing(self) -> Result<Option<RunListing>, HttpProblem> {
        let limit = self.limit.unwrap_or(USUAL);
        if !(1..=MOST).contains(&limit) {
            return Err(HttpProblem::bad_request(format!("invalid `limit`: expected 1 to {MOST}")));
        }
        let (before, text) = (self.before, self.q.filter(|text| !text.is_empty()));
        let listing = |which| Ok(Some(RunListing { limit, before, which, text }));
        match (self.state.as_deref().unwrap_or(""), self.outcome.as_deref().unwrap_or("")) {
            ("", "") => listing(None),
            ("queued", "") => listing(Some(RunFilter::Queued)),
            ("running", "") => listing(Some(RunFilter::Running)),
            ("interrupted", "") => listing(Some(RunFilter::Interrupted)),
            ("lost", "") => listing(Some(RunFilter::Lost)),
            ("ended", "") => listing(Some(RunFilter::Ended)),
            ("" | "ended", "verified") => listing(Some(RunFilter::Verified)),
            ("" | "ended", "failed") => listing(Some(RunFilter::Failed)),
            ("queued" | "running" | "interrupted" | "lost", "verified" | "failed") => Ok(None), // these states have no outcome yet
            (_, "" | "verified" | "failed") => {
                Err(HttpProblem::bad_request("invalid `state`: expected queued, running, interrupted, lost or ended"))
            }
            _ => Err(HttpProblem::bad_request("invalid `outcome`: expected verified or failed")),
        }
    }
}

async fn list(
    State(app_state): State<Arc<AppState>>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Value>, HttpProblem> {
    let Some(listing) = query.listing()? else { return Ok(Json(json!({ "runs": [], "next": null }))) };
    let page = app_state.engine.list(&listing).await?;
    Ok(Json(json!({ "runs": page.runs, "next": page.next })))
}

async fn submit(State(app_state): State<Arc<AppState>>, Json(new): Json<NewRun>) -> Result<Response, HttpProblem> {
    let again = earlier(&app_state, new.again.as_deref()).await?;
    let after = earlier(&app_state, new.after.as_deref()).await?;
    let AcceptedRun { run, is_new } = app_state.engine.accept(new.asked(again, after)?).await?;
    let mut row = app_state.engine.row(&run).await?;
    if is_new {
        // The answer shows the state at acceptance, even if the run has already progressed.
        (row["state"], row["outcome"], row["doing"]) = (json!("queued"), Value::Null, Value::Null);
    }
    let place: [(HeaderName, String); 1] = [(header::LOCATION, format!("/v1/runs/{run}"))];
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, place, Json(row)).into_response())
}

/// Finds the run that a request names.
async fn earlier(app_state: &AppState, name: Option<&str>) -> Result<Option<RunId>, HttpProblem> {
    match name {
        Some(name) => Ok(Some(app_state.engine.find(name).await?)),
        None => Ok(None),
    }
}

async fn show(State(app_state): State<Arc<AppState>>, Path(name): Path<String>) -> Result<Json<Value>, HttpProblem> {
    let run = app_state.engine.find(&name).await?;
    let mut whole = app_state.engine.whole(&run).await?;
    whole["confirmations"] = json!(app_state.engine.questions(&run));
    whole["artifacts"] = json!(artifacts::all(&app_state, &run).await?);
    Ok(Json(whole))
}

async fn cancel(State(app_state): State<Arc<AppState>>, Path(name): Path<String>) -> Result<Response, HttpProblem> {
    let run: RunId = app_state.engine.find(&name).await?;
    let says = |status: StatusCode, state: &str| (status, Json(json!({ "id": run, "state": state }))).into_response();
    match app_state.engine.cancel(&run).await? {
        CancelOutcome::Never | CancelOutcome::Over => Ok(says(StatusCode::OK, "ended")),
        CancelOutcome::Told => Ok(says(StatusCode::ACCEPTED, "running")),
        CancelOutcome::Foreign(Some(holder)) => {
            Err(HttpProblem::conflict(format!("run {run} is driven by {holder}, not by this server")))
        }
        CancelOutcome::Foreign(None) => Err(HttpProblem::conflict(format!(
            "run {run} was interrupted and does not belong to this server: use `fledge runs resume`"
        ))),
        CancelOutcome::Unknown => Err(HttpProblem::not_found(format!("there is no run {run}"))),
    }
}

async fn resume(
    State(app_state): State<Arc<AppState>>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Response, HttpProblem> {
    let limits = match body.is_empty() {
        true => NewLimitsBody::default(),
        false => read(&body)?,
    };
    let run = app_state.engine.find(&name).await?;
    app_state.engine.resume(&run, limits.limits()?).await?;
    let mut row = app_state.engine.row(&run).await?;
    // The answer shows the state at acceptance, even if the run has already progressed.
    (row["state"], row["outcome"], row["doing"]) = (json!("queued"), Value::Null, Value::Null);
    Ok((StatusCode::ACCEPTED, Json(row)).into_response())
}

impl From<RejectedResume> for HttpProblem {
    fn from(not: RejectedResume) -> Self {
        match not {
            RejectedResume::Limit(limit) => of_field(limit.limit.key(), limit.message(LimitName::key)),
            RejectedResume::Stopping => Self::unavailable(not.to_string()),
            RejectedResume::Fault(fault) => fault.into(),
            RejectedResume::Open { .. }
            | RejectedResume::Driven { .. }
            | RejectedResume::Over(_)
            | RejectedResume::Refused(_) => Self::conflict(not.to_string()),
        }
    }
}

impl From<EngineError> for HttpProblem {
    fn from(fault: EngineError) -> Self {
        match fault {
            EngineError::Store(error) => error.into(),
            EngineError::Name(fault) => Self::not_found(fault.to_string()),
            fault => Self::internal(fault.error_line()),
        }
    }
}

impl From<RejectedRun> for HttpProblem {
    fn from(not: RejectedRun) -> Self {
        let detail = not.to_string();
        match not {
            RejectedRun::Unfit(unfit) => Self::unprocessable(detail).with("errors", json!(unfit.flaws)),
            RejectedRun::TooLarge { .. } => Self::new(StatusCode::PAYLOAD_TOO_LARGE, detail),
            RejectedRun::KeyTaken { .. } => Self::conflict(detail),
            RejectedRun::Stopping => Self::unavailable(detail),
            RejectedRun::Fault(EngineError::Store(StoreError::KeyTaken { .. })) => Self::conflict(detail),
            RejectedRun::Fault(fault) => fault.into(),
        }
    }
}
