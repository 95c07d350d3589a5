//! The event streams: the events of one run, and the news of all runs.

use super::super::AppState;
use super::super::engine::{CursorError, EventCursor, FollowMessage, Follower};
use super::super::http::{ApiOperation, HttpProblem, stream};
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream::{StreamExt, iter, unfold};
use serde::Deserialize;
use std::sync::Arc;

const MEDIA: &str = "text/event-stream";

/// Returns the routes of this file.
pub(in crate::serve) fn routes() -> Router<Arc<AppState>> {
    Router::new().route("/v1/runs/{id}/events", get(send_events)).route("/v1/events", get(news))
}

/// Returns the descriptions of the routes.
pub(in crate::serve) fn operations() -> Vec<ApiOperation> {
    vec![
        ApiOperation::get(
            "/v1/runs/{id}/events",
            "Stream the events of a run, from its start and as they happen, as lines of `fledge run --json`. \
             `Last-Event-ID` continues after an event; `event: end` is the last one. An event with `from` repeats in \
             full what was sent in pieces with numbers from that one on",
        )
        .query("after", "Like Last-Event-ID, for clients that cannot send the header")
        .sends(200, "Events", MEDIA)
        .nothing(204, "All events were read"),
        ApiOperation::get("/v1/events", "Stream news: what to fetch again").sends(200, "Events", MEDIA),
    ]
}

#[derive(Debug, Deserialize)]
struct After {
    after: Option<String>,
}

async fn send_events(
    State(app_state): State<Arc<AppState>>,
    Path(name): Path<String>,
    Query(After { after }): Query<After>,
    headers: HeaderMap,
) -> Result<Response, HttpProblem> {
    let run = app_state.engine.find(&name).await?;
    let last = headers.get("last-event-id").map(|id| id.to_str().unwrap_or("?").to_owned());
    let cursor = last.or(after).filter(|id| !id.is_empty()).map_or(Ok(EventCursor::default()), |id| id.parse());
    let cursor = cursor.map_err(|wrong: CursorError| HttpProblem::bad_request(wrong.to_string()))?;
    let Some(follower) = app_state.engine.follow(&run, cursor).await? else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let messages = unfold(Some(follower), next).flat_map(iter).map(event);
    Ok(stream(&app_state, messages))
}

/// Returns the next messages of a follower. An error ends the stream; the client reconnects.
async fn next(follower: Option<Follower>) -> Option<(Vec<FollowMessage>, Option<Follower>)> {
    let mut follower = follower?;
    match follower.next().await {
        Ok(Some(messages)) => Some((messages, Some(follower))),
        Ok(None) => None,
        Err(fault) => {
            tracing::error!("an event stream ended: {}", fault.error_line());
            None
        }
    }
}

fn event(message: FollowMessage) -> Event {
    match message {
        FollowMessage::Told(reported) => Event::default().id(reported.cursor.to_string()).data(&*reported.json),
        FollowMessage::End(cursor, data) => Event::default().id(cursor.to_string()).event("end").data(data.to_string()),
    }
}

async fn news(State(app_state): State<Arc<AppState>>) -> Response {
    let subscription = app_state.broadcaster.listen();
    let news = unfold(subscription, async |mut subscription| {
        let news = subscription.next_item().await?;
        let text = serde_json::to_string(&news).unwrap_or_default();
        Some((Event::default().data(text), subscription))
    });
    stream(&app_state, news)
}
