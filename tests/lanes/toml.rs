//! Projects that define their tasks and lanes in `fledge.toml`.

use crate::support::{Ended, Fledge, Model, say, words, write};
use serde_json::json;

fn project(toml: &str) -> Fledge {
    Fledge::new().file("fledge.toml", toml)
}

fn ci(fledge: Fledge) -> Ended {
    fledge.args(&["lanes", "run", "ci", "--json"]).run()
}

/// Returns the names and results of the steps that ran.
fn steps(run: &Ended) -> Vec<(String, String)> {
    let [result] = run.events().try_into().unwrap();
    let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    result["commands"].as_array().unwrap().iter().map(|step| (word(&step["step"]), word(&step["status"]))).collect()
}

#[test]
fn steps_and_dependencies_run_in_order_and_each_dependency_once() {
    let run = ci(project(
        r#"
[tasks]
gen = "echo gen >> ran"
fmt = "echo fmt >> ran"
pack = { cmd = "echo pack in $(basename $PWD) with $A >> ../ran", dir = "sub", env = { A = "b" } }

[tasks.test]
description = "All tests"
cmd = "echo test >> ran"
deps = ["gen", "fmt"]

[tasks.docs]
cmd = "echo docs >> ran"
deps = ["gen"]

[lanes.ci]
description = "Everything"
steps = ["test", { run = "echo inline >> ran" }, "docs", { task = "pack" }, "fmt"]
"#,
    )
    .file("sub/x", ""));
    run.must_exit(0);
    assert_eq!(run.file("ran").unwrap(), "gen\nfmt\ntest\ninline\ndocs\npack in sub with b\nfmt\n");
    assert!(!run.stderr.contains("note:"), "{}", run.stderr);
}

#[test]
fn members_of_a_group_run_and_what_they_share_runs_once_before_them() {
    let run = ci(project(
        "tasks.gen = 'echo gen >> ran'\ntasks.a = { cmd = 'test -f ran', deps = ['gen'] }\ntasks.b = { cmd = 'test -f ran', deps = ['gen'] }\n\
         lanes.ci.steps = [{ parallel = ['a', 'b', { run = 'true' }] }, { run = 'echo last >> ran' }]",
    ));
    run.must_exit(0);
    assert_eq!(run.file("ran").unwrap(), "gen\nlast\n");
}

#[test]
fn conditions_decide_over_a_step_and_what_only_it_needs() {
    let toml = "tasks.gen = 'true'\ntasks.slow = { cmd = 'true', deps = ['gen'] }\n\
        lanes.ci.steps = [{ task = 'slow', when = 'SLOW=1,' }, { run = 'true', when = '!SLOW=1' }]";
    let ended = |name: &str, status: &str| (name.to_owned(), status.to_owned());
    let run = ci(project(toml));
    run.must_exit(0);
    assert_eq!(steps(&run), [ended("gen", "skipped"), ended("slow", "skipped"), ended("true", "passed")]);
    let run = ci(project(toml).env("SLOW", "1"));
    run.must_exit(0);
    assert_eq!(steps(&run), [ended("gen", "passed"), ended("slow", "passed"), ended("true", "skipped")]);
}

#[test]
fn a_failed_step_is_tried_again_and_without_fail_fast_the_rest_goes_on() {
    let run = ci(project(
        "lanes.ci.fail_fast = false\nlanes.ci.steps = [{ run = 'echo x >> tries; test -f no', retries = 2, retry_delay = 0 }, \
         { run = 'mkdir once || test -d once && test -f again || ! touch again', retries = 1, retry_delay = 0 }, { run = 'touch last' }]",
    ));
    run.must_exit(1);
    let status: Vec<String> = steps(&run).into_iter().map(|(_, status)| status).collect();
    assert_eq!(status, ["failed", "flaky", "passed"]);
    assert_eq!((run.file("tries").as_deref(), run.file("last").as_deref()), (Some("x\nx\nx\n"), Some("")));
}

#[test]
fn a_step_is_begun_with_by_its_number_and_brings_what_it_needs() {
    let toml = "tasks.gen = 'true'\ntasks.test = { cmd = 'true', deps = ['gen'] }\n\
        lanes.ci.steps = ['gen', { parallel = [{ run = 'echo lint' }, { run = 'echo docs' }] }, 'test']";
    let run = |args: &[&str]| project(toml).args(&[&["lanes", "run", "ci", "--json"], args].concat()).run();
    let ran = |ended: &Ended| {
        ended.must_exit(0);
        let ran = steps(ended).into_iter().filter(|(_, status)| status == "passed");
        ran.map(|(name, _)| name).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(ran(&run(&["--from", "2"])), "gen, echo lint, echo docs, test");
    assert_eq!(ran(&run(&["--only", "test"])), "gen, test");
    assert_eq!(ran(&run(&["--only", "echo docs"])), "echo docs");
    let refused = run(&["--from", "echo docs"]);
    refused.must_exit(2);
    let why = "`echo docs` is inside of parallel(echo lint, echo docs): begin with that, which is `2`";
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
    let unknown = run(&["--only", "tset"]);
    unknown.must_exit(2);
    let why = "has no step `tset` (did you mean `test`?); its steps: 1 gen, 2 parallel(echo lint, echo docs), 3 test";
    assert!(unknown.stderr.contains(why), "{}", unknown.stderr);
}

#[test]
fn imported_files_fill_what_is_free_and_the_yaml_lane_counts() {
    let fledge = project("tasks.a = 'echo a >> ran'\nlanes.ci.steps = ['gone']\nlanes.more.steps = ['b']")
        .file(".fledge/lanes/x.toml", "tasks = { a = 'false', b = 'echo b >> ran' }\nlanes.other.steps = ['a', 'b']")
        .lane("ci", "steps: [{ task: a }, { lane: other }]");
    let run = ci(fledge);
    run.must_exit(0);
    assert_eq!(run.file("ran").unwrap(), "a\na\nb\n");
    let note = "note: fledge.toml:2:7: lane `ci` is also in lanes/ci.yaml, and that one is used (remove one of them)\n";
    assert!(run.stderr.contains(note), "{}", run.stderr);
    let list = run.again(&["lanes", "list", "--json"]).run();
    list.must_exit(0);
    assert_eq!(
        words(list.events()[0]["lanes"].as_array().unwrap().iter().map(|lane| &lane["name"])),
        ["ci", "more", "other"]
    );
}

#[test]
fn what_means_nothing_is_said_once_and_only_where_it_concerns() {
    let toml = "[tasks.a]\ncmd = 'true'\ndesc = 'x'\n[lanes.ci]\nsteps = [{ task = 'a', retrys = 3 }]\n[lanes.other]\nsteps = ['a']\nfailfast = false\n";
    let run = ci(project(toml));
    run.must_exit(0);
    let notes: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("note: ")).collect();
    let expected = [
        "note: fledge.toml:3:1: unknown key `desc` in the task `a` (did you mean `description`?)",
        "note: fledge.toml:5:24: unknown key `retrys` in a step (did you mean `retries`?)",
    ];
    assert_eq!(notes, expected);
}

#[test]
fn a_lane_that_is_wrong_ends_with_2_and_stops_no_other() {
    let toml = "tasks = { a = 'true', b = { cmd = 'b', deps = ['c'] }, c = { cmd = 'c', deps = ['b'] } }\n\
        [lanes]\nci.steps = ['a']\nboth.steps = [{ run = 'true', task = 'a' }]\nround.steps = ['b']\nnone.steps = []\n";
    ci(project(toml)).must_exit(0);
    for (name, says) in [
        ("both", "fledge.toml:4:31: `task` beside `run`: a step is one of them (make two steps of it)"),
        ("round", "fledge.toml:1:81: a task depends on itself: b → c → b"),
        ("none", "fledge.toml:6:14: `steps` is empty"),
        ("gone", "no lane `gone` in "),
    ] {
        let run = project(toml).args(&["lanes", "run", name]).run();
        run.must_exit(2);
        assert!(run.stderr.contains(says), "{}", run.stderr);
    }
    let broken = ci(project("[lanes.ci]\nsteps = ['a'").file("Cargo.toml", "[package]"));
    broken.must_exit(2);
    assert!(broken.stderr.contains("fledge.toml:2:13: not TOML"), "{}", broken.stderr);
    let list = broken.again(&["lanes", "list"]).run();
    list.must_exit(2);
    assert!(list.stderr.contains("fledge.toml:2:13: not TOML"), "{}", list.stderr);
}

#[test]
fn a_lane_of_an_existing_project_is_the_gate_of_a_run_and_cannot_be_changed() {
    let toml = "tasks.check = 'test -f done'\nlanes.verify = { steps = ['check'], step = 1 }\n";
    let model = Model::new([
        write("fledge.toml", "lanes.verify.steps = [{ run = 'true' }]")
            .also("files-write", json!({"path": ".fledge/lanes/more.toml", "content": "tasks.more = 'true'"})),
        write("done", ""),
        say("Done."),
    ]);
    let run = project(toml).task("Make the file `done`.").anthropic(&model).run();
    let report = run.must_be(0, "verified");
    assert_eq!((run.file("fledge.toml").as_deref(), run.file(".fledge/lanes/more.toml")), (Some(toml), None));
    assert_eq!(report["attempts"][0]["verdict"]["steps"][0]["command"], "test -f done");
    let told = model.asked()[1].newest();
    assert_eq!(told.matches("is protected").count(), 2, "{told}");
    let warning = "fledge.toml:2:37: unknown key `step` in a lane (did you mean `steps`?)";
    assert!(run.stderr.contains(warning), "{}", run.stderr);
}

#[test]
fn a_file_that_resembles_a_lane_is_a_warning_and_an_unreadable_one_an_error() {
    let fledge = Fledge::new()
        .lane("ci", "steps: [{ run: 'true' }]")
        .file("lanes/ci.yml", "steps: [{ run: 'false' }]")
        .file("lanes/My Lane.yaml", "")
        .file("lanes/ok.YAML", "")
        .file("lanes/sub/x.yaml", "")
        .file("lanes/README.md", "")
        .file("lanes/dir.yaml/x", "");
    let run = ci(fledge);
    run.must_exit(0);
    let checked = run.again(&["lanes", "validate"]).run();
    checked.must_exit(2);
    for said in [
        "warning: lanes/My Lane.yaml: this file is not read (call a lane file `<name>.yaml`, with letters",
        "warning: lanes/ci.yml: lane `ci` is also in lanes/ci.yaml, which is used instead (remove one of them)",
        "warning: lanes/ok.YAML: this file is not read",
        "warning: lanes/sub: files in this folder are not read (put lane files directly into `lanes`)",
        "error: lanes/dir.yaml: cannot be read: it is a folder, not a regular file",
        "1 lane, 1 error and 4 warnings",
    ] {
        assert!(checked.stderr.contains(said), "{said}: {}", checked.stderr);
    }
}
