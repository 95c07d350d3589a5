//! `/v1/monitors`.

use super::super::House;
use super::super::http::Operation;
use axum::Router;
use std::sync::Arc;

/// What is answered here.
pub(in crate::serve) fn routes() -> Router<Arc<House>> {
    Router::new()
}

/// The same, described.
pub(in crate::serve) fn operations() -> Vec<Operation> {
    Vec::new()
}
