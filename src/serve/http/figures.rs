//! Metrics in Prometheus' text format, version 0.0.4.

use super::super::AppState;
use axum::extract::State;
use axum::http::{Method, StatusCode, header};
use axum::response::IntoResponse;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The number and total time of answers by method and status. Methods are a fixed set of names, so
/// clients cannot create new rows.
type Answers = BTreeMap<(&'static str, u16), (u64, Duration)>;

/// The counters of the HTTP server.
#[derive(Debug, Default)]
pub(in crate::serve) struct ServerMetrics {
    answers: Mutex<Answers>,
    open: AtomicU64,
    accepted: AtomicU64,
    refused: AtomicU64,
}

impl ServerMetrics {
    /// Counts an answered request.
    pub(super) fn answered(&self, method: &Method, status: StatusCode, took: Duration) {
        let method = match *method {
            Method::GET => "GET",
            Method::HEAD => "HEAD",
            Method::POST => "POST",
            Method::PUT => "PUT",
            Method::DELETE => "DELETE",
            _ => "other",
        };
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, time) = answers.entry((method, status.as_u16())).or_default();
        *count += 1;
        *time += took;
    }

    /// Counts a new connection.
    pub(super) fn accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a connection.
    pub(super) fn closed(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a connection that was refused for lack of room.
    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    fn all(&self) -> Vec<MetricRow> {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let count = MetricRow::counter("fledge_http_requests_total", "Answered requests");
        let time = MetricRow::counter("fledge_http_request_seconds_total", "Time until the answers began");
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let labels = |method: &str, status: u16| format!("method=\"{method}\",status=\"{status}\"");
        let (mut count, mut time) = (count, time);
        for ((method, status), (number, took)) in answers.iter() {
            count = count.at(&labels(method, *status), *number as f64);
            time = time.at(&labels(method, *status), took.as_secs_f64());
        }
        vec![
            count,
            time,
            MetricRow::gauge("fledge_http_connections", "Open connections").at("", read(&self.open) as f64),
            MetricRow::counter("fledge_http_connections_total", "Accepted connections")
                .at("", read(&self.accepted) as f64),
            MetricRow::counter("fledge_http_connections_refused_total", "Connections refused for lack of room")
                .at("", read(&self.refused) as f64),
        ]
    }
}

/// A metric with its values.
#[derive(Debug)]
pub(in crate::serve) struct MetricRow {
    name: &'static str,
    help: &'static str,
    kind: &'static str,
    values: Vec<(String, f64)>,
}

impl MetricRow {
    /// Creates a metric that only increases.
    pub(in crate::serve) fn counter(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: "counter", values: Vec::new() }
    }

    /// Creates a metric that increases and decreases.
    pub(in crate::serve) fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: "gauge", values: Vec::new() }
    }

    /// Adds a value; `labels` is `name="value",…`, or empty.
    pub(in crate::serve) fn at(mut self, labels: &str, value: f64) -> Self {
        self.values.push((labels.to_owned(), value));
        self
    }

    fn write(&self, page: &mut String) {
        let Self { name, help, kind, values } = self;
        let _a_text_takes_all = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in values {
            let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
            let _a_text_takes_all = writeln!(page, "{name}{labels} {value}");
        }
    }
}

/// Returns all metrics of the server.
pub(super) async fn metrics(State(app_state): State<Arc<AppState>>) -> impl IntoResponse {
    let mut all = vec![
        MetricRow::gauge("fledge_build_info", "The version of fledge")
            .at(concat!("version=\"", env!("CARGO_PKG_VERSION"), "\""), 1.0),
        MetricRow::gauge("fledge_listeners", "Open streams of news").at("", app_state.broadcaster.listeners() as f64),
        MetricRow::gauge("fledge_runs_running", "Runs driven by this server").at("", app_state.engine.running() as f64),
    ];
    all.extend(app_state.figures.all());
    let mut page = String::new();
    all.iter().for_each(|figure| figure.write(&mut page));
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_told_in_the_format_of_prometheus() {
        let figures = ServerMetrics::default();
        figures.answered(&Method::GET, StatusCode::OK, Duration::from_millis(250));
        figures.answered(&Method::GET, StatusCode::OK, Duration::from_millis(250));
        figures.answered(&Method::from_bytes(b"BREW").unwrap(), StatusCode::UNAUTHORIZED, Duration::ZERO);
        figures.accepted();
        figures.refused();
        let mut page = String::new();
        figures.all().iter().for_each(|figure| figure.write(&mut page));
        insta::assert_snapshot!(page);
    }
}
