//! Tests of what an agent may and may not change, as tables, and of honest work that gives no
//! finding.

mod honest;
mod later;
mod names;
mod ordinary;
mod stands_in;
mod steered;
mod test_only;

use super::*;
use crate::lane::parse;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A base with many kinds of projects.
const BASE: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        "[package]\nname = 'a'\nversion = '1.0.0'\nedition = '2021'\n[dependencies]\nserde = '1'\n[dev-dependencies]\nproptest = '1'\n[features]\ndefault = []\n[[test]]\nname = 'api'\n[[bin]]\nname = 'a'\npath = 'src/main.rs'\n[workspace]\nmembers = ['crates/x']\n[lints.rust]\nunsafe_code = 'deny'\n",
    ),
    ("crates/x/Cargo.toml", "[package]\nname = 'x'\n"),
    (
        "package.json",
        r#"{"name":"w","version":"1.0.0","scripts":{"test":"jest","build":"tsc"},"dependencies":{"react":"^18"},"devDependencies":{"jest":"^29"},"workspaces":["packages/a"]}"#,
    ),
    (
        "pyproject.toml",
        "[project]\nname = 'p'\ndependencies = ['requests>=2']\n[dependency-groups]\ndev = ['pytest>=8']\n[tool.pytest.ini_options]\naddopts = '-q'\n[build-system]\nrequires = ['hatchling']\n[tool.uv.workspace]\nmembers = ['packages/*']\n",
    ),
    ("pnpm-workspace.yaml", "packages:\n  - 'packages/*'\n  - '!packages/old'\n"),
    ("lerna.json", r#"{"version":"1.0.0","packages":["packages/*"]}"#),
    ("setup.cfg", "[metadata]\nname = p\n[tool:pytest]\naddopts = -q\n[options]\ninstall_requires =\n  requests\n"),
    ("go.mod", "module m\n\ngo 1.22\n\nrequire (\n\tgithub.com/a/b v1.0.0\n)\n"),
    (
        "CMakeLists.txt",
        "enable_testing()\nadd_executable(app src/main.c)\nif(BUILD_TESTING)\n  add_test(NAME sum COMMAND app sum)\n  add_test(NAME \"zero\" COMMAND app zero)\nendif()\n",
    ),
    ("src/lib.rs", ""),
    ("src/main.rs", ""),
    ("src/main.c", ""),
    ("README.md", ""),
    ("app/views.py", ""),
    ("app/tests.py", ""),
    ("build.rs", ""),
    ("tests/api.rs", ""),
    ("tests/support/mod.rs", ""),
    ("tests/conftest.py", ""),
    ("web/src/a.test.tsx", ""),
    ("pkg/a_test.go", ""),
    ("pkg/a.go", ""),
    ("spec/models/a_spec.rb", ""),
    ("lua/a_spec.lua", ""),
    ("web/src/b_spec.ts", ""),
    ("Calc.Tests/Cases.cs", ""),
    ("accept/sums.robot", ""),
    ("src/test/java/ATest.java", ""),
    ("web/__snapshots__/a.snap", ""),
    ("pkg/testdata/in.txt", ""),
    ("test_app.py", ""),
    ("Makefile", "check:\n\t@sh scripts/lint.sh\n\tshellcheck bin/tool.sh\n\tcc src/main.c\n"),
    ("scripts/check.sh", ". ./scripts/common.sh\n./tools/probe --fast\ncat src/lib.rs\n"),
    ("scripts/common.sh", ""),
    ("scripts/lint.sh", ""),
    ("scripts/other.sh", ""),
    (
        "scripts/tools.sh",
        "task just cucumber behave make earthly ruff mypy flake8 pylint pyright isort black bandit yapf fmt deny nextest tarpaulin release jest eslint prettier \
         stylelint oxlint tslint golangci clang shellcheck clippy biome rubocop",
    ),
    ("tools/probe", ""),
    ("bin/tool.sh", ""),
    ("data/expected.txt", ""),
    ("Dockerfile", ""),
    ("lanes/verify.yaml", ""),
];
const LANE: &str = "canary: { file: tests/canary.py, text: x }\nsetup: [{ run: sh scripts/other.sh }]\nsteps:\n  - { run: sh scripts/check.sh }\n  - { run: make check }\n  \
    - { run: cc src/main.c -o out && diff out data/expected.txt }\n  - { run: pytest -q }\n";

fn files() -> BTreeMap<&'static str, &'static str> {
    BASE.iter().copied().collect()
}

fn policy(allow_edit: &[&str]) -> Policy {
    let (lane, files) = (parse("verify", "verify.yaml", LANE).unwrap(), files());
    let allow: Vec<String> = allow_edit.iter().map(|glob| (*glob).to_owned()).collect();
    let mut read = |path: &str| files.get(path).map(|text| text.as_bytes().to_vec());
    Policy::freeze(files.keys().map(|path| (*path).to_owned()), &[lane], &["fixtures/**".into()], &allow, &mut read)
        .unwrap()
}

/// The policy of the base, with nothing opened.
static POLICY: LazyLock<Policy> = LazyLock::new(|| policy(&[]));

fn change(path: &str, kind: PathChangeKind) -> PathChange {
    PathChange { path: path.into(), kind }
}

/// Returns the rules that a new text of one file breaks.
fn edited(path: &str, text: &str) -> Vec<String> {
    let files = files();
    let kind = if files.contains_key(path) { PathChangeKind::Modified } else { PathChangeKind::Added };
    let contents = |path: &str, side| match side {
        TreeSide::Base => files.get(path).map(|text| text.as_bytes().to_vec()),
        TreeSide::Candidate => Some(text.as_bytes().to_vec()),
    };
    POLICY.findings(&[change(path, kind)], contents).into_iter().map(|finding| finding.rule).collect()
}

/// Returns the rules that the base's text of one file breaks once a part is replaced. An empty part
/// means the end of the text.
fn replaced(path: &str, from: &str, to: &str) -> Vec<String> {
    let text = files()[path];
    assert!(text.contains(from), "{path} has no {from}");
    edited(path, &if from.is_empty() { format!("{text}{to}") } else { text.replacen(from, to, 1) })
}

fn why(path: &str) -> Option<String> {
    POLICY.rule(path).map(|rule| rule.why.clone())
}

#[test]
fn the_product_that_a_step_runs_is_the_work_and_a_check_is_not() {
    let files = [
        ("app.py", "import calc\nprint('hello')\n"),
        ("calc.py", "import sys\n"),
        ("index.js", "console.log(1)\n"),
        ("bin/cli.js", "require('../index.js')\n"),
        ("mixed.py", "import unittest\n"),
        ("user.py", "from mixed import thing\n"),
        ("suite.py", "import unittest\n"),
        ("suite.mjs", "import assert from \"node:assert\";\n"),
        ("check_it.py", "assert True\n"),
        ("run-tests.js", ""),
        ("scripts/all.py", ""),
        ("build.sh", "cc app.c\n"),
        ("go.rb", "#!/bin/sh\n"),
        ("tests/all.py", ""),
        ("main.pl", "use strict;\n"),
        ("main.lua", "print(1)\n"),
        ("suite.pl", "use Test::More;\n"),
        ("tool", "#!/usr/bin/env python3\nimport calc\n"),
        ("check", "#!/usr/bin/env python3\n"),
        ("all", "#!/bin/bash\n"),
        ("rules.json", "{}"),
    ];
    let steps = files.map(|(path, _)| match path {
        "rules.json" => format!("{{ run: 'jq . {path}' }}"),
        _ => format!("{{ run: './run {path} && python3 {path}' }}"),
    });
    let steps = steps.join(", ");
    let lanes = [crate::lane::parse("verify", "lanes/verify.yaml", &format!("steps: [{steps}]")).unwrap()];
    let mut read = |path: &str| files.iter().find(|(own, _)| *own == path).map(|(_, text)| text.as_bytes().to_vec());
    let policy = Policy::freeze(files.map(|(path, _)| path.to_owned()), &lanes, &[], &[], &mut read).unwrap();
    let free: Vec<&str> = files.map(|(path, _)| path).into_iter().filter(|path| policy.rule(path).is_none()).collect();
    let work = [
        "app.py",
        "calc.py",
        "index.js",
        "bin/cli.js",
        "mixed.py",
        "user.py",
        "main.pl",
        "main.lua",
        "tool",
        "rules.json",
    ];
    assert_eq!(free, work);
}

#[test]
fn what_tests_of_cmake_run_is_protected_if_it_is_a_script_or_a_check() {
    let lists = "add_test(NAME a COMMAND sh ${CMAKE_SOURCE_DIR}/all.sh)\nadd_test(b \"${PROJECT_SOURCE_DIR}/more.sh\")\n\
        # add_test(c sh other.sh)\nadd_test(NAME d COMMAND app --selftest)\n\
        add_test(NAME e COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/unit.py)\n\
        add_test(NAME f COMMAND python3 ${CMAKE_SOURCE_DIR}/app.py)\nadd_custom_target(up COMMAND sh deploy.sh)\n";
    let files = [
        ("CMakeLists.txt", lists),
        ("all.sh", ""),
        ("app.py", ""),
        ("deploy.sh", ""),
        ("lib/CMakeLists.txt", "add_test(NAME g COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/g.sh)"),
        ("lib/g.sh", ""),
        ("more.sh", ""),
        ("other.sh", ""),
        ("unit.py", "import unittest\n"),
    ];
    let lane = "steps: [{ run: 'cmake -B build && cmake --build build && ctest --test-dir build' }]";
    let lanes = [crate::lane::parse("verify", "lanes/verify.yaml", lane).unwrap()];
    let mut read = |path: &str| files.iter().find(|(own, _)| *own == path).map(|(_, text)| text.as_bytes().to_vec());
    let policy = Policy::freeze(files.map(|(path, _)| path.to_owned()), &lanes, &[], &[], &mut read).unwrap();
    let held: Vec<&str> = files.map(|(path, _)| path).into_iter().filter(|path| policy.rule(path).is_some()).collect();
    assert_eq!(held, ["all.sh", "lib/g.sh", "more.sh", "unit.py"]);
}

#[test]
fn every_glob_of_the_table_covers_what_it_names_also_below_and_before_it_is_there() {
    for steers in ecosystems::STEERS {
        for glob in steers.globs {
            let plain = glob
                .replace("**/", "")
                .replace("[jJ]", "j")
                .replace("[nN]", "n")
                .replace("[gG]", "g")
                .replace("[cC]", "c");
            for filled in ecosystems::expanded(&plain) {
                let path = filled.trim_start_matches('/').replace('*', "x");
                assert_eq!(why(&path).as_deref(), Some(steers.why), "{glob}: {path}");
                if !glob.starts_with('/') && !path.contains('/') {
                    assert!(why(&format!("new/folder/{path}")).is_some(), "{glob} below");
                }
            }
        }
    }
}

#[test]
fn tests_of_the_base_stay_whatever_their_ecosystem_and_new_ones_may_come() {
    for path in [
        "tests/api.rs",
        "tests/support/mod.rs",
        "web/src/a.test.tsx",
        "pkg/a_test.go",
        "spec/models/a_spec.rb",
        "lua/a_spec.lua",
        "web/src/b_spec.ts",
        "Calc.Tests/Cases.cs",
        "accept/sums.robot",
        "src/test/java/ATest.java",
        "web/__snapshots__/a.snap",
        "pkg/testdata/in.txt",
        "test_app.py",
        "app/tests.py",
    ] {
        assert_eq!(why(path).as_deref(), Some(TEST), "{path}");
        assert_eq!(why(&format!("{path}/in/its/place")).as_deref(), Some(TEST), "{path}");
        for kind in [PathChangeKind::Modified, PathChangeKind::Removed, PathChangeKind::ModeChanged] {
            let told = POLICY.findings(&[change(path, kind)], |_, _| None);
            assert_eq!(told.len(), 1, "{path} {kind:?}");
        }
    }
    let upper = [change("tests/api.rs", PathChangeKind::Removed), change("tests/API.rs", PathChangeKind::Added)];
    assert_eq!(POLICY.findings(&upper, |_, _| None).len(), 1, "another case is another file");
}

#[test]
fn what_lanes_name_is_protected_and_what_it_runs_but_not_what_it_looks_at() {
    for (path, told) in [
        ("scripts/check.sh", Some("a step of the gate names it")),
        ("scripts/other.sh", Some("a step of the gate names it")),
        ("data/expected.txt", Some("a step of the gate names it")),
        ("tests/canary.py", Some("a step of the gate names it")),
        ("scripts/common.sh", Some("a script of the gate runs it")),
        ("tools/probe", Some("a script of the gate runs it")),
        ("scripts/lint.sh", Some("a script of the gate runs it")),
        ("src/main.c", None),
        ("bin/tool.sh", None),
        ("src/lib.rs", None),
        ("pytest.py", Some(SHADOWED)),
        ("src/unittest/__init__.py", Some(SHADOWED)),
        ("src/mock/data.js", None),
        ("fixtures/a", Some("the task or the project protects it")),
        ("Dockerfile", None),
    ] {
        assert_eq!(why(path).as_deref(), told, "{path}");
    }
}

#[test]
fn what_would_stand_in_for_a_program_is_found_and_a_folder_of_its_name_is_not() {
    let told =
        |path| POLICY.findings(&[change(path, PathChangeKind::Added)], |_, _| None).pop().map(|finding| finding.rule);
    for path in ["make", "sh"] {
        assert!(told(path).is_some_and(|told| told.contains(&format!("instead of the program `{path}`"))), "{path}");
    }
    for path in ["pytest", "src/mock"] {
        assert_eq!(told(path).as_deref(), Some(SHADOWED), "{path}");
    }
    for path in ["make/main.c", "cc/a.c", "src/mock/data.js"] {
        assert_eq!(told(path), None, "{path}");
    }
}

#[test]
fn sections_of_manifests_that_steer_may_not_change() {
    for (path, from, to, told) in steered::STEERED {
        assert_eq!(replaced(path, from, to), [*told], "{path}: {to}");
    }
    assert_eq!(
        edited("tests/pyproject.toml", "[tool.pytest.ini_options]\naddopts = '--co'\n"),
        ["[tool.pytest] added: it controls how tests run"]
    );
    let off = replaced("CMakeLists.txt", "(BUILD_TESTING)", "(OFF)");
    assert_eq!(off, ["sum", "zero"].map(|test| format!("[tests.add_test.{test}] changed: it is a test of the base")));
    let go = "it removes the packages of this folder from the module and its tests";
    assert_eq!(edited("pkg/go.mod", "module m/pkg\n"), [go]);
    assert_eq!(edited("web/package.json", r#"{"type":"module"}"#), ["[type] added: it controls the build"]);
    // Without a list, all packages are found.
    let first = ["[packages] added: it says which tests are found"];
    assert_eq!(edited("web/lerna.json", r#"{"packages":["a"]}"#), first);
    assert_eq!(edited("web/pnpm-workspace.yaml", "packages: [a]\n"), first);
}

#[test]
fn every_row_of_every_manifest_is_there_when_it_changes() {
    for (name, section, why) in manifest::rows() {
        let section = section.split(' ').next().unwrap().to_owned();
        let is_weaker_at_once = !(section.contains("lints")
            || section.contains("features")
            || section.contains("members")
            || section.starts_with("workspaces"));
        let keys: Vec<String> = section.split('.').map(|key| key.replace('*', "x")).collect();
        if name == "Cargo.toml" && is_weaker_at_once && !matches!(keys[0].as_str(), "test" | "bench") {
            let (table, key) = keys.split_at(keys.len() - 1);
            let text = if table.is_empty() {
                format!("{} = ['x']\n", key[0])
            } else {
                format!("[{}]\n{} = 'x'\n", table.join("."), key[0])
            };
            let told = manifest::findings(
                name,
                Some(b""),
                Some(text.as_bytes()),
                &manifest::ManifestSurroundings {
                    has_others: true,
                    was_there: true,
                    is_test: &|_| false,
                    is_kept: &|_| false,
                    is_taken: &|_| false,
                },
            );
            assert_eq!(told, [format!("[{}] added: {why}", keys.join("."))], "{text}");
        }
    }
}

#[test]
fn what_is_opened_is_told_and_what_only_can_be_reported_is_reported() {
    let policy = policy(&["tests/api.rs", "Cargo.toml"]);
    let modified = |path| change(path, PathChangeKind::Modified);
    let changes = ["tests/api.rs", "Cargo.toml", "build.rs", "src/lib.rs"].map(modified);
    assert_eq!(policy.findings(&changes, |_, _| Some(b"[profile.test]".to_vec())), []);
    let notes = [
        "allow_edit: tests/api.rs changed",
        "allow_edit: Cargo.toml changed",
        "build.rs changed: it runs during the build",
    ];
    assert_eq!(policy.notes(&changes), notes);
}

#[test]
fn a_frozen_policy_is_the_same_again_and_twenty_thousand_tests_cost_no_time() {
    let base = (0..20_000).map(|number| format!("tests/deep/folder/case_{number}.rs")).collect::<Vec<_>>();
    let policy = Policy::freeze(base.iter().cloned(), &[], &[], &[], &mut |_| None).unwrap();
    let text = serde_json::to_string(policy.frozen()).unwrap();
    let thawed = Policy::thaw(serde_json::from_str(&text).unwrap()).unwrap();
    assert_eq!(thawed.frozen(), policy.frozen());
    assert!(base.iter().all(|path| thawed.rule(path).is_some_and(is_a_test)));
    assert!(base.iter().all(|path| thawed.rule(&path.replace("tests", "src")).is_none()));
}

#[test]
fn of_too_many_protected_files_tests_are_left_out_first() {
    let tests = (0..3000).map(|number| format!("tests/case_{number}.rs"));
    let policy = Policy::freeze(tests.clone().chain(["lanes/a.yaml".into()]), &[], &[], &[], &mut |_| None).unwrap();
    let pinned = policy.most_important(tests.chain(["lanes/a.yaml".into()]).collect(), 2000);
    assert_eq!((pinned.len(), pinned.contains(&"lanes/a.yaml".into())), (2000, true));
    assert_eq!(policy.most_important([("tests/case_1.rs".to_owned())].into(), 2000), ["tests/case_1.rs"]);
}
