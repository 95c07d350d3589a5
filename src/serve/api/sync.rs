//! `/v1/sync`: the journals of runs on other machines.

use super::super::http::{ApiOperation, HttpProblem};
use super::super::{AppState, Topic, clock};
use crate::sync::{Refused, SyncBatch, SyncReceipt, take};
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::json;
use std::sync::Arc;

/// Returns the routes of this file.
pub(in crate::serve) fn routes() -> Router<Arc<AppState>> {
    Router::new().route("/v1/sync", post(sync))
}

/// Returns the descriptions of the routes.
pub(in crate::serve) fn operations() -> Vec<ApiOperation> {
    let about = "Receive a run of another machine: a part of its journal, checked against its chain and stored \
                 completely or not at all. Known records change nothing";
    vec![
        ApiOperation::post("/v1/sync", about)
            .takes::<SyncBatch>()
            .answers::<SyncReceipt>(200, "Stored, up to the named record")
            .refuses(400, "Not a parcel")
            .refuses_with::<u64>(
                409,
                "The parcel contradicts the stored records, or records from `send_from` on are missing",
                "send_from",
            )
            .refuses(422, "Inconsistent parcel"),
    ]
}

async fn sync(State(app_state): State<Arc<AppState>>, body: Bytes) -> Result<Json<SyncReceipt>, HttpProblem> {
    let now = clock::now().as_millisecond();
    let took = app_state.stored(move |store| {
        let parcel: SyncBatch = match serde_json::from_slice(&body) {
            Ok(parcel) => parcel,
            Err(error) => return Ok(Err(HttpProblem::bad_request(format!("the body is not a parcel: {error}")))),
        };
        let machine = parcel.machine.clone();
        Ok(match take(store, parcel, now) {
            Ok(receipt) => Ok((receipt, machine)),
            Err(Refused::Store(error)) => return Err(error),
            Err(refused) => Err(problem(&refused)),
        })
    });
    let (receipt, machine) = took.await??;
    app_state.broadcaster.ring(Topic::Run, json!({ "id": receipt.run, "machine": machine }));
    Ok(Json(receipt))
}

fn problem(refused: &Refused) -> HttpProblem {
    let detail = refused.to_string();
    match refused {
        Refused::Wrong(_) | Refused::Store(_) => HttpProblem::unprocessable(detail),
        Refused::Conflict(_) => HttpProblem::conflict(detail),
        Refused::Gap { send_from, .. } => HttpProblem::conflict(detail).with("send_from", *send_from),
    }
}
