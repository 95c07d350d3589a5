//! Rows outside Executing: how runs begin, are judged, and end.

use crate::machine::walk::{
    Walk, cancel, committing, delivered, everywhere, heard, judged, planned, proven, says, spec,
};
use crate::machine::world::nature;
use fledge::chat::{StopReason, Usage};
use fledge::id::CallId;
use fledge::limits::Limits;
use fledge::run::{Action, AgentEvent, Delivery, Event, Phase, RunSpec, StateName, TaskResult};
use fledge::task::OnTamper;
use fledge::verdict::{Proof, Reason, Ruling, Verification};

fn told(event: AgentEvent) -> Action {
    Action::Emit { event }
}

fn save(call: u64) -> Action {
    Action::SaveReport { call: CallId(call) }
}

fn call_model(call: u64) -> Action {
    Action::CallModel { call: CallId(call), model: 0, most: None }
}

#[test]
pub(super) fn a_submitted_task_is_planned() {
    let started = AgentEvent::Started {
        title: "title".into(),
        models: vec!["model".into()],
        max_retries: 3,
        verify: true,
        limits: Limits::default(),
    };
    Walk::planning(spec()).gives_all(
        "Planning",
        &[told(started), told(AgentEvent::StateChanged(StateName::Planning)), Action::Plan { call: CallId(1) }],
    );
}

#[test]
pub(super) fn a_plan_leads_to_the_first_model_call() {
    let walk = Walk::planning(spec()).answer(planned(nature::plan())).gives_all(
        "CallingModel",
        &[
            told(AgentEvent::StateChanged(StateName::Executing)),
            told(AgentEvent::PhaseChanged(Phase::CallingModel)),
            call_model(2),
        ],
    );
    assert_eq!(walk.run.conversation(), nature::plan().messages);
}

#[test]
pub(super) fn a_fix_whose_gate_passes_as_it_is_ends_with_the_proof_of_that() {
    let fix = || RunSpec { is_fix: true, ..spec() };
    let as_it_is = |proof: Option<Proof>| {
        let mut plan = nature::passed_plan();
        plan.base_verdict.as_mut().expect("a verdict").proof = proof.map(Box::new);
        planned(plan)
    };
    let same = || Some(Proof { tree: nature::proof().base, ..nature::proof() });
    let walk = Walk::planning(fix()).answer(as_it_is(same())).gives("Reporting", &[save(2)]);
    let result = walk.answer(|call| Event::ReportSaved { call, saved: Box::default() }).run.result().expect("a result");
    assert_eq!((result.reason, result.verification, result.turns), (Reason::Verified, Verification::Passed, 0));
    assert_eq!((result.tree, result.attempts.len()), (Some(nature::proof().base), 1));
    assert_eq!(result.message, "the gate already passes: there is nothing to fix");
    assert_eq!(result.warnings, ["a lane has written"]);
    let commits = RunSpec { commits: true, ..fix() };
    let proof = nature::proof();
    let deliver = Action::Deliver { call: CallId(2), tree: proof.tree.clone(), base: proof.base.clone() };
    Walk::planning(commits.clone()).answer(as_it_is(Some(proof))).gives("Delivering", &[deliver]);
    Walk::planning(commits).answer(as_it_is(same())).gives("Reporting", &[save(2)]);
    Walk::planning(spec()).answer(as_it_is(same())).gives("CallingModel", &[call_model(2)]);
}

#[test]
fn a_delivery_that_failed_says_the_ways_out_that_fit_its_fault() {
    let ways = "remove `x`".to_owned();
    let failed = |call| Event::Delivered { call, result: Err("it moved".into()), ways: Some(ways) };
    let walk = Walk::verifying(committing()).answer(proven(nature::proof())).answer(failed);
    let result = walk.answer(|call| Event::ReportSaved { call, saved: Box::default() }).run.result().expect("a result");
    assert!(result.message.ends_with(": it moved; remove `x`"), "{}", result.message);
}

#[test]
pub(super) fn without_a_plan_there_is_only_a_report() {
    for reason in [Reason::BadInput, Reason::PlanFailed, Reason::GateErrored, Reason::NoSandbox] {
        let failed = |call| Event::PlanFailed { call, reason, message: "no lane `verify`".into() };
        Walk::planning(spec()).answer(failed).gives("Reporting", &[save(2)]).ends_as(reason);
    }
}

#[test]
pub(super) fn a_passed_gate_is_reported_as_verified() {
    let walk = Walk::verifying(spec()).answer(judged(Ruling::Passed)).gives_all(
        "Reporting",
        &[
            told(AgentEvent::VerifyResult {
                success: true,
                attempt: 1,
                duration_ms: 5,
                failed_steps: Vec::new(),
                unchanged_since: None,
                feedback: String::new(),
            }),
            told(AgentEvent::StateChanged(StateName::Reporting)),
            save(4),
        ],
    );
    walk.ends_as(Reason::Verified);
}

#[test]
pub(super) fn what_passed_is_delivered_before_the_report() {
    let proof = nature::proof();
    let deliver = Action::Deliver { call: CallId(4), tree: proof.tree.clone(), base: proof.base.clone() };
    Walk::verifying(committing()).answer(proven(proof.clone())).gives("Delivering", &[deliver]);
    let untouched = Proof { tree: proof.base.clone(), ..proof.clone() };
    Walk::verifying(committing()).answer(proven(untouched)).gives("Reporting", &[save(4)]);
    Walk::verifying(spec()).answer(proven(proof)).gives("Reporting", &[save(4)]);
}

#[test]
pub(super) fn a_delivery_is_told_and_reported() {
    let walk = Walk::verifying(committing()).answer(proven(nature::proof())).answer(delivered(Ok(())));
    let Delivery { commit, branch, notes, .. } = nature::delivery();
    let committed = AgentEvent::Committed { commit: commit.clone(), branch: branch.clone() };
    let noted = AgentEvent::Warning(notes[0].clone());
    let walk = walk.gives_all("Reporting", &[told(committed), told(noted), save(5)]);
    let result = walk.answer(|call| Event::ReportSaved { call, saved: Box::default() }).run.result().expect("a result");
    let (base, tree) = (nature::proof().base, nature::proof().tree);
    assert_eq!((result.reason, result.tree, result.base), (Reason::Verified, Some(tree), Some(base)));
    assert_eq!((result.commit, result.branch), (Some(commit), branch));
}

#[test]
pub(super) fn verified_work_that_cannot_be_delivered_stays_verified() {
    let walk = Walk::verifying(committing()).answer(proven(nature::proof())).answer(delivered(Err("it moved")));
    let walk = walk.gives("Reporting", &[save(5)]).answer(|call| Event::ReportSaved { call, saved: Box::default() });
    let result = walk.run.result().expect("a result");
    assert_eq!((result.reason, result.exit_code, result.verified), (Reason::NotDelivered, 5, true));
    assert_eq!((result.verification, result.commit), (Verification::Passed, None));
    let ways = "try again with `fledge runs resume run`, \
        or put the work on a branch with `fledge apply run --branch NAME`";
    assert!(result.message.ends_with(&format!(": it moved; {ways}")), "{}", result.message);
}

#[test]
pub(super) fn a_failed_gate_sends_the_run_back_with_its_feedback() {
    let walk = Walk::verifying(spec()).answer(judged(Ruling::Failed)).gives("CallingModel", &[call_model(4)]);
    assert_eq!(
        heard(&walk.run),
        ["The project's checks ran on your work and failed. Fix the cause, then finish again. \
          After this, 2 more attempts are left.\n\n1 test failed"]
    );
    let again = walk.answer(says(StopReason::EndTurn, "Mended."));
    again.gives("Verifying", &[Action::RunGate { call: CallId(5), attempt: 2 }]);
}

#[test]
pub(super) fn a_failed_gate_ends_the_last_attempt() {
    let walk = Walk::verifying(RunSpec { max_retries: 0, ..spec() }).answer(judged(Ruling::Failed));
    walk.gives("Reporting", &[save(4)]).ends_as(Reason::GateFailed);
}

#[test]
pub(super) fn the_same_failure_again_is_stuck() {
    let first = Walk::verifying(RunSpec { stuck_after: Some(2), ..spec() }).answer(judged(Ruling::Failed));
    let second = first.answer(says(StopReason::EndTurn, "Mended.")).answer(judged(Ruling::Failed));
    second.gives("Reporting", &[save(6)]).ends_as(Reason::Stuck);
}

#[test]
pub(super) fn a_gate_that_cannot_run_is_never_fed_back() {
    let walk = Walk::verifying(spec()).answer(judged(Ruling::Errored)).gives("Reporting", &[save(4)]);
    walk.ends_as(Reason::GateErrored);
    assert_eq!(heard(&walk.run), ["do it"]);
}

#[test]
pub(super) fn tampering_is_told_once_or_ends_the_run() {
    let told = Walk::verifying(spec()).answer(judged(Ruling::Tampered)).gives("CallingModel", &[call_model(4)]);
    assert!(heard(&told.run)[0].contains("- lanes/verify.yaml (changed): lanes"));
    let twice = told.answer(says(StopReason::EndTurn, "Done.")).answer(judged(Ruling::Tampered));
    twice.gives("Reporting", &[save(6)]).ends_as(Reason::GateTampered);
    let again = || Walk::verifying(spec()).answer(judged(Ruling::Tampered)).answer(says(StopReason::EndTurn, "Done."));
    again().answer(proven(nature::proof())).ends_as(Reason::Verified);
    let nothing_left = Proof { tree: nature::proof().base, ..nature::proof() };
    again().answer(proven(nothing_left)).gives("Reporting", &[save(6)]).ends_as(Reason::GateTampered);
    let strict = Walk::verifying(RunSpec { on_tamper: OnTamper::Fail, ..spec() });
    strict.answer(judged(Ruling::Tampered)).gives("Reporting", &[save(4)]).ends_as(Reason::GateTampered);
}

fn finished(reason: Reason, message: &str, output_tokens: u64) -> Action {
    told(AgentEvent::Finished {
        reason,
        verified: Some(reason == Reason::Verified),
        cancelled: reason == Reason::Cancelled,
        exit_code: reason.row().exit_code,
        message: message.into(),
        usage: Usage { input_tokens: 10 * output_tokens, output_tokens, ..Usage::default() },
    })
}

#[test]
pub(super) fn a_saved_report_ends_the_run() {
    let walk = Walk::verifying(spec())
        .answer(judged(Ruling::Passed))
        .answer(|call| Event::ReportSaved { call, saved: Box::default() });
    let end = finished(Reason::Verified, "the project's checks passed", 1);
    walk.gives_all("Idle", &[told(AgentEvent::StateChanged(StateName::Idle)), end]).ends_as(Reason::Verified);
}

#[test]
pub(super) fn a_report_that_cannot_be_saved_is_an_io_error() {
    let failed = |call| Event::ReportFailed { call, message: "disk full".into() };
    let walk = Walk::verifying(spec()).answer(judged(Ruling::Passed)).answer(failed);
    let end = finished(Reason::IoError, "disk full", 1);
    walk.gives_all("Idle", &[told(AgentEvent::StateChanged(StateName::Idle)), end]).ends_as(Reason::IoError);
}

#[test]
pub(super) fn a_cancel_on_the_way_to_the_report_changes_nothing_but_who_asked() {
    let reporting = Walk::verifying(spec()).answer(judged(Ruling::Passed));
    let delivering = Walk::verifying(committing()).answer(proven(nature::proof()));
    for (walk, label) in [(reporting, "Reporting"), (delivering, "Delivering")] {
        let before = walk.run.result().expect("a result");
        let after = walk.then(cancel()).gives_all(label, &[]).run.result().expect("a result");
        assert_eq!((after.cancelled, after.reason, after.stopped_by.is_some()), (false, Reason::Verified, true));
        assert_eq!(TaskResult { stopped_by: None, ..after }, before);
    }
}

#[test]
pub(super) fn a_cancel_before_the_start_starts_nothing() {
    Walk::new().then(cancel()).gives_all("Idle", &[finished(Reason::Cancelled, "cancelled", 0)]);
}

/// Asserts that effects in flight are stopped before the report, and that otherwise nothing is
/// stopped.
fn way_out(before: &Walk, after: &Walk) {
    let report = after.run.awaited().last().copied().expect("a report");
    let mut asked = vec![Action::SaveReport { call: report }];
    if !before.run.awaited().is_empty() {
        asked.insert(0, Action::AbortInFlight);
    }
    assert_eq!((after.run.label(), after.asked()), ("Reporting", asked), "{}", before.run.label());
}

#[test]
pub(super) fn checks_that_cannot_run_on_the_base_end_the_run_anywhere() {
    for walk in everywhere().into_iter().filter(|walk| !matches!(walk.run.label(), "Idle" | "Delivering" | "Reporting"))
    {
        let after = walk.clone().then(Event::BaseJudged { result: Err("there is no program `x`".into()) });
        way_out(&walk, &after);
        after.ends_as(Reason::GateErrored);
        let told = after.told();
        let is_told = |event: &AgentEvent| matches!(event, AgentEvent::StateChanged(StateName::Reporting));
        assert!(told.iter().any(is_told), "{told:?}");
    }
}

#[test]
pub(super) fn failures_of_the_base_are_told() {
    for walk in everywhere().into_iter().filter(|walk| !matches!(walk.run.label(), "Idle" | "Delivering" | "Reporting"))
    {
        let after = walk.clone().then(Event::BaseJudged { result: Ok(vec!["verify/lint".into()]) });
        let warning = "failed before any change: verify/lint".to_owned();
        after.gives_all(walk.run.label(), &[told(AgentEvent::Warning(warning))]);
        let again = walk.clone().then(Event::BaseJudged { result: Ok(Vec::new()) });
        again.gives_all(walk.run.label(), &[]);
    }
}

#[test]
pub(super) fn a_limit_leads_to_the_report_from_anywhere() {
    for walk in everywhere().into_iter().filter(|walk| !matches!(walk.run.label(), "Idle" | "Delivering" | "Reporting"))
    {
        let after = walk.clone().then(Event::LimitReached { reason: Reason::BudgetMoney });
        way_out(&walk, &after);
        after.ends_as(Reason::BudgetMoney);
        assert!(after.told().contains(&AgentEvent::Limit { reason: Reason::BudgetMoney }));
    }
}

#[test]
pub(super) fn a_cancel_leads_to_the_report_from_anywhere() {
    for walk in everywhere().into_iter().filter(|walk| !matches!(walk.run.label(), "Idle" | "Delivering" | "Reporting"))
    {
        let after = walk.clone().then(cancel());
        way_out(&walk, &after);
        after.ends_as(Reason::Cancelled);
    }
}
