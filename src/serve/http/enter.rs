//! The way in for browsers: a one-time link gives a cookie, and a browser without one gets a page that names the command for a link.

use super::super::{House, clock};
use super::locked::{self, Why};
use super::openapi::Operation;
use super::problem::Problem;
use axum::Router;
use axum::extract::{Extension, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// How long a browser keeps its cookie; the session may end before.
const COOKIE_LASTS: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Where a connection has come in, and by which other names this server goes.
#[derive(Debug, Clone)]
pub(super) struct Local {
    pub(super) address: SocketAddr,
    /// Names, with a port or without one.
    pub(super) names: Arc<[String]>,
}

impl Local {
    /// Whether this server goes by a name of this form: `host:port`, without the port where it is that of HTTP.
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

    /// Returns true if a browser that names this host is on this machine: no name of a proxy, and no address that others reach.
    pub(super) fn is_beside(&self, host: &str) -> bool {
        let own = Self { address: self.address, names: Arc::default() };
        self.address.ip().to_canonical().is_loopback() && own.is_called(host)
    }

    /// A cookie goes to all ports of a host: each server has a name of its own for it.
    fn cookie(&self) -> String {
        format!("fledge-{}", self.address.port())
    }
}

/// The session that a request says to belong to.
pub(super) fn session<'h>(headers: &'h HeaderMap, local: &Local) -> Option<&'h str> {
    let wanted = local.cookie();
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == wanted).map(|(_, value)| value).next()
}

/// Whether a request is for the one thing that needs no proof.
pub(super) fn is_open(request: &Request) -> bool {
    request.uri().path() == "/enter" && request.method() == Method::GET
}

/// The answer to a request without proof.
pub(super) fn locked(house: &House, request: &Request, local: &Local) -> Response {
    let mut response = if request.method() == Method::GET && locked::wants_page(request.headers()) {
        locked::page(house, local, request.headers(), Why::NoSession)
    } else {
        let detail =
            "show the token: `Authorization: Bearer …`; a browser gets in by the link that `fledge serve link` prints";
        Problem::unauthorized(detail).into_response()
    };
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"fledge\""));
    response
}

/// What is answered here.
pub(super) fn routes() -> Router<Arc<House>> {
    Router::new().route("/enter", get(enter)).route("/leave", post(leave))
}

/// The same, described.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::get("/enter", "Uses up a one-time link: gives a browser its cookie, and sends it to the page")
            .query("code", "The code of the link")
            .redirects(
                303,
                "To the page, with a cookie; also by a link that was used, where the browser has a session",
            ),
        Operation::post("/leave", "Ends the session of a browser").nothing(204, "It has ended"),
    ]
}

#[derive(Debug, Deserialize)]
struct Code {
    code: String,
}

async fn enter(
    State(house): State<Arc<House>>,
    Extension(local): Extension<Local>,
    method: Method,
    headers: HeaderMap,
    Query(Code { code }): Query<Code>,
) -> Result<Response, Problem> {
    if method != Method::GET {
        return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "a link is used by GET alone"));
    }
    let entering = Arc::clone(&house);
    let entered = house.beside(move || entering.entrance.enter(&code, clock::now())).await??;
    if let Some(entered) = entered {
        return Ok(with_cookie(Redirect::to("/").into_response(), &local, &entered, COOKIE_LASTS));
    }
    if session(&headers, &local).is_some_and(|session| house.entrance.knows_session(session, clock::now())) {
        return Ok(Redirect::to("/").into_response());
    }
    if locked::wants_page(&headers) {
        return Ok(locked::page(&house, &local, &headers, Why::LinkIsOver));
    }
    Err(Problem::forbidden("this link was used, or is too old, or never was one: `fledge serve link` prints another"))
}

async fn leave(
    State(house): State<Arc<House>>,
    Extension(local): Extension<Local>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(session) = session(&headers, &local).map(str::to_owned) {
        let leaving = Arc::clone(&house);
        house.beside(move || leaving.entrance.leave(&session)).await?;
    }
    Ok(with_cookie(StatusCode::NO_CONTENT.into_response(), &local, "", Duration::ZERO))
}

fn with_cookie(mut response: Response, local: &Local, session: &str, lasts: Duration) -> Response {
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
        let local = |address: &str, names: &[&str]| Local {
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
