//! `/v1/project`: what is served, and what can be chosen for a new run.

use super::super::House;
use super::super::engine::Choices;
use super::super::http::{Operation, Problem};
use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;

/// The endpoints about the project.
pub(in crate::serve) fn routes() -> Router<Arc<House>> {
    Router::new().route("/v1/project", get(project)).route("/v1/choices", get(choices))
}

/// Their descriptions.
pub(in crate::serve) fn operations() -> Vec<Operation> {
    vec![
        Operation::get("/v1/project", "The project that is served").answers::<Project>(200, "The project"),
        Operation::get("/v1/choices", "Models, lanes and tasks that can be chosen for a new run")
            .answers::<Choices>(200, "The choices"),
    ]
}

/// The project that is served.
#[derive(Debug, Serialize, JsonSchema)]
struct Project {
    /// The name of its folder.
    name: String,
    /// The folder.
    folder: String,
    /// The version of fledge.
    fledge: &'static str,
}

async fn project(State(house): State<Arc<House>>) -> Json<Project> {
    let folder = house.workspace.display().to_string();
    Json(Project { name: house.name(), folder, fledge: env!("CARGO_PKG_VERSION") })
}

async fn choices(State(house): State<Arc<House>>) -> Result<Json<Choices>, Problem> {
    Ok(Json(house.engine.choices().await?))
}
