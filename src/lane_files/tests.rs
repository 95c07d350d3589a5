//! Tests of loading and checking the lanes of projects in real folders.

use super::*;
use std::fs;
use tempfile::TempDir;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Makes a project with these files.
fn project(files: &[(&str, &str)]) -> TempDir {
    let project = crate::test_support::temp_dir();
    for (path, text) in files {
        let path = project.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    project
}

#[test]
fn an_unknown_lane_is_an_error_that_names_the_known_ones() {
    let project = project(&[("lanes/verify.yaml", "steps: [{ run: 'true' }]")]);
    let unknown = load(project.path(), "verfy", PATH).unwrap_err();
    assert!(unknown.to_string().ends_with("known: verify"), "{unknown}");
}

#[test]
fn checking_tells_all_problems_of_all_files_and_what_steps_lack_here() {
    let toml = "tasks.a = { cmd = 'true', deps = ['b'] }\nlanes.ci.steps = ['a', { run = 'no-such-program', when = 'X' }]\nlanes.ok = { steps = [{ run = 'true' }], x = 1 }";
    let project = project(&[
        ("lanes/verify.yaml", "steps: [{ rnu: x }]"),
        ("lanes/good.yaml", "steps: [{ name: go, run: no-such-program }]"),
        ("fledge.toml", toml),
    ]);
    let CheckedLanes { lanes, problems, warnings } = check(project.path(), PATH);
    assert_eq!(lanes.iter().map(|lane| lane.name.as_str()).collect::<Vec<_>>(), ["good", "ok"]);
    let reported = |remarks: &[crate::lane::LaneRemark]| remarks.iter().map(ToString::to_string).collect::<Vec<_>>();
    let expected = [
        "fledge.toml:1:35: there is no task `b` (did you mean `a`?)",
        "lanes/verify.yaml:1:9: a step that runs nothing (give it `run:` with a command)",
        "lanes/verify.yaml:1:11: unknown key `rnu` in a step (did you mean `run`?)",
    ];
    assert_eq!(reported(&problems), expected);
    let expected = [
        "fledge.toml:2:7: lane `ci` has no description (say with `description` what it is for)".to_owned(),
        "fledge.toml:3:7: lane `ok` has no description (say with `description` what it is for)".to_owned(),
        "fledge.toml:3:42: unknown key `x` in a lane (known: description, fail_fast, steps)".to_owned(),
        format!(
            "lanes/good.yaml: step `go` of lane `good` cannot run here: there is no program `no-such-program` in PATH ({PATH})"
        ),
    ];
    assert_eq!(reported(&warnings), expected);
}

#[test]
fn a_lane_is_run_with_a_few_remarks_on_its_file_and_not_with_all() {
    let keys: Vec<String> = (0..9).map(|number| format!("k{number} = 1\n")).collect();
    let toml = format!("lanes.a.steps = [{{ run = 'true' }}]\n[tasks.t]\ncmd = 'true'\n{}", keys.concat());
    let project = project(&[("fledge.toml", &toml)]);
    let loaded = load(project.path(), "a", PATH).unwrap();
    assert_eq!(loaded.notes.len(), 6);
    assert_eq!(loaded.notes[5], "and 4 more; `fledge lanes validate` lists all");
}
