//! `/v1/sync`: what runs of other machines tell.

use super::super::http::{Operation, Problem};
use super::super::{House, Topic, clock};
use crate::sync::{Parcel, Receipt, Refused, take};
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::json;
use std::sync::Arc;

/// What is answered here.
pub(in crate::serve) fn routes() -> Router<Arc<House>> {
    Router::new().route("/v1/sync", post(sync))
}

/// The same, described.
pub(in crate::serve) fn operations() -> Vec<Operation> {
    let about = "Tells of a run of another machine: a piece of its journal, held against its chain and kept whole or not at all. \
                 What came before changes nothing";
    vec![
        Operation::post("/v1/sync", about)
            .takes::<Parcel>()
            .answers::<Receipt>(200, "It is safe here, up to the record that is named")
            .refuses(400, "It is no parcel")
            .refuses(409, "It does not follow what is here (`send_from` names the first record that is wanted), or contradicts it")
            .refuses(422, "It does not fit together"),
    ]
}

async fn sync(State(house): State<Arc<House>>, body: Bytes) -> Result<Json<Receipt>, Problem> {
    let now = clock::now().as_millisecond();
    let took = house.stored(move |store| {
        let parcel: Parcel = match serde_json::from_slice(&body) {
            Ok(parcel) => parcel,
            Err(error) => return Ok(Err(Problem::bad_request(format!("the body is no parcel: {error}")))),
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
