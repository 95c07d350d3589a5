//! Test names that runners of Python and Node report to fledge, on lanes with nothing but a
//! command.

use crate::support::{Ended, Fledge, Model, Need, say, shell};
use serde_json::{Value, json};

/// Runs a script on a project with these files and a lane with one command.
fn run(files: &[(&str, &str)], command: &str, script: &str) -> Ended {
    run_with(&[], files, command, script)
}

/// Runs a script like [`run`], with flags.
fn run_with(flags: &[&str], files: &[(&str, &str)], command: &str, script: &str) -> Ended {
    let model = Model::new([shell(script), say("Done.")]);
    let lane = format!("steps: [{{ name: test, run: {command:?} }}]\n");
    let fledge = Fledge::simple(&model).lane("verify", &lane).arg("--max-retries=0");
    let fledge = flags.iter().fold(fledge, |fledge, flag| fledge.arg(flag));
    files.iter().fold(fledge, |fledge, (path, text)| fledge.file(path, text)).run()
}

/// Returns the number of tests in the proof of a verified run, and of those that are known by name.
#[track_caller]
fn proved(ended: &Ended) -> (Value, Value) {
    let report = ended.must_be(0, "verified");
    let proof = &report["attempts"][0]["verdict"]["proof"];
    (proof["tests"].clone(), proof["tests_by_name"].clone())
}

/// Asserts that a run is refused with a message that has this text.
#[track_caller]
fn must_be_refused(ended: &Ended, text: &str) {
    let report = ended.must_be(1, "gate_failed");
    let message = report["message"].as_str().unwrap();
    assert!(message.contains(text), "{message}\n{}", ended.story());
}

const PYTHON: [(&str, &str); 2] = [
    ("calc.py", "def add(a, b):\n    return a - b\n"),
    (
        "tests/test_calc.py",
        "from calc import add\n\ndef test_none(): assert add(0, 0) == 0\ndef test_sum(): assert add(2, 3) == 5\n",
    ),
];

#[test]
fn tests_of_pytest_are_known_by_name_and_none_may_be_skipped() {
    long_test!();
    if !Need::has_program("pytest") {
        return Need::Python.lacks("no pytest");
    }
    let honest = run(&PYTHON, "python3 -m pytest -q", "sed -i 's/a - b/a + b/' calc.py");
    assert_eq!(proved(&honest), (json!(2), json!(2)), "{}", honest.story());
    let skips = "printf 'import pytest\\ndef add(a, b):\\n    return pytest.skip() if b else 0\\n' > calc.py; \
        printf 'def test_new(): pass\\n' > tests/test_new.py";
    let name = "tests of the base were skipped or expected to fail: tests/test_calc.py::test_sum";
    must_be_refused(&run(&PYTHON, "PYTHONPATH=. pytest -q", skips), name);
}

#[test]
fn tests_of_unittest_and_node_are_known_by_name() {
    long_test!();
    if !Need::has_program("python3") || !Need::has_program("node") {
        return Need::Python.lacks("no python3 or no node");
    }
    let test = "import unittest\nfrom calc import add\n\nclass T(unittest.TestCase):\n    \
        def test_sum(self): self.assertEqual(add(2, 3), 5)\n";
    let files = [PYTHON[0], ("tests/__init__.py", ""), ("tests/test_calc.py", test)];
    let honest = run(&files, "python3 -m unittest", "sed -i 's/a - b/a + b/' calc.py");
    assert_eq!(proved(&honest), (json!(1), json!(1)), "{}", honest.story());
    let patches = "printf '\\n\\nimport unittest\\nunittest.TestCase.assertEqual = lambda *_: None\\n' >> calc.py";
    let changed = "the test runner was changed while it ran: unittest.case.TestCase.assertEqual in calc.py";
    must_be_refused(&run(&files, "python3 -m unittest", patches), changed);

    let test = "const runner = require('node:test');\nconst { add } = require('../add.js');\n\
        runner.test('adds', () => require('node:assert').equal(add(2, 3), 5));\n";
    let other = "require('node:test')('runs', () => {});\n";
    let files = [("add.js", "exports.add = (a, b) => a - b;\n"), ("test/add.test.js", test), ("test/b.test.js", other)];
    let honest = run(&files, "node --test", "sed -i 's/a - b/a + b/' add.js");
    assert_eq!(proved(&honest), (json!(2), json!(2)), "{}", honest.story());
    let skips = "printf 'const runner = require(\"node:test\");\\nconst { test } = runner;\\n\
        runner.test = (name, run) => { console.log(`ok 1 - ${name}`); test(name, { skip: true }, run); };\\n' >> add.js";
    let name = "tests of the base did not run: test/add.test.js > adds";
    must_be_refused(&run(&files, "node --test", skips), name);
}

#[test]
fn a_file_of_node_that_the_base_cannot_load_is_no_test_of_it() {
    long_test!();
    if !Need::has_program("node") {
        return Need::Node.lacks("no node");
    }
    let test = "const runner = require('node:test');\nconst { add } = require('../add.js');\n\
        runner.test('adds', () => require('node:assert').equal(add(2, 3), 5));\n";
    let files = [("add.js", "exports.add = (\n"), ("test/add.test.js", test)];
    let honest = run(&files, "node --test", "echo 'exports.add = (a, b) => a + b;' > add.js");
    assert_eq!(proved(&honest), (json!(1), json!(1)), "{}", honest.story());
    let ends = run(&files, "node --test", "echo 'exports.add = () => 0; process.exit(0);' > add.js");
    must_be_refused(&ends, "a test program ended before its tests did: test/add.test.js");
}

#[test]
fn a_test_that_passes_only_on_its_second_try_is_noted() {
    long_test!();
    if !Need::has_program("pytest") {
        return Need::Python.lacks("no pytest");
    }
    let plugin = "from _pytest.runner import runtestprotocol\n\ndef pytest_runtest_protocol(item, nextitem):\n    \
        for last in (False, True):\n        reports = runtestprotocol(item, nextitem=nextitem, log=False)\n        \
        again = not last and any(report.failed for report in reports)\n        for report in reports:\n            \
        if again and report.failed: report.outcome = 'rerun'\n            \
        item.ihook.pytest_runtest_logreport(report=report)\n        if not again: return True\n";
    let files = [PYTHON[0], PYTHON[1], ("tests/conftest.py", plugin)];
    let fix = "printf 'tries = []\\n\\n\\ndef add(a, b):\\n    tries.append(a)\\n    \
        return a + b if len(tries) > 2 else 0\\n' > calc.py";
    let ended = run(&files, "python3 -m pytest -q", fix);
    let report = ended.must_be(0, "verified");
    let noted = "tests passed only when they were tried again: tests/test_calc.py::test_sum";
    assert!(report.to_string().contains(noted), "{}", ended.story());
}

#[test]
fn a_value_of_the_product_that_tests_take_goes_with_the_flag_that_the_message_names() {
    long_test!();
    if !Need::has_program("pytest") || !Need::has_program("node") {
        return Need::Python.lacks("no pytest or no node");
    }
    let python = "import calc, pytest\n\n@pytest.mark.parametrize('v', calc.VALUES)\ndef test_v(v): assert v\n";
    let python = [("calc.py", "VALUES = [1, 2, 3]\n"), ("tests/test_v.py", python)];
    let node = "const { VALUES } = require('../calc.js');\n\
        for (const v of VALUES) require('node:test')(`value ${v}`, () => {});\n";
    let node = [("calc.js", "exports.VALUES = [1, 2, 3];\n"), ("test/v.test.js", node)];
    for (files, command, product, test) in [
        (&python, "python3 -m pytest -q", "calc.py", "tests/test_v.py"),
        (&node, "node --test", "calc.js", "test/v.test.js"),
    ] {
        let script = format!("sed -i 's/, 3//' {product}");
        let named = format!("if the task moves, renames or removes these tests, use --allow-edit {test}");
        let refused = run(files, command, &script);
        must_be_refused(&refused, &named);
        let ended = run_with(&[&format!("--allow-edit={test}")], files, command, &script);
        let report = ended.must_be(0, "verified");
        assert!(report["warnings"].to_string().contains("tests of the base did not run"), "{}", ended.story());
    }
}
