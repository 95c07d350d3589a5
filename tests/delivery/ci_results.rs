//! Results of a run for continuous integration: JUnit, Markdown, SARIF, code quality, and the
//! output for a GitHub job.

use crate::support::{Fledge, Model, say, write};
use serde_json::Value;

const FILES: &[&str] = &["--junit=j.xml", "--summary=s.md", "--sarif=r.sarif", "--code-quality=q.json"];
const LANE: &str = "steps: [{ name: cc, run: \"test -f done || { echo 'src/a.c:3:7: error: no x'; exit 1; }\" }]";

/// Returns a run whose gate fails once and reports a place in a file.
fn failing(model: &Model) -> Fledge {
    let simple = Fledge::simple(model).lane("verify", LANE).arg("--max-retries=0");
    FILES.iter().fold(simple, |fledge, file| fledge.arg(file))
}

#[test]
fn a_gate_that_fails_is_told_in_every_form() {
    let model = Model::new([say("Done.").always()]);
    let ended = failing(&model).run();
    ended.must_be(1, "gate_failed");
    let file = |name: &str| ended.file(name).unwrap_or_else(|| panic!("no {name}: {}", ended.story()));
    assert!(file("j.xml").contains("failures=\"1\"") && file("j.xml").contains("name=\"cc\""), "{}", file("j.xml"));
    assert!(file("s.md").starts_with("# ✗ ") && file("s.md").contains("## ✗ lane `verify` failed"), "{}", file("s.md"));
    let sarif: Value = serde_json::from_str(&file("r.sarif")).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["message"]["text"], "error: no x");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!((&place["artifactLocation"]["uri"], &place["region"]["startLine"]), (&"src/a.c".into(), &3.into()));
    let quality: Value = serde_json::from_str(&file("q.json")).unwrap();
    assert_eq!(quality[0]["location"]["path"], "src/a.c");
}

#[test]
fn a_verified_run_has_nothing_to_complain_of() {
    let model = Model::new([write("done", ""), say("Done.")]);
    let ended = failing(&model).run();
    ended.must_be(0, "verified");
    let json = |name: &str| serde_json::from_str::<Value>(&ended.file(name).unwrap()).unwrap();
    assert_eq!(json("r.sarif")["runs"][0]["results"], Value::Array(Vec::new()));
    assert_eq!(json("q.json"), Value::Array(Vec::new()));
    assert!(ended.file("j.xml").unwrap().contains("failures=\"0\""));
}

#[test]
fn a_job_of_github_has_annotations_a_summary_and_outputs() {
    let model = Model::new([say("Done.").always()]);
    let job = failing(&model).file("summary.md", "").file("outputs", "other=1\n");
    let (summary, outputs) = (job.workspace().join("summary.md"), job.workspace().join("outputs"));
    let ended = job
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", summary.to_str().unwrap())
        .env("GITHUB_OUTPUT", outputs.to_str().unwrap())
        .run();
    ended.must_be(1, "gate_failed");
    assert!(ended.stderr.contains("::error title=verify/cc,file=src/a.c,line=3::"), "{}", ended.story());
    assert!(ended.file("summary.md").unwrap().contains("lane `verify` failed"));
    let outputs = ended.file("outputs").unwrap();
    assert!(outputs.starts_with("other=1\nverified=false\nexit-code=1\nreason=gate_failed\nrun="), "{outputs}");
}

#[test]
fn annotations_and_the_page_name_what_failed_before_any_change() {
    let model = Model::new([say("Done.").always()]);
    let job = failing(&model).file("summary.md", "");
    let summary = job.workspace().join("summary.md");
    let ended = job.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", summary.to_str().unwrap()).run();
    ended.must_be(1, "gate_failed");
    let told = "failed before any change, too: verify/cc";
    assert!(ended.stderr.contains(&format!("::notice title=verify::{told}")), "{}", ended.story());
    let page = ended.file("summary.md").unwrap();
    assert!(page.contains(&format!("`failed: verify/cc; {told}")), "{page}");
}

#[test]
fn a_result_without_a_place_is_refused_before_anything_runs() {
    let model = Model::new([]);
    let ended = Fledge::simple(&model).arg("--sarif=nowhere/r.sarif").run();
    ended.must_exit(2);
    assert!(ended.stderr.contains("--sarif"), "{}", ended.story());
    let twice = Fledge::simple(&model).args(&["run", "task.md", "--junit=x", "--sarif=x"]).run();
    twice.must_exit(2);
    assert!(twice.stderr.contains("the file is in use for other output"), "{}", twice.story());
    assert_eq!(model.count(), 0);
}

#[test]
fn a_lane_by_hand_leaves_the_same_files() {
    let lane = Fledge::new().lane("verify", LANE);
    let ended = lane.args(&["lanes", "run", "verify", "--sarif", "r.sarif", "--code-quality", "-"]).run();
    ended.must_exit(1);
    assert!(ended.file("r.sarif").unwrap().contains("src/a.c"));
    let quality: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(quality[0]["check_name"], "verify/cc");
}

#[test]
fn a_run_that_cannot_begin_leaves_no_file_of_an_earlier_one() {
    let model = Model::new([]);
    let cases: [(&[&str], i32, &str); 3] = [
        (&["run", "task.md", "--lane=nope"], 2, "there is no lane `nope`"),
        (&["run", "gone.md"], 2, "there is no task file gone.md"),
        (&["fix", "--model=no/such"], 2, "no/such"),
    ];
    for (args, code, why) in cases {
        let mut fledge = Fledge::simple(&model).args(&[args, FILES].concat());
        for file in ["j.xml", "s.md", "r.sarif", "q.json", "summary.md", "outputs"] {
            fledge = fledge.file(file, "old\n");
        }
        let (summary, outputs) = (fledge.workspace().join("summary.md"), fledge.workspace().join("outputs"));
        let fledge = fledge
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_STEP_SUMMARY", summary.to_str().unwrap())
            .env("GITHUB_OUTPUT", outputs.to_str().unwrap());
        let ended = fledge.run();
        ended.must_exit(code);
        let file = |name: &str| ended.file(name).unwrap();
        for name in ["j.xml", "s.md", "r.sarif", "q.json", "summary.md"] {
            assert!(file(name).contains(why), "{name}: {}\n{}", file(name), ended.story());
        }
        let sarif: Value = serde_json::from_str(&file("r.sarif")).unwrap();
        assert_eq!(sarif["runs"][0]["invocations"][0]["executionSuccessful"], false);
        assert!(
            file("outputs").starts_with(&format!("old\nverified=false\nexit-code={code}\nreason=")),
            "{}",
            file("outputs")
        );
        assert!(ended.stderr.contains("::error title="), "{}", ended.story());
    }
}
