//! The HTTP API. Each file has the routes of one resource and their descriptions.

mod artifacts;
mod confirmations;
mod events;
mod jobs;
mod monitors;
mod new_limits;
mod new_run;
mod project;
mod runs;
mod sync;

use super::AppState;
use super::http::{ApiOperation, HttpProblem};
use axum::Router;
use axum::body::Bytes;
use serde::Deserialize;
use std::sync::Arc;

/// Returns the routes of the API.
pub(in crate::serve) fn routes() -> Router<Arc<AppState>> {
    let all = [
        runs::routes,
        events::routes,
        confirmations::routes,
        artifacts::routes,
        jobs::routes,
        monitors::routes,
        project::routes,
        sync::routes,
    ];
    all.into_iter().fold(Router::new(), |router, routes| router.merge(routes()))
}

/// Returns the descriptions of the routes.
pub(in crate::serve) fn operations() -> Vec<ApiOperation> {
    let all = [
        runs::operations,
        events::operations,
        confirmations::operations,
        artifacts::operations,
        jobs::operations,
        monitors::operations,
        project::operations,
        sync::operations,
    ];
    all.into_iter().flat_map(|operations| operations()).collect()
}

/// Reads the body of a request.
fn read<'a, T: Deserialize<'a>>(body: &'a Bytes) -> Result<T, HttpProblem> {
    serde_json::from_slice(body).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => HttpProblem::unprocessable(error.to_string()),
        _ => HttpProblem::bad_request(format!("the body is not JSON: {error}")),
    })
}
