//! Tests of commands on resumed runs: their output, and the choice of the run to resume.

use crate::support::{Ended, Fledge, Model, say, shell, status, words, write};
use fledge::store::{RunRow, StoredRunState};
use rusqlite::Connection;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Starts the simple task with these arguments and kills it during a command.
fn killed(model: &Model, arguments: &[&str]) -> Ended {
    let mut fledge = Fledge::simple(model).arg("--json");
    for argument in arguments {
        fledge = fledge.arg(argument);
    }
    let mut running = fledge.lane("strict", "steps: [{ name: no, run: 'false' }]").start();
    running.wait_for("{\"text\":\"begun");
    running.signal(Signal::KILL);
    running.end()
}

#[test]
fn a_run_that_was_taken_up_again_is_told_whole() {
    long_test!();
    let model = Model::new([shell("echo begun; sleep 60"), write("done", ""), say("Done.")]);
    let ended = killed(&model, &[]).again(&["runs", "resume", "last"]).anthropic(&model).run();
    ended.must_exit(0);
    let ended = ended.again(&["runs", "show", "last"]).run();
    ended.must_exit(0);
    assert!(
        ended.stdout.contains("● resumed") && ended.stdout.contains("gate, attempt 1: passed"),
        "{}",
        ended.story()
    );
    let ended = ended.again(&["runs", "show", "last", "--json"]).run();
    ended.must_exit(0);
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(shown["result"]["reason"], "verified");
    let ended = ended.again(&["runs", "export", "--thread", "last"]).run();
    ended.must_exit(0);
    let ended = ended.again(&["runs", "logs", "last"]).run();
    ended.must_exit(0);
    assert!(ended.stdout.is_empty() && ended.stderr.starts_with("no logs"), "{}", ended.story()); // its step prints nothing
}

#[test]
fn what_was_asked_for_under_another_gate_is_another_task() {
    long_test!();
    let model = Model::new([write("done", ""), say("Done.")]);
    let ended = Fledge::simple(&model).arg("--run-key=ci").lane("strict", "steps: [{ name: no, run: 'false' }]").run();
    ended.must_be(0, "verified");
    let again = ["run", "--resume-or-start", "--run-key=ci", "task.md"];
    let ended = ended.again(&[&again[..], &["--lane=strict"]].concat()).anthropic(&model).run();
    ended.must_exit(2);
    assert!(ended.stderr.contains("was started with another task, gate or options"), "{}", ended.story());
    let ended = ended.again(&[&again[..], &["--report=again.json"]].concat()).anthropic(&model).run();
    ended.must_exit(0);
    let report: Value = serde_json::from_str(&ended.file("again.json").unwrap()).unwrap();
    assert_eq!((&report["reason"], model.count()), (&"verified".into(), 2));
    // Without a key, fledge leaves the interrupted run of another gate alone and starts a new run.
    let model = Model::new([shell("echo begun; sleep 60"), say("It is done."), say("It is.")]);
    let ended = killed(&model, &["--no-verify"]);
    let again = ["run", "--resume-or-start", "task.md", "--max-retries=0"];
    let ended = ended.again(&again).anthropic(&model).run();
    ended.must_exit(1);
    assert_eq!((ended.runs().len(), model.count()), (2, 2));
}

#[test]
fn a_verified_run_gives_its_patch_again_to_who_asks_by_its_key() {
    let model = Model::new([write("done", "1\n"), say("Done.")]);
    let asked = ["run", "task.md", "--run-key=ci", "--patch=../out.patch", "--resume-or-start"];
    let first = Fledge::simple(&model).args(&asked).run();
    first.must_be(0, "verified");
    // The `Date:` header holds the time at which the patch was written.
    let undated = |ended: &Ended| {
        let mail = ended.file("../out.patch").unwrap();
        mail.lines().filter(|line| !line.starts_with("Date: ")).map(str::to_owned).collect::<Vec<_>>()
    };
    let patch = undated(&first);
    // A fresh machine has only the state folder: no work and no patch.
    fs::remove_file(first.path("../out.patch")).unwrap();
    fs::remove_file(first.path("done")).unwrap();
    let again = first.again(&asked).anthropic(&model).run();
    again.must_exit(0);
    assert_eq!((undated(&again), model.count()), (patch, 2), "{}", again.story());
}

#[test]
fn names_that_mean_something_else_are_no_run_keys() {
    for key in ["last", "last-failed", "a#2", ""] {
        let run = Fledge::new().args(&["run", "task.md", "--run-key", key]).task("x").run();
        run.must_exit(2);
        assert!(run.stderr.contains("--run-key"), "{}", run.story());
    }
}

#[test]
fn a_key_leads_to_its_newest_run_also_when_the_first_ones_are_gone() {
    long_test!();
    let model = Model::new([say("It is done."), write("done", ""), say("Done.")]);
    let ended = Fledge::simple(&model).args(&["run", "task.md", "--run-key=k", "--max-retries=0"]).run();
    ended.must_be(1, "gate_failed");
    let again = ["run", "task.md", "--run-key=k", "--max-retries=0", "--resume-or-start"];
    let ended = ended.again(&again).anthropic(&model).run();
    ended.must_exit(0);
    let ended = ended.again(&["runs", "prune", "--keep=1"]).run();
    ended.must_exit(0);
    let ended = ended.again(&again).anthropic(&model).run();
    ended.must_exit(0);
    assert_eq!((ended.runs().len(), model.count()), (1, 3));
}

/// Starts a run whose gate passes, and kills it while it writes its report.
fn killed_in_its_report(model: &Model) -> Ended {
    let fledge = Fledge::simple(model).arg("--report=../copy.json").arg("--json");
    let (pipe, state) = (fledge.workspace().with_file_name("copy.json"), fledge.state());
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from(0o600), 0).unwrap();
    let running = fledge.start();
    running.until(|| below(&state).iter().any(|path| path.ends_with("report.json"))); // the run waits for a reader of the pipe
    running.signal(Signal::KILL);
    fs::remove_file(&pipe).unwrap();
    running.end()
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { below(&path) } else { vec![path] }).collect()
}

#[test]
fn a_gate_that_passed_before_a_run_died_without_a_report_judges_once_more() {
    long_test!();
    let model = Model::new([write("done", ""), say("Done."), write("done", "again"), say("Now it is.")]);
    let ended = killed_in_its_report(&model);
    fs::remove_file(ended.path("done")).unwrap(); // as if another program had removed it meanwhile
    let ended = ended.again(&["runs", "resume", "last", "--json"]).anthropic(&model).run();
    let report = ended.must_be(0, "verified");
    let rulings = report["attempts"].as_array().unwrap().iter().map(|attempt| &attempt["verdict"]["ruling"]);
    assert_eq!((words(rulings), model.count()), (vec!["failed", "passed"], 4));
    assert_eq!(ended.events_of("resumed"), [json!({ "state": "verifying", "attempt": 1, "turn": 2 })]);
    let ended = ended.again(&["runs", "show", "last"]).run();
    for told in ["gate, attempt 1: passed", "● resumed", "gate, attempt 1: failed", "gate, attempt 2: passed"] {
        assert!(ended.stdout.contains(told), "{told}: {}", ended.story());
    }
    let ended = ended.again(&["runs", "resume", "last"]).run();
    ended.must_exit(0);
    assert_eq!((ended.kinds().iter().filter(|kind| *kind == "GateFinished").count(), model.count()), (3, 4));
}

/// Returns the complete lines of standard output.
fn whole(ended: &Ended) -> Vec<Value> {
    ended.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn events_are_numbered_on_after_a_resume_and_a_run_that_is_over_tells_its_end_again() {
    long_test!();
    let model = Model::new([write("half", ""), shell("echo begun; sleep 60"), write("done", ""), say("Done.")]);
    let ended = killed(&model, &[]);
    let numbers = |events: &[Value]| events.iter().map(|event| event["seq"].as_u64().unwrap()).collect::<Vec<_>>();
    let first = whole(&ended);
    let ended = ended.again(&["runs", "resume", "last", "--json"]).anthropic(&model).run();
    let second = whole(&ended);
    let (from, last) = (numbers(&second)[0], first.len() as u64);
    assert!(from > last, "no number is given twice: {from} {last}");
    let all: Vec<u64> = (from..).take(second.len()).collect();
    assert_eq!((numbers(&first), numbers(&second)), ((1..=last).collect(), all));
    let ended = ended.again(&["runs", "resume", "last", "--json"]).run();
    let third = whole(&ended);
    assert_eq!(words(third.iter().map(|event| &event["type"])), ["started", "finished"]);
    assert_eq!((&third[0]["data"], &third[1]["data"]), (&second[0]["data"], &second.last().unwrap()["data"]));
    assert!(numbers(&third)[0] > *numbers(&second).last().unwrap(), "{}", ended.story());
}

#[test]
fn the_attempt_that_is_under_way_is_shown_after_a_resume() {
    long_test!();
    let script = [say("Done."), shell("echo begun; sleep 60"), say("Done."), write("done", ""), say("Done.")];
    let model = Model::new(script);
    let ended = killed(&model, &[]).again(&["runs", "resume", "last"]).anthropic(&model).run();
    ended.must_be(0, "verified");
    let places = ["● resumed: attempt 2 of ", "● attempt 3 of "].map(|part| ended.stderr.find(part));
    assert!(places[0].is_some() && places[0] < places[1], "{}", ended.story());
    assert!(!ended.stderr.contains("attempt 1 of"), "{}", ended.story());
}

#[test]
fn where_the_frozen_gate_is_gone_the_run_is_ended_and_another_one_begins() {
    long_test!();
    let model = Model::new([shell("echo begun; sleep 60"), write("done", ""), say("Done.")]);
    let ended = killed(&model, &["--run-key=k"]);
    fs::remove_file(ended.run_folder().join("gate")).unwrap();
    let ended = ended.again(&["runs", "resume", "last"]).anthropic(&model).run();
    ended.must_exit(5);
    assert!(ended.stderr.contains("  hint: start a new run with `fledge run`"), "{}", ended.story());
    let again = ["run", "task.md", "--run-key=k", "--resume-or-start"];
    let ended = ended.again(&again).anthropic(&model).run();
    ended.must_exit(0);
    assert!(ended.stderr.contains("ending that run and starting a new run"), "{}", ended.story());
    let reason = |row: &RunRow| match &row.state {
        StoredRunState::Ended(outcome) => (outcome.reason.clone(), outcome.exit_code),
        StoredRunState::Running { .. } | StoredRunState::Interrupted => panic!("{row:?}"),
    };
    let reasons: Vec<(String, u8)> = ended.rows().iter().map(reason).collect();
    assert_eq!((reasons, model.count()), (vec![("verified".into(), 0), ("gate_errored".into(), 5)], 3));
    let ended = ended.again(&again).anthropic(&model).run();
    ended.must_exit(0);
    assert_eq!((ended.rows().len(), model.count()), (2, 3));
}

#[cfg(debug_assertions)] // only debug builds can inject a failure here
#[test]
fn a_run_is_remembered_once_its_end_is_safe() {
    long_test!();
    let model = Model::new([write("done", ""), say("Done.")]);
    let ended = Fledge::simple(&model).env("FLEDGE_FAIL", "error:journal finish: begun#1").run();
    ended.must_be(8, "io_error");
    let ended = ended.again(&["memory", "list", "--json"]).run();
    assert!(ended.stdout.contains("\"memories\":[]"), "{}", ended.story());
    let ended = ended.again(&["runs", "resume", "last"]).anthropic(&model).run();
    ended.must_be(0, "verified");
    let ended = ended.again(&["memory", "list", "--json"]).run();
    assert!(ended.stdout.contains("Outcome: verified"), "{}", ended.story());
}

#[test]
fn a_folder_whose_name_is_not_text_is_resumed_where_it_is_named() {
    let model = Model::new([write("done", ""), say("Done.")]);
    let fledge = Fledge::simple(&model);
    let (workspace, state) = (fledge.workspace(), fledge.state());
    let odd = workspace.join(OsStr::from_bytes(b"odd-\xff"));
    fs::create_dir(&odd).unwrap();
    let fledge_in = |args: &[&str]| {
        let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_fledge"));
        program.args(args).arg("-C").arg(&odd).current_dir(&workspace).env("FLEDGE_STATE_DIR", &state);
        let ended = program.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", "k").output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    };
    fledge_in(&["run", "task.md", "--no-verify", "--sandbox=off", "--model=anthropic/claude-sonnet-4-5"]);
    fledge_in(&["runs", "resume", "last"]);
    assert_eq!(model.count(), 2);
}

/// Returns the database of the only project.
fn database(ended: &Ended) -> PathBuf {
    below(&ended.path("../state")).into_iter().find(|path| path.ends_with("fledge.db")).unwrap()
}

#[test]
fn the_time_of_a_run_is_that_of_work_and_not_of_the_days_between() {
    let model = Model::new([write("done", ""), say("Done.")]);
    let ended = Fledge::simple(&model).run();
    let day = Connection::open(database(&ended)).unwrap();
    assert_eq!(day.execute("UPDATE runs SET started_at = started_at - 86400000", []), Ok(1));
    let ended = ended.again(&["runs", "list"]).run();
    ended.must_exit(0);
    assert!(!ended.stdout.contains("24h00m"), "{}", ended.story());
}

#[test]
fn one_project_that_cannot_be_read_does_not_end_the_list_of_all() {
    let model = Model::new([write("done", ""), say("Done.")]);
    let ended = Fledge::simple(&model).run();
    let (database, other) = (database(&ended), ended.path("../state/other-000000000000"));
    let open = |path: &Path| Connection::open(path).unwrap();
    open(&database).execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    fs::create_dir(&other).unwrap();
    fs::copy(&database, other.join("fledge.db")).unwrap();
    open(&other.join("fledge.db")).execute_batch("ALTER TABLE runs RENAME TO gone").unwrap();
    let ended = ended.again(&["runs", "list", "--all-projects"]).run();
    ended.must_exit(8);
    assert!(ended.stdout.contains("verified") && ended.stderr.contains("no such table"), "{}", ended.story());
}

#[test]
fn a_run_that_is_blocked_goes_on_where_it_was() {
    long_test!();
    let later = || status(429).header("retry-after", "3600");
    let model = Model::new([write("half", ""), later(), later(), write("done", ""), say("Done.")]);
    let ended = Fledge::simple(&model).arg("--run-key=ci").run();
    ended.must_be(7, "blocked");
    let ended = ended.again(&["runs", "resume", "last", "--json"]).anthropic(&model).run();
    ended.must_be(7, "blocked"); // the model still asks to wait
    assert_eq!(ended.events_of("resumed"), [json!({ "state": "executing", "attempt": 1, "turn": 2 })]);
    let ended = ended.again(&["run", "--resume-or-start", "--run-key=ci", "task.md"]).anthropic(&model).run();
    let report = ended.must_be(0, "verified");
    assert_eq!((ended.runs().len(), model.count()), (1, 5));
    assert_eq!(report["files_changed"].as_array().unwrap().len(), 2);
    let ended = ended.again(&["runs", "show", "last"]).run();
    assert_eq!(ended.stdout.matches("● resumed").count(), 2, "{}", ended.story());
    assert!(!ended.stdout.contains("asks to wait"), "how it ended for now is taken back: {}", ended.story());
    let ended = ended.again(&["runs", "replay", "last"]).run();
    ended.must_exit(0);
    let ended = ended.again(&["runs", "resume", "last"]).run();
    ended.must_exit(0);
    assert_eq!(model.count(), 5);
}
