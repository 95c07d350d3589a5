//! `/v1/runs/{id}/confirmations`: the open questions of runs, and the answers.

use super::super::AppState;
use super::super::engine::PendingQuestion;
use super::super::http::{ApiOperation, HttpProblem};
use crate::driver::Consent;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// The size limit of a reason for the model, in bytes.
const LONGEST_WHY: usize = 4096;

/// Returns the routes of this file.
pub(in crate::serve) fn routes() -> Router<Arc<AppState>> {
    Router::new()
        .route("/v1/runs/{id}/confirmations", get(list))
        .route("/v1/runs/{id}/confirmations/{confirmation}", post(answer))
}

/// Returns the descriptions of the routes.
pub(in crate::serve) fn operations() -> Vec<ApiOperation> {
    vec![
        ApiOperation::get("/v1/runs/{id}/confirmations", "List the tool calls of a run that wait for approval")
            .answers::<Confirmations>(200, "Open questions, oldest first"),
        ApiOperation::post(
            "/v1/runs/{id}/confirmations/{confirmation}",
            "Approve or deny a tool call: `confirmation` is the `id` of an open question",
        )
        .takes::<Answer>()
        .answers_any(200, "Answered")
        .refuses(409, "No longer open"),
    ]
}

/// The open questions of a run.
#[derive(Debug, Serialize, JsonSchema)]
struct Confirmations {
    /// The open questions, the oldest first.
    confirmations: Vec<PendingQuestion>,
}

/// The answer to a question.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Answer {
    /// The decision.
    answer: Word,
    /// The reason of a refusal, for the model.
    #[serde(default)]
    why: String,
}

/// A decision.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Word {
    /// The call may run.
    Yes,
    /// The call may run, and so may equal calls in the rest of this run.
    Always,
    /// The call may not run.
    No,
}

async fn list(
    State(app_state): State<Arc<AppState>>,
    Path(name): Path<String>,
) -> Result<Json<Confirmations>, HttpProblem> {
    let run = app_state.engine.find(&name).await?;
    Ok(Json(Confirmations { confirmations: app_state.engine.questions(&run) }))
}

async fn answer(
    State(app_state): State<Arc<AppState>>,
    Path((name, confirmation)): Path<(String, String)>,
    Json(Answer { answer, why }): Json<Answer>,
) -> Result<Json<Value>, HttpProblem> {
    if why.len() > LONGEST_WHY {
        return Err(HttpProblem::unprocessable(format!("`why` is too long: at most {LONGEST_WHY} bytes are allowed")));
    }
    let run = app_state.engine.find(&name).await?;
    let consent = match answer {
        Word::Yes => Consent::Yes,
        Word::Always => Consent::Always,
        Word::No => Consent::No(why),
    };
    match app_state.engine.answer(&run, &confirmation, consent) {
        true => Ok(Json(json!({ "id": confirmation, "run": run }))),
        false => Err(HttpProblem::conflict(format!("run {run} has no open question `{confirmation}`"))),
    }
}
