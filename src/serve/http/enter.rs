//! Sign-in for browsers. A one-time link gives a cookie. A browser without a session gets a page
//! that names the command for a link.

use super::super::{AppState, clock};
use super::locked::{self, LockedReason};
use super::openapi::ApiOperation;
use super::problem::HttpProblem;
use axum::Router;
use axum::extract::{Extension, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// The lifetime of the cookie in the browser. The session may end earlier.
const COOKIE_LASTS: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The local address of a connection, and the additional host names of this server.
#[derive(Debug, Clone)]
pub(super) struct LocalAddress {
    pub(super) address: SocketAddr,
    /// Host names, with or without a port.
    pub(super) names: Arc<[String]>,
}

impl LocalAddress {
    /// Returns true if `name` (`host:port`, or `host` for port 80) is this server.
    pub(super) fn is_called(&self, name: &str) -> bool {
        let is_port =
            |rest: &str| rest.strip_prefix(':').and_then(|port| port.parse().ok()) == Some(self.address.port());
        let host = |host: &str| {
            let start = name.get(..host.len()).filter(|start| start.eq_ignore_ascii_case(host));
            start.is_some_and(|start| {
                let rest = &name[start.len()..];
                is_port(rest) || rest.is_empty() && self.address.port() == 80
            })
        };
        let address = match self.address.ip().to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let is_loopback = self.address.ip().to_canonical().is_loopback();
        let is_given = |given: &String| {
            let has_port = given
                .rsplit_once(':')
                .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()));
            let bare = if has_port {
                Some(name)
            } else {
                name.rsplit_once(':').map_or(Some(name), |(bare, port)| port.parse::<u16>().ok().map(|_| bare))
            };
            bare.is_some_and(|bare| bare.eq_ignore_ascii_case(given))
        };
        host(&address) || is_loopback && host("localhost") || self.names.iter().any(is_given)
    }

    /// Returns true if `host` is this server's loopback address or `localhost`. The browser is then
    /// on this machine, unless a tunnel or proxy forwards the request.
    pub(super) fn is_loopback_host(&self, host: &str) -> bool {
        let own = Self { address: self.address, names: Arc::default() };
        self.address.ip().to_canonical().is_loopback() && own.is_called(host)
    }

    /// Returns the name of the session cookie. Browsers send a cookie to all ports of a host, so
    /// the name contains the port.
    fn cookie(&self) -> String {
        format!("fledge-{}", self.address.port())
    }
}

/// Returns the session cookie of a request.
pub(super) fn session<'h>(headers: &'h HeaderMap, local: &LocalAddress) -> Option<&'h str> {
    let wanted = local.cookie();
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == wanted).map(|(_, value)| value).next()
}

/// Returns true for the only request that needs no authentication.
pub(super) fn is_open(request: &Request) -> bool {
    request.uri().path() == "/enter" && request.method() == Method::GET
}

/// Returns the answer to a request without authentication.
pub(super) fn locked(app_state: &AppState, request: &Request, local: &LocalAddress) -> Response {
    let mut response = if request.method() == Method::GET && locked::wants_page(request.headers()) {
        locked::page(app_state, local, request.headers(), LockedReason::NoSession)
    } else {
        let detail = "send the token as `Authorization: Bearer …`, or open the link that `fledge serve link` prints in a browser";
        HttpProblem::unauthorized(detail).into_response()
    };
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"fledge\""));
    response
}

/// Returns the routes of this file.
pub(super) fn routes() -> Router<Arc<AppState>> {
    Router::new().route("/enter", get(enter)).route("/leave", post(leave))
}

/// Returns the descriptions of the routes.
pub(super) fn operations() -> Vec<ApiOperation> {
    vec![
        ApiOperation::get("/enter", "Use a one-time link: set a cookie in the browser and redirect to the page")
            .query("code", "The code of the link")
            .redirects(303, "To the page, with a cookie; also for a used link if the browser has a session"),
        ApiOperation::post("/leave", "End the session of a browser").nothing(204, "Session ended"),
    ]
}

#[derive(Debug, Deserialize)]
struct Code {
    code: String,
}

async fn enter(
    State(app_state): State<Arc<AppState>>,
    Extension(local): Extension<LocalAddress>,
    method: Method,
    headers: HeaderMap,
    Query(Code { code }): Query<Code>,
) -> Result<Response, HttpProblem> {
    if method != Method::GET {
        return Err(HttpProblem::new(StatusCode::METHOD_NOT_ALLOWED, "open the link with GET"));
    }
    let entering = Arc::clone(&app_state);
    let entered = app_state.beside(move || entering.entrance.enter(&code, clock::now())).await??;
    if let Some(entered) = entered {
        return Ok(with_cookie(Redirect::to("/").into_response(), &local, &entered, COOKIE_LASTS));
    }
    if session(&headers, &local).is_some_and(|session| app_state.entrance.knows_session(session, clock::now())) {
        return Ok(Redirect::to("/").into_response());
    }
    if locked::wants_page(&headers) {
        return Ok(locked::page(&app_state, &local, &headers, LockedReason::LinkIsOver));
    }
    Err(HttpProblem::forbidden(
        "the link was used, has expired or never existed: `fledge serve link` prints a new link",
    ))
}

async fn leave(
    State(app_state): State<Arc<AppState>>,
    Extension(local): Extension<LocalAddress>,
    headers: HeaderMap,
) -> Result<Response, HttpProblem> {
    if let Some(session) = session(&headers, &local).map(str::to_owned) {
        let leaving = Arc::clone(&app_state);
        app_state.beside(move || leaving.entrance.leave(&session)).await?;
    }
    Ok(with_cookie(StatusCode::NO_CONTENT.into_response(), &local, "", Duration::ZERO))
}

fn with_cookie(mut response: Response, local: &LocalAddress, session: &str, lasts: Duration) -> Response {
    let (name, age) = (local.cookie(), lasts.as_secs());
    let cookie = format!("{name}={session}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_goes_by_its_address_and_by_the_names_that_it_was_given() {
        let local = |address: &str, names: &[&str]| LocalAddress {
            address: address.parse().unwrap(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        type Row<'r> = (&'r str, &'r [&'r str], &'r [&'r str], &'r [&'r str]);
        let rows: [Row<'_>; 4] = [
            (
                "127.0.0.1:7777",
                &[],
                &["127.0.0.1:7777", "localhost:7777", "LocalHost:7777"],
                &[
                    "127.0.0.1",
                    "localhost",
                    "localhost:80",
                    "localhost:7778",
                    "localhost:",
                    "evil.example:7777",
                    "",
                    ":7777",
                    "127.0.0.1.evil:7777",
                    "localhost.:7777",
                    "x@localhost:7777",
                ],
            ),
            ("[::1]:7777", &[], &["[::1]:7777", "localhost:7777"], &["::1:7777", "[::1]"]),
            ("10.1.2.3:80", &[], &["10.1.2.3", "10.1.2.3:80"], &["localhost", "localhost:80", "10.1.2.30"]),
            (
                "10.1.2.3:7777",
                &["build.example", "ci.example:8443"],
                &["build.example", "Build.Example:443", "ci.example:8443"],
                &["ci.example", "ci.example:7777", "build.example.evil", "build.example:x", "a.build.example"],
            ),
        ];
        for (address, names, ours, others) in rows {
            let local = local(address, names);
            ours.iter().for_each(|name| assert!(local.is_called(name), "{address} is {name}"));
            others.iter().for_each(|name| assert!(!local.is_called(name), "{address} is not {name}"));
        }
    }
}
