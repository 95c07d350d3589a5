//! Verifying: the frozen gate judges the work. No model is called, and no agent process is
//! alive.

use super::NextState;
use crate::id::CallId;
use crate::run::action::Action;
use crate::run::asked::asks_to_change;
use crate::run::context::RunContext;
use crate::run::ledger::Attempt;
use crate::run::prompt;
use crate::run::run_spec::RunSpec;
use crate::run::watch::{AgentEvent, Phase};
use crate::task::OnTamper;
use crate::verdict::{Reason, Ruling, StepStatus, Verdict, are_tests_in};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Waiting for the verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Verifying {
    pub(super) call: CallId,
    attempt: u32,
}

impl Verifying {
    pub(super) fn start(cx: &mut RunContext) -> Self {
        let (call, attempt) = (cx.call(), cx.attempt);
        if cx.awaits_base() {
            cx.emit(AgentEvent::PhaseChanged(Phase::JudgingBase));
        }
        cx.ask(Action::RunGate { call, attempt });
        Self { call, attempt }
    }

    pub(super) fn judge(&self, verdict: Verdict, cx: &mut RunContext) -> NextState {
        emit_verdict(&verdict, self.attempt, cx);
        let ruling = verdict.ruling;
        let retries_left = cx.spec.max_retries.saturating_sub(self.attempt.saturating_sub(1));
        let next = match ruling {
            Ruling::Passed => passed(&verdict, cx),
            Ruling::Errored => NextState::end(Reason::GateErrored, verdict.feedback.clone()),
            Ruling::Failed if is_stuck(&verdict, cx) => NextState::end(Reason::Stuck, why(&verdict)),
            Ruling::Failed if retries_left == 0 => NextState::end(Reason::GateFailed, why(&verdict)),
            Ruling::Failed => {
                cx.transcript.say(prompt::gate_failed(&verdict, retries_left - 1));
                NextState::Begin
            }
            Ruling::Tampered => tampered(&verdict, retries_left, cx),
        };
        close(self.attempt, verdict, &next, cx);
        next
    }
}

/// The signature of a verdict on a final answer that does not fit the schema.
const WRONG_ANSWER: &str = "output_schema";

/// Sends back a final answer that does not fit the schema. This counts as an attempt, but the gate
/// does not run.
pub(super) fn reject(why: &str, cx: &mut RunContext) -> NextState {
    let attempt = cx.attempt;
    let verdict = Verdict {
        ruling: Ruling::Failed,
        steps: Vec::new(),
        findings: Vec::new(),
        duration_ms: 0,
        feedback: format!("The final answer does not have the required form: {why}"),
        signature: WRONG_ANSWER.into(),
        notes: Vec::new(),
        installed: None,
        failed_before: Vec::new(),
        unchanged_since: None,
        proof: None,
    };
    emit_verdict(&verdict, attempt, cx);
    let retries_left = cx.spec.max_retries.saturating_sub(attempt.saturating_sub(1));
    let next = if is_stuck(&verdict, cx) {
        NextState::end(Reason::Stuck, self::why(&verdict))
    } else if retries_left == 0 {
        NextState::end(Reason::GateFailed, self::why(&verdict))
    } else {
        cx.transcript.say(prompt::wrong_answer(&verdict.feedback, retries_left - 1));
        NextState::Begin
    };
    close(attempt, verdict, &next, cx);
    next
}

/// Begins the attempt after the last one, which failed and was the last that the run might make.
pub(in crate::run) fn retry(cx: &mut RunContext) -> NextState {
    let Some(Attempt { verdict, .. }) = cx.ledger.attempts.last() else { return NextState::CallModel };
    let retries_left = cx.spec.max_retries.saturating_sub(cx.attempt);
    let told = match verdict.signature.as_str() {
        WRONG_ANSWER => prompt::wrong_answer(&verdict.feedback, retries_left),
        _ => prompt::gate_failed(verdict, retries_left),
    };
    cx.transcript.say(told);
    cx.attempt += 1;
    cx.loops.forget();
    NextState::Begin
}

/// Takes the verdict on the base as the first attempt. The driver sends only a pass; any other
/// verdict ends the run with an error.
pub(super) fn accept(verdict: Verdict, cx: &mut RunContext) -> NextState {
    emit_verdict(&verdict, cx.attempt, cx);
    let is_as_it_was = verdict.proof.as_ref().is_some_and(|proof| proof.tree == proof.base);
    let next = match (verdict.ruling, is_as_it_was) {
        (Ruling::Passed, true) => NextState::end(Reason::Verified, "the gate already passes: there is nothing to fix"),
        (Ruling::Passed, false) => NextState::end(
            Reason::Verified,
            "the gate passes with the changes that its lanes made: there is nothing more to fix",
        ),
        (Ruling::Errored | Ruling::Failed | Ruling::Tampered, _) => {
            NextState::end(Reason::GateErrored, verdict.feedback.clone())
        }
    };
    close(cx.attempt, verdict, &next, cx);
    next
}

/// Keeps the verdict of an attempt, and starts the next attempt if one follows.
fn close(number: u32, verdict: Verdict, next: &NextState, cx: &mut RunContext) {
    cx.ledger.attempts.push(Attempt { number, verdict });
    if matches!(next, NextState::Begin) {
        cx.attempt += 1;
        cx.loops.forget();
    }
}

/// Decides about a pass. The pass proves nothing if all of the work, or the part that the task asks
/// for, was reverted or refused.
fn passed(verdict: &Verdict, cx: &RunContext) -> NextState {
    let is_the_base = verdict.proof.as_ref().is_some_and(|proof| proof.tree == proof.base);
    let findings = cx.ledger.attempts.iter().flat_map(|attempt| &attempt.verdict.findings);
    let back: BTreeSet<&str> =
        findings.map(|finding| finding.path.as_str()).filter(|path| !are_tests_in(path)).collect();
    let refused: BTreeSet<&str> = cx.ledger.refused.keys().map(String::as_str).collect();
    let what = match (back.is_empty(), refused.is_empty()) {
        (false, true) => "reverted",
        (true, false) => "refused",
        (false, false) | (true, true) => "reverted or refused",
    };
    let RunSpec { title, prompt, .. } = &cx.spec;
    let is_asked = |path: &str| asks_to_change(title, path) || asks_to_change(prompt, path);
    let held: Vec<&str> = back.union(&refused).copied().filter(|path| is_the_base || is_asked(path)).collect();
    if held.is_empty() {
        return NextState::end(Reason::Verified, Reason::Verified.row().meaning);
    }
    let share = if is_the_base { "all of the work" } else { "what the task asks for" };
    let paths = held.join(", ");
    NextState::end(Reason::GateTampered, format!("{share} was {what}, because its paths are protected: {paths}"))
}

/// Decides about changed protected paths. The run ends by policy, after a repeated finding, or
/// without retries left; otherwise the model tries again.
fn tampered(verdict: &Verdict, retries_left: u32, cx: &mut RunContext) -> NextState {
    let again = verdict.findings.iter().any(|finding| cx.known_findings.contains(finding));
    if cx.spec.on_tamper == OnTamper::Fail || again || retries_left == 0 {
        let names: Vec<&str> = verdict.findings.iter().map(|finding| finding.path.as_str()).collect();
        return NextState::end(Reason::GateTampered, format!("protected paths were changed: {}", names.join(", ")));
    }
    cx.known_findings.extend(verdict.findings.iter().cloned());
    cx.transcript.say(prompt::tampered(&verdict.findings, &verdict.feedback, retries_left - 1));
    NextState::Begin
}

fn emit_verdict(verdict: &Verdict, attempt: u32, cx: &mut RunContext) {
    for note in verdict.notes.iter().filter(|note| !cx.ledger.warnings.contains(note)).cloned().collect::<Vec<_>>() {
        cx.warn(note);
    }
    if !verdict.findings.is_empty() {
        cx.emit(AgentEvent::Tamper { findings: verdict.findings.clone() });
    }
    if let Some(proof) = &verdict.proof {
        cx.emit(AgentEvent::Proved { proof: proof.clone() });
    }
    cx.emit(AgentEvent::VerifyResult {
        success: verdict.passed(),
        attempt,
        duration_ms: verdict.duration_ms,
        failed_steps: failed_steps(verdict),
        feedback: verdict.feedback.clone(),
        unchanged_since: verdict.unchanged_since,
    });
}

/// Returns true if the newest `stuck_after` attempts all failed with the same signature.
fn is_stuck(verdict: &Verdict, cx: &RunContext) -> bool {
    let Some(limit) = cx.spec.stuck_after else { return false };
    let same = |attempt: &&Attempt| attempt.verdict.signature == verdict.signature;
    let before = cx.ledger.attempts.iter().rev().take_while(same).count();
    before + 1 >= limit as usize
}

/// Names the failed steps. If every step passed, says why the gate failed nevertheless: the first
/// paragraph of the feedback.
fn why(verdict: &Verdict) -> String {
    match failed_steps(verdict) {
        steps if steps.is_empty() => {
            let first = verdict.feedback.split("\n\n").next().unwrap_or_default();
            first.split_whitespace().collect::<Vec<_>>().join(" ")
        }
        steps => {
            let before =
                verdict.failed_before_line().map(|known_findings| format!("; {known_findings}")).unwrap_or_default();
            format!("failed: {}{before}", steps.join(", "))
        }
    }
}

fn failed_steps(verdict: &Verdict) -> Vec<String> {
    let failed = |status| matches!(status, StepStatus::Failed | StepStatus::TimedOut | StepStatus::Errored);
    let name = |lane: &str, step: &str| format!("{lane}/{step}");
    verdict.steps.iter().filter(|step| failed(step.status)).map(|step| name(&step.lane, &step.step)).collect()
}
