//! `fledge lanes`: what there is, and one of them by hand.

use crate::support::{Fledge, Model, needs, say, words};
use serde_json::json;

const CHECKS: &str = "description: What must hold\nsteps:\n  - { name: a, run: 'true' }\n  - parallel:\n      \
    - { name: b, run: 'echo from b' }\n      - { name: c, run: 'true' }\n";

#[test]
fn lanes_are_listed_for_people_and_as_json() {
    let list = |args: &[&str]| Fledge::new().lane("verify", CHECKS).lane("more", &needs("x")).args(args).run();
    let people = list(&["lanes", "list"]);
    people.must_exit(0);
    assert_eq!(
        people.stdout,
        "more\n  there: test -f x\nverify  What must hold\n  a: true\n  b: echo from b\n  c: true\n"
    );
    let json = list(&["lanes", "list", "--json"]);
    json.must_exit(0);
    let [all] = json.events().try_into().unwrap();
    assert_eq!(all["schema_version"], 1);
    assert_eq!(words(all["lanes"].as_array().unwrap().iter().map(|lane| &lane["name"])), ["more", "verify"]);
}

#[test]
fn a_project_without_lanes_says_so() {
    let run = Fledge::new().args(&["lanes", "list"]).run();
    run.must_exit(0);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", "no lanes: there is nothing in lanes/\n"));
    let run = Fledge::new().args(&["lanes", "list", "--json"]).run();
    assert_eq!(run.events(), [json!({"schema_version": 1, "lanes": []})]);
}

#[test]
fn a_lane_that_passes_ends_with_0_and_names_its_steps() {
    let run = Fledge::new().lane("verify", CHECKS).args(&["lanes", "run", "verify", "--json"]).run();
    run.must_exit(0);
    let [result] = run.events().try_into().unwrap();
    assert_eq!(
        (&result["lane"], &result["result"], &result["success"]),
        (&json!("verify"), &json!("passed"), &json!(true))
    );
    let steps = result["steps"].as_array().unwrap();
    assert_eq!(words(steps.iter().map(|step| &step["step"])), ["a", "b", "c"]);
    assert_eq!(words(steps.iter().map(|step| &step["status"])), ["passed"; 3]);
    let log = std::fs::read_to_string(steps[1]["log"].as_str().unwrap()).unwrap();
    assert_eq!(log, "from b\n");
    assert!(run.stderr.contains("lane verify passed"), "{}", run.stderr);
}

#[test]
fn a_lane_that_fails_ends_with_1_and_shows_why_and_what_was_not_run() {
    let lane = "steps:\n  - { name: a, run: 'echo what went wrong; exit 7' }\n  - { name: b, run: touch b }\n";
    let run = Fledge::new().lane("verify", lane).args(&["lanes", "run", "verify", "--json"]).run();
    run.must_exit(1);
    let [result] = run.events().try_into().unwrap();
    assert_eq!((&result["result"], &result["exit_code"]), (&json!("failed"), &json!(1)));
    assert_eq!(words(result["steps"].as_array().unwrap().iter().map(|step| &step["status"])), ["failed", "not_run"]);
    assert_eq!(result["steps"][0]["exit_code"], 7);
    assert!(run.stderr.contains("verify/a exit 7") && run.stderr.contains("| what went wrong"), "{}", run.stderr);
    assert_eq!(run.file("b"), None);
}

#[test]
fn steps_of_a_parallel_group_run_at_the_same_time() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return; // as many steps at once as there are cores
    }
    // Each waits for the other: one after the other they would never end.
    let wait = |mine: &str, other: &str| format!("mkfifo {mine} 2>/dev/null; echo > {mine} & cat {other} > /dev/null");
    let lane = format!(
        "timeout: 20s\nsteps:\n  - run: mkfifo one two\n  - parallel:\n    - run: {}\n    - run: {}\n",
        wait("one", "two"),
        wait("two", "one")
    );
    Fledge::new().lane("verify", &lane).args(&["lanes", "run", "verify"]).run().must_exit(0);
}

#[test]
fn a_step_that_takes_too_long_is_a_failure() {
    let lane = "steps: [{ name: slow, run: sleep 60, timeout: 200ms }]";
    let run = Fledge::new().lane("verify", lane).args(&["lanes", "run", "verify", "--json"]).run();
    run.must_exit(1);
    assert_eq!(run.events()[0]["steps"][0]["status"], "timed_out");
}

#[test]
fn a_lane_that_is_unknown_or_wrong_ends_with_2() {
    for (name, says) in [("verfy", "it has verify"), ("../verify", "no lane `../verify`"), ("", "no lane ``")] {
        let run = Fledge::new().lane("verify", CHECKS).args(&["lanes", "run", name]).run();
        run.must_exit(2);
        assert!(run.stderr.contains(says), "{}", run.stderr);
    }
    let fledge = Fledge::new().lane("verify", "steps: 5").lane("good", CHECKS).file("lanes/.#good.yaml", "");
    let run = fledge.args(&["lanes", "list"]).run();
    run.must_exit(2);
    assert!(run.stderr.contains("lanes/verify.yaml:1:8"), "{}", run.stderr);
    assert!(run.stdout.starts_with("good"), "the others are listed all the same: {}", run.stdout);
}

#[test]
fn a_lane_that_cannot_run_ends_with_5() {
    let run = Fledge::new()
        .lane("verify", "steps: [{ name: a, run: 'true', dir: gone }]")
        .args(&["lanes", "run", "verify"])
        .run();
    run.must_exit(5);
    assert!(run.stderr.contains("step `a` of lane `verify` cannot run: there is no folder `gone`"), "{}", run.stderr);
}

#[test]
fn a_lane_by_hand_has_the_environment_of_who_runs_it() {
    let lane = "env: { MINE: lane }\nsteps: [{ name: env, run: env > seen }]";
    let fledge =
        Fledge::new().lane("verify", lane).env("DEPLOY_TOKEN", "t-1").env("MINE", "shell").env("TERM", "xterm");
    let run = fledge.args(&["lanes", "run", "verify"]).run();
    run.must_exit(0);
    let seen = run.file("seen").unwrap();
    for line in ["DEPLOY_TOKEN=t-1", "MINE=lane", "TERM=dumb", "NO_COLOR=1"] {
        assert!(seen.lines().any(|seen| seen == line), "{line}: {seen}");
    }
}

#[test]
fn of_several_steps_the_one_that_took_longest_before_is_started_first() {
    let lane = "jobs: 1\nenv: { TO: order }\nsteps: [{ parallel: [{ run: echo a >> $TO }, { run: 'echo b >> $TO; sleep 0.2' }] }]";
    let first = Fledge::new().lane("verify", lane).args(&["lanes", "run", "verify"]).run();
    assert_eq!(first.file("order").as_deref(), Some("a\nb\n"));
    let second = first.again(&["lanes", "run", "verify"]).run();
    assert_eq!(second.file("order").as_deref(), Some("a\nb\nb\na\n"));
    // The gate remembers for the lane by hand, and the other way round.
    let model = Model::new([say("Done.")]);
    let third = second.again(&["run", "task.md"]).task("Nothing.").anthropic(&model).run();
    third.must_be(0, "verified");
    assert_eq!(third.file("order").as_deref(), Some("a\nb\nb\na\nb\na\n"));
}
