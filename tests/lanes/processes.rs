//! Processes that a step starts, and how fledge ends them. Tests run the whole program: for a
//! single step, for a step beside an unrelated one, and for a retried step.

use crate::support::{Ended, Fledge, SOON, WAYS, fleeing, must_be_gone, sleepers, unique};
use fledge::limits::CANCEL_GRACE;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// The script of a step and its expected result.
struct Rule {
    /// `N` is a number that marks the step's sleeps. `FLEE` is replaced by all ways to leave a step
    /// without ending it.
    script: &'static str,
    /// More keys of the step.
    more: &'static str,
    status: &'static str,
    note: &'static str,
    excerpt: &'static str,
}

const LEFT: &str = "left processes behind, which were killed";

const RULES: &[Rule] = &[
    rule("FLEE exit 0", "", "passed", LEFT, ""),
    rule("FLEE exit 3", "", "failed", LEFT, ""),
    rule("FLEE wait", ", timeout: 3s", "timed_out", "ran out of its time of 3s", ""),
    rule("trap '' TERM; while :; do sleep N; done", ", timeout: 3s", "timed_out", "ran out of its time of 3s", ""),
    rule("echo said; setsid sleep N & exit 0", "", "passed", LEFT, "said"),
    rule("cat; cat /dev/stdin; echo the end of input", "", "passed", "", "the end of input"),
    rule("kill -SEGV $$", "", "failed", "ended by signal 11", ""),
    rule(
        "sleep N & kill -KILL $$",
        "",
        "failed",
        "killed by signal 9, not by fledge; was memory short?; left processes behind, which were killed",
        "",
    ),
    rule("[ $(ps -o pgid= -p $$) -eq $$ ] && echo its own group", "", "passed", "", "its own group"),
];

const fn rule(
    script: &'static str,
    more: &'static str,
    status: &'static str,
    note: &'static str,
    excerpt: &'static str,
) -> Rule {
    Rule { script, more, status, note, excerpt }
}

impl Rule {
    fn script(&self, number: &str) -> String {
        self.script.replace("FLEE", &flee(number)).replace('N', number)
    }
}

/// Starts processes that escape in every way, and continues when all have started.
fn flee(number: &str) -> String {
    format!("{} until [ $(pgrep -xfc '(/bin/)?sleep {number}') -ge {WAYS} ]; do sleep 0.02; done;", fleeing(number))
}

/// Formats a step in YAML.
fn step(name: &str, script: &str, more: &str) -> String {
    format!("{{ name: {name}, run: {}{more} }}", json!(script))
}

fn run(lane: &str) -> Ended {
    let fledge = Fledge::new().silent_stdin().lane("verify", lane).args(&["lanes", "run", "verify", "--json"]);
    let ended = fledge.run();
    assert!(ended.took < SOON, "took {:?} for {lane}", ended.took);
    ended
}

fn steps(ended: &Ended) -> Vec<Value> {
    ended.events()[0]["commands"].as_array().unwrap().clone()
}

fn all_rules(check: fn(&Rule, &str)) {
    std::thread::scope(|scope| {
        RULES.iter().for_each(|rule| drop(scope.spawn(|| check(rule, &unique()))));
    });
}

#[test]
fn a_step_alone_is_ended_by_the_rules() {
    long_test!();
    all_rules(|rule, number| {
        let ended = run(&format!("steps: [{}]", step("it", &rule.script(number), rule.more)));
        must_be(&steps(&ended)[0], rule);
        must_be_gone(number);
    });
}

#[test]
fn a_step_is_ended_by_the_rules_beside_a_sibling_whose_processes_live_on() {
    long_test!();
    all_rules(|rule, number| {
        let own = unique();
        // On a busy machine the other step may time out before all processes have started.
        let innocent = format!(
            "setsid sleep {own} & own=$!; n=0; until [ -e begun ] || [ $n -gt 15000 ]; do sleep 0.02; n=$((n + 1)); done; \
             while pgrep -xf '(/bin/)?sleep {number}' >/dev/null; do sleep 0.02; done; \
             kill -0 $own && echo still here; kill $own; wait $own 2>/dev/null || true"
        );
        let script = rule
            .script(number)
            .replace("done; exit", "done; touch begun; exit")
            .replace("done; wait", "done; touch begun; wait");
        let script = if script.contains("touch begun") { script } else { format!("touch begun; {script}") };
        let lane = format!(
            "fail_fast: false\njobs: 2\nsteps: [{{ parallel: [{}, {}] }}]",
            step("it", &script, rule.more),
            step("innocent", &innocent, ", timeout: 5m")
        );
        let steps = steps(&run(&lane));
        must_be(&steps[0], rule);
        let innocent = ["status", "note", "excerpt"].map(|key| steps[1][key].clone());
        assert_eq!(innocent, [json!("passed"), json!(""), json!("still here")], "beside {}", rule.script);
        must_be_gone(number);
        must_be_gone(&own);
    });
}

#[test]
fn a_step_is_tried_again_when_nothing_of_its_first_try_is_left() {
    long_test!();
    all_rules(|rule, number| {
        let again = format!("pgrep -xf '(/bin/)?sleep {number}' && exit 9; echo clean; exit 0");
        // A script that would pass fails here, so that the step is retried.
        let first = rule.script(number).replace("exit 0", "exit 3");
        let script = format!("[ -e tried ] && {{ {again}; }}; touch tried; {first}; exit 3");
        let ended = run(&format!("steps: [{}]", step("it", &script, &format!("{}, retries: 1", rule.more))));
        let it = ["status", "tries", "note", "excerpt"].map(|key| steps(&ended)[0][key].clone());
        assert_eq!(it, [json!("flaky"), json!(2), json!(""), json!("clean")], "{}", rule.script);
        must_be_gone(number);
    });
}

#[track_caller]
fn must_be(step: &Value, rule: &Rule) {
    let got = ["status", "note", "excerpt"].map(|key| step[key].clone());
    assert_eq!(got, [json!(rule.status), json!(rule.note), json!(rule.excerpt)], "{}", rule.script);
}

/// Lanes with steps that flee and stay, and the number of sleeps that each lane starts.
fn shapes(number: &str, first: &str) -> [(String, usize); 3] {
    let stay = format!("{} sleep {number}", flee(number));
    let again = format!("[ -e tried ] || {{ touch tried; {} exit 3; }}; {stay}", flee(first));
    [
        (format!("steps: [{}]", step("alone", &stay, "")), WAYS + 1),
        (
            format!("jobs: 2\nsteps: [{{ parallel: [{}, {}] }}]", step("one", &stay, ""), step("other", &stay, "")),
            2 * WAYS + 2,
        ),
        (format!("steps: [{}]", step("retried", &again, ", retries: 1")), WAYS + 1),
    ]
}

#[test]
fn however_the_program_is_ended_nothing_of_its_steps_is_left() {
    let signals = [(Signal::INT, Some(130)), (Signal::TERM, Some(143)), (Signal::HUP, Some(143)), (Signal::KILL, None)];
    std::thread::scope(|scope| {
        for (signal, code) in signals {
            for shape in 0..3 {
                scope.spawn(move || {
                    let (number, first) = (unique(), unique());
                    let (lane, count) = shapes(&number, &first)[shape].clone();
                    let run = Fledge::new().lane("flee", &lane).args(&["lanes", "run", "flee"]).start();
                    run.until(|| sleepers(&number).len() >= count);
                    run.signal(signal);
                    assert_eq!(run.end().code, code, "{signal:?}: {lane}");
                    must_be_gone(&number);
                    must_be_gone(&first);
                });
            }
        }
    });
}

#[test]
fn the_tree_of_a_sibling_is_gone_when_a_step_fails() {
    let (number, own) = (unique(), unique());
    let fail = format!(
        "until [ $(pgrep -xfc '(/bin/)?sleep {number}') -gt {WAYS} ]; do sleep 0.02; done; setsid sleep {own} & exit 3"
    );
    let stay = format!("{} sleep {number}", fleeing(&number));
    let lane = format!(
        "jobs: 2\nsteps: [{{ parallel: [{}, {}] }}, {}]",
        step("stays", &stay, ""),
        step("fails", &fail, ""),
        step("later", "touch later", "")
    );
    let ended = run(&lane);
    ended.must_exit(1);
    let statuses: Vec<Value> = steps(&ended).iter().map(|step| step["status"].clone()).collect();
    assert_eq!((statuses, ended.file("later")), (vec![json!("cancelled"), json!("failed"), json!("not_run")], None));
    must_be_gone(&number);
    must_be_gone(&own);
}

#[test]
fn signals_that_whoever_starts_the_program_has_blocked_are_heard() {
    // A process blocks all signals briefly while it starts a program. The mask has the bits of HUP,
    // INT, TERM and CHLD; the parent of the tests may block others.
    let lane = "steps: [{ name: staying, run: 'n=0; while mask=$(sed -n \"s/^SigBlk:.//p\" /proc/$PPID/status); [ $((0x$mask & 0x14003)) != 0 ] && [ $n -lt 500 ]; do n=$((n+1)); done; echo blocked $((0x$mask & 0x14003)); echo up; sleep 3600' }]";
    let blocked = ["env", "--block-signal=CHLD", "--block-signal=TERM", "--block-signal=INT", "--block-signal=HUP"];
    let mut run =
        Fledge::new().lane("stay", lane).under(&blocked).args(&["lanes", "run", "stay", "--json=events"]).start();
    run.wait_for("up\"");
    run.signal(Signal::TERM);
    let ended = run.end();
    ended.must_exit(143);
    assert!(ended.stdout.contains("blocked 0\\n"), "{}", ended.story());
}

#[test]
fn many_jobs_raise_the_limit_on_open_files_for_the_program_alone() {
    const SCANT: [&str; 3] = ["sh", "-c", "ulimit -Sn 100; exec \"$0\" \"$@\""];
    let waiting = "{ run: 'echo x >> count; exec sleep 3600' }, ".repeat(59);
    let last =
        "until [ $(wc -l < count) -ge 59 ]; do sleep 0.02; done; until [ $(ulimit -Sn) = 100 ]; do :; done; exit 7";
    let lane = format!("jobs: 60\nsteps: [{{ parallel: [{waiting}{{ name: last, run: '{last}' }}] }}]");
    let ended = Fledge::new().lane("many", &lane).under(&SCANT).args(&["lanes", "run", "many", "--json"]).run();
    ended.must_exit(1);
    let steps = steps(&ended);
    let cancelled = steps.iter().filter(|step| step["status"] == "cancelled").count();
    assert_eq!((cancelled, &steps[59]["exit_code"]), (59, &json!(7)), "{}", ended.story());
}

#[test]
fn jobs_are_no_more_than_open_files_allow() {
    const SCANT: [&str; 3] = ["sh", "-c", "ulimit -n 96; exec \"$0\" \"$@\""];
    let lane = format!("jobs: 40\nsteps: [{{ parallel: [{}] }}]", "{ run: 'true' }, ".repeat(40));
    let ended = Fledge::new().lane("many", &lane).under(&SCANT).args(&["lanes", "run", "many"]).run();
    ended.must_exit(0);
    assert!(ended.stderr.contains("running 8 programs at a time, not 40"), "{}", ended.story());
}

#[test]
fn a_limit_on_open_files_below_the_need_of_fledge_is_named() {
    const SCANT: [&str; 3] = ["sh", "-c", "ulimit -n 24; exec \"$0\" \"$@\""];
    let ended =
        Fledge::new().lane("one", "steps: [{ run: 'true' }]").under(&SCANT).args(&["lanes", "run", "one"]).run();
    ended.must_exit(8);
    assert!(ended.stderr.contains("may have 24 files open at a time, and fledge needs 64"), "{}", ended.story());
    assert!(ended.stderr.contains("`ulimit -n 1024`"), "{}", ended.story());
}

#[test]
fn asked_twice_it_kills_what_its_steps_have_started_itself_and_ends_at_once() {
    let number = unique();
    let script = format!("trap 'touch asked' TERM; {} while :; do sleep {number} & wait; done", fleeing(&number));
    let fledge =
        Fledge::new().lane("flee", &format!("steps: [{}]", step("it", &script, ""))).args(&["lanes", "run", "flee"]);
    let asked = fledge.workspace().join("asked");
    let run = fledge.start();
    run.until(|| sleepers(&number).len() > WAYS && !run.children_with("step-guard ").is_empty());
    // Kills the guard, which would otherwise kill the processes.
    let (guard, _) = run.children_with("step-guard ").pop().unwrap();
    kill_process(Pid::from_raw(guard).unwrap(), Signal::KILL).unwrap();
    let first = run.signal(Signal::INT);
    run.until(|| asked.exists());
    run.signal(Signal::INT);
    let ended = run.end();
    ended.must_exit(130);
    // On a very busy machine the grace period may pass before the second signal. Then fledge prints
    // its last lines.
    let is_late = first.elapsed() >= CANCEL_GRACE;
    assert!(is_late || !ended.stderr.contains("lane flee cancelled"), "it had time for last words: {}", ended.stderr);
    must_be_gone(&number);
}
