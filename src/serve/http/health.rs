//! Whether the server works, for whoever restarts it when it does not.

use super::super::House;
use super::super::clock::now;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// How long what is kept may take to answer.
const WITHIN: Duration = Duration::from_secs(3);
/// How long who tends jobs may not be seen.
const UNSEEN: Duration = Duration::from_secs(5 * 60);

/// How it is with the server.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::serve) struct Health {
    /// `ok`, or `broken`.
    status: &'static str,
    /// What is kept can be read: `ok`, or why not.
    store: String,
    /// Runs are driven: `ok`, or why not.
    engine: &'static str,
    /// Jobs are tended: `ok`, or since when nobody was seen to do so.
    jobs: String,
    /// The folder that is served.
    workspace: String,
    /// The version of fledge.
    version: &'static str,
}

/// Says it: with 503 where something is broken.
pub(super) async fn health(State(house): State<Arc<House>>) -> (StatusCode, Json<Health>) {
    let newest = crate::store::Filter { limit: 1, ..crate::store::Filter::default() };
    let looked = tokio::time::timeout(WITHIN, house.stored(move |store| store.runs(&newest).map(drop))).await;
    let store = match looked {
        Ok(Ok(())) => "ok".to_owned(),
        Ok(Err(problem)) => problem.detail().to_owned(),
        Err(_) => format!("it has not answered within {} seconds", WITHIN.as_secs()),
    };
    let engine = if house.engine.is_alive() { "ok" } else { "the thread of runs is over" };
    let jobs = jobs(&house);
    let workspace = house.workspace.display().to_string();
    let is_well = store == "ok" && engine == "ok" && jobs == "ok";
    let (status, code) = if is_well { ("ok", StatusCode::OK) } else { ("broken", StatusCode::SERVICE_UNAVAILABLE) };
    (code, Json(Health { status, store, engine, jobs, workspace, version: env!("CARGO_PKG_VERSION") }))
}

/// How it is with who tends jobs, who is seen every minute. Just after the start nobody was yet.
fn jobs(house: &House) -> String {
    let beat = house.scheduler().ok().and_then(|scheduler| scheduler.beat_at());
    match beat {
        Some(beat) if now().duration_since(beat).unsigned_abs() > UNSEEN => {
            format!("nobody was seen since {beat:.0}")
        }
        Some(_) | None => "ok".into(),
    }
}
