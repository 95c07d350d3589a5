//! `fledge init` and runs in a project without lanes: fledge detects lanes, shows them, uses them
//! as the gate, and writes them once.

use crate::support::{Fledge, Model, go_cache, say, write};
use serde_json::json;
use std::os::unix::fs::{PermissionsExt, symlink};

const INIT: &[&str] = &["lanes", "init"];
const LIST: &[&str] = &["lanes", "list"];
const VERIFY: &[&str] = &["lanes", "run", "verify"];
const MAKE: &str = ".PHONY: test\ntest:\n\ttest -f done\n";

/// Keeps the user's home variables, because tools look for their own files at home.
fn at_home(fledge: Fledge) -> Fledge {
    let kept = ["HOME", "RUSTUP_HOME", "CARGO_HOME", "PYENV_ROOT", "PYENV_VERSION", "RUSTUP_TOOLCHAIN"];
    let set = kept.into_iter().filter_map(|name| Some((name, std::env::var(name).ok()?)));
    set.fold(fledge, |fledge, (name, value)| fledge.env(name, &value))
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Checks a fresh project: the lanes that `init` writes pass at once. If the program is missing,
/// `init` writes nothing and names the program.
#[track_caller]
fn a_fresh_project(program: &str, files: &[(&str, &str)], steps: &[&str]) {
    let fresh = files.iter().fold(Fledge::new(), |fledge, (path, text)| fledge.file(path, text));
    let at_home = |fledge: Fledge| {
        let fledge = at_home(fledge);
        if program == "go" { fledge.env("GOCACHE", go_cache().to_str().unwrap()) } else { fledge }
    };
    let init = at_home(fresh.args(INIT)).run();
    if !is_installed(program) {
        init.must_exit(2);
        assert!(init.stderr.contains(program) && init.file("lanes/verify.yaml").is_none(), "{}", init.story());
        return;
    }
    init.must_exit(0);
    let listed = init.again(&["lanes", "list", "--json"]).run();
    let lane = &listed.events()[0]["lanes"][0];
    assert_eq!((&lane["name"], &lane["detected"]), (&json!("verify"), &json!(false)));
    let run = at_home(listed.again(&["lanes", "run", "verify", "--json"])).run();
    run.must_exit(0);
    let passed: Vec<String> = run.events()[0]["commands"].as_array().unwrap().iter().map(named).collect();
    assert_eq!(passed, steps.iter().map(|step| format!("{step} passed")).collect::<Vec<_>>());
}

fn named(step: &serde_json::Value) -> String {
    format!("{} {}", step["step"].as_str().unwrap(), step["status"].as_str().unwrap())
}

#[test]
fn a_fresh_rust_project_passes_what_is_written_for_it() {
    long_test!();
    let manifest = "[package]\nname = \"fresh\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    let code = "#[test]\nfn it_works() {\n    assert_eq!(2 + 2, 4);\n}\n";
    a_fresh_project("cargo", &[("Cargo.toml", manifest), ("src/lib.rs", code)], &["fmt", "lint", "test"]);
}

#[test]
fn a_fresh_node_project_passes_what_is_written_for_it() {
    let manifest = r#"{"scripts": {"test": "node -e 'process.exit(0)'"}}"#;
    a_fresh_project("npm", &[("package.json", manifest), ("package-lock.json", "{}")], &["test"]);
}

#[test]
fn a_fresh_go_project_passes_what_is_written_for_it() {
    long_test!();
    let tests = "package fresh\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) {}\n";
    let files = [("go.mod", "module example.com/fresh\n\ngo 1.19\n"), ("it_test.go", tests)];
    a_fresh_project("go", &files, &["fmt", "vet", "test"]);
}

#[test]
fn a_fresh_python_project_passes_what_is_written_for_it() {
    let tests = "import unittest\nimport fresh\n\nclass Test(unittest.TestCase):\n    def test_it(self):\n        \
        self.assertEqual(fresh.two(), 2)\n";
    let files = [
        ("pyproject.toml", "[project]\nname = \"fresh\"\n"),
        ("fresh.py", "def two():\n    return 2\n"),
        ("tests/test_it.py", tests),
    ];
    a_fresh_project("python3", &files, &["test"]);
}

#[test]
fn modules_beside_the_tests_are_found_whichever_interpreter_has_pytest() {
    long_test!();
    let files = [
        ("pyproject.toml", "[project]\nname = \"fresh\"\n"),
        ("fresh.py", "def two():\n    return 2\n"),
        ("tests/test_it.py", "import fresh\n\ndef test_it():\n    assert fresh.two() == 2\n"),
    ];
    if is_installed("pytest") {
        a_fresh_project("pytest", &files, &["test"]);
    }
}

#[test]
fn a_fresh_project_with_a_makefile_passes_what_is_written_for_it() {
    a_fresh_project(
        "make",
        &[("Makefile", "test: main\n\t./main\nmain:\n\tprintf '#!/bin/sh\\n' > main; chmod +x main\n")],
        &["test"],
    );
}

#[test]
fn a_fresh_project_with_a_script_passes_what_is_written_for_it() {
    a_fresh_project("sh", &[("test.sh", "true\n")], &["test"]);
}

#[test]
fn the_file_is_readable_says_where_it_comes_from_and_what_is_missing() {
    let manifest = r#"{"scripts": {"test": "x"}, "packageManager": "pnpm@9"}"#;
    let programs = crate::support::temp_dir();
    std::fs::write(programs.path().join("make"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(programs.path().join("make"), PermissionsExt::from_mode(0o755)).unwrap();
    let path = programs.path().to_str().unwrap().to_owned();
    let init = Fledge::new().file("package.json", manifest).file("Makefile", MAKE).env("PATH", &path).args(INIT).run();
    init.must_exit(0);
    let left_out = "left out: scripts of package.json (`test`), because `pnpm` is not installed";
    assert_eq!(init.stderr, format!("wrote lanes/verify.yaml: test\nnote: {left_out}\n"));
    assert_eq!(init.stdout, "");
    let page = init.file("lanes/verify.yaml").unwrap();
    let start = "# What every change must pass, as fledge found it out from Makefile.";
    assert!(
        page.starts_with(start) && page.contains("# left out: scripts of package.json (`test`), because `pnpm` is not"),
        "{page}"
    );
    let mode = |name: &str| std::fs::metadata(init.path(name)).unwrap().permissions().mode();
    std::fs::write(init.path("as-the-umask-says"), "").unwrap();
    assert_eq!(mode("lanes/verify.yaml"), mode("as-the-umask-says"));
}

#[test]
fn of_a_folder_of_projects_each_is_checked_where_it_lies() {
    let programs = crate::support::temp_dir();
    std::fs::write(programs.path().join("make"), "#!/bin/sh\necho $1 > ran\n").unwrap();
    std::fs::set_permissions(programs.path().join("make"), PermissionsExt::from_mode(0o755)).unwrap();
    let path = programs.path().to_str().unwrap().to_owned();
    let fledge = Fledge::new().file("web/Makefile", MAKE).file("services/api/Makefile", "lint:\n").file("notes/x", "");
    let init = fledge.env("PATH", &path).args(INIT).run();
    init.must_exit(0);
    assert_eq!(
        init.stderr,
        "wrote lanes/verify.yaml: services/api/lint, web/test\nnote: services/api: no tests were found: this lane says little\n"
    );
    let run = init.again(VERIFY).env("PATH", &path).run();
    run.must_exit(0);
    assert_eq!(
        ["services/api/ran", "web/ran"].map(|file| run.file(file)),
        [Some("lint\n".into()), Some("test\n".into())]
    );
}

#[test]
fn what_is_there_is_never_written_over() {
    for path in ["lanes/verify.yaml", "lanes/verify.yml", "fledge.toml"] {
        let init = Fledge::new().file("Makefile", MAKE).file(path, "mine").args(INIT).run();
        init.must_exit(2);
        assert!(init.stderr.contains(&format!("cannot write the lane: {path} already exists")), "{}", init.stderr);
        assert_eq!(init.file(path).as_deref(), Some("mine"));
    }
    let fledge = Fledge::new().file("Makefile", MAKE).file("lanes/notes.md", "");
    symlink("elsewhere.yaml", fledge.workspace().join("lanes/verify.yaml")).unwrap();
    let init = fledge.args(INIT).run();
    init.must_exit(2);
    assert_eq!(init.file("lanes/elsewhere.yaml"), None);
    let init = Fledge::new().file("Makefile", MAKE).file("lanes", "no folder").args(INIT).run();
    init.must_exit(2);
    assert!(init.stderr.contains("cannot write the lane: lanes exists and is not a folder"), "{}", init.stderr);
}

#[test]
fn another_lane_does_not_keep_it_from_being_written() {
    let init = Fledge::new().file("Makefile", MAKE).lane("deploy", "steps: [{ run: 'true' }]").args(INIT).run();
    init.must_exit(0);
    assert!(init.file("lanes/verify.yaml").unwrap().contains("run: make test"));
}

#[test]
fn where_nothing_is_found_nothing_is_written() {
    let init = Fledge::new().file("package.json", "{}").args(INIT).run();
    init.must_exit(2);
    assert!(init.stderr.starts_with("error: found nothing that can check this project"), "{}", init.stderr);
    assert!(!init.path("lanes").exists());
}

#[test]
fn the_file_can_be_seen_before_it_is_written() {
    let init = Fledge::new().file("test.sh", "").args(&["lanes", "init", "--print"]).run();
    init.must_exit(0);
    assert!(init.stdout.contains("run: sh test.sh") && init.file("lanes/verify.yaml").is_none(), "{}", init.story());
}

#[test]
fn detected_lanes_are_listed_as_such() {
    let fresh = || Fledge::new().file("test.sh", "true");
    let people = fresh().args(LIST).run();
    assert_eq!(people.stdout, "verify (detected)  Checks detected from test.sh\n  test: sh test.sh\n");
    let lanes = fresh().args(&["lanes", "list", "--json"]).run();
    let lane = &lanes.events()[0]["lanes"][0];
    assert_eq!((&lane["name"], &lane["detected"]), (&json!("verify"), &json!(true)));
}

#[test]
fn a_detected_lane_runs_by_hand_and_says_what_it_is() {
    let run = Fledge::new().file("test.sh", "exit 3").args(VERIFY).run();
    run.must_exit(1);
    assert!(run.stderr.contains("note: no lanes are defined, so fledge detected this one"), "{}", run.stderr);
    let unknown = Fledge::new().file("test.sh", "").args(&["lanes", "run", "lint"]).run();
    unknown.must_exit(2);
    assert!(unknown.stderr.contains("known: verify (detected)"), "{}", unknown.stderr);
}

#[test]
fn a_project_with_lanes_of_its_own_is_never_guessed_at() {
    let refused = |fledge: Fledge| {
        let run = fledge.file("test.sh", "true").args(VERIFY).run();
        run.must_exit(2);
        assert!(!run.stderr.contains("detected"), "{}", run.stderr);
    };
    refused(Fledge::new().lane("other", "steps: [{ run: 'true' }]"));
    refused(Fledge::new().file("fledge.toml", "[tasks]\n"));
    refused(Fledge::new().lane("verify", "steps: 5"));
}

#[test]
fn a_detected_lane_is_a_gate() {
    let model = Model::new([write("done", ""), say("Done.")]);
    let run = Fledge::new().file("test.sh", "test -f done").task("Make the file `done`.").anthropic(&model).run();
    let report = run.must_be(0, "verified");
    assert_eq!(report["warnings"][0], "no lanes are defined, so fledge detected this one; keep it with `fledge init`");
}

#[test]
fn the_script_that_a_detected_lane_names_is_protected() {
    long_test!();
    let model = Model::new([write("test.sh", "true"), write("done", ""), say("Done.")]);
    let run = Fledge::new().file("test.sh", "test -f done").task("Make the file `done`.").anthropic(&model).run();
    run.must_be(0, "verified");
    assert_eq!(run.file("test.sh").as_deref(), Some("test -f done"));
    assert!(model.asked()[1].newest().contains("is protected"), "{}", model.asked()[1].newest());
}
