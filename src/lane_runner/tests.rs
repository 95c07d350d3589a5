//! Tests of lanes with real, small commands.

use super::*;
use crate::lane::parse;
use crate::test_support::PATIENCE;
use crate::verdict::StepStatus::{self, Cancelled, Errored, Failed, NotRun, Passed, TimedOut};
use std::sync::Mutex;

struct Place {
    folder: tempfile::TempDir,
    room: LaneRoom,
}

fn place() -> Place {
    let folder = crate::test_support::temp_dir();
    let env = vec![("PATH".into(), "/usr/bin:/bin".into()), ("WHO".into(), "room".into())];
    let room = LaneRoom::new(folder.path().into(), env, folder.path().join("logs"), 4);
    Place { folder, room }
}

async fn run(place: &Place, text: &str) -> LaneOutcome {
    let lane = parse("verify", "verify.yaml", text).unwrap();
    run_lane(&lane, &place.room, &CancellationToken::new(), &|_| {}).await
}

fn statuses(outcome: &LaneOutcome) -> Vec<StepStatus> {
    outcome.steps.iter().map(|step| step.status).collect()
}

#[tokio::test]
async fn a_step_runs_in_its_directory_with_its_variables_and_leaves_a_log() {
    let place = place();
    std::fs::create_dir(place.folder.path().join("sub")).unwrap();
    let text = "env: {A: lane, B: lane}\nsteps: [{name: 'say it', run: 'echo $WHO $A $B; basename $(pwd)', dir: sub, env: {B: step}}]";
    let mut outcome = run(&place, text).await;
    let log = place.folder.path().join("logs/verify-01-say-it.log");
    let report = StepReport {
        lane: "verify".into(),
        step: "say it".into(),
        command: "echo $WHO $A $B; basename $(pwd)".into(),
        status: Passed,
        tries: 1,
        exit_code: Some(0),
        signal: None,
        duration_ms: 0,
        log: Some(log.display().to_string()),
        excerpt: "room lane step\nsub".into(),
        note: String::new(),
        tests: None,
    };
    outcome.steps[0].duration_ms = 0;
    assert_eq!((outcome.ruling, outcome.steps), (LaneRuling::Passed, vec![report]));
    assert_eq!(std::fs::read_to_string(log).unwrap(), "room lane step\nsub\n");
}

#[tokio::test]
async fn what_happens_is_told_as_it_happens() {
    let (place, events) = (place(), Mutex::new(Vec::new()));
    let lane =
        parse("verify", "verify.yaml", "steps: [{name: a, run: 'echo one; printf two'}, {name: b, run: 'exit 3'}]")
            .unwrap();
    let outcome =
        run_lane(&lane, &place.room, &CancellationToken::new(), &|event| events.lock().unwrap().push(event)).await;
    let started = |step: &str, command: &str| StepProgress::Started {
        lane: "verify".into(),
        step: step.into(),
        command: command.into(),
    };
    let line = |line: &str| StepProgress::Output { lane: "verify".into(), step: "a".into(), line: line.into() };
    let ended = |number: usize| StepProgress::Ended(outcome.steps[number].clone());
    let reported = vec![
        started("a", "echo one; printf two"),
        line("one"),
        line("two"),
        ended(0),
        started("b", "exit 3"),
        ended(1),
    ];
    assert_eq!(*events.lock().unwrap(), reported);
    assert_eq!((outcome.ruling, outcome.steps[1].exit_code), (LaneRuling::Failed, Some(3)));
}

#[tokio::test]
async fn a_screen_is_told_the_newest_line_now_and_then_and_at_the_end() {
    let (mut place, reported) = (place(), Mutex::new(Vec::new()));
    place.room.listen = OutputInterest::LastLine;
    let lane = parse("verify", "verify.yaml", "steps: [{run: 'seq 300000; echo end; printf rest'}]").unwrap();
    let on_event = |event| {
        if let StepProgress::Output { line, .. } = event {
            reported.lock().unwrap().push(line);
        }
    };
    let outcome = run_lane(&lane, &place.room, &CancellationToken::new(), &on_event).await;
    let reported = reported.into_inner().unwrap();
    assert_eq!(reported.last().unwrap(), "rest");
    assert!(reported.len() as u128 <= outcome.duration.as_millis() / 100 + 3, "{reported:?}");
}

#[tokio::test]
async fn a_gate_is_told_each_line_and_of_a_line_that_has_not_ended_what_there_is() {
    let (mut place, reported) = (place(), Mutex::new(Vec::new()));
    place.room.listen = OutputInterest::GrowingLines;
    let text = "steps: [{run: 'echo one; printf ..; until [ -e seen ]; do sleep 0.01; done; echo .'}]";
    let seen = place.folder.path().join("seen");
    let on_event = |event| {
        if matches!(event, StepProgress::Partial { .. }) {
            std::fs::write(&seen, "").unwrap();
        }
        if let StepProgress::Output { line, .. } | StepProgress::Partial { line, .. } = event {
            reported.lock().unwrap().push(line);
        }
    };
    let lane = parse("verify", "verify.yaml", text).unwrap();
    run_lane(&lane, &place.room, &CancellationToken::new(), &on_event).await;
    assert_eq!(reported.into_inner().unwrap(), ["one", "..", "..."]);
}

#[tokio::test]
async fn the_excerpt_of_a_failure_has_its_cause_from_the_middle_of_a_long_output() {
    let outcome = run(&place(), "steps: [{run: 'seq 50000; echo \"a.c:1:2: error: bad\"; seq 50000; exit 1'}]").await;
    let excerpt = &outcome.steps[0].excerpt;
    assert!(excerpt.contains("[… 50000 lines …]\na.c:1:2: error: bad\n[… "), "{excerpt}");
    assert!(excerpt.ends_with("\n49999\n50000"), "{excerpt}");
}

#[tokio::test]
async fn a_failure_ends_running_siblings_and_skips_the_rest() {
    let place = place();
    // `slow` is running when `no` fails: each waits for a file of the other.
    let text = "steps: [{parallel: [{run: 'touch here; sleep 600'}, {run: 'until [ -e here ]; do sleep 0.01; done; exit 1'}]}, {run: touch later}]";
    let outcome = run(&place, text).await;
    assert_eq!((outcome.ruling, statuses(&outcome)), (LaneRuling::Failed, vec![Cancelled, Failed, NotRun]));
    assert!(!place.folder.path().join("later").exists() && outcome.duration < PATIENCE);
}

#[tokio::test]
async fn a_failure_ends_its_siblings_before_its_long_log_is_looked_through() {
    let (place, ended) = (place(), Mutex::new(Vec::new()));
    // `slow` is running when `bad` fails.
    let text = "steps: [{parallel: [{name: slow, run: 'touch here; exec sleep 600'}, {name: bad, run: 'until [ -e here ]; do sleep 0.01; done; seq 400000; exit 1'}]}]";
    let lane = parse("verify", "verify.yaml", text).unwrap();
    let on_event = |event: StepProgress| {
        if let StepProgress::Ended(report) = event {
            ended.lock().unwrap().push((report.step, report.status));
        }
    };
    let outcome = run_lane(&lane, &place.room, &CancellationToken::new(), &on_event).await;
    assert_eq!(*ended.lock().unwrap(), [("slow".to_owned(), Cancelled), ("bad".to_owned(), Failed)]);
    assert!(outcome.steps[1].excerpt.ends_with("\n399999\n400000"), "{}", outcome.steps[1].excerpt);
}

#[tokio::test]
async fn without_fail_fast_all_failures_are_found() {
    let text = "fail_fast: false\nsteps: [{run: exit 1}, {parallel: [{run: exit 2}, {run: 'true'}]}, {run: exit 3}]";
    let outcome = run(&place(), text).await;
    assert_eq!((outcome.ruling, statuses(&outcome)), (LaneRuling::Failed, vec![Failed, Failed, Passed, Failed]));
}

/// A command line that no system accepts: one argument may have 128 KiB (execve(2),
/// `MAX_ARG_STRLEN`).
fn too_long() -> String {
    format!("'true {}'", "x".repeat(200_000))
}

#[tokio::test]
async fn a_step_is_errored_only_where_what_it_lacks_is_not_of_the_project() {
    let place = place();
    let file = |name: &str, mode: u32, content: &str| {
        let path = place.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    file("plain", 0o644, "#!/bin/sh\n");
    file("lost", 0o755, "#!/nope\n");
    file("binary", 0o755, "\u{0}\u{1}\u{2}");
    let missing = place.folder.path().join("sub").display().to_string();
    let out = place.folder.path().join("out");
    std::os::unix::fs::symlink("/tmp", &out).unwrap();
    let cases = [
        ("no-such-program", "", Errored, "there is no program `no-such-program` in PATH (/usr/bin:/bin)"),
        ("no-such-program | cat; exit 127", "", Failed, "the shell found no program `no-such-program`"),
        // Output of the project's own programs neither excuses a failure nor counts as fledge's own
        // finding.
        ("'set -eu; echo sh: 1: set: not found; exit 127'", "", Failed, "the shell found no program `set`"),
        ("'A=1 sh -c \"echo A=1: not found; exit 127\"'", "", Failed, "the shell found no program `A=1`"),
        (
            "'echo sh: 1: the tests are wrong: not found; exit 127'",
            "",
            Failed,
            "127 is also what a shell ends with when it finds no program",
        ),
        ("'echo sh: 1: cat: not found; exit 127'", "", Failed, "the shell found no program `cat`"),
        ("'true; no-such-program'", "", Failed, "the shell found no program `no-such-program`"),
        ("./gone.sh", "", Failed, "the shell found no program `./gone.sh`"),
        ("no-such-program", "env: {PATH: bin:/usr/bin}", Failed, "the shell found no program `no-such-program`"),
        ("./plain", "", Failed, "the shell may not or cannot run `./plain`"),
        (
            "./lost",
            "",
            Failed,
            "the shell could not start `./lost`: it is there, but what it needs to be run by is not",
        ),
        (
            "'echo sh: 1: ./plain: not found; exit 127'",
            "",
            Failed,
            "the shell could not start `./plain`: it or its interpreter is there by hand, and not in the sandbox of the step",
        ),
        ("./binary", "shell: bash -c", Failed, "the shell may not or cannot run `./binary`"),
        ("exit 127", "", Failed, "127 is also what a shell ends with when it finds no program"),
        ("exit 126", "", Failed, "126 is also what a shell ends with when it may not run a program"),
        ("'true'", "dir: sub", Failed, &format!("the directory `{missing}` does not exist")),
        ("'true'", "dir: out", Failed, &format!("the directory `{}` leads out of the project", out.display())),
        ("'true'", "dir: out/new", Failed, &format!("the directory `{}/new` leads out of the project", out.display())),
        ("'true'", "shell: ./gone -c", Failed, "there is no program `./gone`"),
        ("'true'", "shell: no-such-shell -c", Errored, "there is no program `no-such-shell`"),
        (&too_long(), "", Errored, "the arguments and environment of `/bin/sh` exceed the limit of the system"),
        ("kill -SEGV $$", "", Failed, "ended by signal 11"),
        ("kill -KILL $$", "", Failed, "killed by signal 9, not by fledge; was memory short?"),
        (
            "'sh -c \"kill -9 \\$\\$\"; exit $?'",
            "",
            Failed,
            "137 is what a shell ends with after signal 9; was memory short?",
        ),
    ];
    for (run, more, status, note) in cases {
        let comma = if more.is_empty() { "" } else { ", " };
        let outcome = self::run(&place, &format!("steps: [{{name: a, run: {run}{comma}{more}}}]")).await;
        let step = &outcome.steps[0];
        assert_eq!((step.status, step.note.as_str()), (status, note), "{run:.80} {more}: {}", step.excerpt);
        let ruling = if status == Errored { LaneRuling::Errored } else { LaneRuling::Failed };
        assert_eq!(
            (outcome.ruling, step.log.is_some()),
            (ruling, step.exit_code.or(step.signal).is_some()),
            "{run:.80}"
        );
    }
}

#[tokio::test]
async fn what_follows_a_step_that_could_not_be_started_is_not_run() {
    let outcome = run(&place(), "steps: [{run: 'true', shell: no-such-shell -c}, {run: 'true'}]").await;
    assert_eq!((outcome.ruling, statuses(&outcome)), (LaneRuling::Errored, vec![Errored, NotRun]));
}

#[tokio::test]
async fn time_is_limited_for_a_step_and_for_the_lane() {
    let outcome = run(&place(), "steps: [{run: sleep 60, timeout: 200ms}]").await;
    assert_eq!((outcome.ruling, statuses(&outcome)), (LaneRuling::Failed, vec![TimedOut]));
    assert_eq!(outcome.steps[0].note, "ran out of its time of 200ms");
    let outcome =
        run(&place(), "timeout: 200ms\nsteps: [{parallel: [{run: sleep 60}, {run: sleep 60}]}, {run: 'true'}]").await;
    assert_eq!((outcome.ruling, statuses(&outcome)), (LaneRuling::Failed, vec![TimedOut, TimedOut, NotRun]));
    assert_eq!(outcome.steps[0].note, "the lane ran out of its time of 200ms");
}

#[tokio::test]
async fn a_stop_cancels_what_runs() {
    let (place, stop) = (place(), CancellationToken::new());
    let lane = parse("verify", "verify.yaml", "steps: [{run: echo up; sleep 60}, {run: 'true'}]").unwrap();
    let on_event = |event: StepProgress| {
        if matches!(event, StepProgress::Output { .. }) {
            stop.cancel();
        }
    };
    let outcome = run_lane(&lane, &place.room, &stop, &on_event).await;
    assert_eq!((outcome.ruling, statuses(&outcome)), (LaneRuling::Cancelled, vec![Cancelled, NotRun]));
    let started =
        |event: StepProgress| assert!(matches!(&event, StepProgress::Ended(step) if step.tries == 0), "{event:?}");
    let outcome = run_lane(&lane, &place.room, &stop, &started).await;
    assert_eq!((outcome.ruling, statuses(&outcome)), (LaneRuling::Cancelled, vec![NotRun, NotRun]));
}

#[cfg(target_os = "linux")] // elsewhere there is no `setsid`
#[tokio::test]
async fn what_a_step_leaves_behind_is_killed_and_told() {
    let outcome = run(&place(), "steps: [{run: '(setsid sleep 60 >/dev/null 2>&1 &)'}]").await;
    assert_eq!(
        (outcome.ruling, outcome.steps[0].note.as_str()),
        (LaneRuling::Passed, "left processes behind, which were killed")
    );
}

#[tokio::test]
async fn no_more_steps_run_at_a_time_than_the_room_has_jobs() {
    let mut place = place();
    place.room.jobs = 1;
    let one = "'mkdir alone && sleep 0.05 && rmdir alone'";
    let outcome =
        run(&place, &format!("steps: [{{parallel: [{{run: {one}}}, {{run: {one}}}, {{run: {one}}}]}}]")).await;
    assert_eq!(statuses(&outcome), vec![Passed, Passed, Passed]);
}

#[tokio::test]
async fn a_failed_step_is_tried_again_with_a_log_for_each_try() {
    let place = place();
    let text = "steps: [{name: a, run: 'test -f done && echo second || { touch done; echo first; exit 3; }', retries: 1, retry_delay: 1ms}]";
    let outcome = run(&place, text).await;
    assert_eq!(
        (outcome.ruling, statuses(&outcome), outcome.steps[0].tries),
        (LaneRuling::Passed, vec![StepStatus::Flaky], 2)
    );
    let log = |name: &str| std::fs::read_to_string(place.folder.path().join("logs").join(name)).unwrap();
    assert_eq!((log("verify-01-a.log").as_str(), log("verify-01-a-try2.log").as_str()), ("first\n", "second\n"));
}

#[tokio::test]
async fn a_step_that_passes_without_a_word_leaves_no_log() {
    let text = "fail_fast: false\nsteps: [{run: 'true'}, {run: 'false'}, {run: echo a}]";
    let place = place();
    let outcome = run(&place, text).await;
    let written = |step: &StepReport| step.log.as_ref().map(|log| std::fs::read_to_string(log).unwrap());
    let logs: Vec<Option<String>> = outcome.steps.iter().map(written).collect();
    assert_eq!(logs, [None, Some(String::new()), Some("a\n".into())]);
}

#[tokio::test]
async fn a_log_that_could_not_be_written_is_told() {
    let place = place();
    let gone = place.room.log_dir.display().to_string();
    let outcome = run(&place, &format!("steps: [{{run: 'rm -r {gone}; echo a'}}]")).await;
    let step = &outcome.steps[0];
    assert_eq!((step.status, step.note.as_str()), (Passed, "its log could not be written to the end"));
}

#[tokio::test]
async fn a_step_has_the_shell_that_it_names() {
    let outcome = run(&place(), "steps: [{name: a, run: 'echo ${BASH_VERSION:+yes}', shell: bash -eu -c}]").await;
    assert_eq!(outcome.steps[0].excerpt, "yes");
}

#[tokio::test]
async fn a_named_test_report_is_read_and_without_it_a_pass_counts_for_nothing() {
    let place = place();
    let xml = "<testsuite name='s'><testcase name='good'/><testcase name='bad'><failure message='no'/></testcase></testsuite>";
    std::fs::write(place.folder.path().join("old.xml"), xml).unwrap();
    let text = format!(
        "fail_fast: false\nsteps: [{{name: a, run: \"printf '%s' \\\"{xml}\\\" > new.xml; exit 1\", junit: new.xml}}, {{name: b, run: 'true', junit: old.xml}}]"
    );
    let outcome = run(&place, &text).await;
    let tests = outcome.steps[0].tests.as_ref().unwrap();
    assert_eq!((tests.counts.tests, tests.counts.failures, tests.failing[0].name.as_str()), (2, 1, "bad"));
    assert_eq!(
        (outcome.steps[1].status, outcome.steps[1].tests.is_none()),
        (Failed, true),
        "an old report does not count"
    );
    assert!(outcome.steps[1].note.starts_with("the step wrote no test report"), "{}", outcome.steps[1].note);
}

#[tokio::test]
async fn what_a_test_report_does_not_bear_out_is_no_pass() {
    let place = place();
    for (report, note) in [
        ("<testsuite><testcase name='a'/></testsuite>", ""),
        (
            "<testsuite><testcase name='a'><failure message='x'/></testcase></testsuite>",
            "it exited with 0, but its test report has a failing test",
        ),
        (
            "<testsuites><testsuite errors='1'><error>boom</error></testsuite></testsuites>",
            "it exited with 0, but its test report has a failing test",
        ),
        ("<testsuite tests='5' failures='5'/>", "it exited with 0, but its test report has 5 failing tests"),
        ("<testsuite/>", "its test report has no tests in it"),
    ] {
        std::fs::write(place.folder.path().join("made.xml"), report).unwrap();
        let outcome = run(&place, "steps: [{name: a, run: cp made.xml r.xml, junit: r.xml}]").await;
        let status = if note.is_empty() { StepStatus::Passed } else { Failed };
        assert_eq!((outcome.steps[0].status, outcome.steps[0].note.as_str()), (status, note), "{report}");
    }
}

#[tokio::test]
async fn a_failure_whose_other_try_is_called_off_stays_a_failure_with_its_output() {
    let place = place();
    let text = "steps: [{parallel: [{name: a, run: 'echo boom; exit 3', retries: 1, retry_delay: 10m}, {name: b, run: 'until [ -e resting ]; do sleep 0.01; done; exit 4'}]}]";
    let lane = parse("verify", "verify.yaml", text).unwrap();
    let starts = std::sync::Mutex::new(Vec::new());
    // `b` fails between the first and the second try of `a`.
    let on_event = |event: StepProgress| match event {
        StepProgress::Started { step, .. } => starts.lock().unwrap().push(step),
        StepProgress::Retried(_) => std::fs::write(place.folder.path().join("resting"), "").unwrap(),
        _ => {}
    };
    let outcome = run_lane(&lane, &place.room, &CancellationToken::new(), &on_event).await;
    let a = &outcome.steps[0];
    assert_eq!((a.status, a.tries, a.exit_code, a.excerpt.as_str()), (Failed, 1, Some(3), "boom"));
    assert_eq!(a.note, "not tried again, since it was stopped before");
    assert!(std::path::Path::new(a.log.as_ref().unwrap()).exists());
    assert_eq!((statuses(&outcome), starts.into_inner().unwrap().len()), (vec![Failed, Failed], 2));
}

#[tokio::test]
async fn what_ran_cannot_have_a_report_read_that_it_does_not_see_itself() {
    let (place, elsewhere) = (place(), crate::test_support::temp_dir());
    let secret = "<testsuite><testcase name='the secret'><failure>word</failure></testcase></testsuite>";
    std::fs::write(elsewhere.path().join("r.xml"), secret).unwrap();
    std::fs::create_dir(place.folder.path().join("out")).unwrap();
    let at = elsewhere.path().display();
    for run_by_step in [format!("ln -s {at}/r.xml out/r.xml"), format!("rm -rf out; ln -s {at} out")] {
        let lane = format!("steps: [{{name: a, run: '{run_by_step}; exit 1', junit: out/r.xml}}]");
        let outcome = run(&place, &lane).await;
        assert_eq!((statuses(&outcome), &outcome.test_reports), (vec![Failed], &vec![None]), "{run_by_step}");
        assert!(!format!("{outcome:?}").contains("secret"), "{outcome:?}");
        let lane = "steps: [{name: a, run: 'true', junit: out/r.xml}]";
        let again = run(&place, lane).await;
        assert_ne!(again.steps[0].status, Passed, "{run_by_step}");
        assert!(elsewhere.path().join("r.xml").exists(), "{run_by_step}");
    }
}
