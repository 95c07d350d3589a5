//! Locations: failing tests below the checkout, programs in folders of the project, and steps that
//! were not selected.

use crate::support::Fledge;

const REPORT: &str = r#"<testsuite name="web"><testcase name="adds" file="src/a.test.js" line="3"><failure message="expected 2"/></testcase><testcase name="lost"><failure message="gone"/></testcase></testsuite>"#;

#[test]
fn a_failing_test_of_a_step_in_a_folder_is_annotated_at_its_path_in_the_checkout() {
    let lane = "steps: [{ name: web, run: 'cp ../report.xml out.xml; exit 1', dir: web, junit: out.xml }]";
    let fledge = Fledge::new().lane("verify", lane).file("report.xml", REPORT).file("web/a", "");
    let checkout = fledge.workspace().parent().unwrap().to_owned();
    let project = fledge.workspace().file_name().unwrap().to_string_lossy().into_owned();
    let fledge = fledge.env("GITHUB_ACTIONS", "true").env("GITHUB_WORKSPACE", checkout.to_str().unwrap());
    let run = fledge.args(&["lanes", "run", "verify", "--json"]).run();
    run.must_exit(1);
    let error = format!("::error title=verify/web%3A web adds,file={project}/web/src/a.test.js,line=3::expected 2");
    assert!(run.stderr.contains(&error), "{}", run.stderr);
    assert!(run.stderr.contains("::error title=verify/web%3A web lost::gone"), "{}", run.stderr);
    let data: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(data["commands"][0]["tests"]["failing"][0]["file"], "web/src/a.test.js");
}

#[test]
fn a_relative_search_path_is_resolved_below_the_folder_of_the_step() {
    let lane = |dir: &str| {
        let path = "env: { PATH: 'tools:/usr/bin:/bin' }";
        Fledge::new()
            .lane("verify", &format!("{path}\nsteps: [{{ name: a, run: my-check{dir} }}]"))
            .file("web/tools/my-check", "#!/bin/sh\n")
            .args(&["lanes", "run", "verify"])
    };
    let fledge = lane(", dir: web");
    let program = fledge.workspace().join("web/tools/my-check");
    std::fs::set_permissions(program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fledge.run().must_exit(0);
    lane("").run().must_exit(5);
}

#[test]
fn steps_that_nobody_asked_for_are_counted_and_have_no_line() {
    let lane = "steps: [{ name: a, run: 'true' }, { name: b, run: 'true' }, { name: c, run: 'true' }]";
    let run = Fledge::new().lane("verify", lane).args(&["lanes", "run", "verify", "--only", "b"]).run();
    run.must_exit(0);
    assert!(!run.stderr.contains("not selected") && run.stderr.lines().count() == 2, "{}", run.stderr);
    assert!(run.stderr.ends_with("1 passed, 2 skipped\n"), "{}", run.stderr);
}
