//! `fledge lanes`: listing lanes and running one by hand.

use crate::support::{Fledge, Model, needs, say, words};
use serde_json::{Value, json};

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
    assert_eq!(
        (run.stdout.as_str(), run.stderr.as_str()),
        ("", "no lanes: write lanes/verify.yaml; one step is enough\n")
    );
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
    let commands = result["commands"].as_array().unwrap();
    assert_eq!(words(commands.iter().map(|step| &step["step"])), ["a", "b", "c"]);
    assert_eq!(words(commands.iter().map(|step| &step["status"])), ["passed"; 3]);
    let log = std::fs::read_to_string(commands[1]["log"].as_str().unwrap()).unwrap();
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
    assert_eq!(words(result["commands"].as_array().unwrap().iter().map(|step| &step["status"])), ["failed", "not_run"]);
    assert_eq!((&result["commands"][0]["exit_code"], &result["failures"]), (&json!(7), &json!(["a"])));
    assert_eq!(result["steps"][0]["error"], "`a` failed with exit code 7");
    assert!(run.stderr.contains("verify/a exit 7") && run.stderr.contains("| what went wrong"), "{}", run.stderr);
    assert_eq!(run.file("b"), None);
}

#[test]
fn steps_of_a_parallel_group_run_at_the_same_time() {
    // Each step waits for the other, so running them in sequence would never end.
    let wait = |mine: &str, other: &str| format!("mkfifo {mine} 2>/dev/null; echo > {mine} & cat {other} > /dev/null");
    let lane = format!(
        "timeout: 5m\njobs: 2\nsteps:\n  - run: mkfifo one two\n  - parallel:\n    - run: {}\n    - run: {}\n",
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
    assert_eq!(run.events()[0]["commands"][0]["status"], "timed_out");
}

/// Removes values that differ between runs.
fn steady(mut value: Value) -> Value {
    value.as_object_mut().unwrap().remove("commands");
    value.as_object_mut().unwrap().remove("joints");
    for step in value["steps"].as_array_mut().unwrap() {
        let step = step.as_object_mut().unwrap();
        if step.get("duration_ms").is_some_and(|time| !time.is_null()) {
            step.insert("duration_ms".into(), json!("a time"));
        }
    }
    value.as_object_mut().unwrap().remove("duration_ms");
    value
}

#[test]
fn the_result_numbers_what_is_written_in_the_lane_and_says_what_became_of_each() {
    let lane = "fail_fast: false\nsteps:\n  - run: exit 7\n  - parallel:\n    - run: 'true'\n    - { name: bad, run: exit 3 }\n  \
        - { name: off, run: 'true', when: NO_SUCH_VARIABLE }\n  - { name: late, run: 'test -e twice || { touch twice; exit 1; }', retries: 2 }\n  \
        - { name: fallen, run: 'true', needs: [bad] }\n";
    let run = Fledge::new().lane("verify", lane).args(&["lanes", "run", "verify", "--json"]).run();
    run.must_exit(1);
    let [result] = run.events().try_into().unwrap();
    let (time, none) = (json!("a time"), Value::Null);
    let step = |number: u32, name: &str, success: Value, error: Value, time: &Value| json!({"step": number, "name": name, "success": success, "error": error, "duration_ms": time});
    let mut off = step(3, "off", none.clone(), none.clone(), &none);
    (off["skipped"], off["reason"]) = (json!(true), json!("when: `NO_SUCH_VARIABLE` does not hold"));
    let mut late = step(4, "late", json!(true), none.clone(), &time);
    late["attempts"] = json!(2);
    assert_eq!(
        steady(result),
        json!({
            "schema_version": 1, "lane": "verify", "description": "", "total_steps": 5, "success": false, "fail_fast": false,
            "result": "failed", "exit_code": 1, "failures": ["exit 7", "parallel(true, bad)", "fallen"],
            "steps": [
                step(1, "exit 7", json!(false), json!("`exit 7` failed with exit code 7"), &time),
                step(2, "parallel(true, bad)", json!(false), json!("`bad` failed with exit code 3"), &time),
                off,
                late,
                step(5, "fallen", json!(false), json!("`fallen` was not run: it needs `bad`, which did not pass"), &time),
            ],
        })
    );
}

#[test]
fn a_lane_can_start_in_the_middle_and_reports_only_the_steps_it_reached() {
    let lane = "steps: [{ name: a, run: 'false' }, { name: b, run: 'false' }, { name: c, run: 'true' }]";
    let run = Fledge::new().lane("verify", lane).args(&["lanes", "run", "verify", "--json", "--from", "b"]).run();
    run.must_exit(1);
    let result = steady(run.events().remove(0));
    assert_eq!(
        (&result["from_step"], &result["failures"], result["steps"].as_array().unwrap().len()),
        (&json!(2), &json!(["b"]), 2)
    );
    assert_eq!(
        result["steps"][0],
        json!({"step": 1, "name": "a", "success": null, "duration_ms": null, "error": null, "skipped": true, "reason": "--from"})
    );
}

#[test]
fn a_dry_run_says_what_would_run_and_runs_nothing() {
    let lane = "description: Checks\nsteps:\n  - { name: a, run: touch a, timeout: 5s, retries: 2, retry_delay: 1500ms }\n  \
        - parallel: [{ run: touch b }, { run: touch c, when: NO_SUCH_VARIABLE }]\n  - { run: touch d, when: NO_SUCH_VARIABLE }\n";
    let args = ["lanes", "run", "verify", "--dry-run", "--json", "--from", "2"];
    let run = Fledge::new().lane("verify", lane).args(&args).run();
    run.must_exit(0);
    assert_eq!((run.file("a"), run.file("b"), run.stderr.as_str()), (None, None, ""));
    let [plan] = run.events().try_into().unwrap();
    let left_out: Vec<&Value> =
        plan["commands"].as_array().unwrap().iter().map(|command| &command["left_out"]).collect();
    let off = "when: `NO_SUCH_VARIABLE` does not hold";
    assert_eq!(left_out, [&json!("not selected"), &json!(null), &json!(off), &json!(off)]);
    assert_eq!(
        steady(plan),
        json!({
            "schema_version": 1, "lane": "verify", "description": "Checks", "total_steps": 3, "fail_fast": true, "dry_run": true, "from_step": 2,
            "steps": [
                {"step": 1, "kind": "inline", "name": "a", "timeout": 5, "retries": 2, "retry_delay": 1.5, "skipped": true, "reason": "--from"},
                {"step": 2, "kind": "parallel", "items": [{"kind": "inline", "name": "touch b"}, {"kind": "inline", "name": "touch c"}]},
                {"step": 3, "kind": "inline", "name": "touch d", "when": "NO_SUCH_VARIABLE", "skipped": true, "reason": off},
            ],
        })
    );
    let people = Fledge::new().lane("verify", lane).args(&["lanes", "run", "verify", "--dry-run"]).run();
    people.must_exit(0);
    let shown = Fledge::new().lane("verify", lane).args(&["lanes", "show", "verify"]).run();
    assert!(people.stdout.contains("touch a\n   [at most 5s; 2 more tries after 1s500ms]"), "{}", people.stdout);
    assert_eq!(people.stdout.replace(&format!("  (left out: {off})"), ""), shown.stdout);
}

#[test]
fn a_lane_that_is_unknown_or_wrong_ends_with_2() {
    for (name, says) in [("verfy", "known: verify"), ("../verify", "no lane `../verify`"), ("", "no lane ``")] {
        let run = Fledge::new().lane("verify", CHECKS).args(&["lanes", "run", name]).run();
        run.must_exit(2);
        assert!(run.stderr.contains(says), "{}", run.stderr);
    }
    let fledge = Fledge::new().lane("verify", "steps: 5").lane("good", CHECKS).file("lanes/.#good.yaml", "");
    let run = fledge.args(&["lanes", "list"]).run();
    run.must_exit(2);
    assert!(run.stderr.contains("lanes/verify.yaml:1:8"), "{}", run.stderr);
    assert!(run.stdout.starts_with("good"), "the other lanes are listed: {}", run.stdout);
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
    for line in ["DEPLOY_TOKEN=t-1", "MINE=lane", "TERM=xterm"] {
        assert!(seen.lines().any(|seen| seen == line), "{line}: {seen}");
    }
}

#[test]
fn everything_wrong_or_strange_is_found_at_once_and_nothing_is_run() {
    let fledge = || {
        Fledge::new()
            .lane("verify", "steps:\n  - { run: touch ran, tiemout: 5s }\n  - { task: nope }\n")
            .lane("good", "steps: [{ name: a, run: no-such-program }]")
            .file("fledge.toml", "[lanes.ci]\ndescription = \"x\"\nsteps = [{ run = \"true\", timout = 3 }]\n")
    };
    let run = fledge().args(&["lanes", "validate", "--json"]).run();
    run.must_exit(2);
    let [found] = run.events().try_into().unwrap();
    assert_eq!((&found["lane_count"], run.file("ran")), (&json!(2), None));
    let part = |finding: &Value| {
        let place = format!("{}:{}:{}", finding["file"].as_str().unwrap(), finding["line"], finding["column"]);
        (finding["severity"].as_str().unwrap().to_owned(), place, finding["message"].as_str().unwrap().to_owned())
    };
    let part_of =
        |severity: &str, place: &str, message: &str| (severity.to_owned(), place.to_owned(), message.to_owned());
    let search = std::env::var("PATH").unwrap();
    assert_eq!(
        found["findings"].as_array().unwrap().iter().map(part).collect::<Vec<_>>(),
        [
            part_of("error", "lanes/verify.yaml:2:23", "unknown key `tiemout` in a step"),
            part_of("error", "lanes/verify.yaml:3:13", "there is no task `nope`"),
            part_of("warning", "fledge.toml:3:26", "unknown key `timout` in a step"),
            part_of(
                "warning",
                "lanes/good.yaml:null:null",
                &format!(
                    "step `a` of lane `good` cannot run here: there is no program `no-such-program` in PATH ({search})"
                )
            ),
        ]
    );
    assert!(found["errors"][0].as_str().unwrap().contains("did you mean `timeout`"), "{found}");
    let people = fledge().args(&["lanes", "validate"]).run();
    people.must_exit(2);
    assert!(people.stderr.ends_with("invalid: 2 lanes, 2 errors and 2 warnings\n"), "{}", people.stderr);
}

#[test]
fn warnings_are_errors_when_strict() {
    let fledge = || Fledge::new().file("fledge.toml", "[lanes.ci]\nsteps = [{ run = \"true\" }]\n");
    fledge().args(&["lanes", "validate"]).run().must_exit(0);
    fledge().args(&["lanes", "validate", "--strict"]).run().must_exit(2);
    let (none, gone) =
        (Fledge::new().args(&["lanes", "validate"]).run(), Fledge::new().args(&["lanes", "validate", "gone"]).run());
    none.must_exit(2);
    gone.must_exit(2);
    assert!(
        none.stderr.contains("no lanes: write") && gone.stderr.contains("gone: no such file or folder"),
        "{none:?} {gone:?}"
    );
}

#[test]
fn of_several_steps_the_one_that_took_longest_before_is_started_first() {
    long_test!();
    let lane = "room: in-place\njobs: 1\nenv: { TO: order }\nsteps: [{ parallel: [{ run: echo a >> $TO }, { run: 'echo b >> $TO; [ $(wc -l < $TO) -gt 2 ] || sleep 2' }] }]";
    let first = Fledge::new().file(".gitignore", "order").lane("verify", lane).args(&["lanes", "run", "verify"]).run();
    assert_eq!(first.file("order").as_deref(), Some("a\nb\n"));
    let second = first.again(&["lanes", "run", "verify"]).run();
    assert_eq!(second.file("order").as_deref(), Some("a\nb\nb\na\n"));
    // Memory is shared between the gate and the lane run by hand, in both directions.
    let model = Model::new([say("Done.")]);
    let third = second.again(&["run", "task.md"]).task("Nothing.").anthropic(&model).run();
    third.must_be(0, "verified");
    assert_eq!(third.file("order").as_deref(), Some("a\nb\nb\na\nb\na\n"));
}
