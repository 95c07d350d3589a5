//! `fledge lanes run --base`: the verdict that a run's gate would give on the current files as work
//! on a commit.

use super::super::clean_gate::{CleanGate, lost};
use super::super::failure::CliError;
use super::super::paint;
use super::output::LaneOutput;
use super::run::{LaneRequest, state_dir};
use super::say;
use crate::driver::StopToken;
use crate::gate::Gate;
use crate::lane::{Lane, Step};
use crate::lane_runner::{LaneOutcome, LaneRuling, not_run};
use crate::report::{found, held_back, lane_data, rests_on, unproven};
use crate::store::{self, LaneDir};
use crate::verdict::{HeldBack, Reason, Ruling, StepReport, TamperFinding, Verdict};
use serde_json::json;
use std::cell::Cell;
use std::time::Duration;

/// Judges the current files as work on the commit `rev`. Sets `was_told` when the end is reported.
///
/// # Errors
/// When the commit or its lane cannot be used, or its checks cannot run.
pub(super) async fn judge(ask: LaneRequest<'_>, rev: &str, was_told: &Cell<bool>) -> Result<u8, CliError> {
    let LaneRequest { root, arguments, environment, stop, .. } = ask;
    let project = store::project_dir(&state_dir(ask)?, root);
    let logs = LaneDir::create(&project, &uuid::Uuid::now_v7().to_string()).map_err(CliError::own)?;
    let place = (root, arguments.name.as_str(), arguments.allow_edit.as_slice());
    let opened = CleanGate::open_at(rev, place, arguments.sandbox, environment, (&project, &logs), stop).await;
    let (CleanGate { gate, site }, commit) = opened?;
    say(&notes(&gate, rev, &commit));
    let lane = &gate.lanes[0];
    let judged = async {
        gate.judge_base(&site, stop.token(), &|_| {}).await?;
        gate.lacks_nothing(&site)
    };
    judged.await.map_err(lost(stop))?;
    let voice = LaneOutput::new(lane, &arguments.voice, root, environment)?;
    let show_step = |progress| voice.show_step(progress);
    let verdict = tokio::select! {
        verdict = gate.judge_by_hand(&site, stop.token(), &show_step) => verdict,
        never = voice.tick(stop) => match never {},
    };
    let outcome = outcome(lane, &verdict, stop);
    let (word, data_word, code) = ruled(&verdict, &outcome, stop);
    let data = || {
        let mut data = lane_data::ended(lane, &outcome, data_word, code, None);
        data["room"] = json!({ "kind": "clean", "sandbox": site.sandbox.kind(), "tree": tree(&verdict) });
        data["base"] = json!({ "ref": rev, "commit": commit, "tree": gate.base() });
        data["verdict"] = json!(verdict);
        data
    };
    was_told.set(true);
    let code = voice.close(&outcome, (word, &why(&verdict)), code, data, stop).await;
    say(&remarks(&verdict));
    code
}

/// Returns the notes to print before the lane runs.
fn notes(gate: &Gate, rev: &str, commit: &str) -> Vec<String> {
    let short = commit.get(..12).unwrap_or(commit);
    let first = format!("the current files are judged as work on {rev} ({short}), after the checks of that commit");
    [first].into_iter().chain(gate.notes.clone()).map(|note| paint::one_line(&note)).collect()
}

/// Returns the outcome of the lane. Steps that did not run are included.
fn outcome(lane: &Lane, verdict: &Verdict, stop: &StopToken) -> LaneOutcome {
    let report = |step: &Step| {
        let ran = verdict.steps.iter().find(|other| other.lane == lane.name && other.step == step.name);
        ran.cloned().unwrap_or_else(|| not_run(lane, step))
    };
    let steps: Vec<StepReport> = lane.steps.iter().map(report).collect();
    let ruling = match verdict.ruling {
        Ruling::Passed => LaneRuling::Passed,
        _ if stop.token().is_cancelled() => LaneRuling::Cancelled,
        Ruling::Failed | Ruling::Tampered => LaneRuling::Failed,
        Ruling::Errored => LaneRuling::Errored,
    };
    let none = || steps.iter().map(|_| None).collect();
    let duration = Duration::from_millis(verdict.duration_ms);
    LaneOutcome {
        ruling,
        spans: steps.iter().map(|_| None).collect(),
        test_reports: none(),
        found_reports: none(),
        runner_reports: steps.iter().map(|_| None).collect(),
        duration,
        steps,
    }
}

/// Returns the word for people, the word in JSON, and the exit code.
fn ruled(verdict: &Verdict, outcome: &LaneOutcome, stop: &StopToken) -> (&'static str, &'static str, u8) {
    let has_failed = outcome.steps.iter().any(|step| step.status.is_failure());
    let code = |reason: Reason| reason.row().exit_code;
    match (outcome.ruling, verdict.ruling) {
        (LaneRuling::Cancelled, _) => ("cancelled", "cancelled", Reason::Cancelled.exit_code(Some(stop.cause()))),
        (_, Ruling::Passed) => ("passed", "passed", code(Reason::Verified)),
        (_, Ruling::Failed) if has_failed => ("failed", "failed", code(Reason::GateFailed)),
        (_, Ruling::Failed) => ("passed its steps but failed as a gate", "failed", code(Reason::GateFailed)),
        (_, Ruling::Tampered) => ("was tampered with", "tampered", code(Reason::GateTampered)),
        (_, Ruling::Errored) => ("could not run", "could_not_run", code(Reason::GateErrored)),
    }
}

/// Returns the reason for the verdict, if no step gives it.
fn why(verdict: &Verdict) -> String {
    match verdict.ruling {
        Ruling::Passed => String::new(),
        Ruling::Failed | Ruling::Errored => verdict.feedback.trim_end().to_owned(),
        Ruling::Tampered => verdict.findings.iter().map(found).collect::<Vec<_>>().join("; "),
    }
}

/// Returns what the gate adds to its verdict, one line each: findings with their flags, the reason
/// without a failed step, notes and evidence.
fn remarks(verdict: &Verdict) -> Vec<String> {
    let has_failed = verdict.steps.iter().any(|step| step.status.is_failure());
    let reasons = if has_failed || verdict.ruling == Ruling::Tampered { "" } else { verdict.feedback.as_str() };
    let with_flag =
        |TamperFinding { path, change, rule }: &TamperFinding| held_back(&HeldBack::new(path, change, rule));
    let mut remarks: Vec<String> = verdict.findings.iter().map(with_flag).collect();
    remarks.extend(reasons.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned));
    remarks.extend(verdict.notes.iter().cloned());
    if let Some(proof) = &verdict.proof {
        remarks.push(rests_on(proof));
        remarks.extend(unproven(proof).into_iter().map(|what| format!("not proven: {what}")));
    }
    remarks.iter().map(|remark| paint::one_line(remark)).collect()
}

/// Returns the tree that passed, if one did.
fn tree(verdict: &Verdict) -> Option<&str> {
    verdict.proof.as_ref().map(|proof| proof.tree.as_str())
}
