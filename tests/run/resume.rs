//! Tests of resuming a killed run: it continues where it was and ends like an uninterrupted run.
//! Actions that must not be repeated are done once.

use crate::support::{Ended, Fledge, Model, Running, needs, say, shell, until, words, write};
use fledge::store::StoredRunState;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

/// Kills the run after this output.
#[track_caller]
fn killed(mut running: Running, said: &str) -> Ended {
    running.wait_for(said);
    dead(running)
}

#[track_caller]
fn dead(running: Running) -> Ended {
    running.signal(Signal::KILL);
    let ended = running.end();
    assert_eq!((ended.code, ended.row().state), (None, StoredRunState::Interrupted), "{}", ended.story());
    ended
}

/// Returns a command that resumes the killed run.
fn resuming(ended: Ended, model: &Model) -> Fledge {
    ended.again(&["runs", "resume", "last", "--json"]).anthropic(model)
}

/// Removes the parts of a report that differ between runs: ids, times and paths.
fn plain(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            for own in ["run", "folder", "workspace", "duration_ms", "log", "logs"] {
                fields.remove(own);
            }
            fields.values_mut().for_each(|field| *field = plain(field.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = plain(item.take())),
        _ => {}
    }
    value
}

/// Insists that every tool use in the newest request has exactly one result, in order.
#[track_caller]
fn must_be_answered(model: &Model) {
    let asked = model.asked().pop().unwrap();
    let blocks = asked.body["messages"].as_array().unwrap().iter().filter_map(|message| message["content"].as_array());
    let of = |kind: &str, key: &str| -> Vec<String> {
        let blocks = blocks.clone().flatten().filter(|block| block["type"] == kind);
        blocks.map(|block| block[key].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(of("tool_use", "id"), of("tool_result", "tool_use_id"));
}

#[test]
fn in_the_middle_of_an_answer_the_model_is_asked_again_however_often_that_happens() {
    long_test!();
    let model = Model::new([write("half", "1\n"), write("done", "2\n"), say("Done.")]);
    let calm = Fledge::simple(&model).run().must_be(0, "verified");
    let hanging = || say("Going on").hanging();
    let model = Model::new([write("half", "1\n"), hanging(), hanging(), write("done", "2\n"), say("Done.")]);
    let first = killed(Fledge::simple(&model).arg("--json").start(), "Going o");
    let second = killed(resuming(first, &model).start(), "Going o");
    let ended = resuming(second, &model).run();
    let (mut report, mut calm) = (plain(ended.must_be(0, "verified")), plain(calm));
    assert_eq!(report["usage"]["requests"], 5, "each answer is paid for, and each that was cut off");
    for report in [&mut report, &mut calm] {
        report.as_object_mut().unwrap().remove("usage");
    }
    assert_eq!(report, calm);
    assert_eq!(
        (ended.file("half").unwrap(), ended.file("done").unwrap(), model.count()),
        ("1\n".into(), "2\n".into(), 5)
    );
    must_be_answered(&model);
    let started = ended.events_of("started");
    assert_eq!(started.len(), 1, "{}", ended.story());
    assert_eq!(ended.kinds().iter().filter(|kind| *kind == "Resumed").count(), 2);
    let times: Vec<u64> = ended.journal().iter().map(|record| record.at_ms).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn a_command_under_way_is_never_repeated_and_the_model_is_told_so() {
    long_test!();
    let model = Model::new([shell("echo one >> log; echo begun; sleep 60"), write("done", ""), say("Done.")]);
    let ended = killed(Fledge::simple(&model).arg("--json").start(), "{\"text\":\"begun");
    let ended = resuming(ended, &model).run();
    let report = ended.must_be(0, "verified");
    assert_eq!((ended.file("log").unwrap(), model.count()), ("one\n".into(), 3));
    assert!(model.asked()[1].newest().contains("fledge was interrupted while this call was running"));
    assert_eq!(report["tools"]["shell-exec"], json!({"called": 1, "failed": 1, "denied": 0}));
    must_be_answered(&model);
}

#[test]
fn changes_since_the_start_are_listed_after_an_interrupted_command() {
    long_test!();
    // If git took the workspace for a bare repository, its filter would run outside of the sandbox.
    let repository = r#"mkdir -p objects refs; echo 'ref: refs/heads/m' > HEAD
        printf '[core]\nworktree = .\nbare = false\n[filter "e"]\nclean = "touch ../out; cat"\n' > config"#;
    let command = format!("{repository}; echo new > a; echo begun; sleep 60");
    let model = Model::new([shell(&command), write("done", ""), say("Done.").always()]); // the gate counts the planted repository as tampering
    let fledge = Fledge::simple(&model)
        .file("a", "old\n")
        .file(".gitattributes", "* filter=e\n")
        .args(&["run", "task.md", "--json"]);
    let ended = killed(fledge.start(), "{\"text\":\"begun");
    let ended = resuming(ended, &model).run();
    ended.must_be(0, "verified");
    let told = model.asked()[1].newest();
    assert!(told.contains("Files that differ from the start of the run: ") && told.contains("-old\\n+new"), "{told}");
    assert!(!ended.path("../out").exists());
}

#[test]
fn a_gate_under_way_starts_again() {
    long_test!();
    let lane = "room: in-place\nsteps: [{ name: slow, run: 'test -f again || { touch again; echo begun; sleep 60; }; test -f done' }]";
    let model = Model::new([write("done", ""), say("Done.")]);
    let ended = killed(Fledge::simple(&model).lane("verify", lane).arg("--json").start(), "\"begun\"");
    let ended = resuming(ended, &model).run();
    let report = ended.must_be(0, "verified");
    assert_eq!((report["attempts"].as_array().unwrap().len(), model.count()), (1, 2));
}

#[test]
fn a_report_under_way_is_written_again_and_nothing_else_is_done() {
    long_test!();
    let model = Model::new([write("done", ""), say("Done.")]);
    let fledge = Fledge::simple(&model).arg("--report=../copy.json").arg("--json");
    let pipe = fledge.workspace().with_file_name("copy.json");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from(0o600), 0).unwrap();
    let running = fledge.start();
    let state = pipe.with_file_name("state");
    let is_written = || walk(&state).iter().any(|path| path.ends_with("report.json"));
    until("it waits for a reader of the pipe", is_written);
    let ended = dead(running);
    fs::remove_file(&pipe).unwrap();
    let ended = resuming(ended, &model).run();
    let report = ended.must_be(0, "verified");
    assert_eq!(
        (serde_json::from_str::<Value>(&ended.file("../copy.json").unwrap()).unwrap(), model.count()),
        (report, 2)
    );
}

#[test]
fn a_report_that_could_not_be_written_is_written_by_a_resume() {
    long_test!();
    let model = Model::new([shell("rm -r gone"), write("done", ""), say("Done.")]);
    let ended = Fledge::simple(&model).file("gone/x", "").arg("--report=gone/report.json").run();
    ended.must_be(8, "io_error");
    assert_eq!(ended.row().state, StoredRunState::Interrupted);
    let ended = resuming(ended, &model).run();
    ended.must_be(8, "io_error");
    fs::create_dir(ended.path("gone")).unwrap();
    let ended = resuming(ended, &model).run();
    let report = ended.must_be(0, "verified");
    assert_eq!(serde_json::from_str::<Value>(&ended.file("gone/report.json").unwrap()).unwrap(), report);
    assert_eq!((ended.events_of("finished").len(), model.count()), (1, 3), "{}", ended.story());
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn a_gate_that_was_changed_before_a_kill_is_restored_and_reported() {
    long_test!();
    let weaken = "echo 'steps: [{ run: \"true\" }]' > lanes/verify.yaml; echo begun; sleep 60";
    let model = Model::new([shell(weaken), say("Done."), write("done", ""), say("Done.")]);
    let ended = killed(Fledge::simple(&model).arg("--json").start(), "{\"text\":\"begun");
    let ended = resuming(ended, &model).run();
    let report = ended.must_be(0, "verified");
    assert_eq!(report["attempts"][0]["verdict"]["ruling"], "failed");
    let warnings = words(report["warnings"].as_array().unwrap());
    assert!(warnings.iter().any(|said| said.contains("lanes/verify.yaml (changed)")), "{warnings:?}");
    assert_eq!(ended.file("lanes/verify.yaml").unwrap(), needs("done"));
}

#[test]
fn a_frozen_gate_that_is_damaged_or_gone_is_refused_and_never_made_anew() {
    let model = Model::new([shell("echo begun; sleep 60"), say("No.").always()]);
    let ended = killed(Fledge::simple(&model).arg("--json").start(), "{\"text\":\"begun");
    let gate = ended.run_folder().join("gate");
    let kept = fs::read_to_string(&gate).unwrap();
    fs::write(&gate, kept.replace("test -f done", "test ! -f no")).unwrap();
    let ended = resuming(ended, &model).run();
    ended.must_exit(5);
    assert!(ended.stderr.contains("is not the file that fledge wrote"), "{}", ended.story());
    fs::remove_file(&gate).unwrap();
    let ended = resuming(ended, &model).run();
    ended.must_exit(5);
    assert!(ended.stderr.contains("is gone: cannot read") && model.count() == 1, "{}", ended.story());
    assert_eq!(ended.row().state, StoredRunState::Interrupted);
}

#[test]
fn a_verified_run_gives_its_result_again_and_a_failed_one_is_refused() {
    long_test!();
    let model = Model::new([write("done", ""), say("Done.")]);
    let ended = Fledge::simple(&model).run();
    ended.must_be(0, "verified");
    let ended = ended.again(&["runs", "resume", "last"]).run(); // without a key
    ended.must_be(0, "verified");
    assert!(ended.stderr.contains("verified") && model.count() == 2, "{}", ended.story());
    let model = Model::new([say("Done.").always()]);
    let ended = Fledge::simple(&model).arg("--max-retries=0").run();
    ended.must_be(1, "gate_failed");
    let ended = resuming(ended, &model).run();
    ended.must_exit(2);
    assert!(ended.stderr.contains("has ended (failed)") && model.count() == 1, "{}", ended.story());
}

#[test]
fn a_run_that_somebody_drives_is_refused_with_who_it_is() {
    long_test!();
    let model = Model::new([shell("echo begun; sleep 60")]);
    let fledge = Fledge::simple(&model).arg("--json").arg("--run-key=nightly");
    let (program, state, workspace) = (env!("CARGO_BIN_EXE_fledge"), fledge.state(), fledge.workspace());
    let mut running = fledge.start();
    running.wait_for("{\"text\":\"begun");
    let mut second = std::process::Command::new(program);
    second.args(["runs", "resume", "nightly"]).current_dir(workspace).env("FLEDGE_STATE_DIR", state);
    let said = second.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", "k").output().unwrap();
    let words = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(said.status.code(), Some(7), "{words}");
    assert!(words.contains("is being driven by process "), "{words}");
    dead(running);
}

#[test]
fn resume_or_start_takes_the_interrupted_run_of_the_same_task_or_key_or_starts_one() {
    long_test!();
    let again = |ended: Ended, model: &Model, more: &[&str]| {
        let args = [&["run", "task.md", "--resume-or-start"], more].concat();
        ended.again(&args).anthropic(model).run()
    };
    let model = Model::new([shell("echo begun; sleep 60"), write("done", ""), say("Done.")]);
    let ended = killed(Fledge::simple(&model).arg("--json").arg("--run-key=k").start(), "{\"text\":\"begun");
    let ended = again(ended, &model, &[]);
    ended.must_be(0, "verified");
    let ended = again(ended, &model, &["--run-key=k"]);
    ended.must_be(0, "verified");
    assert_eq!(model.count(), 3);
    let ended = ended.again(&["run", "task.md", "--run-key=k"]).anthropic(&model).run();
    ended.must_exit(2);
    assert!(ended.stderr.contains("the run key `k` belongs to run "), "{}", ended.story());
    // A run that was verified under other options does not count as a result.
    fs::create_dir(ended.path("../held")).unwrap();
    fs::write(ended.path("../held/more.yaml"), "steps: [{ run: 'false' }]").unwrap();
    let mut ended = ended;
    for other in ["--holdout=../held", "--sandbox=off", "--patch=../out.patch"] {
        ended = again(ended, &model, &["--run-key=k", other]);
        ended.must_exit(2);
        assert!(ended.stderr.contains("was started with another task, gate or options"), "{other}: {}", ended.story());
    }
    assert_eq!((ended.runs().len(), model.count()), (1, 3));
}

#[test]
fn a_key_goes_to_the_next_run_when_its_run_ended_unverified() {
    long_test!();
    let model = Model::new([say("Done."), write("done", ""), say("Done.")]);
    let ended = Fledge::simple(&model).args(&["run", "task.md", "--max-retries=0", "--run-key=k"]).run();
    ended.must_be(1, "gate_failed");
    let ended = ended.again(&["run", "task.md", "--run-key=k", "--resume-or-start"]).anthropic(&model).run();
    ended.must_exit(0);
    assert_eq!((ended.runs().len(), model.count()), (2, 3));
}

#[test]
fn a_replay_says_the_same_of_every_run_also_of_one_that_was_resumed() {
    long_test!();
    let model = Model::new([shell("echo begun; sleep 60"), write("done", ""), say("Done.")]);
    let run = Fledge::simple(&model).arg("--json").arg("--baseline=never");
    let ended = killed(run.start(), "{\"text\":\"begun");
    let ended = resuming(ended, &model).run().again(&["runs", "replay", "last"]).run();
    ended.must_exit(0);
    assert!(ended.stdout.contains("  the same, 15 records"), "{}", ended.story());
    let ended = ended.again(&["runs", "replay", "--all", "--json"]).run();
    ended.must_exit(0);
    assert_eq!((&ended.events()[0]["records"], &ended.events()[0]["difference"]), (&json!(15), &Value::Null));
}
