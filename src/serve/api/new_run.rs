//! The body of `POST /v1/runs`, and the faults in it.

use super::super::engine::{Overrides, RunRequestBody, TaskOrigin};
use super::super::http::HttpProblem;
use super::new_limits::{NewLimitsBody, micros, of_field};
use crate::id::RunId;
use crate::limits::LimitName;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
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
    /// The cost limit of the run, in US dollars. A lower limit of the task still applies. With
    /// `after`, it replaces the limit of the earlier run.
    max_usd: Option<f64>,
    /// With `after`: the further attempts if the gate fails, 0 to 100.
    max_retries: Option<i64>,
    /// With `after`: the limit of model calls.
    max_turns: Option<i64>,
    /// With `after`: the limit of tokens, input and output together.
    max_tokens: Option<i64>,
    /// With `after`: the limit of time, such as `90m`.
    max_time: Option<String>,
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
        let new_limits = NewLimitsBody {
            max_retries: self.max_retries,
            max_turns: self.max_turns,
            max_tokens: self.max_tokens,
            max_usd: self.max_usd,
            max_time: self.max_time,
        };
        let mut overrides = Overrides { models: self.models, lanes: self.lanes, ..Overrides::default() };
        if !matches!(task, TaskOrigin::After(..)) {
            if let Some(limit) = new_limits.beside_cost().map(LimitName::key) {
                let detail = format!("`{limit}` needs `after`: set the limit in the task");
                return Err(of_field(limit, detail));
            }
            overrides.usd_micros = new_limits.max_usd.map(micros).transpose()?;
        } else if overrides.is_empty() {
            overrides.limits = new_limits.limits()?;
        } else {
            let detail = "a run that continues another run keeps its models and lanes: remove them";
            return Err(HttpProblem::unprocessable(detail));
        }
        let key = self.key.map(checked_key).transpose()?;
        Ok(RunRequestBody { task, params, overrides, key })
    }
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
