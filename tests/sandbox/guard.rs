//! Tests that fledge leaves no process running after a SIGKILL, and touches no process of others.

use crate::support::{
    Fledge, Model, Need, Running, WAYS, fleeing, must_be_gone, running_with, shell, sleepers, unique,
};
use rustix::process::{Pid, Signal, kill_process};

/// Returns a command whose processes detach in every way, and do not end.
fn command(number: &str) -> String {
    format!("{} sleep {number}", fleeing(number))
}

/// Returns a lane whose one step runs that command.
fn lane(number: &str) -> String {
    format!("steps:\n  - name: fleeing\n    run: |\n      {}\n", command(number))
}

/// Starts that lane, and waits until all its processes have detached.
fn fled(fledge: Fledge, number: &str) -> Running {
    let run = fledge.lane("flee", &lane(number)).args(&["lanes", "run", "flee"]).start();
    wait_for_sleepers(&run, number);
    run
}

#[track_caller]
fn wait_for_sleepers(run: &Running, number: &str) {
    wait(run, || (sleepers(number).len() > WAYS).then_some(()));
}

/// Returns the pid and the command line of a run's guard, from `step-guard` on.
#[track_caller]
fn guard(run: &Running) -> (i32, String) {
    wait(run, || {
        let (pid, line) = run.children_with("step-guard ").pop()?;
        Some((pid, line[line.find("step-guard ")?..].to_owned()))
    })
}

/// Waits until `look` finds something; ends the run if that never happens.
#[track_caller]
fn wait<T>(run: &Running, look: impl Fn() -> Option<T>) -> T {
    let mut found = None;
    run.until(|| {
        found = look();
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn a_lane_whose_program_is_killed_leaves_nothing_alive_and_the_guard_goes_too() {
    let number = unique();
    let run = fled(Fledge::new(), &number);
    let (_, guard) = guard(&run);
    run.signal(Signal::KILL);
    must_be_gone(&number);
    must_be_gone(&guard);
    assert_eq!(run.end().code, None);
}

#[test]
fn a_run_that_is_killed_in_the_middle_of_a_command_leaves_nothing_alive() {
    let number = unique();
    let model = Model::new([shell(&command(&number))]);
    let run = Fledge::simple(&model).start();
    wait_for_sleepers(&run, &number);
    run.signal(Signal::KILL);
    must_be_gone(&number);
}

#[test]
fn a_guard_that_was_killed_is_replaced() {
    let number = unique();
    let first = "steps:\n  - name: waiting\n    run: until [ -e go ]; do sleep 0.01; done\n";
    let lane = lane(&number).replace("steps:\n", first);
    let fledge = Fledge::new().lane("flee", &lane).args(&["lanes", "run", "flee"]);
    let go = fledge.workspace().join("go");
    let run = fledge.start();
    let (guard, _) = guard(&run);
    kill_process(Pid::from_raw(guard).unwrap(), Signal::KILL).unwrap();
    // A killed guard that is not dead yet would look usable to the next step.
    wait(&run, || (!run.children_with("step-guard ").iter().any(|(pid, _)| *pid == guard)).then_some(()));
    std::fs::write(go, "").unwrap();
    wait_for_sleepers(&run, &number);
    run.signal(Signal::KILL);
    must_be_gone(&number);
}

#[test]
fn a_kill_by_command_line_spares_the_guard_process() {
    let number = unique();
    let run = fled(Fledge::new(), &number);
    guard(&run);
    for (pid, _) in run.children_with("fledge") {
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }
    run.signal(Signal::KILL);
    must_be_gone(&number);
}

#[test]
fn in_a_container_whose_session_was_begun_outside_nothing_is_left_either() {
    const CONTAINED: [&str; 6] = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
    // The search runs inside, since the whole container ends with its first process. The brackets
    // keep it from finding itself.
    const LOOK: &str = r#""$0" "$@"; code=$?; cat /proc/[0-9]*/cmdline | tr '\0' ' ' | grep -c '[s]leep '; exit $code"#;
    if !Fledge::new().under(&CONTAINED).args(&["--version"]).run().stdout.starts_with("fledge") {
        return Need::Sandbox.lacks("no container can be made here");
    }
    let lane = "steps: [{ name: fleeing, run: 'setsid sleep 1000 & sleep 0.01' }]";
    let fledge = Fledge::new().lane("flee", lane).under(&[&CONTAINED[..], &["sh", "-c", LOOK]].concat());
    let end = fledge.args(&["lanes", "run", "flee"]).run();
    assert_eq!((end.code, end.stdout.lines().last()), (Some(0), Some("0")), "{end:?}");
}

#[test]
fn a_guard_that_is_killed_in_the_middle_of_a_step_is_replaced_while_that_runs() {
    let number = unique();
    let run = fled(Fledge::new(), &number);
    let (first, _) = guard(&run);
    kill_process(Pid::from_raw(first).unwrap(), Signal::KILL).unwrap();
    wait(&run, || (guard(&run).0 != first).then_some(()));
    run.signal(Signal::KILL);
    must_be_gone(&number);
}

#[test]
fn the_processes_of_another_program_live_on() {
    let (number, others) = (unique(), unique());
    let other = fled(Fledge::new(), &others);
    let run = fled(Fledge::new(), &number);
    let (_, guard) = guard(&run);
    run.signal(Signal::KILL);
    must_be_gone(&number);
    must_be_gone(&guard);
    assert_eq!(sleepers(&others).len(), WAYS + 1);
    other.signal(Signal::KILL);
    must_be_gone(&others);
}

#[test]
fn a_program_in_a_step_of_another_takes_its_steps_with_it_when_the_other_is_killed() {
    let number = unique();
    let inner = format!("FLEDGE_STATE_DIR=$PWD/inner {} lanes run flee", env!("CARGO_BIN_EXE_fledge"));
    let outer = format!("steps: [{{ name: outer, run: '{inner}' }}]");
    let fledge = Fledge::new().lane("flee", &lane(&number)).lane("outer", &outer);
    let run = fledge.args(&["lanes", "run", "outer"]).start();
    wait_for_sleepers(&run, &number);
    let (_, guard) = guard(&run);
    run.signal(Signal::KILL);
    must_be_gone(&number);
    must_be_gone(&guard);
}

#[test]
fn a_lane_that_ends_by_itself_leaves_no_guard_not_even_for_a_moment() {
    let lane = "steps: [{ name: waiting, run: 'until [ -e go ]; do sleep 0.01; done' }]";
    let fledge = Fledge::new().lane("verify", lane).args(&["lanes", "run", "verify"]);
    let go = fledge.workspace().join("go");
    let run = fledge.start();
    let (_, guard) = guard(&run);
    std::fs::write(go, "").unwrap();
    run.end().must_exit(0);
    assert_eq!(running_with(&guard), Vec::<String>::new());
}
