//! The step of the composite action that runs fledge, started as a CI runner starts it.
//! examples/ci/lint.sh checks the syntax of the files.

use crate::support::{Fledge, Model, hang, needs, say, write};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::path::Path;

/// Returns the script of a step from the action file.
fn script(id: &str) -> String {
    let action = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/ci/github/action.yml");
    let action = std::fs::read_to_string(action).unwrap();
    let (_, step) = action.split_once(&format!("- id: {id}\n")).unwrap();
    let (_, body) = step.split_once("run: |\n").unwrap();
    let lines = body.lines().map_while(|line| if line.is_empty() { Some("") } else { line.strip_prefix("        ") });
    lines.collect::<Vec<_>>().join("\n")
}

/// Prepares the step that runs fledge, in a runner's environment with these inputs. All other
/// inputs are empty.
fn step(fledge: Fledge, inputs: &[(&str, &str)]) -> Fledge {
    let temp = fledge.workspace().with_file_name("temp");
    std::fs::create_dir_all(temp.join("results")).unwrap();
    std::fs::write(temp.join("step.sh"), script("fledge")).unwrap();
    let at = |name: &str| temp.join(name).display().to_string();
    // The first argument of the wrapper is the tested program.
    let started = format!("PATH=$(dirname \"$0\"):$PATH exec bash --noprofile --norc -eo pipefail {}", at("step.sh"));
    let inputs = ["VERB", "TASK", "LANE", "MODEL", "ARGS", "LIMIT", "RUN_KEY"]
        .map(|name| (name, ""))
        .into_iter()
        .chain(inputs.iter().copied())
        .collect::<BTreeMap<_, _>>();
    let fledge = inputs
        .into_iter()
        .fold(fledge.args(&[]).under(&["sh", "-c", &started]), |fledge, (name, value)| fledge.env(name, value));
    let files = [("RESULTS", "results"), ("GITHUB_OUTPUT", "outputs"), ("GITHUB_STEP_SUMMARY", "page.md")];
    files.into_iter().fold(fledge.env("GITHUB_ACTIONS", "true"), |fledge, (name, file)| fledge.env(name, &at(file)))
}

fn outputs(folder: &Path) -> BTreeMap<String, String> {
    let said = std::fs::read_to_string(folder.join("../temp/outputs")).unwrap();
    said.lines().filter_map(|line| line.split_once('=')).map(|(name, value)| (name.into(), value.into())).collect()
}

#[test]
fn a_verified_run_leaves_its_outputs_and_every_file() {
    long_test!();
    let model = Model::new([write("done", "1\n"), say("Here it is.")]);
    let fledge = Fledge::simple(&model).file("strict.yaml", "").lane("strict", &needs("done")).committed();
    let args = "--max-retries 0\n  --stuck-after   2\n--protect *.lock";
    let inputs = [
        ("VERB", "run"),
        ("TASK", "task.md"),
        ("LANE", "strict"),
        ("ARGS", args),
        ("LIMIT", "5m"),
        ("RUN_KEY", "a key"),
    ];
    let ended = step(fledge, &inputs).run();
    ended.must_exit(0);
    let outputs = outputs(&ended.path(""));
    assert_eq!((outputs["verified"].as_str(), outputs["exit-code"].as_str()), ("true", "0"), "{outputs:?}");
    for file in ["fledge.patch", "report.json", "summary.md", "junit.xml", "fledge.sarif"] {
        assert!(ended.path("../temp/results").join(file).exists(), "{file}");
    }
    let report = std::fs::read_to_string(ended.path("../temp/results/report.json")).unwrap();
    assert!(report.contains("strict"), "the lane of the input has judged: {report}");
}

#[test]
fn fix_asks_nobody_where_nothing_is_wrong() {
    let ended =
        step(Fledge::new().lane("verify", &needs("there")).file("there", "").committed(), &[("VERB", "fix")]).run();
    ended.must_exit(0);
    assert!(!ended.path("../temp/results/fledge.patch").exists());
}

#[test]
fn what_a_runner_signals_is_fledge() {
    let model = Model::new([hang()]);
    let run = step(Fledge::simple(&model).committed(), &[("VERB", "run"), ("TASK", "task.md")]).start();
    model.wait_for(1);
    run.signal(Signal::INT);
    let ended = run.end();
    ended.must_exit(130);
    assert_eq!(outputs(&ended.path(""))["reason"], "cancelled");
}

#[test]
fn a_time_limit_ends_it_with_all_files() {
    long_test!();
    // On a busy machine the limit may end the step before the run begins, and then there is no
    // report. A longer limit follows.
    for limit in ["5s", "20s", "80s"] {
        let model = Model::new([hang()]);
        let inputs = [("VERB", "run"), ("TASK", "task.md"), ("LIMIT", limit)];
        let ended = step(Fledge::simple(&model).committed(), &inputs).run();
        if model.count() == 0 {
            continue;
        }
        ended.must_exit(143);
        assert!(ended.path("../temp/results/report.json").exists(), "{}", ended.story());
        return;
    }
    panic!("no run began within 80 seconds");
}

#[test]
fn a_wrong_verb_and_a_missing_task_are_told() {
    for (inputs, told) in [
        (vec![("VERB", "push")], "verb is fix, run or batch, not push"),
        (vec![("VERB", "run")], "needs the input task"),
    ] {
        let ended = step(Fledge::new(), &inputs).run();
        assert!(ended.code != Some(0) && ended.story().contains(told), "{}", ended.story());
    }
}
