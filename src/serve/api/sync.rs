//! `/v1/sync`: the journals of runs on other machines.

use super::super::http::{Operation, Problem};
use super::super::{House, Topic, clock};
use crate::sync::{Parcel, Receipt, Refused, take};
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::json;
use std::sync::Arc;

/// Returns the routes of this file.
pub(in crate::serve) fn routes() -> Router<Arc<House>> {
    Router::new().route("/v1/sync", post(sync))
}

/// Returns the descriptions of the routes.
pub(in crate::serve) fn operations() -> Vec<Operation> {
    let about = "Receive a run of another machine: a part of its journal, checked against its chain and stored \
                 completely or not at all. Known records change nothing";
    vec![
        Operation::post("/v1/sync", about)
            .takes::<Parcel>()
            .answers::<Receipt>(200, "Stored, up to the named record")
            .refuses(400, "Not a parcel")
            .refuses(409, "The parcel contradicts the stored records, or records from `send_from` on are missing")
            .refuses(422, "Inconsistent parcel"),
    ]
}

async fn sync(State(house): State<Arc<House>>, body: Bytes) -> Result<Json<Receipt>, Problem> {
    let now = clock::now().as_millisecond();
    let took = house.stored(move |store| {
        let parcel: Parcel = match serde_json::from_slice(&body) {
            Ok(parcel) => parcel,
            Err(error) => return Ok(Err(Problem::bad_request(format!("the body is not a parcel: {error}")))),
        };
        let machine = parcel.machine.clone();
        Ok(match take(store, parcel, now) {
            Ok(receipt) => Ok((receipt, machine)),
            Err(Refused::Store(error)) => return Err(error),
            Err(refused) => Err(problem(&refused)),
        })
    });
    let (receipt, machine) = took.await??;
    house.bell.ring(Topic::Run, json!({ "id": receipt.run, "machine": machine }));
    Ok(Json(receipt))
}

fn problem(refused: &Refused) -> Problem {
    let detail = refused.to_string();
    match refused {
        Refused::Wrong(_) | Refused::Store(_) => Problem::unprocessable(detail),
        Refused::Conflict(_) => Problem::conflict(detail),
        Refused::Gap { send_from, .. } => Problem::conflict(detail).with("send_from", *send_from),
    }
}
