//! New limits for an earlier run: what it has used so far, and whether they let it go on.

use super::error::{LimitError, LimitFlaw, ResumeError};
use super::journal::{folded, readable, terms};
use super::resume::{is_for_now, must_be_ours};
use super::worktree::must_stand;
use crate::chat::money;
use crate::duration::show_duration;
use crate::limits::{LimitName, NewLimits};
use crate::store::{RunRow, Store, StoredRunState};
use crate::verdict::Reason;
use crate::workspace::worktree::Worktree;
use std::time::Duration;

/// Returns true if a limit ended a run, so that a higher one lets it go on.
pub fn is_limited(state: &StoredRunState) -> bool {
    let is_word_of =
        |word: &str| Reason::ALL.into_iter().any(|reason| reason.limit().is_some() && reason.to_string() == word);
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
    let fault = |(limit, flaw)| ResumeError::Limits(LimitError { run: run.clone(), limit, flaw });
    if let Some(too_low) = too_low(limits, used) {
        return Err(fault(too_low));
    }
    folded.run.set_limits(limits);
    if let Some(reason) = folded.run.still_limited() {
        return Err(fault((reason.limit().unwrap_or(LimitName::Retries), LimitFlaw::Reached(reason))));
    }
    Ok(RunUse { used, limits: folded.run.limits() })
}

/// Checks that a resume with these limits lets a run go on.
///
/// # Errors
/// [`ResumeError`] if another machine drives the run, the run has ended for good, its worktree is
/// gone, or for the reasons of [`check_limits`].
pub fn check_resume(store: &Store, row: &RunRow, limits: NewLimits) -> Result<(), ResumeError> {
    must_be_ours(row)?;
    if let StoredRunState::Ended(outcome) = &row.state
        && !is_for_now(&row.state)
        && !is_limited(&row.state)
        && outcome.reason != Reason::NotDelivered.to_string()
    {
        let reason = Reason::label_of(&outcome.reason).to_owned();
        return Err(ResumeError::Over { run: row.head.id.clone(), reason });
    }
    if is_limited(&row.state) || !limits.is_empty() {
        check_limits(store, row, limits)?;
    }
    if matches!(&row.state, StoredRunState::Ended(_)) {
        must_have_worktree(row, terms(store, &row.head.id)?.1.worktree.as_ref())?;
    }
    Ok(())
}

/// Checks that the worktree of a run that has ended for now is there.
///
/// # Errors
/// [`ResumeError::NotReady`] if it is gone.
pub(super) fn must_have_worktree(row: &RunRow, worktree: Option<&Worktree>) -> Result<(), ResumeError> {
    let StoredRunState::Ended(outcome) = &row.state else { return Ok(()) };
    // A run that had no turn may have had no worktree yet.
    if outcome.turns == 0 || !(is_limited(&row.state) || is_for_now(&row.state)) {
        return Ok(());
    }
    must_stand(worktree).map_err(|why| ResumeError::NotReady { run: row.head.id.clone(), why })
}

/// Returns those of these limits that a run does not have yet. An earlier process may have set
/// them before it ended.
///
/// # Errors
/// [`ResumeError`] if its journal cannot be read.
pub fn limits_to_set(store: &Store, row: &RunRow, limits: NewLimits) -> Result<NewLimits, ResumeError> {
    if limits.is_empty() {
        return Ok(limits);
    }
    readable(&row.head)?;
    let run = &row.head.id;
    Ok(limits.beyond(folded(run, store.events(run, 0)?)?.run.limits()))
}

/// Returns the first limit that is lower than what is used.
fn too_low(limits: NewLimits, used: NewLimits) -> Option<(LimitName, LimitFlaw)> {
    let seconds = |ms: u64| show_duration(Duration::from_millis(ms));
    let row = |name: LimitName, limit: Option<u64>, used: Option<u64>, show: &dyn Fn(u64) -> String| {
        let (limit, used) = (limit?, used?);
        (limit < used).then(|| (name, LimitFlaw::TooLow { value: show(limit), used: show(used) }))
    };
    let count = |number: u64| number.to_string();
    row(LimitName::Retries, limits.max_retries.map(u64::from), used.max_retries.map(u64::from), &count)
        .or_else(|| row(LimitName::Turns, limits.turns, used.turns, &count))
        .or_else(|| row(LimitName::Tokens, limits.tokens, used.tokens, &count))
        .or_else(|| row(LimitName::Cost, limits.usd_micros, used.usd_micros, &money))
        .or_else(|| row(LimitName::Time, limits.time_ms, used.time_ms, &seconds))
}
