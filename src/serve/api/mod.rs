//! The HTTP API. Each file has the routes of one resource and their descriptions.

mod artifacts;
mod confirmations;
mod events;
mod jobs;
mod monitors;
mod new_run;
mod project;
mod runs;
mod sync;

use super::AppState;
use super::http::ApiOperation;
use axum::Router;
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
