//! The health check of the server, for supervisors that restart it.

use super::super::AppState;
use super::super::clock::now;
use crate::report::runs::rfc3339;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// The time limit for an answer of the store.
const WITHIN: Duration = Duration::from_secs(3);
/// The longest time without a sign of the scheduler.
const UNSEEN: Duration = Duration::from_secs(5 * 60);

/// The health of the server.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::serve) struct ServerHealth {
    /// `ok` or `broken`.
    status: &'static str,
    /// `ok` if the store can be read, or the error.
    store: String,
    /// `ok` if the server can drive runs, or the error.
    engine: &'static str,
    /// `ok` if the scheduler works, or the time of its last sign.
    jobs: String,
    /// The served folder.
    workspace: String,
    /// The version of fledge.
    version: &'static str,
}

/// Returns the health, with status 503 if a part is broken.
pub(super) async fn health(State(app_state): State<Arc<AppState>>) -> (StatusCode, Json<ServerHealth>) {
    let newest = crate::store::RunListFilter { limit: 1, ..crate::store::RunListFilter::default() };
    let looked = tokio::time::timeout(WITHIN, app_state.stored(move |store| store.runs(&newest).map(drop))).await;
    let store = match looked {
        Ok(Ok(())) => "ok".to_owned(),
        Ok(Err(problem)) => problem.detail().to_owned(),
        Err(_) => format!("no answer within {} seconds", WITHIN.as_secs()),
    };
    let engine = if app_state.engine.is_alive() { "ok" } else { "the run thread has ended" };
    let jobs = jobs(&app_state);
    let workspace = app_state.workspace.display().to_string();
    let is_well = store == "ok" && engine == "ok" && jobs == "ok";
    let (status, code) = if is_well { ("ok", StatusCode::OK) } else { ("broken", StatusCode::SERVICE_UNAVAILABLE) };
    (code, Json(ServerHealth { status, store, engine, jobs, workspace, version: env!("CARGO_PKG_VERSION") }))
}

/// Returns the health of the scheduler, which gives a sign every minute. Before its first sign it
/// counts as healthy.
fn jobs(app_state: &AppState) -> String {
    let beat = app_state.scheduler().ok().and_then(|scheduler| scheduler.beat_at());
    match beat {
        Some(beat) if now().duration_since(beat).unsigned_abs() > UNSEEN => {
            format!("no sign of the scheduler since {}", rfc3339(beat.as_millisecond()))
        }
        Some(_) | None => "ok".into(),
    }
}
