//! The checks of every request: it addresses this server, it is authenticated, no other site sent
//! it in the user's name, and its size and time are within limits.

use super::super::{AppState, clock};
use super::enter::{self, LocalAddress};
use super::problem::HttpProblem;
use crate::duration::show_duration;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;

/// The size limit of a body, in bytes, and the higher limit for machines that send their records.
const LARGEST: usize = 1024 * 1024;
const LARGEST_OF_SYNC: (&str, usize) = ("/v1/sync", 8 * 1024 * 1024);

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Passes a request on with its whole body read, or refuses it.
pub(super) async fn guard(State(app_state): State<Arc<AppState>>, request: Request, next: Next) -> Response {
    match passed(&app_state, request).await {
        Ok(request) => next.run(request).await,
        Err(refused) => refused,
    }
}

async fn passed(app_state: &AppState, request: Request) -> Result<Request, Response> {
    let local = request.extensions().get::<LocalAddress>().cloned();
    let Some(local) = local else {
        return Err(HttpProblem::internal("a request without a connection").into_response());
    };
    is_for_us(&request, &local).map_err(IntoResponse::into_response)?;
    if !enter::is_open(&request) {
        match proven(app_state, request.headers(), &local) {
            Some(Proof::Token) => {}
            Some(Proof::Session) => is_from_here(&request, &local).map_err(IntoResponse::into_response)?,
            None => return Err(enter::locked(app_state, &request, &local)),
        }
    }
    with_body(request, app_state.request_within).await.map_err(IntoResponse::into_response)
}

/// The kind of authentication.
enum Proof {
    Token,
    Session,
}

fn proven(app_state: &AppState, headers: &HeaderMap, local: &LocalAddress) -> Option<Proof> {
    if let Some(given) = headers.get(header::AUTHORIZATION) {
        // A wrong `Authorization` header is final; a valid cookie does not replace it.
        let (scheme, token) = given.as_bytes().split_at_checked("bearer ".len())?;
        let is_right =
            scheme.eq_ignore_ascii_case(b"bearer ") && headers.get_all(header::AUTHORIZATION).iter().count() == 1;
        return (is_right && app_state.entrance.knows_token(token)).then_some(Proof::Token);
    }
    let session = enter::session(headers, local)?;
    app_state.entrance.knows_session(session, clock::now()).then_some(Proof::Session)
}

/// Checks the `Host` header. This rejects pages of other names that resolve to this machine (DNS
/// rebinding).
fn is_for_us(request: &Request, local: &LocalAddress) -> Result<(), HttpProblem> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (host, other) = (hosts.next(), hosts.next());
    let Some(host) = host.filter(|_| other.is_none()) else {
        return Err(HttpProblem::bad_request("expected exactly one Host header"));
    };
    let is_ours = host.to_str().is_ok_and(|host| local.is_called(host));
    // A full URL in the request line takes precedence over Host (RFC 9112, 3.2.2), so both must
    // name this server.
    if is_ours && request.uri().authority().is_none_or(|authority| local.is_called(authority.as_str())) {
        return Ok(());
    }
    let detail = "unknown Host: use the address that the server printed, or start the server with --host NAME";
    Err(HttpProblem::new(StatusCode::MISDIRECTED_REQUEST, detail))
}

/// Checks that no other site sent the request. A browser also sends its cookie with requests of
/// other sites, but marks them in the headers.
fn is_from_here(request: &Request, local: &LocalAddress) -> Result<(), HttpProblem> {
    let text = |name: HeaderName| request.headers().get(name).map(|value| value.to_str().unwrap_or("none of ours"));
    let (site, origin) = (text(SEC_FETCH_SITE), text(header::ORIGIN));
    let is_ours = |origin: &str| {
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        host.is_some_and(|host| local.is_called(host))
    };
    let from_elsewhere = || {
        HttpProblem::forbidden("the request comes from another site: only the page of this server may use the cookie")
    };
    if site.is_some_and(|site| !["same-origin", "none"].contains(&site))
        || origin.is_some_and(|origin| !is_ours(origin))
    {
        return Err(from_elsewhere());
    }
    let only_reads = [Method::GET, Method::HEAD].contains(request.method());
    let is_sure = origin.is_some() || site == Some("same-origin");
    if only_reads || is_sure { Ok(()) } else { Err(from_elsewhere()) }
}

/// Reads the whole body, so that handlers never wait for it.
async fn with_body(request: Request, within: Duration) -> Result<Request, HttpProblem> {
    if [Method::GET, Method::HEAD].contains(request.method()) {
        return Ok(request.map(|_nobody_asks_for_it| Body::empty()));
    }
    let most = if request.uri().path() == LARGEST_OF_SYNC.0 { LARGEST_OF_SYNC.1 } else { LARGEST };
    let too_large = || HttpProblem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("body too large: at most {most} bytes"));
    let length =
        request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > most as u64) {
        return Err(too_large());
    }
    let (parts, body) = request.into_parts();
    let slow = || {
        let detail = format!("the body did not arrive within {}", show_duration(within));
        HttpProblem::new(StatusCode::REQUEST_TIMEOUT, detail)
    };
    let body = match tokio::time::timeout(within, to_bytes(body, most)).await {
        Err(_) => return Err(slow()),
        Ok(Ok(body)) => body,
        Ok(Err(error)) if is_too_long(&error) => return Err(too_large()),
        Ok(Err(error)) => return Err(HttpProblem::bad_request(format!("cannot read the body: {error}"))),
    };
    if !body.is_empty() && !is_json(&parts.headers) {
        let detail = "expected a JSON body with Content-Type: application/json";
        return Err(HttpProblem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
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
