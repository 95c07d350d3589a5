//! `/v1/runs/{id}/confirmations`: what runs ask, and the answers.

use super::super::House;
use super::super::engine::Pending;
use super::super::http::{Operation, Problem};
use crate::driver::Consent;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// Bytes of a reason that the model is told.
const LONGEST_WHY: usize = 4096;

/// What is answered here.
pub(in crate::serve) fn routes() -> Router<Arc<House>> {
    Router::new()
        .route("/v1/runs/{id}/confirmations", get(list))
        .route("/v1/runs/{id}/confirmations/{confirmation}", post(answer))
}

/// The same, described.
pub(in crate::serve) fn operations() -> Vec<Operation> {
    vec![
        Operation::get("/v1/runs/{id}/confirmations", "The calls of a run that wait for somebody's yes")
            .answers::<Confirmations>(200, "They, the oldest first"),
        Operation::post(
            "/v1/runs/{id}/confirmations/{confirmation}",
            "Answers whether a call may run: `confirmation` is the `id` of one that is open",
        )
        .takes::<Answer>()
        .answers_any(200, "It was answered")
        .refuses(409, "It is not open any more"),
    ]
}

/// The questions of a run.
#[derive(Debug, Serialize, JsonSchema)]
struct Confirmations {
    /// Those that are open, the oldest first.
    confirmations: Vec<Pending>,
}

/// An answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Answer {
    /// What is said.
    answer: Word,
    /// Why not, for the model.
    #[serde(default)]
    why: String,
}

/// What can be said.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Word {
    /// It may run.
    Yes,
    /// It may, and so may the same from now on, in this run.
    Always,
    /// It may not.
    No,
}

async fn list(State(house): State<Arc<House>>, Path(name): Path<String>) -> Result<Json<Confirmations>, Problem> {
    let run = house.engine.find(&name).await?;
    Ok(Json(Confirmations { confirmations: house.engine.questions(&run) }))
}

async fn answer(
    State(house): State<Arc<House>>,
    Path((name, confirmation)): Path<(String, String)>,
    Json(Answer { answer, why }): Json<Answer>,
) -> Result<Json<Value>, Problem> {
    if why.len() > LONGEST_WHY {
        return Err(Problem::unprocessable(format!("`why` has at most {LONGEST_WHY} bytes")));
    }
    let run = house.engine.find(&name).await?;
    let consent = match answer {
        Word::Yes => Consent::Yes,
        Word::Always => Consent::Always,
        Word::No => Consent::No(why),
    };
    match house.engine.answer(&run, &confirmation, consent) {
        true => Ok(Json(json!({ "id": confirmation, "run": run }))),
        false => Err(Problem::conflict(format!("run {run} does not ask `{confirmation}`, or not any more"))),
    }
}
