//! Event streams (server-sent events, HTML Living Standard 9.2). They are kept alive while no event
//! occurs, and end when the server stops.

use super::super::AppState;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt};
use std::convert::Infallible;
use std::time::Duration;

/// The time without an event after which a keep-alive is sent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Returns a stream as an answer. When the server stops, the stream ends with a comment, and the
/// client reconnects where it was.
pub(in crate::serve) fn stream(app_state: &AppState, events: impl Stream<Item = Event> + Send + 'static) -> Response {
    let stopping = app_state.stopping.clone().cancelled_owned();
    let last = futures_util::stream::iter([Event::default().comment("the server is stopping")]);
    let last = last.filter({
        let stopping = app_state.stopping.clone();
        move |_| std::future::ready(stopping.is_cancelled())
    });
    let all = events.take_until(stopping).chain(last).map(Ok::<_, Infallible>);
    Sse::new(all).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}
