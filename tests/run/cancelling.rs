//! Tests of stopping a run: it ends within two seconds at any point, its report says what was done,
//! and it leaves no process alive.

#[cfg(debug_assertions)]
use crate::support::Hold;
use crate::support::{
    Ended, Fledge, Model, Running, SOON, hang, must_be_gone, needs, running_with, say, shell, status, unique, until,
    write,
};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Sends the signal after this output, and insists on a cancelled run.
#[track_caller]
fn stopped_after(said: &str, mut run: Running, signal: Signal) -> (Ended, Value) {
    run.wait_for(said);
    stopped(run, signal)
}

#[track_caller]
fn stopped(run: Running, signal: Signal) -> (Ended, Value) {
    let asked = run.signal(signal);
    let ended = run.end();
    let (code, by) = if matches!(signal, Signal::TERM | Signal::HUP) { (143, "terminate") } else { (130, "interrupt") };
    let report = ended.must_be(code, "cancelled");
    let took = ended.at - asked;
    assert!(took < SOON, "took {took:?}:\n{}", ended.story());
    assert_eq!((&report["cancelled"], &report["verified"]), (&json!(true), &json!(false)));
    assert_eq!((&report["done_reason"], &report["stopped_by"]), (&json!("user_abort"), &json!(by)));
    let finished = ended.events().pop().unwrap();
    assert_eq!((&finished["type"], &finished["data"]["exit_code"]), (&json!("finished"), &json!(code)));
    (ended, report)
}

#[test]
fn in_the_middle_of_an_answer_what_was_said_is_the_summary() {
    long_test!();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let model = Model::new([write("half", "1\n"), say("I have half of it and").hanging()]);
        let run = Fledge::simple(&model).arg("--json").start();
        let (ended, report) = stopped_after("it and", run, signal);
        assert_eq!(report["summary"], "I have half of it and");
        assert_eq!(report["files_changed"], json!([{"path": "half", "kind": "created", "added": 1, "removed": 0}]));
        assert_eq!((&report["verification"], model.count()), (&json!("not_reached"), 2));
        assert_eq!(ended.events_of("turn_discarded").len(), 1);
    }
}

#[test]
fn while_a_model_has_not_begun_to_answer() {
    let model = Model::new([write("half", "1\n"), hang()]);
    let run = Fledge::simple(&model).arg("--json").start();
    model.wait_for(2);
    let (_, report) = stopped(run, Signal::INT);
    assert_eq!((&report["turns"], &report["summary"]), (&json!(1), &json!("")));
}

#[cfg(debug_assertions)] // fail points exist only in debug builds
#[test]
fn a_stop_between_the_record_of_a_request_and_the_request_charges_nothing() {
    long_test!();
    let models = "models: { priced: { provider: anthropic, model: m, price: { input: 1, output: 1 } } }\n";
    let task = "---\nmodel: priced\n---\nMake the file `done`.";
    for signal in [Signal::INT, Signal::TERM] {
        let (hold, model) = (Hold::before_request(2), Model::new([write("done", "1\n").using(100, 10), say("Done.")]));
        let fledge = Fledge::simple(&model).task(task).file("../home/.config/fledge/config.yaml", models);
        let run = fledge.env("FLEDGE_FAIL", &hold.order()).arg("--json").start();
        let held = hold.reached();
        run.signal(signal);
        drop(held);
        let ended = run.end();
        let report = ended.must_be(if signal == Signal::TERM { 143 } else { 130 }, "cancelled");
        let used = |report: &Value| {
            let usage = &report["usage"];
            json!([usage["requests"], usage["total"]["input_tokens"], usage["total"]["cost_micros"]])
        };
        assert_eq!((used(&report), model.count()), (json!([1, 100, 110]), 1), "{}", ended.story());
        if signal == Signal::TERM {
            let ended = ended.again(&["runs", "resume", "last"]).anthropic(&model).run();
            assert_eq!(used(&ended.must_be(0, "verified"))[0], 2, "{}", ended.story());
        }
    }
}

#[test]
fn a_command_dies_with_everything_that_fled_from_it() {
    let number = unique();
    let fled = format!("setsid sleep {number} & (setsid sh -c 'sleep {number} & wait' &) ; echo begun; sleep {number}");
    let model = Model::new([shell(&fled), say("No.").always()]);
    let run = Fledge::simple(&model).arg("--json").start();
    let (_, report) = stopped_after("{\"text\":\"begun", run, Signal::INT);
    assert_eq!(running_with(&number), Vec::<String>::new());
    assert_eq!((&report["tools"]["shell-exec"]["called"], model.count()), (&json!(1), 1));
}

#[test]
fn a_step_of_the_gate_that_ignores_the_wish_is_killed() {
    let number = unique();
    let lane = format!(
        "steps:\n  - name: stubborn\n    run: |\n      trap '' TERM INT\n      setsid sleep {number} &\n      echo begun\n      \
         while true; do sleep {number}; done\n  - {{ name: later, run: touch later }}\n"
    );
    let model = Model::new([say("Done."), say("No.").always()]);
    let run = Fledge::simple(&model).lane("verify", &lane).arg("--json").arg("--baseline=never").start();
    let (ended, report) = stopped_after("\"begun\"", run, Signal::TERM);
    assert_eq!(running_with(&number), Vec::<String>::new());
    assert_eq!((ended.file("later"), model.count()), (None, 1));
    assert_eq!((&report["summary"], &report["verification"]), (&json!("Done."), &json!("not_reached")));
}

#[test]
fn in_the_middle_of_a_pause_before_another_try() {
    let model = Model::new([status(529).header("retry-after", "90").always()]);
    let run = Fledge::simple(&model).arg("--json").start();
    let (ended, report) = stopped_after("\"retry\"", run, Signal::INT);
    assert_eq!((&report["turns"], model.count()), (&json!(0), 1));
    assert_eq!(ended.events_of("retry")[0]["wait_ms"], 90_000);
}

#[test]
fn a_second_signal_ends_it_at_once_and_still_leaves_nothing_alive() {
    let number = unique();
    let lane = format!(
        "steps:\n  - name: stubborn\n    run: trap 'echo asked' TERM; echo begun; while true; do sleep {number} & wait; done\n"
    );
    let model = Model::new([say("Done.")]);
    let mut run = Fledge::simple(&model).lane("verify", &lane).arg("--json").arg("-v").arg("--baseline=never").start();
    run.wait_for("\"begun\"");
    let asked = run.signal(Signal::INT);
    run.wait_for("Reporting"); // logged once the first signal was handled
    run.signal(Signal::INT);
    let ended = run.end();
    ended.must_exit(130);
    assert!(ended.at - asked < SOON);
    must_be_gone(&number);
    assert_eq!(ended.events_of("finished"), Vec::<Value>::new(), "fledge waited for the call");
}

/// `timeout` signals its command and then its process group, so one request arrives twice.
#[test]
fn sigterm_twice_at_once_still_ends_with_a_report() {
    for signal in [Signal::TERM, Signal::HUP] {
        for _ in 0..5 {
            let model = Model::new([write("half", "1\n"), hang()]);
            let mut run = Fledge::simple(&model).arg("--json").arg("-v").start();
            model.wait_for(2);
            let first = run.signal(signal);
            run.wait_for("Reporting"); // the first signal was handled
            let second = run.signal(signal);
            let ended = run.end();
            if second - first < std::time::Duration::from_secs(2) {
                ended.must_be(143, "cancelled");
                break;
            }
        }
    }
}

#[test]
fn nobody_reading_what_it_prints_does_not_keep_it_alive() {
    long_test!();
    for json in [false, true] {
        let model = Model::new([write("half", "1\n").saying(&"much to say ".repeat(12_000)), hang()]);
        let fledge = Fledge::simple(&model).unread();
        let run = if json { fledge.arg("--json").arg("--quiet") } else { fledge }.start();
        model.wait_for(2);
        let asked = run.signal(Signal::TERM);
        let ended = run.end();
        ended.must_be(143, "cancelled");
        assert!(ended.at - asked < SOON, "took {:?}", ended.at - asked);
    }
}

#[test]
fn the_journal_of_a_cancelled_run_ends_with_its_report() {
    let model = Model::new([say("Half").hanging()]);
    let (ended, _) = stopped_after("Half", Fledge::simple(&model).arg("--json").start(), Signal::INT);
    assert_eq!(ended.kinds(), ["TaskSubmitted", "PlanReady", "CancelRequested", "ModelFailed", "ReportSaved"]);
}

#[test]
fn a_lane_by_hand_is_cancelled_too() {
    let number = unique();
    let lane = format!("steps: [{{ name: slow, run: setsid sleep {number} & sleep {number} }}]");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let fledge = Fledge::new().lane("slow", &lane).lane("verify", &needs("done"));
        let run = fledge.args(&["lanes", "run", "slow", "--json"]).start();
        until("both sleeps run", || running_with(&format!("sleep {number}")).len() >= 2);
        let asked = run.signal(signal);
        let ended = run.end();
        ended.must_exit(code);
        assert!(ended.at - asked < SOON);
        assert_eq!(running_with(&number), Vec::<String>::new());
        assert_eq!(ended.events()[0]["result"], "cancelled");
    }
}

/// Adds a `git` to the search path that hangs on these arguments, before or after it does the work.
/// It first makes `../begun`.
fn slow_git(fledge: Fledge, asked: &str, is_after: bool) -> Fledge {
    let folder = fledge.workspace().join("..").canonicalize().unwrap();
    let (program, begun) = (folder.join("bin/git"), folder.join("begun"));
    let work = if is_after { r#"git "$@""# } else { ":" };
    let script = format!(
        "#!/bin/sh\nPATH=${{PATH#*:}}\ncase \"$*\" in\n{asked}) {work}; touch {}; sleep 60; exit 1;;\nesac\nexec git \"$@\"\n",
        begun.display()
    );
    std::fs::create_dir_all(folder.join("bin")).unwrap();
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    fledge.env("PATH", &format!("{}:{path}", folder.join("bin").display()))
}

/// Sends SIGINT once the slow git hangs, and insists that the run ends soon after.
#[track_caller]
fn stopped_in_git(fledge: Fledge) -> Ended {
    let begun = fledge.workspace().join("../begun");
    let run = fledge.start();
    run.until(|| begun.exists());
    let asked = run.signal(Signal::INT);
    let ended = run.end();
    assert!(ended.at - asked < SOON, "took {:?}:\n{}", ended.at - asked, ended.story());
    ended
}

#[test]
fn in_the_middle_of_a_delivery_it_is_bounded_and_nothing_is_lost() {
    long_test!();
    for is_after in [false, true] {
        let model = Model::new([write("done", "yes\n"), say("Made the file.")]);
        let fledge = Fledge::simple(&model).arg("--commit=on-success").committed();
        let ended = stopped_in_git(slow_git(fledge, "*\"commit by fledge\"*", is_after));
        let head = ended.git(&["rev-parse", "HEAD"]);
        if is_after {
            let report = ended.must_be(0, "verified");
            assert_eq!(report["commit"], head);
            assert_eq!((&report["stopped_by"], &report["cancelled"]), (&json!("interrupt"), &json!(false)));
            continue;
        }
        let report = ended.must_be(5, "not_delivered");
        assert_eq!((&report["verified"], &report["stopped_by"]), (&json!(true), &json!("interrupt")));
        assert_eq!(ended.git(&["rev-list", "--count", "HEAD"]), "1");
        let ended = ended.again(&["runs", "resume", "last"]).run();
        let report = ended.must_be(0, "verified");
        assert_eq!(report["commit"], ended.git(&["rev-parse", "HEAD"]));
        assert_eq!(ended.git(&["rev-list", "--count", "HEAD"]), "2");
    }
}

#[test]
fn in_the_middle_of_a_patch_it_is_bounded() {
    long_test!();
    let model = Model::new([write("done", "yes\n"), say("Made the file.")]);
    let fledge = Fledge::simple(&model).committed().arg("--patch=../out.patch");
    let ended = stopped_in_git(slow_git(fledge, "*src-prefix*", false));
    let report = ended.must_be(8, "io_error");
    assert_eq!((&report["stopped_by"], ended.file("../out.patch")), (&json!("interrupt"), None));
    ended.again(&["runs", "resume", "last"]).anthropic(&model).run().must_exit(0);
}

#[test]
fn while_what_an_unverified_run_has_left_is_kept() {
    let model = Model::new([crate::support::refuse("No.")]);
    let ended = stopped_in_git(slow_git(Fledge::simple(&model), "*update-ref*candidate*", false));
    ended.must_be(3, "refused");
}

#[test]
fn while_a_resume_makes_itself_ready() {
    let model = Model::new([hang()]);
    let run = Fledge::simple(&model).start();
    model.wait_for(1);
    run.signal(Signal::KILL);
    let again = run.end().again(&["runs", "resume", "last"]).anthropic(&model);
    let ended = stopped_in_git(slow_git(again, "*", false));
    ended.must_exit(130);
    assert!(ended.stderr.contains("was not resumed: a stop was requested"), "{}", ended.story());
}

#[test]
fn while_files_are_put_back_the_way_back_is_told() {
    let model = Model::new([write("done", "yes\n"), say("Made the file.")]);
    let run = Fledge::simple(&model).committed().run();
    run.must_be(0, "verified");
    let ended = stopped_in_git(slow_git(run.again(&["runs", "undo", "--json"]), "*checkout-index*", false));
    ended.must_exit(130);
    assert!(ended.stderr.contains("  back: fledge runs undo "), "{}", ended.story());
}

#[test]
fn a_job_that_times_out_writes_its_report_before_the_kill_and_can_be_resumed() {
    long_test!();
    let lane = "steps: [{ name: sum, run: grep -q 3 s?m }]";
    let model = Model::new([shell("echo begun; sleep 60"), write("sum", "3\n"), say("Done.")]);
    let args = ["fix", "--json", "--report=../report.json", "--run-key=job", "--resume-or-start"];
    let job = Fledge::new().args(&args).anthropic(&model).lane("verify", lane).file("sum", "4\n");
    let mut run = job.start();
    run.wait_for("{\"text\":\"begun");
    run.signal(Signal::KILL);
    let dead = run.end();
    assert_eq!((dead.code, dead.path("../report.json").exists()), (None, false), "{}", dead.story());
    let next = dead.again(&args).anthropic(&model).run();
    let report = next.must_be(0, "verified");
    assert_eq!((next.file("sum").as_deref(), &report["title"], model.count()), (Some("3\n"), &json!("Fix verify"), 3));
    // A run that is asked to stop writes its whole report before its grace period ends.
    let model = Model::new([shell("trap '' TERM; echo begun; sleep 60"), say("No.").always()]);
    let job = Fledge::new().args(&args).anthropic(&model).lane("verify", lane).file("sum", "4\n");
    let mut run = job.start();
    run.wait_for("{\"text\":\"begun");
    let asked = run.signal(Signal::TERM);
    let ended = run.end();
    assert!(ended.at - asked < SOON, "{}", ended.story());
    let report = ended.must_be(143, "cancelled");
    let written = std::fs::read_to_string(ended.path("../report.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), report);
}
