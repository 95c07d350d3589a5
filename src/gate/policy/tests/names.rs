//! Tests of names that are found before the intended ones, and of tests with unusual names.

use super::super::*;
use crate::lane::parse;
use std::collections::BTreeMap;

const BASE: &[(&str, &str)] = &[
    ("calc.py", ""),
    (
        "package.json",
        "{ \"name\": \"w\", \"exports\": { \".\": \"./src/a.js\", \"./testing\": \"./support/same.js\" }, \"dependencies\": { \"near\": \"1\" } }",
    ),
    ("src/a.js", "const b = require('./b');\n"),
    ("src/b.ts", ""),
    ("src/part/index.ts", ""),
    ("src/factory.js", ""),
    ("src/c.js", "import { make } from './factory';\n"),
    ("bin/tool.js", ""),
    ("support/same.js", ""),
    ("support/other.js", ""),
    (
        "unit/a-test.js",
        "const { same } = require('../support/least');\nconst { make } = require('../src/factory');\nconst kit = require('../support/kit');\nread('data/sums.csv'); read(`rates.json`);\n",
    ),
    ("support/kit/index.js", ""),
    ("unit/cases.json", "[]"),
    ("support/least.js", ""),
    ("data/sums.csv", ""),
    ("data/rates.json", ""),
    ("data/more.csv", ""),
    ("suite/testcalc.py", "import unittest\nfrom helpers.compare import same\n"),
    ("suite/sums.dat", ""),
    ("helpers/compare.py", "from . import deep\n"),
    ("helpers/deep.py", ""),
    ("docs/test_docs.py", ""),
    ("third_party/doctest/doctest.h", ""),
    ("lib/unity.c", ""),
    ("src/unity.c", ""),
    ("docs/guide.md", ""),
    ("testing.py", "def area(): pass\n"),
    ("t/lib/Sums.pm", ""),
    ("features/steps/sums.py", ""),
    ("features/sums.feature", ""),
    ("src/features/list.tsx", ""),
    ("spec/calcSpec.js", ""),
    (
        "CMakeLists.txt",
        "add_library(calc src/calc.c)\nadd_executable(sums\n  probes/sums.c # begins\n  probes/more.c src/calc.c)\nadd_test(NAME sums COMMAND sums)\nadd_executable(tool src/tool.c)\ntarget_include_directories(calc PUBLIC include)\n",
    ),
    ("probes/sums.c", "int main(void) { return 0; }\n"),
    ("probes/more.c", ""),
    ("src/calc.c", ""),
    ("src/tool.c", "int main(void) { return 0; }\n"),
    ("include/calc.h", ""),
    (
        "Makefile",
        "-include conf.d/* more.mk\nall: build/x\ncheck: unit-tests docs | made\n\tsh scripts/check.sh\nunit-tests:\n\t./run\nmade: ; touch made\ndocs:\nother:\n.PHONY: check\n",
    ),
    (
        "scripts/check.sh",
        ". lib/total.sh\n. lib/later.sh\n[ -e env.sh ] && . ./env.sh\n. scripts/common.sh\nsource lib/test-helpers.sh\nsh lib/run.sh\nsource \"$(dirname \"$0\")/../lib/sums.sh\"\n",
    ),
    ("scripts/common.sh", ""),
    ("lib/total.sh", ""),
    ("lib/sums.sh", ""),
    ("lib/run.sh", ""),
    ("lib/test-helpers.sh", ""),
    ("lanes/verify.yaml", ""),
];
const LANE: &str = "steps:\n  - { run: make check }\n  - { run: sh scripts/check.sh }\n";

fn files() -> BTreeMap<&'static str, &'static str> {
    BASE.iter().copied().collect()
}

fn policy() -> Policy {
    let (lane, files) = (parse("verify", "verify.yaml", LANE).unwrap(), files());
    let mut read = |path: &str| files.get(path).map(|text| text.as_bytes().to_vec());
    Policy::freeze(files.keys().map(|path| (*path).to_owned()), &[lane], &[], &[], &mut read).unwrap()
}

fn changes(added: &str, removed: Option<&str>) -> Vec<PathChange> {
    let change = |path: &str, kind| PathChange { path: path.into(), kind };
    [change(added, PathChangeKind::Added)]
        .into_iter()
        .chain(removed.map(|path| change(path, PathChangeKind::Removed)))
        .collect()
}

/// Returns the rule that a new file breaks.
fn added(policy: &Policy, path: &str) -> Option<String> {
    policy.findings(&changes(path, None), |_, _| None).pop().map(|finding| finding.rule)
}

#[test]
fn no_file_is_new_that_would_be_found_before_one_of_the_base() {
    let policy = policy();
    for (path, before) in [
        ("src/b.js", "src/b.ts"),
        ("support/least.mjs", "support/least.js"),
        ("support/least.ts", "support/least.js"),
        ("src/a", "src/a.js"),
        ("src/b", "src/b.ts"),
        ("src/part.js", "src/part/index.ts"),
        ("src/part/index.js", "src/part/index.ts"),
        ("calc/__init__.py", "calc.py"),
        ("calc.abi3.so", "calc.py"),
        ("suite/calc.py", "calc.py"),
        ("suite/calc/__init__.py", "calc.py"),
    ] {
        let reported = format!("it would be found before `{before}`");
        assert_eq!(added(&policy, path), Some(reported), "{path}");
        assert_eq!(
            policy.findings(&changes(path, Some(before)), |_, _| None).len(),
            usize::from(policy.rule(before).is_some()),
            "{path}"
        );
    }
    for path in [
        "src/b.d.ts",
        "src/a.mjs",
        "src/a.json",
        "bin/tool",
        "src/d.js",
        "src/a/index.js",
        "calc.pyc",
        "suite/more.py",
        "docs/a",
    ] {
        assert_eq!(added(&policy, path), None, "{path}");
    }
}

#[test]
fn modules_are_found_in_every_form_that_python_loads() {
    let policy = policy();
    for path in [
        "json.so",
        "json.abi3.so",
        "json.cpython-311-x86_64-linux-gnu.so",
        "json.pyc",
        "json/__init__.abi3.so",
        "suite/readline.py",
        "org.py",
        "apport_python_hook.py",
        "pyvenv.cfg",
        "env/bin/activate",
    ] {
        assert!(added(&policy, path).is_some(), "{path}");
    }
    for path in ["json.txt", "libjson.so", "json.schema.py", "src/deep/json.so"] {
        assert_eq!(added(&policy, path), None, "{path}");
    }
}

#[test]
fn nothing_is_new_that_make_a_shell_or_a_compiler_would_take_for_something_else() {
    let policy = policy();
    for path in ["conf.d/quick", "env.sh"] {
        assert_eq!(added(&policy, path).as_deref(), Some(READS), "{path}");
    }
    for (path, target) in
        [("unit-tests", "unit-tests"), ("unit-tests/a.txt", "unit-tests"), ("made", "made"), ("all", "all")]
    {
        let reported = added(&policy, path).unwrap_or_default();
        assert!(
            reported.contains(&format!("make would treat this path as the built target `{target}`"))
                && reported.contains(".PHONY"),
            "{path}: {reported}"
        );
        assert!(reported.contains("--allow-edit"), "{reported}");
    }
    for path in ["include/assert.h", "include/vector", "include/gtest/gtest.h"] {
        assert_eq!(added(&policy, path).as_deref(), Some(ecosystems::HEADER), "{path}");
    }
    for path in [
        "docs/more.md",
        "other",
        "check",
        "include/larger.h",
        "src/assert.h",
        "conf/quick",
        "env/quick.sh",
        "lib/later.sh",
    ] {
        assert_eq!(added(&policy, path), None, "{path}");
    }
}

#[test]
fn what_only_checks_load_is_theirs_and_a_library_that_a_check_reads_is_the_work() {
    let policy = policy();
    let why = |path: &str| policy.rule(path).map(|rule| rule.why.as_str());
    for path in ["support/least.js", "support/same.js", "helpers/compare.py", "helpers/deep.py"] {
        assert_eq!(why(path), Some(loaded::LOADED), "{path}");
    }
    for path in ["scripts/common.sh", "lib/test-helpers.sh", "lib/run.sh"] {
        assert_eq!(why(path), Some("a script of the gate runs it"), "{path}");
    }
    for path in
        ["src/factory.js", "support/other.js", "src/a.js", "bin/tool.js", "calc.py", "lib/total.sh", "lib/sums.sh"]
    {
        assert_eq!(why(path), None, "{path}");
    }
    let modified = |path: &str| PathChange { path: path.into(), kind: PathChangeKind::Modified };
    let notes = policy.notes(
        &["lib/total.sh", "lib/sums.sh", "src/a.js", "data/sums.csv", "data/rates.json", "data/more.csv"].map(modified),
    );
    let reported = [
        "lib/total.sh changed: a check of the gate reads it, and it is in no folder of scripts or tests",
        "lib/sums.sh changed: a check of the gate reads it, and it is in no folder of scripts or tests",
        "data/sums.csv changed: tests of the base name it",
        "data/rates.json changed: tests of the base name it",
    ];
    assert_eq!(notes, reported);
}

#[test]
fn tests_are_found_as_their_runners_find_them_and_folders_of_tests_are_whole() {
    let policy = policy();
    let why = |path: &str| policy.rule(path).map(|rule| rule.why.as_str());
    for path in [
        "unit/a-test.js",
        "unit/cases.json",
        "suite/testcalc.py",
        "suite/sums.dat",
        "t/lib/Sums.pm",
        "features/steps/sums.py",
        "features/sums.feature",
        "spec/calcSpec.js",
        "probes/sums.c",
        "docs/test_docs.py",
        "third_party/doctest/doctest.h",
        "lib/unity.c",
    ] {
        assert_eq!(why(path), Some(TEST), "{path}");
    }
    for path in [
        "src/unity.c",
        "docs/guide.md",
        "testing.py",
        "src/features/list.tsx",
        "src/calc.c",
        "src/tool.c",
        "data/sums.csv",
    ] {
        assert_eq!(why(path), None, "{path}");
    }
}

#[test]
fn a_package_with_a_test_beside_its_code_is_the_product() {
    let files = BTreeMap::from([
        ("checks/__init__.py", "def helps():\n    pass\n"),
        ("checks/selftest.py", "import unittest\n\nfrom calc import add\n"),
        ("lib/calc/__init__.py", "def add(a, b):\n    return a + b\n"),
        ("lib/calc/selftest.py", "import unittest\n\nfrom calc import add\n"),
    ]);
    let run = "python3 -m unittest lib/calc/selftest.py checks/selftest.py";
    let lane = parse("verify", "verify.yaml", &format!("steps: [{{ run: {run} }}]")).unwrap();
    let mut read = |path: &str| files.get(path).map(|text| text.as_bytes().to_vec());
    let policy = Policy::freeze(files.keys().map(|path| (*path).to_owned()), &[lane], &[], &[], &mut read).unwrap();
    let kept: Vec<&&str> = files.keys().filter(|path| policy.rule(path).is_some()).collect();
    assert_eq!(kept, [&"checks/__init__.py", &"checks/selftest.py", &"lib/calc/selftest.py"]);
}

#[test]
fn folders_of_tests_with_short_names_are_whole() {
    let files = BTreeMap::from([
        ("bin/sum", ""),
        ("calc.py", "def add(a, b): return a + b\n"),
        ("t/00-sum.t", "#!/bin/sh\n. t/lib/help.sh\n"),
        ("t/lib/help.sh", ""),
        ("t/in.txt", "1"),
        ("qa/test_sums.py", "import calc\nfrom cases import CASES\n"),
        ("qa/cases.py", "CASES = [1]\n"),
    ]);
    let lane = parse("verify", "verify.yaml", "steps: [{ run: prove -r t && python3 -m pytest }]").unwrap();
    let mut read = |path: &str| files.get(path).map(|text| text.as_bytes().to_vec());
    let policy = Policy::freeze(files.keys().map(|path| (*path).to_owned()), &[lane], &[], &[], &mut read).unwrap();
    let kept = files.keys().filter(|path| policy.rule(path).is_some_and(|rule| rule.why == TEST));
    assert_eq!(kept.count(), 5);
}

#[test]
fn manifests_lead_to_what_they_led_to_and_take_no_name_of_what_is_used() {
    let policy = policy();
    let reported = |path: &str, was: Option<&str>, is: &str| {
        let kind = if was.is_some() { PathChangeKind::Modified } else { PathChangeKind::Added };
        let contents = |_: &str, side| match side {
            TreeSide::Base => was.map(|text| text.as_bytes().to_vec()),
            TreeSide::Candidate => Some(is.as_bytes().to_vec()),
        };
        policy.findings(&[PathChange { path: path.into(), kind }], contents).pop().map(|finding| finding.rule)
    };
    let (package, named) = (files()["package.json"], "[name] changed: it would be used instead of a dependency");
    let edited = |from: &str, to: &str| reported("package.json", Some(package), &package.replace(from, to));
    assert_eq!(edited("\"w\"", "\"near\"").as_deref(), Some(named));
    assert_eq!(edited("\"w\"", "\"jest\"").as_deref(), Some(named));
    let leads = "[exports../testing] changed: it replaces dependencies with other code";
    assert_eq!(edited("./support/same.js", "./src/a.js").as_deref(), Some(leads));
    for (from, to) in
        [("\"w\"", "\"other\""), ("./src/a.js", "./src/c.js"), ("{ \".\"", "{ \"./c\": \"./src/c.js\", \".\"")]
    {
        assert_eq!(edited(from, to), None, "{to}");
    }
    let named = "[name] added: it would be used instead of a dependency";
    assert_eq!(reported("unit/package.json", None, "{ \"name\": \"near\" }").as_deref(), Some(named));
    let imports = "[imports] added: it replaces dependencies with other code";
    assert_eq!(reported("unit/package.json", None, "{ \"imports\": {} }").as_deref(), Some(imports));
    let main = "[main] added: it replaces dependencies with other code";
    assert_eq!(reported("support/kit/package.json", None, "{ \"main\": \"quiet.js\" }").as_deref(), Some(main));
    assert_eq!(reported("src/package.json", None, "{ \"main\": \"a.js\" }"), None);
    assert_eq!(reported("tools/new/package.json", None, "{ \"name\": \"new\", \"imports\": {} }"), None);
}
