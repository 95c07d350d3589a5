//! Reports of real test runners.

use super::*;
use crate::lane::ReportedState::{self, ExpectedToFail, Failed, Passed, Retried, Skipped};
use crate::lane::parse;
use crate::lane_runner::run_lane;
use crate::process::find_program;
use std::collections::BTreeSet;
use tokio_util::sync::CancellationToken;

/// Runs a step in a folder with these files, and returns its exit code, its output, and its report.
async fn run(command: &str, files: &[(&str, &str)]) -> (Option<i32>, String, RunnerReport) {
    let folder = crate::test_support::temp_dir();
    let [root, logs, reporters] = ["root", "logs", "reporters"].map(|name| folder.path().join(name));
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let lane = parse("v", "v.yaml", &format!("steps: [{{ run: {command:?} }}]")).unwrap();
    let env = ["PATH", "HOME"].map(|name| (name.to_owned(), crate::test_support::variable(name)));
    let mut room = LaneRoom::new(root, env.into(), logs, 1);
    room.reporters = Some(reporters.clone());
    let outcome = run_lane(&lane, &room, &CancellationToken::new(), &|_| {}).await;
    assert_eq!(fs::read_dir(&reporters).unwrap().count(), 0, "the folder of the reporters stays");
    let step = &outcome.steps[0];
    let output = step.log.as_ref().map_or(String::new(), |log| fs::read_to_string(log).unwrap());
    (step.exit_code, output, outcome.runner_reports[0].clone().unwrap())
}

fn states(report: &RunnerReport) -> Vec<(&str, ReportedState)> {
    let mut all: Vec<_> = report.tests.iter().map(|test| (test.name.as_str(), test.state)).collect();
    all.sort_by_key(|(name, _)| *name);
    all
}

fn has(program: &str) -> bool {
    find_program(program, &crate::test_support::variable("PATH")).is_some()
}

const TESTS: &str = "import os, sys, pytest
def test_passes(): pass
def test_fails(): assert 0
def test_skipped(): pytest.skip('no')
@pytest.mark.xfail
def test_expected(): assert 0
@pytest.mark.parametrize('n', [1, 2])
def test_each(n): pass
def test_environment():
    assert 'PYTHONPATH' not in os.environ and not any('reporters' in path for path in sys.path)
";

#[tokio::test]
async fn pytest_reports_each_test_whatever_its_options() {
    if !has("pytest") {
        return;
    }
    let expected = [
        ("t/test_a.py::test_each[1]", Passed),
        ("t/test_a.py::test_each[2]", Passed),
        ("t/test_a.py::test_environment", Passed),
        ("t/test_a.py::test_expected", ExpectedToFail),
        ("t/test_a.py::test_fails", Failed),
        ("t/test_a.py::test_passes", Passed),
        ("t/test_a.py::test_skipped", Skipped),
    ];
    let config = ("pytest.ini", "[pytest]\naddopts = -q -p no:cacheprovider -W error\n");
    for command in ["pytest", "python3 -m pytest -x --maxfail=9", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 pytest"] {
        let (code, output, report) = run(command, &[("t/test_a.py", TESTS), config]).await;
        assert_eq!((code, states(&report)), (Some(1), expected.to_vec()), "{output}");
        assert_eq!((report.broken, report.changed.len()), (0, 0), "{:?}", report.changed);
    }
    let files = [("t/test_a.py", "import os\ndef test_a(): assert os.environ['PYTHONPATH'] == 'src'\n")];
    let (code, output, report) = run("PYTHONPATH=src pytest -q", &files).await;
    assert_eq!((code, report.tests.len()), (Some(0), 1), "{output}");
}

#[tokio::test]
async fn pytest_ended_by_the_product_has_not_ended_by_itself() {
    if !has("pytest") {
        return;
    }
    let files = [("test_a.py", "import os\ndef test_a(): pass\ndef test_b(): os._exit(0)\n")];
    let (code, _, report) = run("pytest -q", &files).await;
    assert_eq!((code, report.broken, states(&report)), (Some(0), 1, vec![("test_a.py::test_a", Passed)]));
}

#[tokio::test]
async fn functions_of_pytest_that_the_product_replaces_are_named() {
    if !has("pytest") {
        return;
    }
    let product = "import _pytest.python\nreal = _pytest.python.Function.runtest\n\
        def runtest(self):\n    if self.name != 'test_b': real(self)\n_pytest.python.Function.runtest = runtest\n";
    let tests = "import product\ndef test_a(): pass\ndef test_b(): assert 0\n";
    let hooks = "def pytest_collection_modifyitems(items): pass\n";
    let files = [("test_a.py", tests), ("product.py", product), ("conftest.py", hooks)];
    let (code, output, report) = run("python3 -m pytest -q", &files).await;
    let changed: Vec<&str> = report.changed.iter().map(String::as_str).collect();
    let expected = ["_pytest.python.Function.runtest in product.py", "pytest_collection_modifyitems in conftest.py"];
    assert_eq!((code, changed), (Some(0), expected.to_vec()), "{output}");
}

#[tokio::test]
async fn unittest_reports_each_test() {
    if !has("python3") {
        return;
    }
    let tests = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n    \
        @unittest.expectedFailure\n    def test_b(self): self.fail()\n    def test_c(self): self.skipTest('no')\n";
    let (code, output, report) = run("python3 -m unittest -v", &[("test_a.py", tests)]).await;
    let expected = [("test_a.T.test_a", Passed), ("test_a.T.test_b", ExpectedToFail), ("test_a.T.test_c", Skipped)];
    assert_eq!((code, states(&report), report.broken), (Some(0), expected.to_vec(), 0), "{output}");
    assert_eq!(report.changed, BTreeSet::new(), "{output}");
    let product = "import unittest\nunittest.TestCase.assertEqual = lambda *_: None\n";
    let tests = "import product, unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(1, 2)\n";
    let (code, output, report) = run("python3 -m unittest", &[("test_a.py", tests), ("product.py", product)]).await;
    let changed = BTreeSet::from(["unittest.case.TestCase.assertEqual in product.py".to_owned()]);
    assert_eq!((code, report.changed), (Some(0), changed), "{output}");
}

#[tokio::test]
async fn node_reports_each_test_and_prints_what_it_printed_before() {
    if !has("node") {
        return;
    }
    let tests = "const { test, describe, it } = require('node:test');\n\
        test('a', () => {});\ntest('b', { skip: true }, () => {});\ndescribe('s', () => { it('c', () => {}); });\n\
        test('d', () => { require('node:assert').ok(!process.env.NODE_OPTIONS); });\n";
    let expected = [
        ("t/a.test.js > a", Passed),
        ("t/a.test.js > b", Skipped),
        ("t/a.test.js > d", Passed),
        ("t/a.test.js > s > c", Passed),
    ];
    for (option, sign) in [("", "# pass 3"), ("--test-reporter=spec", "pass 3"), ("--test-reporter dot", "....")] {
        let (code, output, report) = run(&format!("node --test {option}"), &[("t/a.test.js", tests)]).await;
        assert_eq!((code, states(&report), report.broken), (Some(0), expected.to_vec(), 0), "{output}");
        assert!(output.contains(sign), "{output}");
    }
}

/// The parts of Mocha 3 that the reporter uses: its tests have no `titlePath`.
const MOCHA: [(&str, &str); 2] = [
    (
        "node_modules/mocha/lib/runner.js",
        "module.exports = class Runner extends require('node:events') {
  runTests() {}
  run() {
    const suite = { title: 'is', parent: { title: '' } };
    this.emit('pass', { title: 'a', parent: suite, file: 'test.js' });
    this.emit('pass', { get title() { throw new Error('no title'); }, parent: suite });
    this.emit('fail', { title: 'b', parent: suite, file: 'test.js' });
    this.emit('end');
    process.exitCode = 1;
  }
};",
    ),
    ("node_modules/mocha/bin/_mocha", "const Runner = require('../lib/runner.js');\nnew Runner().run();"),
];

#[tokio::test]
async fn mocha_before_4_reports_each_test_and_a_bad_one_does_not_stop_it() {
    if !has("node") {
        return;
    }
    let (code, output, report) = run("node node_modules/mocha/bin/_mocha", &MOCHA).await;
    let expected = [("test.js > is > a", Passed), ("test.js > is > b", Failed)];
    assert_eq!((code, states(&report), report.broken), (Some(1), expected.to_vec(), 0), "{output}");
    let mut files = MOCHA;
    files[1].1 = "require('../lib/runner.js');\nprocess.exit(0);";
    let (code, output, report) = run("node node_modules/mocha/bin/_mocha", &files).await;
    assert_eq!((code, report.broken), (Some(0), 1), "a file with tests ends the process: {output}");
}

#[tokio::test]
async fn a_failed_try_that_a_plugin_of_pytest_repeats_is_reported() {
    if !has("pytest") {
        return;
    }
    let plugin = "from _pytest.runner import runtestprotocol\n\ndef pytest_runtest_protocol(item, nextitem):\n    \
        for last in (False, True):\n        for report in runtestprotocol(item, nextitem=nextitem, log=False):\n            \
        if report.failed and not last: report.outcome = 'rerun'\n            \
        item.ihook.pytest_runtest_logreport(report=report)\n    return True\n";
    let tests = "tries = []\ndef test_a():\n    tries.append(1)\n    assert len(tries) > 1\n";
    let (code, output, report) = run("pytest -q", &[("test_a.py", tests), ("conftest.py", plugin)]).await;
    let expected = [("test_a.py::test_a", Retried), ("test_a.py::test_a", Passed)];
    assert_eq!((code, states(&report), report.broken), (Some(0), expected.to_vec(), 0), "{output}");
}

#[test]
fn variables_keep_what_they_had() {
    assert_eq!((joined("/r", ':', ""), joined("/r", ':', "src:lib")), ("/r".into(), "/r:src:lib".into()));
    assert_eq!(required("/a b"), "--require \"/a b/hook.cjs\"");
    for (command, changed) in [
        ("PYTHONPATH=src pytest", "PYTHONPATH=/r:src pytest"),
        ("cd a && PYTHONPATH='s' tox; XPYTHONPATH=x", "cd a && PYTHONPATH=/r:'s' tox; XPYTHONPATH=x"),
        ("pytest", "pytest"),
    ] {
        assert_eq!(with_search_path(command, "/r"), changed);
    }
    assert!(runs_one("cd web && npm test", &["npm"]) && !runs_one("npm-run-all", &["npm"]));
}
