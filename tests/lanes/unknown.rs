//! A missing lane: the list of lanes, the most likely intended name, and files that only look like
//! lanes.

use crate::support::Fledge;

const LANE: &str = "steps: [{ run: 'true' }]";

/// Returns the error for a lane that does not exist.
#[track_caller]
fn refusal(fledge: Fledge, verb: &str, lane: &str) -> String {
    let run = fledge.args(&["lanes", verb, lane]).run();
    run.must_exit(2);
    let root = run.path("").canonicalize().unwrap();
    run.stderr.replace(root.to_str().unwrap(), "ROOT")
}

#[test]
fn an_unknown_lane_is_told_with_the_nearest_one_all_others_and_where_they_are() {
    let both = || {
        Fledge::new()
            .lane("verify", LANE)
            .lane("deploy", LANE)
            .file("fledge.toml", "lanes.ci.steps = [{ run = 'true' }]")
    };
    for verb in ["run", "show"] {
        let told = "error: there is no lane `verfy` in lanes/ or fledge.toml of ROOT (did you mean `verify`?); known: ci, deploy, verify\n";
        assert_eq!(refusal(both(), verb, "verfy"), told);
    }
    for name in ["verify.yaml", "lanes/verify.yaml", "VERIFY"] {
        assert!(refusal(both(), "run", name).contains("(did you mean `verify`?)"), "{name}");
    }
    let far = refusal(both(), "run", "zebra");
    assert_eq!(far, "error: there is no lane `zebra` in lanes/ or fledge.toml of ROOT; known: ci, deploy, verify\n");
}

#[test]
fn of_very_many_lanes_twenty_are_named() {
    let many = (10..50).fold(Fledge::new(), |fledge, number| fledge.lane(&format!("l{number}"), LANE));
    let told = refusal(many, "run", "zebra");
    assert!(told.ends_with("l28, l29 and 20 more\n"), "{told}");
}

#[test]
fn tables_of_a_fledge_toml_under_a_wrong_name_are_told_wherever_lanes_are_missed() {
    let singular = || Fledge::new().file("fledge.toml", "[task]\na = 'true'\n[lane.ci]\nsteps = ['a']\n");
    let task = "fledge.toml:1:2: the table `task` is not read (did you mean `tasks`?)";
    let lane = "fledge.toml:3:2: the table `lane` is not read (did you mean `lanes`?)";
    let none = ": no lanes are defined; `fledge init` writes one";
    let told = refusal(singular(), "run", "ci");
    assert_eq!(
        told,
        format!("error: there is no lane `ci` in lanes/ or fledge.toml of ROOT{none}\n  {task}\n  {lane}\n")
    );
    let list = singular().args(&["lanes", "list"]).run();
    list.must_exit(0);
    let told = format!("no lanes: write lanes/verify.yaml; one step is enough\nnote: {task}\nnote: {lane}\n");
    assert_eq!((list.stdout.as_str(), list.stderr), ("", told));
}

#[test]
fn only_a_run_of_a_task_is_told_how_it_could_do_without_a_gate() {
    assert!(!refusal(Fledge::new(), "run", "nope").contains("--no-verify"));
    let run = Fledge::new().task("Nothing.").args(&["run", "task.md", "--dry-run"]).run();
    run.must_exit(2);
    assert!(run.stderr.contains("or skip verification with `lane: false` or --no-verify"), "{}", run.stderr);
}

#[test]
fn files_and_folders_under_names_that_are_nearly_right_are_told_and_not_read() {
    let own = "each lane is a file of its own: `lanes/<name>.yaml`";
    let ending = "call a lane file `<name>.yaml`, with letters, digits, `-`, `_` and `.` in the name";
    for (path, said) in [
        ("fledge.yml", "fledge.yml: this file is not read (rename it to `fledge.yaml`)"),
        (".fledge.yaml", ".fledge.yaml: this file is not read (rename it to `fledge.yaml`)"),
        ("Fledge.toml", "Fledge.toml: this file is not read (rename it to `fledge.toml`)"),
        ("lane/verify.yaml", "lane: files in this folder are not read (rename it to `lanes`)"),
        ("Lanes/verify.yml", "Lanes: files in this folder are not read (rename it to `lanes`)"),
        ("lanes.yaml", &format!("lanes.yaml: this file is not read ({own})")),
        ("lanes/verify.YAML", &format!("lanes/verify.YAML: this file is not read ({ending})")),
        ("lanes/verify.json", &format!("lanes/verify.json: this file is not read ({ending})")),
        ("lanes/ci/verify.yaml", "lanes/ci: files in this folder are not read (put lane files directly into `lanes`)"),
    ] {
        let project = || Fledge::new().file(path, LANE);
        assert!(refusal(project(), "run", "verify").ends_with(&format!("\n  {said}\n")), "{path}");
        assert!(project().args(&["lanes", "list"]).run().stderr.ends_with(&format!("\nnote: {said}\n")), "{path}");
        let validate = project().args(&["lanes", "validate"]).run().stderr;
        assert!(validate.contains(&format!("warning: {said}\n")), "{path}: {validate}");
    }
    let lanes =
        Fledge::new().file("fledge.yaml", "lanes: { ci: {} }\ntask: {}\n").args(&["lanes", "list"]).run().stderr;
    assert!(lanes.contains(&format!("note: fledge.yaml:1:1: `lanes` is not read here ({own})\n")), "{lanes}");
    assert!(lanes.ends_with("note: fledge.yaml:2:1: `task` is not read here (did you mean `tasks`?)\n"), "{lanes}");
}

#[test]
fn both_endings_of_a_lane_are_read_and_the_longer_one_counts() {
    let run = Fledge::new()
        .file("lanes/a.yml", LANE)
        .lane("b", LANE)
        .file("lanes/b.yml", "steps: 5")
        .args(&["lanes", "list"])
        .run();
    run.must_exit(0);
    assert_eq!(run.stdout, "a\n  true: true\nb\n  true: true\n");
    assert_eq!(
        run.stderr,
        "note: lanes/b.yml: lane `b` is also in lanes/b.yaml, which is used instead (remove one of them)\n"
    );
}
