//! HTTP: from the socket to the handlers and back. All that is bounded is bounded here, whatever is asked for.
//!
//! ```text
//! listener   sockets, connections, the stop       wire    a socket whose reader may not stand still
//! finish     every answer: headers, problems, panics, figures
//! guard      every request: where it goes, who asks, from where, how much
//! enter      the way in for browsers              locked  the page without a session
//! sse        streams
//! openapi    the document                         health, figures
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

pub use listener::{Door, serve};

pub(in crate::serve) use figures::Figures;
pub(in crate::serve) use openapi::Operation;
pub(in crate::serve) use problem::Problem;
pub(in crate::serve) use sse::stream;

use super::{House, api, page};
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use std::sync::Arc;

/// All that answers.
pub(in crate::serve) fn app(house: &Arc<House>) -> Router {
    routes()
        .fallback(async || Problem::not_found("there is nothing here: /openapi.json says what there is"))
        .layer(from_fn_with_state(Arc::clone(house), guard::guard))
        .layer(from_fn_with_state(Arc::clone(&house.figures), finish::finish))
        .with_state(Arc::clone(house))
}

fn routes() -> Router<Arc<House>> {
    Router::new()
        .route("/healthz", get(health::health))
        .route("/metrics", get(figures::metrics))
        .route("/openapi.json", get(openapi::document))
        .merge(enter::routes())
        .merge(api::routes())
        .merge(page::routes())
}

/// All that is described.
fn operations() -> Vec<Operation> {
    let own = vec![
        Operation::get("/healthz", "Whether the server works: 503 where it does not")
            .answers::<health::Health>(200, "It does"),
        Operation::get("/metrics", "Figures in Prometheus' text format").sends(200, "Figures", "text/plain"),
        Operation::get("/openapi.json", "This document").answers_any(200, "An OpenAPI 3.1 document"),
    ];
    [own, enter::operations(), api::operations(), page::operations()].into_iter().flatten().collect()
}
