//! `fledge specs`, and the specs that a run gives to its model.

use crate::support::Fledge;
use serde_json::{Value, json};

const LAW: &str = "`a_year_has_four_digits`";

/// Returns a complete spec.
fn spec(module: &str, files: &str, law: &str) -> String {
    format!(
        "---\nmodule: {module}\nversion: 2\nstatus: stable\nfiles: {files}\n---\n\n## Purpose\n\nKnows {module}.\n\n\
         ## Public API\n\n## Invariants\n\n1. It holds. {law}\n\n## Behavioral Examples\n\n## Error Cases\n\n\
         ## Dependencies\n\n## Change Log\n"
    )
}

/// Returns a project of two modules.
fn project() -> Fledge {
    Fledge::new()
        .file("specs/dates/dates.spec.md", spec("dates", "[src/dates.rs]", LAW))
        .file("specs/text/text.spec.md", spec("text", "['src/text/**', docs/text.md]", LAW))
        .file("src/dates.rs", "fn a_year_has_four_digits() {}\n")
        .file("src/text/mod.rs", "")
        .file("docs/text.md", "About texts.\n")
}

#[test]
fn specs_are_listed_and_shown() {
    let list = project().args(&["specs", "list"]).run();
    list.must_exit(0);
    assert_eq!(list.stdout, "dates  Knows dates.\ntext  Knows text.\n");
    let [all] = list.again(&["specs", "list", "--json"]).run().events().try_into().unwrap();
    assert_eq!(all["schema_version"], 1);
    let dates = json!({
        "module": "dates", "version": "2", "status": "stable", "path": "specs/dates/dates.spec.md",
        "files": ["src/dates.rs"], "depends_on": [], "purpose": "Knows dates.",
    });
    assert_eq!(all["specs"][0], dates);
    let show = project().args(&["specs", "show", "dates"]).run();
    show.must_exit(0);
    let show_text = spec("dates", "[src/dates.rs]", LAW);
    assert_eq!(show.stdout, show_text);
    let show = show.again(&["specs", "show", "dates", "--json"]).run();
    let [one] = show.events().try_into().unwrap();
    assert_eq!((&one["text"], &one["files"]), (&show_text.into(), &dates["files"]));
    let none = show.again(&["specs", "show", "date"]).run();
    none.must_exit(2);
    assert_eq!(none.stderr, "error: no spec for the module `date` (did you mean `dates`?)\n");
}

#[test]
fn specs_that_are_true_pass() {
    let run = project().args(&["specs", "check", "--strict"]).run();
    run.must_exit(0);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", "valid: 2 specs, 0 errors and 0 warnings\n"));
}

#[test]
fn a_spec_that_is_not_true_is_an_error_with_its_place() {
    let run = project().file("specs/dates/dates.spec.md", spec("dates", "[src/date.rs]", LAW));
    let run = run.args(&["specs", "check", "--json"]).run();
    run.must_exit(1);
    let [all] = run.events().try_into().unwrap();
    let gone = json!({
        "severity": "error", "file": "specs/dates/dates.spec.md", "line": 5, "column": 9,
        "message": "there is no file `src/date.rs`", "hint": "correct or remove the path",
    });
    let bare = json!({
        "severity": "warning", "file": "src/dates.rs", "line": null, "column": null,
        "message": "no spec covers the module `dates`", "hint": "write specs/dates/dates.spec.md with it in `files`",
    });
    assert_eq!(all, json!({"schema_version": 1, "spec_count": 2, "passed": false, "findings": [gone, bare]}));
}

#[test]
fn warnings_are_errors_only_where_that_is_asked_for() {
    let run = project().file("specs/dates/dates.spec.md", spec("dates", "[src/dates.rs]", ""));
    let run = run.args(&["specs", "check"]).run();
    run.must_exit(0);
    let warning = "warning: specs/dates/dates.spec.md:16:1: this invariant names no test \
        (end the invariant with the test's name in backticks)\n  16 | 1. It holds.\n     | ^^\n";
    assert_eq!(run.stderr, format!("{warning}valid: 2 specs, 0 errors and 1 warning\n"));
    run.again(&["specs", "check", "--strict"]).run().must_exit(1);
}

#[test]
fn a_project_without_specs_passes_unless_it_is_strict() {
    let run = Fledge::new().args(&["specs", "list"]).run();
    run.must_exit(0);
    assert_eq!(run.stderr, "no specs: the folder specs/ is empty\n");
    let run = run.again(&["specs", "check"]).run();
    run.must_exit(0);
    assert!(run.stderr.starts_with("warning: specs: there are no specs"), "{}", run.stderr);
    run.again(&["specs", "check", "--strict"]).run().must_exit(1);
}

#[test]
fn a_spec_that_is_no_text_is_unreadable() {
    let run = project().file("specs/text/text.spec.md", [0xff, 0xfe]).args(&["specs", "check"]).run();
    run.must_exit(2);
    assert!(run.stderr.contains("specs/text/text.spec.md"), "{}", run.stderr);
}

#[test]
fn what_git_ignores_is_there_all_the_same_when_a_spec_names_it() {
    let run = project().file(".gitignore", "src/dates.rs\nbuilt/\n").file("built/zones.rs", LAW);
    let run = run.file("specs/dates/dates.spec.md", spec("dates", "[src/dates.rs, built/zones.rs]", ""));
    let run = run.args(&["specs", "check"]).run();
    assert!(!run.stderr.contains("there is no file"), "{}", run.stderr);
    assert!(run.stderr.contains("no source file has the test"), "{}", run.stderr); // ignored files of text hold no tests
}

#[test]
fn a_task_gets_the_specs_of_the_files_in_its_text_its_files_and_its_context() {
    let given = |task: &str| {
        let run = project().task(task).args(&["run", "task.md", "--dry-run", "--json"]).run();
        run.must_exit(0);
        let text = run.events()[0]["messages"][0]["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(
            text.contains("- dates (specs/dates/dates.spec.md): Knows dates.\n"),
            "the index is always there: {text}"
        );
        let has = |module: &&str| text.contains(&format!("Spec `specs/{module}/{module}.spec.md`:\n## Purpose"));
        ["dates", "text"].into_iter().filter(has).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(given("---\nlane: false\n---\nDo something."), "");
    assert_eq!(given("---\nlane: false\n---\nRepair `src/dates.rs:12`."), "dates");
    assert_eq!(given("---\nlane: false\nfiles: ['src/text/**']\n---\nDo something."), "text");
    assert_eq!(given("---\nlane: false\ncontext: [docs/text.md]\n---\nDo something."), "text");
    assert_eq!(given("---\nlane: false\nfiles: [src/dates.rs]\ncontext: [docs/text.md]\n---\nDo it."), "dates text");
}

#[test]
fn the_specs_of_this_project_are_true() {
    let enter = format!("cd '{}' && exec \"$0\" \"$@\"", env!("CARGO_MANIFEST_DIR"));
    let run = Fledge::new().under(&["sh", "-c", &enter]).args(&["specs", "check", "--strict", "--json"]).run();
    let [all] = run.events().try_into().unwrap();
    let said = |finding: &Value| format!("{}:{}: {}", finding["file"], finding["line"], finding["message"]);
    let findings: Vec<String> = all["findings"].as_array().unwrap().iter().map(said).collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    run.must_exit(0);
}
