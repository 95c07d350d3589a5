//! New limits for an earlier run: what it has used so far, and whether they let it go on.

use super::resume::{ResumeError, folded, readable};
use crate::chat::money;
use crate::duration::show_duration;
use crate::limits::NewLimits;
use crate::store::{RunRow, Store, StoredRunState};
use crate::verdict::Reason;
use std::time::Duration;

/// Returns true if a limit ended a run, so that a higher one lets it go on.
pub fn is_limited(state: &StoredRunState) -> bool {
    let is_word_of = |word: &str| Reason::ALL.into_iter().any(|reason| reason.is_limit() && reason.to_string() == word);
    matches!(state, StoredRunState::Ended(outcome) if is_word_of(&outcome.reason))
}

/// The use of a run so far, and its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunUse {
    /// The use so far.
    pub used: NewLimits,
    /// Its limits; `None` means no limit.
    pub limits: NewLimits,
}

/// Returns what a run has used and may use, once it is known that these limits let it go on.
///
/// # Errors
/// [`ResumeError`] if its journal cannot be read, a limit is lower than what the run has used, or
/// the limit that ended the run is not higher.
pub fn check_limits(store: &Store, row: &RunRow, limits: NewLimits) -> Result<RunUse, ResumeError> {
    readable(&row.head)?;
    let run = &row.head.id;
    let mut folded = folded(run, store.events(run, 0)?)?;
    let cost = Some(folded.cost()).filter(|cost| *cost > 0); // 0 also where the price is unknown
    let used = NewLimits { usd_micros: cost, ..folded.run.used() };
    if let Some(too_low) = too_low(limits, used) {
        return Err(ResumeError::Limits { why: format!("{too_low} by run {run} already") });
    }
    folded.run.set_limits(limits);
    if let Some(reason) = folded.run.still_limited() {
        let meaning = reason.row().meaning;
        let why = format!("run {run} cannot go on: {meaning}; raise {}", flag_of(reason));
        return Err(ResumeError::Limits { why });
    }
    Ok(RunUse { used, limits: folded.run.limits() })
}

/// Returns the flag that raises a limit.
fn flag_of(reason: Reason) -> &'static str {
    match reason {
        Reason::MaxTurns => "--max-turns",
        Reason::BudgetTokens => "--max-tokens",
        Reason::BudgetMoney => "--max-usd",
        Reason::BudgetTime => "--max-time",
        _ => "--max-retries",
    }
}

/// Describes the first limit that is lower than what is used.
fn too_low(limits: NewLimits, used: NewLimits) -> Option<String> {
    let seconds = |ms: u64| show_duration(Duration::from_millis(ms));
    let row = |flag: &str, limit: Option<u64>, used: Option<u64>, show: &dyn Fn(u64) -> String| {
        let (limit, used) = (limit?, used?);
        (limit < used).then(|| format!("{flag} {} is too low: {} are used", show(limit), show(used)))
    };
    let count = |number: u64| number.to_string();
    row("--max-retries", limits.max_retries.map(u64::from), used.max_retries.map(u64::from), &count)
        .or_else(|| row("--max-turns", limits.turns, used.turns, &count))
        .or_else(|| row("--max-tokens", limits.tokens, used.tokens, &count))
        .or_else(|| row("--max-usd", limits.usd_micros, used.usd_micros, &money))
        .or_else(|| row("--max-time", limits.time_ms, used.time_ms, &seconds))
}
