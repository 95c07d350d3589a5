//! What every request has to pass: it is meant for this server, from somebody who may, not sent by another site in their name, and no
//! larger or slower than there is need for.

use super::super::{House, clock};
use super::enter::{self, Local};
use super::problem::Problem;
use crate::duration::show_duration;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a body; those of a machine that sends its records may be larger.
const LARGEST: usize = 1024 * 1024;
const LARGEST_OF_SYNC: (&str, usize) = ("/v1/sync", 8 * 1024 * 1024);

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Lets a request through with its whole body read, or refuses it.
pub(super) async fn guard(State(house): State<Arc<House>>, request: Request, next: Next) -> Response {
    match passed(&house, request).await {
        Ok(request) => next.run(request).await,
        Err(refused) => refused,
    }
}

async fn passed(house: &House, request: Request) -> Result<Request, Response> {
    let local = request.extensions().get::<Local>().cloned();
    let Some(local) = local else { return Err(Problem::internal("a request without a connection").into_response()) };
    is_for_us(&request, &local).map_err(IntoResponse::into_response)?;
    if !enter::is_open(&request) {
        match proven(house, request.headers(), &local) {
            Some(Proof::Token) => {}
            Some(Proof::Session) => is_from_here(&request, &local).map_err(IntoResponse::into_response)?,
            None => return Err(enter::locked(house, &request, &local)),
        }
    }
    with_body(request, house.request_within).await.map_err(IntoResponse::into_response)
}

/// What shows who asks.
enum Proof {
    Token,
    Session,
}

fn proven(house: &House, headers: &HeaderMap, local: &Local) -> Option<Proof> {
    if let Some(given) = headers.get(header::AUTHORIZATION) {
        // What is given and wrong is not made good by a cookie.
        let (scheme, token) = given.as_bytes().split_at_checked("bearer ".len())?;
        let is_right =
            scheme.eq_ignore_ascii_case(b"bearer ") && headers.get_all(header::AUTHORIZATION).iter().count() == 1;
        return (is_right && house.entrance.knows_token(token)).then_some(Proof::Token);
    }
    let session = enter::session(headers, local)?;
    house.entrance.knows_session(session, clock::now()).then_some(Proof::Session)
}

/// By its `Host`, a page of another name that resolves to this machine (DNS rebinding) is told from ours.
fn is_for_us(request: &Request, local: &Local) -> Result<(), Problem> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (host, other) = (hosts.next(), hosts.next());
    let Some(host) = host.filter(|_| other.is_none()) else {
        return Err(Problem::bad_request("a request has exactly one Host"));
    };
    let is_ours = host.to_str().is_ok_and(|host| local.is_called(host));
    // A whole URL in the first line takes precedence over Host (RFC 9112, 3.2.2): both have to be ours.
    if is_ours && request.uri().authority().is_none_or(|authority| local.is_called(authority.as_str())) {
        return Ok(());
    }
    let detail = "this server does not go by that Host: use the address that it printed, or start it with --host NAME";
    Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, detail))
}

/// A browser sends its cookie with what other sites ask for, too. It says so.
fn is_from_here(request: &Request, local: &Local) -> Result<(), Problem> {
    let text = |name: HeaderName| request.headers().get(name).map(|value| value.to_str().unwrap_or("none of ours"));
    let (site, origin) = (text(SEC_FETCH_SITE), text(header::ORIGIN));
    let is_ours = |origin: &str| {
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        host.is_some_and(|host| local.is_called(host))
    };
    let from_elsewhere =
        || Problem::forbidden("another site has sent this request: with a cookie, only our own page may");
    if site.is_some_and(|site| !["same-origin", "none"].contains(&site))
        || origin.is_some_and(|origin| !is_ours(origin))
    {
        return Err(from_elsewhere());
    }
    let only_reads = [Method::GET, Method::HEAD].contains(request.method());
    let is_sure = origin.is_some() || site == Some("same-origin");
    if only_reads || is_sure { Ok(()) } else { Err(from_elsewhere()) }
}

/// Reads the whole body, so that no handler waits for one.
async fn with_body(request: Request, within: Duration) -> Result<Request, Problem> {
    if [Method::GET, Method::HEAD].contains(request.method()) {
        return Ok(request.map(|_nobody_asks_for_it| Body::empty()));
    }
    let most = if request.uri().path() == LARGEST_OF_SYNC.0 { LARGEST_OF_SYNC.1 } else { LARGEST };
    let too_large = || Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a body has at most {most} bytes here"));
    let length =
        request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > most as u64) {
        return Err(too_large());
    }
    let (parts, body) = request.into_parts();
    let slow = || {
        let detail = format!("the body was not there within {}", show_duration(within));
        Problem::new(StatusCode::REQUEST_TIMEOUT, detail)
    };
    let body = match tokio::time::timeout(within, to_bytes(body, most)).await {
        Err(_) => return Err(slow()),
        Ok(Ok(body)) => body,
        Ok(Err(error)) if is_too_long(&error) => return Err(too_large()),
        Ok(Err(error)) => return Err(Problem::bad_request(format!("the body cannot be read: {error}"))),
    };
    if !body.is_empty() && !is_json(&parts.headers) {
        let detail = "a body is JSON here, and says so: Content-Type: application/json";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    Ok(Request::from_parts(parts, Body::from(body)))
}

fn is_json(headers: &HeaderMap) -> bool {
    let content = headers.get(header::CONTENT_TYPE).and_then(|content| content.to_str().ok()).unwrap_or_default();
    let media = content.split(';').next().unwrap_or_default().trim();
    media.eq_ignore_ascii_case("application/json")
}

fn is_too_long(error: &axum::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<http_body_util::LengthLimitError>() {
            return true;
        }
        cause = error.source();
    }
    false
}
