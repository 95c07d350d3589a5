//! `/v1/project` and `/v1/choices`: the served project, and the choices for a new run.

use super::super::AppState;
use super::super::engine::RunChoices;
use super::super::http::{ApiOperation, HttpProblem};
use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;

/// Returns the routes of this file.
pub(in crate::serve) fn routes() -> Router<Arc<AppState>> {
    Router::new().route("/v1/project", get(project)).route("/v1/choices", get(choices))
}

/// Returns the descriptions of the routes.
pub(in crate::serve) fn operations() -> Vec<ApiOperation> {
    vec![
        ApiOperation::get("/v1/project", "Get the served project").answers::<Project>(200, "The project"),
        ApiOperation::get("/v1/choices", "List models, lanes and tasks for a new run")
            .answers::<RunChoices>(200, "Choices"),
    ]
}

/// The served project.
#[derive(Debug, Serialize, JsonSchema)]
struct Project {
    /// The name of the project's folder.
    name: String,
    /// The folder.
    folder: String,
    /// The version of fledge.
    fledge: &'static str,
}

async fn project(State(app_state): State<Arc<AppState>>) -> Json<Project> {
    let folder = app_state.workspace.display().to_string();
    Json(Project { name: app_state.name(), folder, fledge: env!("CARGO_PKG_VERSION") })
}

async fn choices(State(app_state): State<Arc<AppState>>) -> Result<Json<RunChoices>, HttpProblem> {
    Ok(Json(app_state.engine.choices().await?))
}
