//! The common treatment of all answers: security headers, problem details for errors, and metrics.
//! A panic of a handler becomes an answer, too.

use super::figures::ServerMetrics;
use super::problem::{HttpProblem, MEDIA};
use crate::process::Stopwatch;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// The size limit of a framework's error text, and of a path that an answer repeats, in bytes.
const MOST_SAID: usize = 4096;

/// The headers of every answer, unless the answer sets them itself.
const HEADERS: [(HeaderName, &str); 8] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; \
         form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

/// Runs the handler of a request and completes its answer.
pub(super) async fn finish(State(figures): State<Arc<ServerMetrics>>, request: Request, next: Next) -> Response {
    let (watch, method) = (Stopwatch::start(), request.method().clone());
    let path: String = request.uri().path().chars().take(MOST_SAID).collect();
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let response = answered.unwrap_or_else(|_| {
        HttpProblem::internal(format!("the handler of {method} {path} panicked: this is a bug in fledge"))
            .into_response()
    });
    let mut response = as_problem(response, &path).await;
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    figures.answered(&method, response.status(), watch.read());
    tracing::info!("{method} {path} {}", response.status().as_u16());
    response
}

/// Converts an error of the framework to a problem. Other answers stay unchanged.
async fn as_problem(response: Response, path: &str) -> Response {
    let status = response.status();
    if !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let problem = match parts.extensions.remove::<HttpProblem>() {
        Some(problem) => problem,
        None if is_told(parts.headers.get(header::CONTENT_TYPE)) => return Response::from_parts(parts, body),
        None => {
            let message = to_bytes(body, MOST_SAID).await.unwrap_or_default();
            let message = String::from_utf8_lossy(&message).trim().to_owned();
            let words = status.canonical_reason().unwrap_or_default().to_lowercase();
            HttpProblem::new(status, if message.is_empty() { words } else { message })
        }
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA));
    Response::from_parts(parts, Body::from(problem.data(Some(path)).to_string()))
}

/// Returns true if an answer describes the error itself, as a page or as data.
fn is_told(content: Option<&HeaderValue>) -> bool {
    content.and_then(|content| content.to_str().ok()).is_some_and(|content| !content.starts_with("text/plain"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;

    async fn broken() -> &'static str {
        let empty: Vec<&'static str> = Vec::new();
        empty[0]
    }

    #[tokio::test]
    async fn a_handler_that_panics_is_an_answer_and_no_more() {
        let app = Router::new().route("/broken", get(broken)).route("/whole", get(async || "well"));
        let app = TowerToHyperService::new(app.layer(from_fn_with_state(Arc::<ServerMetrics>::default(), finish)));
        let ask = async |path: &str| {
            let response = app.call(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
            let status = response.status().as_u16();
            (status, String::from_utf8(to_bytes(response.into_body(), 4096).await.unwrap().to_vec()).unwrap())
        };
        let (status, message) = ask("/broken").await;
        assert_eq!(status, 500);
        assert!(message.contains("the handler of GET /broken panicked: this is a bug in fledge"), "{message}");
        assert_eq!(ask("/whole").await, (200, "well".into()));
        assert_eq!(ask("/none").await.0, 404);
    }
}
