//! HTTP, from the socket to the handlers and back. All limits on connections and requests are in
//! this module.
//!
//! ```text
//! listener   sockets, connections, stopping       wire    a socket with a write timeout
//! finish     every answer: headers, problems, panics, metrics
//! guard      every request: host, authentication, origin, size
//! enter      sign-in for browsers                 locked  the page without a session
//! sse        event streams
//! openapi    the API document                     health, figures
//! ```

mod enter;
mod figures;
mod finish;
mod guard;
mod health;
mod listener;
mod locked;
mod openapi;
mod problem;
mod sse;
mod wire;

pub use listener::{ServerListener, serve};

pub(in crate::serve) use figures::ServerMetrics;
pub(in crate::serve) use openapi::ApiOperation;
pub(in crate::serve) use problem::HttpProblem;
pub(in crate::serve) use sse::stream;

use super::{AppState, api, page};
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use std::sync::Arc;

/// Returns the application with all routes and layers.
pub(in crate::serve) fn app(app_state: &Arc<AppState>) -> Router {
    routes()
        .fallback(async || HttpProblem::not_found("unknown path: see /openapi.json"))
        .layer(from_fn_with_state(Arc::clone(app_state), guard::guard))
        .layer(from_fn_with_state(Arc::clone(&app_state.figures), finish::finish))
        .with_state(Arc::clone(app_state))
}

fn routes() -> Router<Arc<AppState>> {
    Router::new()
        .route("/healthz", get(health::health))
        .route("/metrics", get(figures::metrics))
        .route("/openapi.json", get(openapi::document))
        .merge(enter::routes())
        .merge(api::routes())
        .merge(page::routes())
}

/// Returns the descriptions of all routes.
fn operations() -> Vec<ApiOperation> {
    let own = vec![
        ApiOperation::get("/healthz", "Check the health of the server: 503 if a part is broken")
            .answers::<health::ServerHealth>(200, "Healthy"),
        ApiOperation::get("/metrics", "Get metrics in the Prometheus text format").sends(200, "Metrics", "text/plain"),
        ApiOperation::get("/openapi.json", "Get this document").answers_any(200, "An OpenAPI 3.1 document"),
    ];
    [own, enter::operations(), api::operations(), page::operations()].into_iter().flatten().collect()
}
