//! Files that would be found, loaded or run in the place of the intended ones.

use super::super::*;
use crate::lane::parse;
use std::collections::BTreeMap;

const BASE: &[(&str, &str)] = &[
    ("app.py", ""),
    ("lib/own.py", ""),
    ("extras/timing.py", ""),
    ("extras/other.py", ""),
    ("support/hooks.js", ""),
    ("support/plugin/__init__.py", ""),
    ("support/setup.ts", ""),
    ("src/pkg/__init__.py", ""),
    ("src/main.js", ""),
    ("unit/test_a.py", "import app\n"),
    ("packaged/__init__.py", ""),
    ("packaged/test_b.py", ""),
    ("tests/conftest.py", "pytest_plugins = [\n    \"support.plugin\",\n]\n"),
    ("requirements.txt", "# pinned\nrequests==2.31 ; python_version > '3'\n-r more.txt\nPyYAML\n"),
    (
        "pyproject.toml",
        "[project]\nname = 'own'\ndependencies = ['rich>=13', 'own']\n[project.scripts]\nown = 'own:main'\n",
    ),
    (
        "package.json",
        r#"{"name":"w","scripts":{"test":"mocha --require ./support/hooks.js"},"dependencies":{"near":"1"}}"#,
    ),
    ("jest.config.js", "module.exports = { setupFiles: ['<rootDir>/support/setup.ts'], roots: ['src'] };\n"),
    ("node_modules/near/index.js", ""),
    ("third/.cargo-checksum.json", "{}"),
    ("third/src/lib.rs", ""),
    ("check/Cargo.toml", "[package]\nname = 'check'\n"),
    ("go.mod", "module m\n\nrequire a/b v1.0.0\n"),
    ("Makefile", "-include settings local.d/flags\ninclude $(DEPS)\ncheck:\n\tsh scripts/check.sh\n"),
    ("scripts/check.sh", "PATH=\"$PWD/bin:$PATH\"\ndiff a b\n"),
    ("bin/tool", ""),
    ("lanes/verify.yaml", ""),
];
const LANE: &str =
    "env: { PYTHONPATH: lib }\nsteps:\n  - { run: python3 -m pytest -q -p extras.timing }\n  - { run: make check }\n";

fn files() -> BTreeMap<&'static str, &'static str> {
    BASE.iter().copied().collect()
}

fn policy() -> Policy {
    let (lane, files) = (parse("verify", "verify.yaml", LANE).unwrap(), files());
    let mut read = |path: &str| files.get(path).map(|text| text.as_bytes().to_vec());
    Policy::freeze(files.keys().map(|path| (*path).to_owned()), &[lane], &[], &[], &mut read).unwrap()
}

/// Returns the rule that a new file breaks.
fn added(policy: &Policy, path: &str, text: &str) -> Option<String> {
    let changes = [PathChange { path: path.into(), kind: PathChangeKind::Added }];
    let contents = |_: &str, side| (side == TreeSide::Candidate).then(|| text.as_bytes().to_vec());
    policy.findings(&changes, contents).pop().map(|finding| finding.rule)
}

#[test]
fn no_module_is_new_that_would_be_found_before_the_one_that_is_meant() {
    let policy = policy();
    for path in [
        "json.py",
        "json/__init__.py",
        "json",
        "unit/random.py",
        "lib/argparse.py",
        "requests.py",
        "yaml.py",
        "rich/__init__.py",
        "src/pathlib.py",
        "sitecustomize/__init__.py",
        "iniconfig.py",
    ] {
        assert_eq!(added(&policy, path, "").as_deref(), Some(SHADOWED), "{path}");
    }
    for path in
        ["json/data.json", "packaged/types.py", "src/pkg/json.py", "own/__init__.py", "helpers.py", "more/queue.py"]
    {
        assert_eq!(added(&policy, path, ""), None, "{path}");
    }
    let of_node = Policy::freeze(["src/main.js".to_owned()], &[], &[], &[], &mut |_| None).unwrap();
    assert_eq!(added(&of_node, "types.py", ""), None, "without Python nothing looks for it");
}

#[test]
fn what_runners_load_stays_as_it_is_and_new_tests_load_nothing() {
    let policy = policy();
    for path in ["extras/timing.py", "support/plugin/__init__.py", "support/hooks.js", "support/setup.ts"] {
        assert_eq!(policy.rule(path).map(|rule| rule.why.as_str()), Some(loaded::LOADED), "{path}");
    }
    for path in ["extras/other.py", "src/main.js", "lib/own.py"] {
        assert_eq!(policy.rule(path), None, "{path}");
    }
    let loads = "import x\npytest_plugins = ('report',)\n";
    assert_eq!(added(&policy, "unit/test_new.py", loads).as_deref(), Some(loaded::LOADS));
    assert_eq!(added(&policy, "unit/test_new.py", "def test_new():\n    pass\n"), None);
    assert_eq!(added(&policy, "doc/plugins.md", loads), None);
    let fixture = "import pytest\n\n\n@pytest.fixture\ndef one():\n    return 1\n";
    assert_eq!(added(&policy, "unit/new/conftest.py", fixture), None);
    for path in ["conftest.py", "unit/conftest.py", "src/pkg/conftest.py"] {
        assert_eq!(added(&policy, path, fixture).as_deref(), Some(TESTS), "{path}");
    }
    for more in ["def pytest_sessionfinish(session):\n    pass\n", loads, "import sys\n", "app.total = setattr\n"] {
        assert_eq!(added(&policy, "unit/new/conftest.py", more).as_deref(), Some(TESTS), "{more}");
    }
    assert_eq!(policy.forbids_link("unit/new/conftest.py"), Some(TESTS));
    let mocks = "test runners use it instead of what the tests ask for";
    assert_eq!(added(&policy, "src/__mocks__/main.js", "").as_deref(), Some(mocks));
}

#[test]
fn code_of_others_stays_and_nothing_comes_before_it() {
    let policy = policy();
    for path in ["node_modules/near/index.js", "node_modules/near/new.js", "third/src/lib.rs"] {
        assert_eq!(policy.rule(path).map(|rule| rule.why.as_str()), Some(vendored::VENDORED), "{path}");
    }
    for path in ["src/node_modules/near/index.js", "unit/node_modules"] {
        assert_eq!(added(&policy, path, "").as_deref(), Some(vendored::NEARER), "{path}");
    }
    assert_eq!(added(&policy, "examples/one/node_modules/pad/index.js", ""), None, "no code of the base looks there");
    assert_eq!(added(&policy, "vendor/modules.txt", "").as_deref(), Some(vendored::REPLACES));
    assert_eq!(policy.forbids_link("check"), Some(vendored::LINKED));
    assert_eq!(policy.forbids_link("third"), None, "what is in it stays in any case");
}

#[test]
fn no_link_is_in_the_place_of_a_folder_in_which_nothing_may_stand_in() {
    let policy = policy();
    for (path, is_refused) in [
        ("lib", true),
        ("src", true),
        ("unit", true),
        ("bin", true),
        ("local.d", true),
        ("lib/own", false),
        ("src/pkg", false),
        ("packaged", false),
        ("doc", false),
    ] {
        assert_eq!(policy.forbids_link(path), is_refused.then_some(shadows::LINKED), "{path}");
    }
    let of_perl = ["lib/Sums.pm", "lib/Test2/Own.pm", "t/a.t"].map(str::to_owned);
    let lane = || parse("verify", "verify.yaml", "steps: [{ run: prove -l t }]").unwrap();
    let policy = Policy::freeze(of_perl.clone(), &[lane()], &[], &[], &mut |_| None).unwrap();
    for (path, is_refused) in
        [("lib", true), ("lib/Test", true), ("lib/TAP", true), ("Test2", true), ("lib/Sums", false), ("share", false)]
    {
        assert_eq!(policy.forbids_link(path), is_refused.then_some(shadows::LINKED), "{path}");
    }
    let opened = Policy::freeze(of_perl, &[lane()], &[], &["lib/Test".into()], &mut |_| None).unwrap();
    assert_eq!(opened.forbids_link("lib/Test"), None);
}

#[test]
fn folders_of_installed_packages_are_protected_anywhere_and_programs_by_name() {
    let policy = policy();
    let plugin = "[pytest11]\nquiet = report\n";
    let reported = Some("[pytest11] added: it controls how tests run");
    assert_eq!(added(&policy, "quiet-1.0.dist-info/entry_points.txt", plugin).as_deref(), reported);
    assert_eq!(added(&policy, "a/quiet.egg-info/entry_points.txt", plugin).as_deref(), reported);
    assert_eq!(added(&policy, "own.egg-info/entry_points.txt", "[console_scripts]\nown = own:main\n"), None);
    let scripts = |name: &str| {
        let text =
            files()["pyproject.toml"].replace("own = 'own:main'", &format!("own = 'own:main'\n{name} = 'own:main'"));
        let changes = [PathChange { path: "pyproject.toml".into(), kind: PathChangeKind::Modified }];
        let contents = |path: &str, side| match side {
            TreeSide::Base => files().get(path).map(|text| text.as_bytes().to_vec()),
            TreeSide::Candidate => Some(text.as_bytes().to_vec()),
        };
        policy.findings(&changes, contents).pop().map(|finding| finding.rule)
    };
    let reported = format!("[project.scripts.pytest] added: {SHADOWED}");
    assert_eq!((scripts("pytest"), scripts("more")), (Some(reported), None));
}

#[test]
fn no_program_is_new_on_a_path_of_the_gate_and_nothing_that_a_makefile_waits_for() {
    let policy = policy();
    for path in ["settings", "local.d/flags"] {
        assert_eq!(added(&policy, path, "").as_deref(), Some(READS), "{path}");
    }
    let reported = "the gate would run this file instead of the program `diff`: rename the file, or allow the path with `--allow-edit`";
    assert_eq!(added(&policy, "bin/diff", "").as_deref(), Some(reported));
    assert!(added(&policy, "make", "").is_some_and(|reported| reported.contains("`make`")));
    for path in ["bin/total", "tools/diff", "settings.yaml"] {
        assert_eq!(added(&policy, path, ""), None, "{path}");
    }
}

#[test]
fn new_dependencies_are_listed_with_manifest_and_name_unless_in_the_workspace() {
    let policy = policy();
    let now: BTreeMap<&str, &str> = [
        ("pyproject.toml", "[project]\ndependencies = ['rich>=13', 'attrs']\n"),
        ("package.json", r#"{"dependencies":{"near":"2","left-pad":"^1","own":"file:vendor/own"}}"#),
        ("check/Cargo.toml", "[dependencies]\nserde = '1'\nhalf = { path = 'half' }\n"),
        ("go.mod", "module m\n\nrequire (\n\ta/b v1.1.0\n\tc/d v0.1.0\n)\n"),
    ]
    .into();
    let changes: Vec<PathChange> =
        now.keys().map(|path| PathChange { path: (*path).into(), kind: PathChangeKind::Modified }).collect();
    let contents = |path: &str, side| match side {
        TreeSide::Base => files().get(path).map(|text| text.as_bytes().to_vec()),
        TreeSide::Candidate => now.get(path).map(|text| text.as_bytes().to_vec()),
    };
    let reported = policy.new_dependencies(&changes, contents);
    let expected =
        [("check/Cargo.toml", "serde"), ("go.mod", "c/d"), ("package.json", "left-pad"), ("pyproject.toml", "attrs")];
    assert_eq!(
        reported.into_iter().collect::<Vec<_>>(),
        expected.map(|(path, name)| (path.to_owned(), name.to_owned()))
    );
}

#[test]
fn no_source_declares_a_package_that_tests_use_and_the_project_has_not() {
    let files: BTreeMap<&str, &str> = [
        ("src/main/java/com/acme/app/App.java", "package com.acme.app;\n\nclass App {}\n"),
        ("src/main/kotlin/Main.kt", "package com.acme.kotlin\n\nfun main() {}\n"),
        (
            "src/test/java/com/acme/app/AppTest.java",
            "package com.acme.app;\nimport static org.acme.checks.Facts.same;\nimport com.acme.kotlin.MainKt;\nimport java.util.List;\nimport com.acme.generated.Wire;\n",
        ),
    ]
    .into();
    let lane = parse("verify", "verify.yaml", "steps: [{ run: mvn test }]").unwrap();
    let mut read = |path: &str| files.get(path).map(|text| text.as_bytes().to_vec());
    let policy = Policy::freeze(files.keys().map(|path| (*path).to_owned()), &[lane], &[], &[], &mut read).unwrap();
    for (path, text, package) in [
        ("src/main/java/org/assertj/core/api/Assertions.java", "", "org.assertj"),
        ("src/main/java/Assertions.java", "// ours\npackage org.assertj.core.api;\n", "org.assertj"),
        ("src/main/kotlin/a/Facts.kt", "package org.acme.checks\n", "org.acme"),
        ("src/main/resources/org/junit/jupiter/api/Assertions.class", "", "org.junit"),
        ("src/main/java/org/junit/runner/Runner.java", "package org.junit.runner;\n", "org.junit"),
    ] {
        let message = format!("it would be used instead of `{package}`, which tests use");
        assert_eq!(added(&policy, path, text), Some(message), "{path}");
    }
    for (path, text) in [
        ("src/main/java/com/acme/app/More.java", "package com.acme.app;\nimport org.assertj.core.api.Assertions;\n"),
        ("src/main/java/com/acme/generated/Wire.java", "package com.acme.generated;\n"),
        ("src/main/kotlin/util/Util.kt", "package com.acme.kotlin.util\n"),
        ("src/test/java/com/acme/app/MoreTest.java", "package com.acme.app;\nimport org.junit.jupiter.api.Test;\n"),
    ] {
        assert_eq!(added(&policy, path, text), None, "{path}");
    }
}

#[test]
fn no_new_test_of_go_decides_whether_those_of_the_base_run() {
    let lane = parse("verify", "verify.yaml", "steps: [{ run: go test ./... }]").unwrap();
    let base = ["a.go", "a_test.go", "sub/b.go"].map(str::to_owned);
    let policy = Policy::freeze(base, &[lane], &[], &[], &mut |_| None).unwrap();
    let main = "package a\n\nfunc TestMain(m *testing.M) { os.Exit(0) }\n";
    assert!(added(&policy, "main_test.go", main).is_some_and(|rule| rule.contains("TestMain")));
    assert_eq!(added(&policy, "more_test.go", "package a\n\nfunc TestMainLoop(t *testing.T) {}\n"), None);
    assert_eq!(added(&policy, "sub/b_test.go", main), None);
}

#[test]
fn no_source_of_php_declares_a_namespace_of_a_test_runner() {
    let php = [("src/Sums.php", "<?php\nnamespace Own;\n"), ("tests/SumsTest.php", "<?php\nnamespace Own\\Tests;\n")];
    let lane = parse("verify", "verify.yaml", "steps: [{ run: vendor/bin/phpunit }]").unwrap();
    let mut read = |path: &str| php.iter().find(|(own, _)| *own == path).map(|(_, text)| text.as_bytes().to_vec());
    let policy = Policy::freeze(php.map(|(path, _)| path.to_owned()), &[lane], &[], &[], &mut read).unwrap();
    for (path, text, reported) in [
        ("src/More.php", "<?php namespace PHPUnit\\Framework\\Constraint;\nclass IsEqual {}\n", Some("`PHPUnit`")),
        ("src/More.php", "<?php\nnamespace Own { class A {} }\nnamespace Mockery { class B {} }\n", Some("`Mockery`")),
        ("src/More.php", "<?php\nNameSpace\n/* a */ phpUNIT\\Framework;\nclass TestCase {}\n", Some("`PHPUnit`")),
        ("src/more.inc", "<?php\nnamespace PHPUnit\\Framework;\nclass TestCase {}\n", Some("`PHPUnit`")),
        ("src/More.PHP", "<?php\nnamespace // a\n  pest;\n", Some("`Pest`")),
        ("src/More.php", "<?php\nnamespace Own\\PHPUnit;\nuse PHPUnit\\Framework\\TestCase;\n", None),
        ("src/more.inc", "<?php\nnamespace Own;\n// namespaces of PHPUnit\n", None),
        ("src/More.php", "<?php\nnamespace Own;\n// not in the namespace Pest\n$a = 'namespace PHPUnit';\n", None),
    ] {
        let rule = added(&policy, path, text);
        assert_eq!(rule.is_some(), reported.is_some(), "{text}");
        assert!(rule.unwrap_or_default().contains(reported.unwrap_or_default()));
    }
}
