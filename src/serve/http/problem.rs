//! What is answered when something cannot be done: problem details (RFC 9457).

use super::super::ServeFault;
use crate::store::StoreError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

/// Its content type.
pub(in crate::serve) const MEDIA: &str = "application/problem+json";

/// A request that could not be done.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::serve) struct Problem {
    status: StatusCode,
    detail: String,
    /// More of it, by names of its own.
    members: Map<String, Value>,
}

impl Problem {
    /// One with a status of its own. `detail` is for people.
    pub(in crate::serve) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), members: Map::new() }
    }

    /// The request is wrong.
    pub(in crate::serve) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// It is not said who asks.
    pub(in crate::serve) fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, detail)
    }

    /// Whoever asks may not.
    pub(in crate::serve) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// There is no such thing.
    pub(in crate::serve) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// It does not fit to how things are.
    pub(in crate::serve) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// The content can be read, and is wrong.
    pub(in crate::serve) fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// Not now.
    pub(in crate::serve) fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    /// Something of our own went wrong: it is in the log, too.
    pub(in crate::serve) fn internal(detail: impl Into<String>) -> Self {
        let detail = detail.into();
        tracing::error!("a request could not be done: {detail}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }

    /// With a member of its own: `errors`, for example.
    pub(in crate::serve) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// What is told of it.
    pub(in crate::serve) fn detail(&self) -> &str {
        &self.detail
    }

    /// As data; `instance` is the path that was asked for.
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

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.data(None).to_string()).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA));
        response.extensions_mut().insert(self); // the path is not known here
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let said = told(&error);
        match error {
            StoreError::Unknown { .. } => Self::not_found(said),
            StoreError::Ambiguous { .. }
            | StoreError::KeyTaken { .. }
            | StoreError::Elsewhere { .. }
            | StoreError::Held { .. } => Self::conflict(said),
            StoreError::File { .. }
            | StoreError::Database { .. }
            | StoreError::Newer { .. }
            | StoreError::Foreign { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Damaged { .. }
            | StoreError::Broken { .. } => Self::internal(said),
        }
    }
}

impl From<ServeFault> for Problem {
    fn from(fault: ServeFault) -> Self {
        Self::internal(told(&fault))
    }
}

/// An error and its causes, in one line.
fn told(error: &dyn std::error::Error) -> String {
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
        let problem = Problem::unprocessable("the task is wrong").with("errors", json!([{ "line": 1 }]));
        let expected = json!({
            "type": "about:blank",
            "title": "Unprocessable Entity",
            "status": 422,
            "detail": "the task is wrong",
            "instance": "/v1/runs",
            "errors": [{ "line": 1 }],
        });
        assert_eq!(problem.data(Some("/v1/runs")), expected);
        let unknown = Problem::from(StoreError::Unknown { name: "x".into() });
        assert_eq!(unknown, Problem::not_found("there is no run `x`"));
    }
}
