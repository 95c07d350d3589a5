//! The body of `POST /v1/runs`, and the faults in it.

use super::super::engine::{Overrides, RunRequestBody, TaskOrigin, UnfitTask};
use super::super::http::HttpProblem;
use crate::id::RunId;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The size limit of a key, in bytes.
const LONGEST_KEY: usize = 200;

/// A task to run: its text, its path, or an earlier run. Set exactly one of `task`, `path` and
/// `again`, or `after` with `task`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRun {
    /// The complete text of the task, as in a file. With `after`: the next instruction.
    task: Option<String>,
    /// The path of the task's file, relative to the served folder.
    path: Option<String>,
    /// The earlier run whose task is repeated with its settings: the run's id or a prefix of it.
    pub(super) again: Option<String>,
    /// The ended run whose conversation the new run continues: the run's id or a prefix of it.
    pub(super) after: Option<String>,
    /// Values for the task's parameters: text, numbers or booleans.
    #[serde(default)]
    params: BTreeMap<String, Value>,
    /// Models that replace those of the task, in order of preference.
    #[serde(default)]
    models: Vec<String>,
    /// Lanes that replace those of the task.
    #[serde(default)]
    lanes: Vec<String>,
    /// The cost limit of the run, in US dollars. A lower limit of the task still applies.
    max_usd: Option<f64>,
    /// A key for idempotent requests. Requests with the same key create one run, which can be
    /// addressed by the key.
    key: Option<String>,
}

impl NewRun {
    /// Returns the request with the resolved runs of `again` and `after`.
    pub(super) fn asked(self, again: Option<RunId>, after: Option<RunId>) -> Result<RunRequestBody, HttpProblem> {
        let task = match (self.task, self.path, again, after) {
            (Some(text), None, None, None) => TaskOrigin::Text(text),
            (None, Some(path), None, None) => TaskOrigin::Path(path),
            (None, None, Some(run), None) => TaskOrigin::Again(run),
            (Some(text), None, None, Some(run)) => TaskOrigin::After(run, text),
            _ => {
                let detail = "give exactly one of `task`, `path` and `again`, or `after` with `task`";
                return Err(HttpProblem::unprocessable(detail));
            }
        };
        if matches!(task, TaskOrigin::Again(_) | TaskOrigin::After(..)) && !self.params.is_empty() {
            let detail = "the task of an earlier run already has its parameters: remove `params`";
            return Err(of_field("params", detail.to_owned()));
        }
        let param = |(name, value): (String, Value)| match value {
            Value::String(text) => Ok((name, text)),
            Value::Number(number) => Ok((name, number.to_string())),
            Value::Bool(flag) => Ok((name, flag.to_string())),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                let detail = format!("invalid parameter `{name}`: expected text, a number, true or false");
                Err(of_field(&format!("params.{name}"), detail))
            }
        };
        let params = self.params.into_iter().map(param).collect::<Result<_, _>>()?;
        let usd_micros = self.max_usd.map(micros).transpose()?;
        let overrides = Overrides { models: self.models, lanes: self.lanes, usd_micros };
        if matches!(task, TaskOrigin::After(..)) && !overrides.is_empty() {
            let detail = "a run that continues another run keeps its models, lanes and limits: remove them";
            return Err(HttpProblem::unprocessable(detail));
        }
        let key = self.key.map(checked_key).transpose()?;
        Ok(RunRequestBody { task, params, overrides, key })
    }
}

/// Converts US dollars to millionths of a dollar.
fn micros(usd: f64) -> Result<u64, HttpProblem> {
    let micros = (usd * 1e6).round();
    if (1.0..9e15).contains(&micros) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in between")]
        return Ok(micros as u64);
    }
    Err(of_field(
        "max_usd",
        format!("invalid `max_usd` {usd}: expected US dollars from 0.000001 to below 9 billion, e.g. 2.50"),
    ))
}

/// Creates a problem with one field of a request.
fn of_field(field: &str, detail: String) -> HttpProblem {
    let UnfitTask { message, flaws } = UnfitTask::of_field(field, detail);
    HttpProblem::unprocessable(message).with("errors", json!(flaws))
}

fn checked_key(key: String) -> Result<String, HttpProblem> {
    let why = match key.as_str() {
        "" => "is empty",
        "last" | "last-failed" => "means the newest run: use another key",
        key if key.contains('#') => "contains `#`, which precedes the number of a later run: remove it",
        key if key.len() > LONGEST_KEY => "is longer than 200 bytes",
        key if key.chars().any(char::is_control) => "contains a control character",
        _ => return Ok(key),
    };
    Err(HttpProblem::unprocessable(format!("the key {why}")))
}
