//! What can be asked for: each file has the routes of one thing, and describes them.

mod artifacts;
mod confirmations;
mod events;
mod jobs;
mod monitors;
mod new_run;
mod project;
mod runs;
mod sync;

use super::House;
use super::http::Operation;
use axum::Router;
use std::sync::Arc;

/// All of it.
pub(in crate::serve) fn routes() -> Router<Arc<House>> {
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

/// The same, described.
pub(in crate::serve) fn operations() -> Vec<Operation> {
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
