//! Error answers in the form of problem details (RFC 9457).

use super::super::ServeError;
use crate::store::StoreError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

/// The content type of problem details.
pub(in crate::serve) const MEDIA: &str = "application/problem+json";

/// The problem details of a failed request.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::serve) struct HttpProblem {
    status: StatusCode,
    detail: String,
    /// Additional members, by name.
    members: Map<String, Value>,
}

impl HttpProblem {
    /// Creates a problem with this status. `detail` is for people.
    pub(in crate::serve) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), members: Map::new() }
    }

    /// The request is malformed (400).
    pub(in crate::serve) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// The request has no valid authentication (401).
    pub(in crate::serve) fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, detail)
    }

    /// The client may not do this (403).
    pub(in crate::serve) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// The resource does not exist (404).
    pub(in crate::serve) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// The request conflicts with the current state (409).
    pub(in crate::serve) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// The content is well-formed but invalid (422).
    pub(in crate::serve) fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// The server cannot do this at present (503).
    pub(in crate::serve) fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    /// An internal error (500), which is also logged.
    pub(in crate::serve) fn internal(detail: impl Into<String>) -> Self {
        let detail = detail.into();
        tracing::error!("a request failed: {detail}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }

    /// Adds a member, such as `errors`.
    pub(in crate::serve) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// Returns the description for people.
    pub(in crate::serve) fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the problem as JSON; `instance` is the requested path.
    pub(in crate::serve) fn data(&self, instance: Option<&str>) -> Value {
        let mut members = self.members.clone();
        let own = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or("Unknown"),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        members.extend(own.as_object().cloned().unwrap_or_default());
        members.extend(instance.map(|path| ("instance".to_owned(), Value::from(path))));
        Value::Object(members)
    }
}

impl IntoResponse for HttpProblem {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.data(None).to_string()).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA));
        response.extensions_mut().insert(self); // `finish` adds the path, which is unknown here
        response
    }
}

impl From<StoreError> for HttpProblem {
    fn from(error: StoreError) -> Self {
        let message = error_line(&error);
        match error {
            StoreError::Unknown { .. } => Self::not_found(message),
            StoreError::Ambiguous { .. }
            | StoreError::KeyTaken { .. }
            | StoreError::Elsewhere { .. }
            | StoreError::Held { .. } => Self::conflict(message),
            StoreError::File { .. }
            | StoreError::Database { .. }
            | StoreError::Newer { .. }
            | StoreError::Foreign { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Damaged { .. }
            | StoreError::Broken { .. } => Self::internal(message),
        }
    }
}

impl From<ServeError> for HttpProblem {
    fn from(fault: ServeError) -> Self {
        Self::internal(error_line(&fault))
    }
}

/// Formats an error and its causes in one line.
fn error_line(error: &dyn std::error::Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_says_what_it_is_as_the_rfc_has_it() {
        let problem = HttpProblem::unprocessable("the task is wrong").with("errors", json!([{ "line": 1 }]));
        let expected = json!({
            "type": "about:blank",
            "title": "Unprocessable Entity",
            "status": 422,
            "detail": "the task is wrong",
            "instance": "/v1/runs",
            "errors": [{ "line": 1 }],
        });
        assert_eq!(problem.data(Some("/v1/runs")), expected);
        let unknown = HttpProblem::from(StoreError::Unknown { name: "x".into() });
        assert_eq!(unknown, HttpProblem::not_found("there is no run `x`"));
    }
}
