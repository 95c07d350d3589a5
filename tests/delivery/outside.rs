//! Work that is not in the delivered tree, or that is outside the workspace: the end of a run names
//! all of it.

use crate::support::{Ended, Fledge, Model, say, shell, write};
use serde_json::{Value, json};

/// Runs an agent with this shell command, in a repository that ignores these paths.
fn after(ignored: &str, command: &str) -> Ended {
    let model = Model::new([shell(&format!("touch done; {command}")), say("Done.")]);
    Fledge::simple(&model).file(".gitignore", ignored).committed().arg("--commit=on-success").run()
}

fn paths(report: &Value, list: &str) -> Vec<String> {
    let all = report["outside_tree"][list].as_array().cloned().unwrap_or_default();
    all.iter().map(|entry| entry["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn ignored_files_that_can_run_later_are_named_on_the_terminal_and_in_the_report() {
    long_test!();
    let command = "mkdir -p env/bin lib; printf '#!/bin/sh\\n' >env/bin/python; chmod +x env/bin/python; echo x >env/notes; \
        echo import os >env/a.pth; echo x >lib/x.so; echo x >lib/__pycache__; rm lib/__pycache__; mkdir lib/__pycache__; echo x >lib/__pycache__/m.pyc";
    let ended = after("/env\n*.so\n", command);
    let report = ended.must_be(0, "verified");
    assert_eq!(paths(&report, "ignored"), ["env/a.pth", "env/bin/python", "lib/__pycache__/m.pyc", "lib/x.so"]);
    assert_eq!(
        report["outside_tree"]["ignored"][1],
        json!({ "path": "env/bin/python", "files": 1, "why": "an executable" })
    );
    assert!(ended.stderr.contains("ignored  env/a.pth: run by Python whenever it starts\n"), "{}", ended.story());
}

#[test]
fn a_build_is_some_names_and_a_count_and_what_is_as_before_is_none() {
    long_test!();
    let model = Model::new([
        shell("touch done; mkdir -p out/debug; for n in $(seq 101 300); do cp /bin/true out/debug/$n; done"),
        say("Done."),
    ]);
    let fledge = Fledge::simple(&model).file(".gitignore", "/out\n/env\n").file("env/old.py", "1").committed();
    let ended = fledge.arg("--summary=s.md").run();
    let report = ended.must_be(0, "verified");
    let named = (101..111).map(|number| format!("out/debug/{number}"));
    let wanted: Vec<String> = std::iter::once("out/".to_owned()).chain(named).collect();
    assert_eq!(paths(&report, "ignored"), wanted);
    assert_eq!(
        report["outside_tree"]["ignored"][0],
        json!({ "path": "out/", "files": 190, "why": "others that can run" })
    );
    let page = ended.file("s.md").unwrap();
    assert!(page.contains("- ignored: `out/: 190 others that can run`"), "{page}");
    assert!(page.contains("- `out/debug/101: an executable`"), "{page}");
}

#[test]
fn a_run_that_leaves_nothing_beside_its_tree_says_nothing_of_that() {
    long_test!();
    let ended = after("/env\n", "true");
    assert_eq!(ended.must_be(0, "verified").get("outside_tree"), None);
    assert!(!ended.stderr.contains("ignored") && !ended.stderr.contains("left out"), "{}", ended.story());
}

#[test]
fn a_file_in_a_folder_that_was_taken_out_of_the_ignored_ones_is_named() {
    long_test!();
    let ended = after("build/\n", "mkdir -p build; echo x >build/notes; : >.gitignore");
    let report = ended.must_be(0, "verified");
    let left_out = json!([{ "path": "build/notes", "files": 1, "why": "git ignored this path when the run began; add the file yourself" }]);
    assert_eq!(report["outside_tree"], json!({ "left_out": left_out }));
    assert!(
        ended.stderr.contains("left out build/notes: git ignored this path when the run began"),
        "{}",
        ended.story()
    );
}

#[test]
fn a_file_that_a_tool_wrote_where_git_ignores_it_is_named() {
    let model = Model::new([write("done", ""), write("build/page.html", "x"), say("Done.")]);
    let ended = Fledge::simple(&model).file(".gitignore", "build/\n").committed().run();
    let report = ended.must_be(0, "verified");
    assert_eq!(paths(&report, "left_out"), ["build/page.html"]);
}

#[test]
fn a_run_that_fails_names_them_too() {
    let model = Model::new([shell("mkdir env; cp /bin/true env/python"), say("Done.").always()]);
    let ended = Fledge::simple(&model).file(".gitignore", "/env\n").committed().arg("--max-retries=0").run();
    assert_eq!(paths(&ended.must_be(1, "gate_failed"), "ignored"), ["env/python"]);
}
