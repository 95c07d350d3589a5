//! The lanes and tasks that `fledge init` writes for projects with their own CI.

use crate::support::{Ended, Fledge};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

const CI: &str = ".github/workflows/ci.yml";
const MAKE: &str = "lint:\n\ttrue\ntest:\n\ttrue\nship:\n\ttrue\n";

fn workflow(steps: &[&str]) -> String {
    let steps: String = steps.iter().map(|step| format!("      - run: {step}\n")).collect();
    format!("on: [push]\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n{steps}")
}

/// Joins the lines of a page, whose comments may be wrapped.
fn unfolded(page: &str) -> String {
    page.split_whitespace().filter(|word| *word != "#").collect::<Vec<_>>().join(" ")
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
        assert!(task.contains(&format!("files: [{quote}**{quote}] # ")) && task.contains("\n---\n\n# State"), "{task}");
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
fn init_omits_builds_that_fail_in_a_clean_room_or_lack_a_program() {
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
        unfolded(&page)
            .contains("left out: `make lint`, because it cannot run here: there is no program `no-such-linter`"),
        "{page}"
    );
    if init.stderr.contains("cannot create a clean room") {
        return;
    }
    let said = "left out: `make build`, because it passes by hand and fails in a clean room";
    assert!(unfolded(&page).contains(said), "{page}");
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

/// Returns a check that rejects each file of lanes and tasks, as `prettier --check .` may.
fn finds_fault(with: &str) -> String {
    format!(
        "lint:\n\t@for file in lanes/*.yaml tasks/*.md; do test ! -e $$file || {{ {with}; }}; done\ntest:\n\techo > report.json\n.PHONY: test lint\n"
    )
}

#[test]
fn a_lint_that_fails_for_the_written_files_alone_stays_required_and_names_them() {
    let make = finds_fault("echo prettier: $$file; exit 1");
    let init =
        Fledge::new().file("Makefile", make).file(CI, workflow(&["make lint", "make test"])).args(&["init"]).run();
    let page = page(&init);
    assert!(page.contains("run: make lint") && !page.contains("allow_failure"), "{page}");
    let said =
        "`lint` fails now but passed before `fledge init` wrote its files: add lanes/verify.yaml to .prettierignore";
    assert!(init.stderr.contains(said), "{}", init.story());
    let left = "the checks left files in the checkout: report.json; remove them, or add them to .gitignore";
    assert!(init.stderr.contains(left), "{}", init.story());
}

#[test]
fn the_projects_own_prettier_formats_what_is_written() {
    let make = finds_fault("grep -q formatted $$file || exit 1");
    let init = Fledge::new()
        .file("Makefile", make)
        .file("node_modules/.bin/prettier", "#!/bin/sh\nshift\nfor file; do echo '# formatted' >>$file; done\n")
        .file(".gitignore", "node_modules\n")
        .file(CI, workflow(&["make lint", "make test"]));
    let prettier = init.workspace().join("node_modules/.bin/prettier");
    fs::set_permissions(prettier, fs::Permissions::from_mode(0o755)).unwrap();
    let init = init.args(&["init", "--config"]).run();
    let page = page(&init);
    assert!(page.contains("# formatted") && page.contains("run: make lint"), "{page}");
    assert!(["tasks/first.md", "fledge.yaml"].iter().all(|file| init.file(file).unwrap().contains("# formatted")));
    assert!(!page.contains("allow_failure") && !init.stderr.contains("fails"), "{}", init.story());
}

#[test]
fn a_script_whose_program_is_not_installed_is_left_out_also_where_nothing_is_run() {
    let project = || {
        let scripts = r#"{"scripts": {"lint": "eslint .", "test": "true"}, "devDependencies": {"mocha": "1"}}"#;
        Fledge::new()
            .file("package.json", scripts)
            .file("node_modules/mocha/package.json", "{}")
            .env("PATH", "/usr/bin:/bin")
    };
    let said = "left out: `npm run lint`, because there is no program `eslint`";
    let printed = project().args(&["init", "--print"]).run();
    if !printed.stderr.contains("`npm` is not installed") {
        assert!(printed.stderr.contains(said) && !printed.stdout.contains("run: npm run lint"), "{}", printed.story());
    }
}

#[test]
fn for_yamllint_lines_are_short_and_a_venv_has_its_program() {
    const LONG: &str = "yamllint --strict --list-files a-folder another-folder --config-file of/the/project.yaml";
    let init = Fledge::new()
        .file("pyproject.toml", "[project]\nname = \"a\"\n")
        .file(".venv/bin/yamllint", "")
        .file(CI, workflow(&["yamllint --strict .", "python -m build", LONG]))
        .args(&["init", "--no-check", "--config"])
        .run();
    let page = page(&init);
    assert!(page.contains("run: .venv/bin/yamllint --strict .\n") && !page.contains("venv-bin"), "{page}");
    let listed = init.again(&["lanes", "list"]).run();
    assert!(listed.stdout.contains(&format!(": .venv/bin/{LONG}\n")), "{}", listed.story());
    let init = listed;
    assert!(
        unfolded(&page).contains("left out: `python -m build` (.github/workflows/ci.yml:7), because it makes packages")
    );
    let config = init.file("fledge.yaml").unwrap();
    assert!(page.starts_with("---\n") && !config.contains("{ "), "{page}{config}");
    let is_fine = |line: &&str| {
        line.chars().count() <= 80 && (line.starts_with('#') || !line.contains(" #") || line.contains("  #"))
    };
    assert!(page.lines().chain(config.lines()).all(|line| is_fine(&line)), "{page}{config}");
}

#[test]
fn an_ignored_file_that_a_check_reads_is_included_but_for_secrets_and_what_is_built() {
    long_test!();
    let init = |file: &str, then: &str| {
        let make = format!("lint:\n\ttrue\ntest:\n\tgrep -q 1 {file}\n\t@{then}\n.PHONY: test lint\n");
        let init = Fledge::new().file("Makefile", make).file(".gitignore", format!("{file}\nsilent\n"));
        init.file(file, "A=1\n")
            .file("silent", "")
            .file(CI, workflow(&["make lint", "make test"]))
            .committed()
            .args(&["init"])
            .run()
    };
    let tried = init(".env.test", "true");
    let (page, printed) = (page(&tried), unfolded(&tried.stderr));
    if tried.stderr.contains("cannot create a clean room") {
        return;
    }
    let why = "# git ignores these files, and `test` passes only with them\ninclude_ignored:\n  - \".env.test\"\n";
    assert!(page.contains(why), "{page}");
    assert!(printed.contains("so the lane has `include_ignored: [.env.test]`"), "{}", tried.story());
    tried.again(&["lanes", "run", "verify", "--clean"]).run().must_exit(0);
    for (file, why) in
        [(".env", "it may hold secrets, so fledge did not include it"), ("made.c", "build it in an earlier step")]
    {
        let tried = init(file, "true");
        let page = self::page(&tried);
        assert!(!page.contains("\ninclude_ignored:") && unfolded(&page).contains(why), "{page}");
        assert!(tried.stderr.contains(why), "{}", tried.story());
    }
    let useless = init(".env.test", "test -e silent");
    let page = self::page(&useless);
    assert!(!page.contains("include_ignored"), "{page}");
    assert!(unfolded(&page).contains("`test` passes by hand but fails in a clean room ("), "{page}");
}

#[test]
fn an_ignored_file_that_one_of_two_checks_needs_is_included_with_the_checks_name() {
    long_test!();
    let make = "lint:\n\tgrep -q 1 .env.test\ntest:\n\tgrep -q 1 .env.test\n\t@test -e silent\n.PHONY: test lint\n";
    let place = Fledge::new().file("Makefile", make).file(".gitignore", ".env.test\nsilent\n");
    let place = place.file(".env.test", "A=1\n").file("silent", "").file(CI, workflow(&["make lint", "make test"]));
    let tried = place.committed().args(&["init"]).run();
    if tried.stderr.contains("cannot create a clean room") {
        return;
    }
    let page = page(&tried);
    let why = "# git ignores these files, and `lint` passes only with them\ninclude_ignored:\n  - \".env.test\"\n";
    assert!(page.contains(why), "{page}");
    assert!(unfolded(&page).contains("`test` passes by hand but fails in a clean room ("), "{page}");
    assert!(unfolded(&tried.stderr).contains("so the lane has `include_ignored: [.env.test]`"), "{}", tried.story());
}

#[test]
fn a_test_that_fails_on_the_project_stays_with_its_reason_in_the_file() {
    let make = ".PHONY: test\ntest:\n\t@echo error: expected 3, got 4; echo bye; exit 1\n";
    let init = Fledge::new().file("Makefile", make).args(&["init"]).run();
    let said = "`test` fails on the current project (error: expected 3, got 4): no run is verified until `test` passes";
    let page = page(&init);
    let kept = "`test` failed when this was written (error: expected 3, got 4)";
    assert!(page.contains("run: make test") && unfolded(&page).contains(kept), "{page}");
    assert!(init.stderr.contains(said), "{}", init.story());
    assert!(init.stderr.contains("  fledge fix "), "{}", init.story());
}

#[test]
fn actions_of_the_project_are_read_and_what_is_not_read_is_named() {
    let action = "runs:\n  using: composite\n  steps: [{ run: make -k test, shell: bash }]\n";
    let init = Fledge::new()
        .file("Makefile", MAKE)
        .file(CI, workflow(&["make lint\n      - uses: ./.github/actions/check\n      - uses: ./.github/actions/gone"]))
        .file(".github/actions/check/action.yml", action)
        .file(".pre-commit-config.yaml", "repos: []\n")
        .args(&["init", "--no-check"])
        .run();
    let page = page(&init);
    assert!(page.contains("- name: test # from .github/actions/check/action.yml\n    run: make -k test\n"), "{page}");
    for said in [
        "left out: `uses: ./.github/actions/gone` (.github/workflows/ci.yml:8), because fledge does not read what this action runs",
        "left out: the hooks of .pre-commit-config.yaml, because pre-commit fetches them and may change files",
    ] {
        assert!(init.stderr.contains(said) && unfolded(&page).contains(said), "{}", init.story());
    }
}
