//! The body of `POST /v1/runs`, and the faults in it.

use super::super::engine::{Asked, Overrides, TaskOf, Unfit};
use super::super::http::Problem;
use crate::id::RunId;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Bytes of the longest key.
const LONGEST_KEY: usize = 200;

/// A task that is to be run: its text, its path, or an earlier run. Exactly one of `task`, `path` and `again` is given, or `after` with `task`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRun {
    /// The task's whole text, as it would stand in a file. With `after`: what is to be done next.
    task: Option<String>,
    /// The path of its file from the folder that is served.
    path: Option<String>,
    /// The run whose task is run once more, as that run had it: its id or the start of it.
    pub(super) again: Option<String>,
    /// The run that is over and whose conversation the new one goes on from: its id or the start of it.
    pub(super) after: Option<String>,
    /// Values for its parameters: text, numbers, true or false.
    #[serde(default)]
    params: BTreeMap<String, Value>,
    /// Models in place of those of the task, in order of preference.
    #[serde(default)]
    models: Vec<String>,
    /// Lanes in place of those of the task.
    #[serde(default)]
    lanes: Vec<String>,
    /// The most that the run may cost, in US dollars; a smaller bound of the task holds.
    max_usd: Option<f64>,
    /// A key: requests with the same key become one run, which goes by it.
    key: Option<String>,
}

impl NewRun {
    /// Returns the request, once `again` and `after` are found to be these runs.
    pub(super) fn asked(self, again: Option<RunId>, after: Option<RunId>) -> Result<Asked, Problem> {
        let task = match (self.task, self.path, again, after) {
            (Some(text), None, None, None) => TaskOf::Text(text),
            (None, Some(path), None, None) => TaskOf::Path(path),
            (None, None, Some(run), None) => TaskOf::Again(run),
            (Some(text), None, None, Some(run)) => TaskOf::After(run, text),
            _ => {
                let detail =
                    "exactly one of `task`, `path` and `again` says what is to be done, or `after` with `task`";
                return Err(Problem::unprocessable(detail));
            }
        };
        if matches!(task, TaskOf::Again(_) | TaskOf::After(..)) && !self.params.is_empty() {
            let detail = "the task of an earlier run has its parameters already: leave `params` out";
            return Err(of_field("params", detail.to_owned()));
        }
        let param = |(name, value): (String, Value)| match value {
            Value::String(text) => Ok((name, text)),
            Value::Number(number) => Ok((name, number.to_string())),
            Value::Bool(flag) => Ok((name, flag.to_string())),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                let detail = format!("the parameter `{name}` is neither text nor a number, true or false");
                Err(of_field(&format!("params.{name}"), detail))
            }
        };
        let params = self.params.into_iter().map(param).collect::<Result<_, _>>()?;
        let usd_micros = self.max_usd.map(micros).transpose()?;
        let overrides = Overrides { models: self.models, lanes: self.lanes, usd_micros };
        if matches!(task, TaskOf::After(..)) && !overrides.is_empty() {
            let detail = "a run that continues another run has its models, lanes and bounds: leave them out";
            return Err(Problem::unprocessable(detail));
        }
        let key = self.key.map(checked_key).transpose()?;
        Ok(Asked { task, params, overrides, key })
    }
}

/// US dollars in millionths.
fn micros(usd: f64) -> Result<u64, Problem> {
    let micros = (usd * 1e6).round();
    if (1.0..9e15).contains(&micros) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in between")]
        return Ok(micros as u64);
    }
    Err(of_field(
        "max_usd",
        format!("`max_usd` is {usd}: expected an amount of US dollars from 0.000001 to below 9 billion, e.g. 2.50"),
    ))
}

/// A problem with one part of a request.
fn of_field(field: &str, detail: String) -> Problem {
    let Unfit { message, flaws } = Unfit::of_field(field, detail);
    Problem::unprocessable(message).with("errors", json!(flaws))
}

fn checked_key(key: String) -> Result<String, Problem> {
    let why = match key.as_str() {
        "" => "is empty",
        "last" | "last-failed" => "means the newest run: use another one",
        key if key.contains('#') => "has a `#`, which stands before the number of a later run: leave it out",
        key if key.len() > LONGEST_KEY => "is longer than 200 bytes",
        key if key.chars().any(char::is_control) => "has a control character in it",
        _ => return Ok(key),
    };
    Err(Problem::unprocessable(format!("the key {why}")))
}
