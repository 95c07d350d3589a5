//! A lane that is refused or runs nothing: results of an earlier run must not look like results of
//! this one.

use crate::support::{Ended, Fledge};
use serde_json::{Value, json};

const FILES: [&str; 4] = ["--junit=j.xml", "--summary=s.md", "--sarif=r.sarif", "--code-quality=q.json"];
const GOOD: &str = "steps: [{ name: a, run: 'true' }]";

/// Runs another lane that passes and writes all result files, then prepares `fledge lanes run` of
/// this lane.
fn after_a_pass(fledge: Fledge, lane: &str, more: &[&str]) -> Fledge {
    let args = |lane| [&["lanes", "run", lane][..], &FILES].concat();
    let run = fledge.lane("good", GOOD).args(&args("good")).run();
    run.must_exit(0);
    assert!(run.file("j.xml").unwrap().contains("errors=\"0\""));
    run.again(&[args(lane).as_slice(), more].concat())
}

fn json_of(ended: &Ended, name: &str) -> Value {
    serde_json::from_str(&ended.file(name).unwrap()).unwrap()
}

#[test]
fn whatever_keeps_a_lane_from_beginning_is_in_every_file() {
    let toml = "[lanes.broken]\nsteps = [\"gone\"]\n";
    for (lane, code, why, place) in [
        ("nope", 2, "there is no lane `nope`", ("lanes/nope.yaml", 1)),
        ("bad", 2, "lanes/bad.yaml:2:1: unknown key `stps`", ("lanes/bad.yaml", 1)),
        ("broken", 2, "fledge.toml:2:10: there is no task `gone`", ("fledge.toml", 2)),
        ("lacks", 5, "there is no program `no-such-tool`", ("lanes/lacks.yaml", 1)),
    ] {
        let fledge = Fledge::new()
            .file("fledge.toml", toml)
            .lane("bad", "description: x\nstps: []\n")
            .lane("lacks", "steps: [{ name: a, run: no-such-tool }]");
        let run = after_a_pass(fledge, lane, &["--json"]).run();
        run.must_exit(code);
        assert!(run.stderr.contains(why), "{}", run.story());
        let junit = run.file("j.xml").unwrap();
        assert!(junit.contains("tests=\"1\" failures=\"0\" errors=\"1\"") && junit.contains(why), "{junit}");
        let word = if code == 2 { "was refused" } else { "could not run" };
        let page = run.file("s.md").unwrap();
        assert!(
            page.starts_with(&format!("## ✗ lane `{lane}` {word}\n\n")) && page.contains("no steps were run"),
            "{page}"
        );
        let sarif = &json_of(&run, "r.sarif")["runs"][0];
        let invocation = &sarif["invocations"][0];
        assert_eq!((&sarif["results"], &invocation["executionSuccessful"]), (&json!([]), &json!(false)));
        let said = &invocation["toolExecutionNotifications"][0]["message"]["text"];
        assert!(said.as_str().unwrap().contains(why), "{said}");
        let [issue] = json_of(&run, "q.json").as_array().unwrap().clone().try_into().unwrap();
        assert!(issue["description"].as_str().unwrap().contains(why), "{issue}");
        assert_eq!(issue["location"], json!({ "path": place.0, "lines": { "begin": place.1 } }), "{lane}");
        let [object] = run.events().try_into().unwrap();
        let result = if code == 2 { "refused" } else { "could_not_run" };
        assert_eq!(
            (&object["result"], &object["success"], &object["exit_code"]),
            (&json!(result), &json!(false), &json!(code))
        );
        assert!(object["error"].as_str().unwrap().contains(why) && object["steps"] == json!([]), "{object}");
    }
}

#[test]
fn a_refusal_has_the_shape_of_a_result() {
    let passed = Fledge::new().lane("good", GOOD).args(&["lanes", "run", "good", "--json"]).run();
    let refused = Fledge::new().args(&["lanes", "run", "good", "--json"]).run();
    let keys = |ended: &Ended| {
        let object = ended.events().remove(0);
        object.as_object().unwrap().keys().filter(|key| *key != "error").cloned().collect::<Vec<_>>()
    };
    assert_eq!(keys(&refused), keys(&passed));
    let events = Fledge::new().args(&["lanes", "run", "good", "--json=events"]).run();
    let [ended] = events.events().try_into().unwrap();
    assert_eq!((&ended["event"], &ended["result"]), (&json!("lane_ended"), &json!("refused")));
    assert!(ended["error"].as_str().unwrap().starts_with("there is no lane `good`"), "{ended}");
    let dry = Fledge::new().args(&["lanes", "run", "good", "--json", "--dry-run"]).run();
    let [object] = dry.events().try_into().unwrap();
    assert_eq!((&object["dry_run"], &object["exit_code"]), (&json!(true), &json!(2)));
    dry.must_exit(2);
}

#[test]
fn of_several_files_those_that_have_a_place_say_that_another_has_none() {
    let run = after_a_pass(Fledge::new(), "good", &[])
        .args(&["lanes", "run", "good", "--junit=j.xml", "--sarif=gone/r"])
        .run();
    run.must_exit(2);
    let junit = run.file("j.xml").unwrap();
    assert!(junit.contains("errors=\"1\"") && junit.contains("--sarif gone/r: its folder does not exist"), "{junit}");
}

#[test]
fn a_lane_that_comes_to_nothing_is_an_error_in_a_job_of_github() {
    let job = |fledge: Fledge| {
        let summary = fledge.workspace().join("summary.md");
        fledge.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", summary.to_str().unwrap())
    };
    let lane = "steps: [{ name: a, run: 'true', when: NEVER }]";
    let run = job(Fledge::new().lane("idle", lane).args(&["lanes", "run", "idle", "--junit=j.xml"])).run();
    run.must_exit(1);
    let said = "::error title=idle::the lane ran nothing: when: `NEVER` does not hold";
    assert!(run.stderr.lines().any(|line| line == said), "{}", run.story());
    assert!(run.file("j.xml").unwrap().contains("message=\"the lane ran nothing: when: `NEVER` does not hold\""));
    let run =
        job(Fledge::new().file("fledge.toml", "[lanes.ci]\nsteps = ['gone']").args(&["lanes", "run", "ci"])).run();
    run.must_exit(2);
    let said =
        "::error title=ci,file=fledge.toml,line=2::the lane was refused: fledge.toml:2:10: there is no task `gone`";
    assert!(run.stderr.contains(said), "{}", run.story());
    assert!(run.file("summary.md").unwrap().starts_with("## ✗ lane `ci` was refused\n"), "{}", run.story());
}

#[test]
fn a_room_that_cannot_be_made_is_told_in_the_files_too() {
    let fledge = Fledge::new().lane("verify", GOOD);
    let state = fledge.workspace().join("state");
    let fledge = fledge.env("FLEDGE_STATE_DIR", state.to_str().unwrap());
    let run = fledge.args(&["lanes", "run", "verify", "--clean", "--json", "--junit=j.xml"]).run();
    run.must_exit(2);
    assert_eq!(run.events()[0]["result"], "refused");
    let junit = run.file("j.xml").unwrap();
    assert!(junit.contains("is inside the workspace"), "{junit}");
}

#[test]
fn a_state_folder_in_the_project_is_told_and_changes_nothing_for_steps() {
    let steps = "steps: [{ name: fmt, run: 'true' }, { name: test, run: exit 1, changed: ['**'] }]";
    let fledge = Fledge::new()
        .lane("verify", steps)
        .file(".state/old", "x")
        .file(".gitignore", "")
        .args(&["lanes", "run", "verify"]);
    let commit = "git init -q . && git add lanes .gitignore && git -c user.name=t -c user.email=t@localhost commit -qm x && echo >> .gitignore";
    let status = std::process::Command::new("sh").args(["-c", commit]).current_dir(fledge.workspace()).status();
    assert!(status.unwrap().success());
    let steps = steps.replace("'**'", "'.state/**'");
    let run = fledge.lane("verify", &steps).env("FLEDGE_STATE_DIR", ".state").run();
    run.must_exit(0);
    let said = ".state` is inside the project, and so are the logs of its steps (set FLEDGE_STATE_DIR to a folder outside the project)";
    assert!(run.stderr.contains(said) && run.stderr.contains("1 passed, 1 skipped"), "{}", run.story());
}
