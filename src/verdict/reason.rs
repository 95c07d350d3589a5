//! The reasons why a run ends, and the one table that maps them to words and exit codes.

use super::StopCause;
use crate::limits::LimitName;
use serde::{Deserialize, Serialize};

/// The reason why a run ended. [`Reason::row`] maps reasons to words and exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The last verdict passed.
    Verified,
    /// The model finished, and verification was skipped on purpose.
    Skipped,
    /// The gate failed and no retries are left.
    GateFailed,
    /// The gate failed in the same way too often.
    Stuck,
    /// The task, a lane, the configuration or the command line is wrong.
    BadInput,
    /// The run could not be planned.
    PlanFailed,
    /// The provider failed permanently.
    ProviderFailed,
    /// The model refused.
    Refused,
    /// The model returned an empty response twice.
    EmptyResponse,
    /// The model or its provider violated the protocol too often.
    ModelProtocol,
    /// The run reached the turn limit.
    MaxTurns,
    /// The run reached the token limit.
    BudgetTokens,
    /// The run reached the money limit.
    BudgetMoney,
    /// The run reached the time limit.
    BudgetTime,
    /// The model repeated the same calls or the same changes.
    LoopDetected,
    /// The gate could not run.
    GateErrored,
    /// The last verdict passed, but the result could not be committed.
    NotDelivered,
    /// No sandbox could be built, although one is required.
    NoSandbox,
    /// The gate was tampered with, and the policy is to stop.
    GateTampered,
    /// The provider asks for a longer wait than allowed, or a person must answer. The run can be
    /// resumed.
    Blocked,
    /// fledge could not write its own state.
    IoError,
    /// fledge itself failed.
    Internal,
    /// The run was cancelled.
    Cancelled,
}

/// One row of the table of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReasonRow {
    /// The word in the report, in snake case.
    pub word: &'static str,
    /// The word that agent loops use for the end of a run.
    pub done_reason: &'static str,
    /// The exit code of `fledge run`. A run cancelled by SIGTERM has 143 instead.
    pub exit_code: u8,
    /// The meaning, for people.
    pub meaning: &'static str,
}

impl Reason {
    /// Returns the limit that ended the run. The run may continue if that limit is raised.
    pub fn limit(self) -> Option<LimitName> {
        Some(match self {
            Self::GateFailed => LimitName::Retries,
            Self::MaxTurns => LimitName::Turns,
            Self::BudgetTokens => LimitName::Tokens,
            Self::BudgetMoney => LimitName::Cost,
            Self::BudgetTime => LimitName::Time,
            _ => return None,
        })
    }

    /// Every reason, in the order of the table.
    pub const ALL: [Self; 23] = [
        Self::Verified,
        Self::Skipped,
        Self::GateFailed,
        Self::Stuck,
        Self::BadInput,
        Self::PlanFailed,
        Self::ProviderFailed,
        Self::Refused,
        Self::EmptyResponse,
        Self::ModelProtocol,
        Self::MaxTurns,
        Self::BudgetTokens,
        Self::BudgetMoney,
        Self::BudgetTime,
        Self::LoopDetected,
        Self::GateErrored,
        Self::NotDelivered,
        Self::NoSandbox,
        Self::GateTampered,
        Self::Blocked,
        Self::IoError,
        Self::Internal,
        Self::Cancelled,
    ];

    /// Returns the row of the table: word, done reason, exit code, meaning.
    pub fn row(self) -> ReasonRow {
        let row = |word, done_reason, exit_code, meaning| ReasonRow { word, done_reason, exit_code, meaning };
        match self {
            Self::Verified => row("verified", "model_stop", 0, "the project's checks passed"),
            Self::Skipped => row("skipped", "model_stop", 0, "done; verification was skipped on request"),
            Self::GateFailed => row("gate_failed", "model_stop", 1, "the gate failed and no retries are left"),
            Self::Stuck => row("stuck", "model_stop", 1, "the gate failed in the same way too often"),
            Self::BadInput => {
                row("bad_input", "error", 2, "the task, a lane, the configuration or the command line is wrong")
            }
            Self::PlanFailed => row("plan_failed", "error", 2, "the run could not be planned"),
            Self::ProviderFailed => row("provider_failed", "error", 3, "the model's provider failed for good"),
            Self::Refused => row("refused", "error", 3, "the model refused"),
            Self::EmptyResponse => row("empty_response", "error", 3, "the model said nothing, twice"),
            Self::ModelProtocol => row("model_protocol", "error", 3, "the model broke the protocol too often"),
            Self::MaxTurns => row("max_turns", "max_turns", 4, "the turn limit was reached"),
            Self::BudgetTokens => row("budget_tokens", "budget_exceeded", 4, "the token limit was reached"),
            Self::BudgetMoney => row("budget_money", "budget_exceeded", 4, "the money limit was reached"),
            Self::BudgetTime => row("budget_time", "budget_exceeded", 4, "the time limit was reached"),
            Self::LoopDetected => row("loop_detected", "loop_detected", 4, "the model went round in a loop"),
            Self::GateErrored => row("gate_errored", "error", 5, "the gate could not run"),
            Self::NotDelivered => {
                row("not_delivered", "model_stop", 5, "the work is verified, but could not be committed")
            }
            Self::NoSandbox => row("no_sandbox", "error", 5, "no sandbox could be built"),
            Self::GateTampered => row("gate_tampered", "error", 6, "the gate was tampered with"),
            Self::Blocked => row("blocked", "error", 7, "blocked for now; can be taken up again"),
            Self::IoError => row("io_error", "error", 8, "fledge could not write its own state"),
            Self::Internal => row("internal", "error", 8, "fledge itself failed"),
            Self::Cancelled => row("cancelled", "user_abort", 130, "cancelled"),
        }
    }

    /// Returns a label of two or three words for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Skipped => "not verified",
            Self::GateFailed => "failed",
            Self::Stuck => "stuck",
            Self::BadInput => "bad input",
            Self::PlanFailed => "not planned",
            Self::ProviderFailed => "provider failed",
            Self::Refused => "refused",
            Self::EmptyResponse => "no answer",
            Self::ModelProtocol => "invalid answers",
            Self::MaxTurns => "turn limit",
            Self::BudgetTokens => "token limit",
            Self::BudgetMoney => "money limit",
            Self::BudgetTime => "time limit",
            Self::LoopDetected => "loop",
            Self::GateErrored => "checks not run",
            Self::NotDelivered => "not committed",
            Self::NoSandbox => "no sandbox",
            Self::GateTampered => "tampered with",
            Self::Blocked => "blocked",
            Self::IoError => "cannot write",
            Self::Internal => "internal error",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the label of a reason, given its word in the report. An unknown word is returned
    /// unchanged.
    pub fn label_of(word: &str) -> &str {
        Self::ALL.into_iter().find(|reason| reason.row().word == word).map_or(word, |reason| reason.label())
    }

    /// Returns the exit code, given the source of a stop.
    pub fn exit_code(self, stopped_by: Option<StopCause>) -> u8 {
        match (self, stopped_by) {
            (Self::Cancelled, Some(StopCause::Terminate)) => 143,
            (reason, _) => reason.row().exit_code,
        }
    }
}

/// Exit codes by severity: tampered gate, internal error, gate that could not run, bad input, model
/// failure, blocked, limit reached, failed gate, stopped, success.
const GRAVEST: [u8; 11] = [6, 8, 5, 2, 3, 7, 4, 1, 143, 130, 0];

/// Returns the exit code of many runs: the most severe of their codes. An unknown code is more
/// severe than all others.
pub fn gravest(codes: impl IntoIterator<Item = u8>) -> u8 {
    let place = |code: &u8| GRAVEST.iter().position(|known| known == code);
    codes.into_iter().min_by_key(place).unwrap_or(0)
}

/// Returns the exit code of several runs if one success would have been enough and none succeeded:
/// the least severe of their codes.
pub fn mildest(codes: impl IntoIterator<Item = u8>) -> u8 {
    let place = |code: &u8| GRAVEST.iter().position(|known| known == code);
    codes.into_iter().filter(|code| *code != 0).max_by_key(place).unwrap_or(0)
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.row().word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_reason_has_one_row_and_one_word() {
        let words: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.row().word).collect();
        assert_eq!(words.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.row().word);
            assert_eq!(Reason::label_of(reason.row().word), reason.label());
            assert!(!reason.label().contains('_'));
        }
    }

    #[test]
    fn the_gravest_code_is_that_of_many_runs_and_every_code_has_its_place() {
        let codes: BTreeSet<u8> = Reason::ALL.iter().map(|reason| reason.row().exit_code).chain([143]).collect();
        assert_eq!(codes, GRAVEST.into_iter().collect());
        assert_eq!(gravest([0, 1, 4, 1]), 4);
        assert_eq!(gravest([130, 0, 143]), 143);
        assert_eq!(gravest([1, 8, 6, 2]), 6);
        assert_eq!(gravest([]), 0);
        assert_eq!([mildest([8, 1, 4, 0]), mildest([130, 3]), mildest([0])], [1, 130, 0]);
    }

    #[test]
    fn only_verified_and_skipped_are_a_success() {
        let successes: Vec<Reason> = Reason::ALL.into_iter().filter(|reason| reason.row().exit_code == 0).collect();
        assert_eq!(successes, [Reason::Verified, Reason::Skipped]);
    }

    #[test]
    fn who_asked_matters_to_a_cancelled_run_alone() {
        for reason in Reason::ALL {
            let codes =
                [StopCause::Interrupt, StopCause::Token, StopCause::Terminate].map(|c| reason.exit_code(Some(c)));
            let own = reason.row().exit_code;
            assert_eq!(codes, if reason == Reason::Cancelled { [130, 130, 143] } else { [own; 3] }, "{reason}");
        }
    }
}
