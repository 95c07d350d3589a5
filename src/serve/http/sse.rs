//! Streams of events (server-sent events, HTML Living Standard 9.2): kept alive while nothing happens, ended when the server stops.

use super::super::House;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt};
use std::convert::Infallible;
use std::time::Duration;

/// After how long without an event something is sent all the same.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A stream as an answer. When the server stops it ends with a comment: the reader comes again by itself, and goes on where it was.
pub(in crate::serve) fn stream(house: &House, events: impl Stream<Item = Event> + Send + 'static) -> Response {
    let stopping = house.stopping.clone().cancelled_owned();
    let last = futures_util::stream::iter([Event::default().comment("the server stops")]);
    let last = last.filter({
        let stopping = house.stopping.clone();
        move |_| std::future::ready(stopping.is_cancelled())
    });
    let all = events.take_until(stopping).chain(last).map(Ok::<_, Infallible>);
    Sse::new(all).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}
