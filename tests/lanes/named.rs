//! Lane files that are checked by name, and messages about files that another program of this name
//! wrote or imported.

use crate::support::Fledge;
use serde_json::{Value, json};

#[test]
fn files_are_checked_wherever_they_are_with_all_that_is_wrong_at_once() {
    let fledge = Fledge::new()
        .file("fledge.yaml", "tasks: { fmt: 'true' }")
        .lane("verify", "steps: [{ task: fmt }, { task: gone }]")
        .lane("other", "stps: []")
        .file("more/good.yaml", "steps: [{ task: fmt }, { lane: verify2 }]")
        .file("more/bad.yml", "steps:\n  - { run: a, tiemout: 5s }\n  - { run: '' }\n")
        .file(
            "sub/fledge.toml",
            "[lanes.ci]\ndescription = 'x'\nsteps = ['gone']\n[lanes.ok]\nsteps = [{ run = 'true' }]\n",
        )
        .file("notes.txt", "");
    let files = [
        "lanes/verify.yaml",
        "more/good.yaml",
        "more/bad.yml",
        "sub/fledge.toml",
        "notes.txt",
        "nowhere.yaml",
        "fledge.yaml",
    ];
    let run = fledge.args(&[&["lanes", "validate"], &files[..]].concat()).run();
    run.must_exit(2);
    let is_drawn = |line: &&str| line.starts_with("  ");
    let (drawn, told): (Vec<&str>, Vec<&str>) = run.stderr.lines().partition(is_drawn);
    assert_eq!(
        drawn[..2],
        ["  1 | steps: [{ task: fmt }, { task: gone }]", "    |                                ^^^^"]
    );
    let expected = [
        "error: lanes/verify.yaml:1:32: there is no task `gone` (there are: fmt)",
        "error: more/good.yaml:1:32: there is no lane `verify2` (did you mean `verify`?)",
        "error: more/bad.yml:2:15: unknown key `tiemout` in a step (did you mean `timeout`?)",
        "error: more/bad.yml:3:12: expected `run` to be a text, found an empty text (give it a value or remove the key)",
        "error: sub/fledge.toml:3:10: there is no task `gone` (there are no tasks)",
        "error: notes.txt: this file cannot define lanes (use `<name>.yaml` for a lane, `fledge.yaml` for tasks, and `fledge.toml` or a file of its format for both)",
        "error: nowhere.yaml: no such file or folder",
        "warning: sub/fledge.toml:4:8: lane `ok` has no description (say with `description` what it is for)",
        "invalid: 1 lane, 7 errors and 1 warning",
    ];
    assert_eq!(told, expected);
}

#[test]
fn what_is_right_is_right_wherever_it_is() {
    let fledge = Fledge::new()
        .file("fledge.yaml", "tasks: { fmt: 'true' }")
        .lane("verify", "steps: [{ task: fmt }]")
        .lane("broken", "stps: []")
        .file("elsewhere/x.yaml", "steps: [{ lane: verify }]")
        .file("elsewhere/of.toml", "tasks.a = 'true'\nlanes.ci = { description = 'd', steps = ['a'] }");
    let args = [
        "lanes",
        "validate",
        "--strict",
        "--json",
        "lanes/verify.yaml",
        "elsewhere/x.yaml",
        "elsewhere/of.toml",
        "fledge.yaml",
    ];
    let run = fledge.args(&args).run();
    run.must_exit(0);
    let [found] = run.events().try_into().unwrap();
    let counts = (&found["lane_count"], &found["errors"], found["paths"].as_array().unwrap().len());
    assert_eq!(counts, (&json!(3), &json!([]), 4), "{found}");
    let both = run.again(&["lanes", "validate", "elsewhere/x.yaml", "."]).run();
    both.must_exit(2);
    assert!(
        both.stderr.contains("error: lanes/broken.yaml:1:1: ") && both.stderr.contains("invalid: 2 lanes"),
        "{}",
        both.stderr
    );
}

#[test]
fn a_lane_that_cannot_be_made_for_another_files_fault_is_not_right() {
    let fledge = Fledge::new()
        .file("fledge.toml", "[lanes.ci]\ndescription = 'd'\nsteps = ['b']")
        .file(".fledge/lanes/x.toml", "tasks.b = { cmd = 'true', deps = ['gone'] }");
    let run = fledge.args(&["lanes", "validate", "fledge.toml"]).run();
    run.must_exit(2);
    assert!(run.stderr.starts_with("error: .fledge/lanes/x.toml:1:"), "{}", run.stderr);
}

#[test]
fn commands_that_call_a_verb_which_is_not_there_are_warned_of_with_their_line() {
    let toml = "[tasks]\nspec = 'fledge spec check --strict'\ncut = { cmd = 'fledge release patch' }\n\n\
        [lanes.ci]\ndescription = 'd'\nsteps = ['cut', { run = 'cargo test && fledge chnagelog' }, { run = 'fledge run spec' }]\n";
    let fledge = Fledge::new()
        .file("fledge.toml", toml)
        .lane("own", "steps:\n  - run: make\n  - run: fledge lanes import x/y\n");
    let run = fledge.args(&["lanes", "validate", "--json"]).run();
    run.must_exit(0);
    let [found] = run.events().try_into().unwrap();
    let told: Vec<String> = found["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| warning.as_str().unwrap().to_owned())
        .filter(|warning| !warning.contains("cannot run here"))
        .collect();
    let missing = "is a verb that this fledge does not have (`fledge help` has the verbs)";
    let expected = [
        format!("fledge.toml:3:9: `fledge release` {missing}"),
        format!("fledge.toml:7:19: `fledge chnagelog` {missing}"),
        "fledge.toml:7:63: `fledge run spec` hands the file `spec` to a model, and runs no task of this name (name the task as a step, or in `deps` of another)".into(),
        format!("lanes/own.yaml:3:5: `fledge lanes import` {missing}"),
    ];
    assert_eq!(told, expected);
    let dry = run.again(&["lanes", "run", "own", "--dry-run"]).run();
    dry.must_exit(0);
    assert_eq!(dry.stderr, format!("note: {}\n", expected[3]));
    let spec = dry.again(&["spec", "check", "--strict"]).run();
    assert!(!spec.stderr.contains("unrecognized"), "{}", spec.stderr);
}

#[test]
fn a_lane_in_the_place_of_a_task_is_told_with_what_to_write() {
    let toml = "tasks.t = { cmd = 'true', deps = ['verify'] }\nlanes.verify.steps = [{ run = 'true' }]\n\
        lanes.ci.steps = ['verify']\nlanes.of.steps = [{ lane = 'verify' }]\nlanes.dep.steps = ['t']\n";
    let fledge = Fledge::new().file("fledge.toml", toml).lane("own", "steps: [{ task: verify }]");
    let says = |fledge: Fledge, lane: &str, says: &str| {
        let run = fledge.args(&["lanes", "run", lane]).run();
        run.must_exit(2);
        assert!(run.stderr.contains(says), "{}", run.stderr);
        run.again(&[])
    };
    let fledge = says(
        fledge,
        "ci",
        "error: fledge.toml:3:19: `verify` is a lane, and here stands a task (a lane inside of another one is written in `lanes/<name>.yaml`, with the step `{ lane: verify }`)\n",
    );
    let fledge = says(
        fledge,
        "of",
        "error: fledge.toml:4:21: a lane inside of another one cannot be written here (write the lane as `lanes/<name>.yaml`: there a step can be `{ lane: … }`)\n",
    );
    let fledge = says(
        fledge,
        "dep",
        "error: fledge.toml:1:35: `verify` is a lane, and here stands a task (a task depends on tasks alone)\n",
    );
    let fledge = says(
        fledge,
        "own",
        "error: lanes/own.yaml:1:17: `verify` is a lane, and here stands a task (write `{ lane: verify }`)\n",
    );
    let run = fledge.lane("own", "steps: [{ lane: verify }]").args(&["lanes", "run", "own"]).run();
    run.must_exit(0);
}

#[test]
fn of_a_lane_that_was_brought_in_its_source_is_told() {
    let fledge = Fledge::new()
        .file("fledge.toml", "[lanes.ci]\nsteps = [{ run = 'true' }]")
        .file(".fledge/lanes/x.toml", "# Imported from owner/repo/path@v1\n\n[lanes.more]\nsteps = [{ run = 'true' }]")
        .file(".fledge/lanes/y.toml", "[lanes.unknown]\nsteps = [{ run = 'true' }]");
    let list = fledge.args(&["lanes", "list", "--json"]).run();
    list.must_exit(0);
    let part = |lane: &Value| (lane["name"].clone(), lane["trust_tier"].clone(), lane.get("source").cloned());
    let lanes: Vec<_> = list.events()[0]["lanes"].as_array().unwrap().iter().map(part).collect();
    let local = |name: &str| (json!(name), json!("local"), None);
    let more = (json!("more"), json!("unverified"), Some(json!("owner/repo/path@v1")));
    assert_eq!(lanes, [local("ci"), more, local("unknown")]);
    let shown = list.again(&["lanes", "show", "more", "--json"]).run();
    assert_eq!(shown.events()[0]["source"], "owner/repo/path@v1");
    let people = shown.again(&["lanes", "list"]).run();
    assert!(people.stdout.contains("more (imported from owner/repo/path@v1)\n"), "{}", people.stdout);
}
