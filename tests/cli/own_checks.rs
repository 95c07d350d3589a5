//! The lanes and tasks that `fledge init` writes for projects with their own CI.

use crate::support::{Ended, Fledge};

const CI: &str = ".github/workflows/ci.yml";
const MAKE: &str = "lint:\n\ttrue\ntest:\n\ttrue\nship:\n\ttrue\n";

fn workflow(steps: &[&str]) -> String {
    let steps: String = steps.iter().map(|step| format!("      - run: {step}\n")).collect();
    format!("on: [push]\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n{steps}")
}

fn page(init: &Ended) -> String {
    init.must_exit(0);
    init.file("lanes/verify.yaml").unwrap_or_else(|| panic!("{}", init.story()))
}

#[test]
fn the_commands_of_a_workflow_become_steps_that_name_their_file_and_pass() {
    let ci = workflow(&[
        "make lint",
        "make -k test",
        "sudo make install",
        "make ship",
        "make gone",
        "make test SHA=${{ github.sha }}",
    ]);
    let init = Fledge::new().file("Makefile", MAKE).file(CI, ci).args(&["init"]).run();
    let page = page(&init);
    for (name, run) in [("lint", "make lint"), ("test", "make -k test")] {
        assert!(page.contains(&format!("- name: {name} # from {CI}\n    run: {run}\n")), "{page}");
    }
    for (command, why) in [
        ("`sudo make install`", "it changes the machine"),
        ("`make ship`", "fledge does not know what it does"),
        ("`make gone`", "there is no recipe `gone`"),
        ("`make test SHA=…`", "it needs values that only its own CI has"),
    ] {
        let said = init.stderr.lines().find(|line| line.contains(command)).unwrap_or_default();
        assert!(said.contains(why) && said.contains(CI), "{}", init.story());
    }
    let valid = init.again(&["lanes", "validate", "--strict"]).run();
    valid.must_exit(0);
    valid.again(&["lanes", "run", "verify"]).run().must_exit(0);
}

#[test]
fn what_is_printed_has_the_remarks_of_what_is_written() {
    let remarks = |ended: &Ended| -> Vec<String> {
        ended.stderr.lines().filter(|line| line.contains("left out: ")).map(str::to_owned).collect()
    };
    let project = || Fledge::new().file("Makefile", MAKE).file(CI, workflow(&["make test", "npm ci"]));
    let written = project().args(&["init", "--no-check"]).run();
    let printed = project().args(&["init", "--print"]).run();
    let lane = project().args(&["lanes", "init", "--print"]).run();
    assert!(!remarks(&written).is_empty(), "{}", written.story());
    assert_eq!(remarks(&written), remarks(&printed));
    assert_eq!(remarks(&written), remarks(&lane));
    assert!(printed.stdout.contains(page(&written).trim_end()), "{}", printed.story());
    let nothing = Fledge::new().file("package.json", "[").args(&["init", "--print"]).run();
    nothing.must_exit(2);
    assert!(nothing.stderr.contains("left out: package.json, because it is no JSON"), "{}", nothing.story());
}

#[test]
fn what_is_written_is_as_prettier_would_write_it() {
    let scripts = r#"{"scripts": {"test": "true"}, "prettier": {"singleQuote": true}}"#;
    for (manifest, quote) in [(r#"{"scripts": {"test": "true"}}"#, '"'), (scripts, '\'')] {
        let init = Fledge::new().file("package.json", manifest).args(&["init", "--no-check"]).run();
        let (lane, task) = (page(&init), init.file("tasks/first.md").unwrap());
        let other = if quote == '"' { '\'' } else { '"' };
        assert!(lane.contains(&format!("CI: {quote}1{quote}")) && !lane.contains(other), "{lane}");
        assert!(task.contains(&format!("files: [{quote}**{quote}] # ")) && task.contains("\n---\n\n# Say"), "{task}");
        for line in lane.lines().chain(task.lines()) {
            assert!(!line.trim_start().contains("  ") && line == line.trim_end(), "{line}");
        }
    }
}

#[test]
fn what_is_written_is_indented_as_prettier_is_configured() {
    let manifest = r#"{"scripts": {"lint": "eslint .", "format:check": "prettier --check .", "test": "true"}}"#;
    let test = "npm test --prefix a-folder-with-a-name-that-makes-the-line-longer-than-eighty-columns";
    let options = r#"{"tabWidth": 4, "bracketSpacing": false, "proseWrap": "always"}"#;
    let init = Fledge::new()
        .file("package.json", manifest)
        .file(".prettierrc", options)
        .file(CI, workflow(&["npm run lint", "npm run format:check", test]))
        .args(&["init", "--no-check"])
        .run();
    let (lane, task) = (page(&init), init.file("tasks/first.md").unwrap());
    for part in [
        "env:\n    CI: \"1\"",
        "steps:\n    - parallel: # these only read\n          - name: lint # from .github/workflows/ci.yml\n            run: ",
        "\n    - name: test",
        "run: |-\n          npm test --prefix",
    ] {
        assert!(lane.contains(part), "{part:?} is not in\n{lane}");
    }
    assert!(task.contains("budget: {turns: 40, time: 30m} # "), "{task}");
    init.again(&["lanes", "validate", "--strict"]).run().must_exit(0);
}

#[test]
fn a_build_that_fails_only_in_a_clean_room_is_left_out_and_so_is_one_that_lacks_a_program() {
    let make = "build:\n\ttest -e made-by-hand\nlint:\n\tsh -c no-such-linter\ntest:\n\ttrue\n.PHONY: test\n";
    let init = Fledge::new()
        .file("Makefile", make)
        .file(".gitignore", "made-by-hand\n")
        .file("made-by-hand", "")
        .file(CI, workflow(&["make build", "make lint", "make test"]))
        .args(&["init"])
        .run();
    let page = page(&init);
    assert!(page.contains("run: make test") && !page.contains("run: make lint"), "{page}");
    assert!(
        page.contains("left out: `make lint`, because it cannot run here: there is no program `no-such-linter`"),
        "{page}"
    );
    if init.stderr.contains("there was no clean room") {
        return;
    }
    assert!(page.contains("left out: `make build`, because it passes by hand and fails in a clean room"), "{page}");
}

#[test]
fn a_lint_that_writes_has_no_company() {
    let scripts = r#"{"scripts": {"lint": "eslint .", "format:check": "prettier --check .", "typecheck": "generate-types && tsc --noEmit", "test": "true"}}"#;
    let init = Fledge::new().file("package.json", scripts).args(&["init", "--no-check"]).run();
    let lane = page(&init);
    let (together, alone) = lane.split_once("  - name: types\n").unwrap_or_else(|| panic!("{lane}"));
    assert!(together.contains("parallel:") && together.contains("npm run lint"), "{lane}");
    assert!(!alone.contains("parallel:"), "{lane}");
}
