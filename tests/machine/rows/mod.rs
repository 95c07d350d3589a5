//! The rows of the transition table in `specs/run/run.spec.md`. Each row needs a test, or it fails.

mod executing;
mod outside;

use executing as e;
use outside as o;

/// The state, the event, and the test of their outcome.
type Row = (&'static str, &'static str, fn());

const ROWS: [Row; 50] = [
    ("Idle", "TaskSubmitted", o::a_submitted_task_is_planned),
    ("Planning", "PlanReady", o::a_plan_leads_to_the_first_model_call),
    (
        "Planning",
        "PlanReady of a fix, with a verdict that passed",
        o::a_fix_whose_gate_passes_as_it_is_ends_with_the_proof_of_that,
    ),
    ("Planning", "PlanFailed", o::without_a_plan_there_is_only_a_report),
    ("CallingModel", "ModelDelta", e::pieces_of_an_answer_are_shown_and_decide_nothing),
    ("CallingModel", "ModelCompleted, tool use", e::a_tool_use_runs_asks_or_dispatches),
    ("CallingModel", "ModelCompleted, end of turn", e::an_answer_without_calls_goes_to_the_gate_or_the_report),
    ("CallingModel", "ModelCompleted, end of turn that asks in prose", e::a_question_in_prose_is_looked_up),
    ("CallingModel", "ModelCompleted, cut off by the output limit", e::an_answer_cut_off_is_asked_to_go_on_a_few_times),
    ("CallingModel", "ModelCompleted, refusal", e::a_refusal_ends_the_run),
    ("CallingModel", "ModelFailed, retryable, tries left", e::a_retryable_failure_waits_before_the_next_try),
    ("CallingModel", "ModelFailed, context too long", e::a_conversation_that_is_too_long_is_summarised),
    (
        "CallingModel",
        "ModelFailed, final or tries spent, a model left",
        e::a_final_failure_falls_back_to_the_next_model,
    ),
    ("CallingModel", "ModelFailed, final or tries spent, none left", e::the_last_model_s_failure_ends_the_run),
    ("CallingModel", "Interrupted", e::a_call_that_was_cut_off_is_asked_for_anew),
    ("BackingOff", "DeadlinePassed", e::after_the_pause_the_same_effect_is_tried_again),
    ("RunningTools", "ToolProgress", e::what_a_tool_prints_is_shown),
    ("RunningTools", "ToolFinished, failed, may pass, read-only, tries left", e::a_read_that_may_pass_waits),
    ("RunningTools", "ToolFinished, others left", e::the_next_call_starts_when_the_one_before_has_ended),
    ("RunningTools", "ToolFinished, last, some mutating", e::hooks_follow_a_turn_that_may_have_changed_something),
    ("RunningTools", "ToolFinished, last, none mutating", e::results_go_straight_back_to_the_model),
    ("RunningTools", "next call needs approval", e::a_person_is_asked_when_the_call_s_turn_has_come),
    ("Confirming", "ConfirmationAnswered, yes", e::a_yes_runs_the_call),
    ("Confirming", "ConfirmationAnswered, no, or DeadlinePassed", e::a_no_or_silence_is_the_call_s_result),
    ("Dispatching", "ChildFinished, others running", e::children_are_waited_for_together),
    ("Dispatching", "ChildFinished, last", e::the_last_child_leads_on),
    ("RunningHooks", "HooksFinished", e::after_hooks_the_model_is_called),
    (
        "RunningHooks",
        "HooksFinished, files changed to and fro again and again",
        e::files_that_are_changed_to_and_fro_are_a_loop_of_which_the_model_is_told_before,
    ),
    ("AnsweringQuery", "QueryAnswered", e::what_was_looked_up_is_told_to_the_model),
    ("Compacting", "CompactionFinished, ok", e::a_summary_takes_the_place_of_the_older_part),
    ("Compacting", "CompactionFinished, failed", e::a_failed_summary_changes_nothing),
    (
        "Compacting",
        "CompactionFinished, failed, may pass, tries left",
        e::a_summary_that_may_come_waits_for_its_next_try,
    ),
    ("Compacting", "Interrupted", e::a_summary_that_was_cut_off_is_asked_for_anew),
    ("Verifying", "GateFinished, passed", o::a_passed_gate_is_reported_as_verified),
    ("Verifying", "GateFinished, passed, the run commits", o::what_passed_is_delivered_before_the_report),
    ("Verifying", "GateFinished, failed, retries left", o::a_failed_gate_sends_the_run_back_with_its_feedback),
    ("Verifying", "GateFinished, failed, none left", o::a_failed_gate_ends_the_last_attempt),
    ("Verifying", "GateFinished, failed alike too often", o::the_same_failure_again_is_stuck),
    ("Verifying", "GateFinished, errored", o::a_gate_that_cannot_run_is_never_fed_back),
    ("Verifying", "GateFinished, tampered", o::tampering_is_told_once_or_ends_the_run),
    ("Delivering", "Delivered, ok", o::a_delivery_is_told_and_reported),
    ("Delivering", "Delivered, failed", o::verified_work_that_cannot_be_delivered_stays_verified),
    ("Reporting", "ReportSaved", o::a_saved_report_ends_the_run),
    ("Reporting", "ReportFailed", o::a_report_that_cannot_be_saved_is_an_io_error),
    ("Reporting", "CancelRequested", o::a_cancel_on_the_way_to_the_report_changes_nothing_but_who_asked),
    ("Idle", "CancelRequested", o::a_cancel_before_the_start_starts_nothing),
    ("any but Idle, Reporting", "BaseJudged, cannot run", o::checks_that_cannot_run_on_the_base_end_the_run_anywhere),
    ("any but Idle, Reporting", "BaseJudged, failing", o::failures_of_the_base_are_told),
    ("any but Idle, Reporting", "LimitReached", o::a_limit_leads_to_the_report_from_anywhere),
    ("any but Idle, Reporting", "CancelRequested", o::a_cancel_leads_to_the_report_from_anywhere),
];

#[test]
fn every_row_of_the_specification_has_its_test() {
    let spec = include_str!("../../../specs/run/run.spec.md");
    let table = spec.split("| state | event | next | actions |").nth(1).expect("the table of transitions");
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|')).map(cells);
    let specified: Vec<_> = rows.map(|row| (row[0].clone(), row[1].clone())).collect();
    let tested: Vec<_> = ROWS.iter().map(|(state, event, _)| ((*state).to_owned(), (*event).to_owned())).collect();
    assert_eq!(specified, tested);
}
