//! Tests of the journal: its events, fed to a new machine, give the report again.

use crate::support::{Ended, Fledge, Model, call, nothing, say, shell, status, write};
use fledge::elapsed::Elapsed;
use fledge::run::{Action, Event, Run, StateName};
use fledge::store::{JournalRecord, RunRow, StoredRunState};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Feeds the events of the journal to a new machine.
#[track_caller]
fn replayed(run: &Ended) -> (Run, Vec<Action>) {
    let (mut machine, mut actions) = (Run::new(), Vec::new());
    let is_other = |record: &JournalRecord| !["Sent", "NotSent", "Shown"].contains(&record.kind.as_str());
    for record in run.journal().into_iter().filter(is_other) {
        let event: Event = serde_json::from_str(&record.data).unwrap();
        actions.extend(machine.handle(Elapsed(record.at_ms), event));
    }
    (machine, actions)
}

/// Insists that the journal gives the report again, except for the duration of the report itself.
#[track_caller]
fn must_replay(run: &Ended) {
    let (machine, _) = replayed(run);
    assert_eq!(machine.state(), StateName::Idle);
    let mut again = serde_json::to_value(machine.result().unwrap()).unwrap();
    let mut report = run.report();
    for own in ["schema_version", "fledge", "task", "workspace", "folder"] {
        assert!(report.as_object_mut().unwrap().remove(own).is_some(), "the report has no {own}");
    }
    let times = [&mut again, &mut report].map(|value| value["duration_ms"].take().as_u64().unwrap());
    assert!(times[0] >= times[1], "{times:?}");
    assert_eq!(again, report);
}

#[test]
fn a_run_that_was_sent_back_and_verified() {
    long_test!();
    let model = Model::new([
        call("files-read", json!({"path": "none"})).saying("Looking."),
        status(529).header("retry-after-ms", "5"),
        say("Done."),
        write("done", "1\n").breaking_off(),
        write("done", "1\n"),
        say("Now it is."),
    ]);
    let run = Fledge::simple(&model).run();
    run.must_be(0, "verified");
    must_replay(&run);
}

#[test]
fn runs_that_failed() {
    long_test!();
    let cases = [
        (1, vec![say("Done.").always()]),
        (3, vec![status(401)]),
        (3, vec![nothing().always()]),
        (4, vec![shell("echo same").always()]),
        (6, vec![shell("rm lanes/*"), say("Done."), shell("rm lanes/*"), say("Done.")]),
        (7, vec![status(429).header("retry-after", "3600")]),
    ];
    for (code, script) in cases {
        let model = Model::new(script);
        let run = Fledge::simple(&model).run();
        run.must_exit(code);
        must_replay(&run);
    }
}

#[test]
fn runs_that_ran_out_of_time_or_never_got_to_a_model() {
    long_test!();
    let model = Model::new([write("half", ""), shell("sleep 60")]);
    let run = Fledge::simple(&model).task("---\nbudget: { time: 600ms }\n---\nDo it.").run();
    run.must_be(4, "budget_time");
    must_replay(&run);
    let run = Fledge::simple(&model).file("done", "").arg("--expect=failing").run();
    run.must_be(2, "bad_input");
    must_replay(&run);
}

#[test]
fn a_run_that_was_cancelled_in_the_middle_of_a_command() {
    let model = Model::new([write("half", "1\n"), shell("echo begun; sleep 60").saying("Going on.")]);
    let mut running = Fledge::simple(&model).arg("--json").start();
    running.wait_for("{\"text\":\"begun");
    running.signal(Signal::TERM);
    let run = running.end();
    run.must_be(143, "cancelled");
    must_replay(&run);
}

#[test]
fn a_run_that_was_killed_is_interrupted_and_its_journal_is_whole() {
    let model = Model::new([write("half", "1\n"), shell("echo begun; sleep 60").saying("Going on.")]);
    let mut running = Fledge::simple(&model).arg("--json").start();
    running.wait_for("{\"text\":\"begun");
    running.signal(Signal::KILL);
    let run = running.end();
    assert_eq!((run.code, run.row().state), (None, StoredRunState::Interrupted));
    let turn = ["ModelCompleted", "ToolFinished", "HooksFinished", "ModelCompleted"];
    assert_eq!(run.kinds(), [["TaskSubmitted", "PlanReady"].as_slice(), &turn].concat());
    assert_eq!(replayed(&run).0.state(), StateName::Executing);
}

#[test]
fn a_report_that_could_not_be_copied() {
    let model = Model::new([shell("rm -r gone"), write("done", ""), say("Done.")]);
    let run = Fledge::simple(&model).file("gone/x", "").arg("--report=gone/report.json").run();
    run.must_be(8, "io_error");
    let (machine, _) = replayed(&run);
    assert_eq!(machine.result().unwrap().exit_code, 8);
}

#[test]
fn the_row_says_what_ran_and_how_it_ended_and_the_journal_has_every_event_in_order() {
    let model = Model::new([shell("echo one"), write("done", ""), say("Done.")]);
    let run = Fledge::simple(&model).arg("--baseline=never").run();
    let report = run.must_be(0, "verified");
    let RunRow { head, state: StoredRunState::Ended(end), .. } = run.row() else { panic!("{:?}", run.row()) };
    assert_eq!((head.journal_version, json!(head.id.as_str())), (2, report["run"].clone()));
    assert_eq!([json!(head.fledge), json!(head.workspace)], [report["fledge"].clone(), report["workspace"].clone()]);
    assert_eq!(
        (end.reason.as_str(), end.exit_code, end.verified, end.summary.as_str()),
        ("verified", 0, true, "Done.")
    );
    assert_eq!((end.attempts, json!(end.turns)), (1, report["turns"].clone()));
    let kinds = run.kinds();
    let turn = ["ModelCompleted", "ToolFinished", "HooksFinished"];
    let wanted: Vec<&str> =
        ["TaskSubmitted", "PlanReady"].into_iter().chain(turn).chain(turn).chain(["ModelCompleted"]).collect();
    assert_eq!(kinds[..9], wanted);
    assert_eq!(kinds[9..], ["GateFinished", "ReportSaved"]);
    let times: Vec<u64> = run.journal().iter().map(|record| record.at_ms).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn a_replay_asks_for_what_the_run_asked_for() {
    let model = Model::new([shell("echo one"), write("done", ""), say("Done.")]);
    let run = Fledge::simple(&model).arg("--json").run();
    run.must_be(0, "verified");
    let (_, actions) = replayed(&run);
    let asked: Vec<&str> =
        actions.iter().filter(|action| !matches!(action, Action::Emit { .. })).map(Action::name).collect();
    let turn = ["CallModel", "RunTool", "RunHooks"];
    let wanted: Vec<&str> =
        ["Plan"].into_iter().chain(turn).chain(turn).chain(["CallModel", "RunGate", "SaveReport"]).collect();
    assert_eq!(asked, wanted);
    let emitted = actions.iter().filter_map(|action| match action {
        Action::Emit { event } => Some(serde_json::to_value(event).unwrap()),
        _ => None,
    });
    // Transient events are not in the journal. All others repeat exactly, except for their times.
    let transient =
        |event: &Value| ["text", "tool_call", "tool_output", "lane_step"].iter().any(|kind| event["type"] == *kind);
    let told: Vec<Value> = run.events().into_iter().filter(|event| !transient(event)).collect();
    let again: Vec<Value> = emitted.collect();
    assert_eq!(again.len(), told.len());
    for (again, told) in again.iter().zip(&told) {
        assert_eq!((&again["type"], &again["data"]), (&told["type"], &told["data"]));
    }
}
