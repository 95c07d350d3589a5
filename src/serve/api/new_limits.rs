//! New limits in a request: the body of `POST /v1/runs/{id}/resume`, and fields of `POST /v1/runs`.

use super::super::engine::UnfitTask;
use super::super::http::HttpProblem;
use crate::duration::{milliseconds, parse_duration};
use crate::limits::{LimitName, NewLimits, check_number};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::ops::RangeInclusive;

/// New limits for an earlier run. They count for the whole run, with what it has used so far. A
/// limit that is left out stays.
#[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NewLimitsBody {
    /// The further attempts in all if the gate fails, 0 to 100.
    pub(super) max_retries: Option<i64>,
    /// The model calls in all.
    pub(super) max_turns: Option<i64>,
    /// The tokens in all, input and output together.
    pub(super) max_tokens: Option<i64>,
    /// The cost in all, in US dollars.
    pub(super) max_usd: Option<f64>,
    /// The time of work in all, such as `90m`.
    pub(super) max_time: Option<String>,
}

impl NewLimitsBody {
    /// Returns the limits.
    pub(super) fn limits(self) -> Result<NewLimits, HttpProblem> {
        let number = |limit: LimitName, given: Option<i64>, range: &RangeInclusive<i64>| {
            let checked = given.map(|number| check_number(Some(number), range)).transpose();
            checked.map_err(|why| of_limit(limit, &why))
        };
        let time = self.max_time.map(|time| parse_duration(&time)).transpose();
        let time = time.map_err(|why| of_limit(LimitName::Time, &why))?;
        Ok(NewLimits {
            max_retries: number(LimitName::Retries, self.max_retries, &NewLimits::RETRIES)?,
            turns: number(LimitName::Turns, self.max_turns, &NewLimits::COUNT)?.map(u64::from),
            tokens: number(LimitName::Tokens, self.max_tokens, &NewLimits::COUNT)?.map(u64::from),
            usd_micros: self.max_usd.map(micros).transpose()?,
            time_ms: time.map(milliseconds),
        })
    }

    /// Returns the first limit beside the cost, if there is one.
    pub(super) fn beside_cost(&self) -> Option<LimitName> {
        let limits = [
            (LimitName::Retries, self.max_retries.is_some()),
            (LimitName::Turns, self.max_turns.is_some()),
            (LimitName::Tokens, self.max_tokens.is_some()),
            (LimitName::Time, self.max_time.is_some()),
        ];
        limits.into_iter().find(|(_, is_set)| *is_set).map(|(limit, _)| limit)
    }
}

/// Converts US dollars to millionths of a dollar.
pub(super) fn micros(usd: f64) -> Result<u64, HttpProblem> {
    let micros = (usd * 1e6).round();
    if (1.0..9e15).contains(&micros) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in between")]
        return Ok(micros as u64);
    }
    let detail = format!("invalid `max_usd` {usd}: expected US dollars from 0.000001 to below 9 billion, e.g. 2.50");
    Err(of_field("max_usd", detail))
}

/// Creates the problem of a limit.
fn of_limit(limit: LimitName, why: &str) -> HttpProblem {
    of_field(limit.key(), format!("invalid `{}`: {why}", limit.key()))
}

/// Creates a problem with one field of a request.
pub(super) fn of_field(field: &str, detail: String) -> HttpProblem {
    let UnfitTask { message, flaws } = UnfitTask::of_field(field, detail);
    HttpProblem::unprocessable(message).with("errors", json!(flaws))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_limit_is_named_with_the_reason_of_the_command_line() {
        let problem = |limits: NewLimitsBody| limits.limits().unwrap_err().detail().to_owned();
        let of = NewLimitsBody::default;
        assert_eq!(
            problem(NewLimitsBody { max_retries: Some(101), ..of() }),
            "invalid `max_retries`: expected a whole number from 0 to 100"
        );
        assert_eq!(
            problem(NewLimitsBody { max_turns: Some(0), ..of() }),
            "invalid `max_turns`: expected a whole number of at least 1"
        );
        assert_eq!(
            problem(NewLimitsBody { max_time: Some("90".into()), ..of() }),
            "invalid `max_time`: `90` has no unit: write `90s`, `90m` or `90h`"
        );
        assert!(problem(NewLimitsBody { max_usd: Some(-1.0), ..of() }).starts_with("invalid `max_usd` -1: "));
        assert_eq!(of().limits().unwrap(), NewLimits::default());
    }
}
