//! Tests with small real programs: captured output, ways to end, and that no process is left.

use super::*;
use crate::limits::{LINGER, LOG_LIMIT};
use crate::test_support::PATIENCE;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns a sleep command that no other process of the machine runs. It outlasts every wait.
fn unique_sleep() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let seconds = (2 * PATIENCE).as_secs();
    format!("sleep {seconds}.{}{:03}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Counts the processes that run this sleep. Shells that only mention it do not count.
fn running(sleep: &str) -> usize {
    let wanted = format!("{}\0", sleep.replace(' ', "\0"));
    let lines = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| fs::read(entry.path().join("cmdline")).unwrap_or_default());
    lines.filter(|line| line == wanted.as_bytes()).count()
}

fn shell(script: &str) -> Invocation {
    Invocation {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        dir: std::env::temp_dir(),
        env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())].into(),
        timeout: Some(PATIENCE),
        grace: Duration::from_millis(100),
        linger: LINGER,
        log: None,
        log_limit: LOG_LIMIT,
    }
}

async fn finish(invocation: Invocation) -> EndedProcess {
    run(invocation, &CancellationToken::new(), &|_| {}).await
}

/// Runs a script that leaves `SLEEP` behind, and checks that no process is left when the script is
/// over.
async fn leaves_nothing(script: &str) {
    let sleep = unique_sleep();
    let ended = finish(shell(&script.replace("SLEEP", &sleep))).await;
    assert_eq!((running(&sleep), &ended.end, ended.leaked), (0, &ProcessEnd::Exited(0), true), "{script}: {ended:?}");
    assert!(ended.duration < PATIENCE, "{script}: {ended:?}");
}

#[tokio::test]
async fn output_of_both_streams_comes_in_order_with_the_exit_code() {
    let ended = finish(shell("echo one; echo two >&2; echo three; exit 3")).await;
    let output = CapturedOutput { head: b"one\ntwo\nthree\n".to_vec(), tail: vec![], total: 14 };
    assert_eq!((ended.end, ended.output, ended.leaked), (ProcessEnd::Exited(3), output, false));
}

#[tokio::test]
async fn a_program_has_no_input_no_terminal_and_only_the_environment_it_is_given() {
    let ended = finish(shell(
        "cat; (: </dev/tty) 2>/dev/null || echo no terminal; env | grep -v -E -e '^[A-Z]{7}_ID=[0-9]+$' -e ^_= | sort",
    ))
    .await;
    let home = format!("no terminal\nPATH=/usr/local/bin:/usr/bin:/bin\nPWD={}\n", std::env::temp_dir().display());
    assert_eq!(String::from_utf8_lossy(&ended.output.head), home);
}

#[tokio::test]
async fn a_background_process_is_killed_with_its_group() {
    leaves_nothing("SLEEP & SLEEP & exit 0").await;
}

#[tokio::test]
async fn a_process_in_a_session_of_its_own_is_killed() {
    leaves_nothing("setsid SLEEP & while ! pgrep -f '^SLEEP' >/dev/null; do sleep 0.02; done").await;
}

#[tokio::test]
async fn a_process_that_was_forked_twice_is_killed() {
    leaves_nothing(
        "(setsid sh -c 'SLEEP & SLEEP & exit 0' &); while ! pgrep -f '^SLEEP' >/dev/null; do sleep 0.02; done",
    )
    .await;
}

#[tokio::test]
async fn a_daemon_that_has_closed_its_streams_is_killed() {
    leaves_nothing("(setsid SLEEP </dev/null >/dev/null 2>&1 &)").await;
}

#[tokio::test]
async fn a_daemon_that_has_also_cleared_its_environment_is_killed() {
    leaves_nothing("(env -i setsid /bin/sh -c '/bin/sh -c \"SLEEP; :\" & exit 0' </dev/null >/dev/null 2>&1 &); while ! pgrep -f '^SLEEP' >/dev/null; do sleep 0.02; done").await;
}

#[tokio::test]
async fn a_daemon_that_holds_the_output_open_is_killed_and_not_waited_for() {
    leaves_nothing("echo begun; setsid SLEEP & exit 0").await;
}

#[tokio::test]
async fn a_process_that_is_just_finishing_its_output_may_do_so() {
    let ended = finish(Invocation { linger: PATIENCE, ..shell("(:; :; echo last words) & exit 0") }).await;
    assert_eq!((ended.output.text(99), ended.leaked), ("last words\n".to_owned(), false));
}

#[tokio::test]
async fn a_timeout_ends_what_ignores_sigterm_and_what_has_left_the_group() {
    let sleep = unique_sleep();
    let script = format!(
        "trap '' TERM; {sleep} & setsid {sleep} & (env -i setsid {sleep} &) ; echo ready; while :; do {sleep}; done"
    );
    let timeout = Some(Duration::from_millis(300));
    let ended = finish(Invocation { timeout, ..shell(&script) }).await;
    assert_eq!((ended.end, running(&sleep)), (ProcessEnd::TimedOut, 0));
    assert!(ended.duration >= Duration::from_millis(300) && ended.duration < PATIENCE, "{:?}", ended.duration);
}

#[tokio::test]
async fn a_stop_leaves_time_to_tidy_up() {
    let stop = CancellationToken::new();
    let script = "exec 2>/dev/null; trap 'echo tidied; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    let invocation = Invocation { grace: Duration::from_secs(60), ..shell(script) };
    let ended = run(invocation, &stop, &|_| stop.cancel()).await;
    assert_eq!((ended.end, ended.output.text(99)), (ProcessEnd::Stopped, "ready\ntidied\n".to_owned()));
}

#[tokio::test]
async fn a_stop_ends_it_within_the_grace_of_a_cancelled_run() {
    let (sleep, stop) = (unique_sleep(), CancellationToken::new());
    let script = format!("trap '' TERM; (setsid {sleep} &); echo ready; while :; do {sleep}; done");
    let ended = run(Invocation { grace: 2 * PATIENCE, ..shell(&script) }, &stop, &|_| stop.cancel()).await;
    assert_eq!((ended.end, ended.output.text(99), running(&sleep)), (ProcessEnd::Stopped, "ready\n".to_owned(), 0));
    assert!(ended.duration < PATIENCE, "{:?}", ended.duration);
}

#[tokio::test]
async fn nothing_is_started_after_a_stop() {
    let stop = CancellationToken::new();
    stop.cancel();
    let ended = run(shell("echo no"), &stop, &|_| {}).await;
    assert_eq!(ended, EndedProcess::at_once(ProcessEnd::Stopped, Duration::ZERO));
}

#[tokio::test]
async fn a_dropped_run_takes_its_whole_tree_with_it() {
    let (sleep, stop, ready) = (unique_sleep(), CancellationToken::new(), tokio::sync::Notify::new());
    let script = format!(
        "(env -i setsid {sleep} &); setsid {sleep} & while [ $(pgrep -f '^{sleep}' | wc -l) -lt 2 ]; do sleep 0.02; done; echo ready; {sleep}"
    );
    let on_output = |_: &[u8]| ready.notify_one();
    {
        let running = run(shell(&script), &stop, &on_output);
        tokio::select! { _ = running => unreachable!("it sleeps"), () = ready.notified() => {} }
    }
    // The processes are killed when the drop is over. The kernel may need a moment to remove their
    // command lines.
    let gone = async {
        while running(&sleep) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.unwrap();
}

#[tokio::test]
async fn of_two_steps_at_once_the_first_to_end_leaves_the_other_ones_processes_alone() {
    let (daemon, other, folder) = (unique_sleep(), unique_sleep(), crate::test_support::temp_dir());
    let flag = folder.path().join("go");
    let leaving = shell(&format!(
        "while ! pgrep -f '^{other}' >/dev/null; do sleep 0.02; done; (env -i setsid {daemon} </dev/null >/dev/null 2>&1 &); while ! pgrep -f '^{daemon}' >/dev/null; do sleep 0.02; done"
    ));
    let staying = shell(&format!(
        "{other} & (env -i setsid {other} &); (setsid {other} >/dev/null 2>&1 &); while ! [ -e {} ]; do sleep 0.01; done",
        flag.display()
    ));
    let first = async {
        let ended = finish(leaving).await;
        let left = (running(&daemon), running(&other));
        fs::write(&flag, "").unwrap();
        (ended, left)
    };
    let ((first, left), second) = tokio::join!(first, finish(staying));
    assert_eq!((first.end, first.leaked, left), (ProcessEnd::Exited(0), true, (0, 3)));
    assert_eq!((second.end, second.leaked, running(&other)), (ProcessEnd::Exited(0), true, 0));
}

#[tokio::test]
async fn children_that_this_process_has_for_other_reasons_live_on() {
    let mut own = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let mut apart = std::process::Command::new("setsid").args(["sleep", "600"]).spawn().unwrap();
    leaves_nothing("(setsid SLEEP &)").await;
    assert!(own.try_wait().unwrap().is_none() && apart.try_wait().unwrap().is_none());
    for child in [&mut own, &mut apart] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[tokio::test]
async fn orphans_that_have_ended_do_not_pile_up_while_a_step_runs() {
    let folder = crate::test_support::temp_dir();
    // `kill -0` finds an ended process until it is reaped.
    let script = "for i in 1 2 3 4 5 6 7 8; do (sh -c 'echo $$ >> numbers' &); done
        until [ $(cat numbers | wc -l) = 8 ]; do sleep 0.01; done
        for number in $(cat numbers); do while kill -0 $number; do sleep 0.005; done; done";
    let ended = finish(Invocation { dir: folder.path().into(), ..shell(script) }).await;
    assert_eq!(ended.end, ProcessEnd::Exited(0), "{}", ended.output.text(999));
}

#[tokio::test]
async fn a_hundred_megabytes_are_logged_within_the_limit_and_kept_in_little_memory() {
    let folder = crate::test_support::temp_dir();
    let path = folder.path().join("step.log");
    let script = "head -c 100000000 /dev/zero | tr '\\0' x; echo end";
    let ended = finish(Invocation { log: Some(path.clone()), log_limit: 3_000_000, ..shell(script) }).await;
    assert_eq!((&ended.end, ended.output.total), (&ProcessEnd::Exited(0), 100_000_004));
    assert!(ended.output.head.len() + ended.output.tail.len() <= 128 * 1024 && ended.output.tail.ends_with(b"xend\n"));
    let log = fs::read(path).unwrap();
    assert!(
        log.len() <= 3_000_100 && log.ends_with(b"xend\n") && log.windows(14).any(|part| part == b"bytes left out")
    );
    assert!(ended.output.text(4096).len() <= 4096);
}

#[tokio::test]
async fn invalid_text_is_logged_as_it_is_and_shown_as_text() {
    let folder = crate::test_support::temp_dir();
    let path = folder.path().join("step.log");
    let ended = finish(Invocation { log: Some(path.clone()), ..shell("printf 'a\\377\\033[1mb'") }).await;
    assert_eq!((ended.output.text(99), fs::read(path).unwrap()), ("a\u{fffd}b".to_owned(), b"a\xff\x1b[1mb".to_vec()));
}

#[tokio::test]
async fn an_end_by_signal_is_told_by_its_number() {
    assert_eq!(finish(shell("kill -KILL $$")).await.end, ProcessEnd::Signalled(9));
}

#[tokio::test]
async fn a_program_has_the_same_around_it_however_it_is_started() {
    // Compares signals up to 28 only, since the C library uses some others for itself.
    let script = r#"env | grep -v -E -e '^[A-Z]{7}_ID=[0-9]+$' -e ^PWD= | sort; env | grep -q -E '^[A-Z]{7}_ID=' && echo marked; pwd; ls /proc/self/fd
        grep ^Sig /proc/$$/status | grep -v ^SigQ | sed -E 's/^(Sig...).*(.{7})$/\1 \2/'
        [ "$(cut -d' ' -f 5 /proc/$$/stat)" = $$ ] && echo leads; readlink /proc/$$/fd/0; false | true; exit 3"#;
    let around = async |program: &str, dir: &Path| {
        let ended = finish(Invocation { program: program.into(), dir: dir.into(), ..shell(script) }).await;
        (ended.end, ended.output.text(4000))
    };
    let here = std::env::current_dir().unwrap();
    let (end, by_path) = around("/bin/sh", &here).await;
    assert_eq!((end, around("sh", &here).await), (ProcessEnd::Exited(3), (ProcessEnd::Exited(3), by_path.clone())));
    let there = here.join("src").display().to_string();
    let elsewhere = around("/bin/sh", &here.join("src")).await.1;
    assert_eq!(elsewhere.replace(&format!("\n{there}\n"), &format!("\n{}\n", here.display())), by_path);
    assert!(by_path.contains("\nmarked\n") && by_path.ends_with("leads\n/dev/null\n"), "{by_path}");
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let base = shell("true");
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = file.path().display().to_string();
    let cases = [
        (Invocation { dir: "/no/such".into(), ..base.clone() }, "the directory `/no/such` does not exist".to_owned()),
        (
            Invocation { program: "no-such-program".into(), ..base.clone() },
            "there is no program `no-such-program`".into(),
        ),
        (Invocation { program: text.clone(), ..base.clone() }, format!("cannot run `{text}`: permission denied")),
        (
            Invocation { args: vec!["x".repeat(5_000_000)], ..base.clone() },
            "the arguments and environment of `sh` exceed the limit of the system".into(),
        ),
        (
            Invocation { log: Some("/proc/no/step.log".into()), ..base },
            "cannot write the log `/proc/no/step.log`: No such file or directory (os error 2)".into(),
        ),
    ];
    for (invocation, why) in cases {
        assert_eq!(finish(invocation).await.end, ProcessEnd::NotStarted(why));
    }
    let here = Invocation { dir: std::env::current_dir().unwrap(), ..shell("true") };
    for (program, why) in [
        ("/no/such", "there is no program `/no/such`".to_owned()),
        (&text, format!("cannot run `{text}`: permission denied")),
    ] {
        assert_eq!(
            finish(Invocation { program: program.into(), ..here.clone() }).await.end,
            ProcessEnd::NotStarted(why)
        );
    }
}
