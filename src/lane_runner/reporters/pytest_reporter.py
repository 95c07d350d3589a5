"""A plugin of pytest that reports each test by name. pytest loads it before any file of the project."""
import os
import sys

with open(os.path.join(HERE, "run.py")) as text:
    exec(compile(text.read(), "run.py", "exec"))

# The functions that decide about tests. They must be the same before and after the tests.
WATCHED = {
    "_pytest.main": ["Session.perform_collect", "pytest_runtestloop", "_main"],
    "_pytest.python": [
        "Function.runtest", "Function.setup", "pytest_pyfunc_call", "PyCollector.collect", "Class.collect",
    ],
    "_pytest.unittest": ["UnitTestCase.collect", "TestCaseFunction.runtest", "TestCaseFunction.setup"],
    "_pytest.runner": [
        "pytest_runtest_protocol", "runtestprotocol", "call_and_report", "CallInfo.from_call", "pytest_runtest_setup",
        "pytest_runtest_call", "pytest_runtest_makereport", "pytest_make_collect_report", "collect_one_node",
    ],
    "_pytest.reports": ["TestReport.from_item_and_call"],
    "_pytest.outcomes": ["skip", "fail", "xfail"],
    "_pytest.skipping": ["pytest_runtest_setup", "pytest_runtest_call", "pytest_runtest_makereport"],
    "_pytest.assertion.rewrite": [
        "AssertionRewritingHook.exec_module", "AssertionRewritingHook.find_spec", "rewrite_asserts",
    ],
    "_pytest.python_api": ["approx", "raises"],
    "_pytest.raises": ["raises"],
    "pluggy._callers": ["_multicall"],
    "pluggy._hooks": ["HookCaller.__call__"],
    "pluggy._manager": ["PluginManager._hookexec"],
}
# The hooks that decide about tests.
HOOKS = [
    "pytest_collection_modifyitems", "pytest_ignore_collect", "pytest_pycollect_makeitem", "pytest_pyfunc_call",
    "pytest_runtest_protocol", "pytest_runtest_setup", "pytest_runtest_call", "pytest_runtest_makereport",
    "pytest_runtestloop", "pytest_sessionfinish",
]
hook = runner.hookimpl


def is_installed(function):
    """Returns whether a function is from a module outside of the folder of the tests."""
    owner, code = sys.modules.get(getattr(function, "__module__", "")), getattr(function, "__code__", None)
    file = getattr(code, "co_filename", "")
    if not os.path.isfile(file) or getattr(owner, "__file__", None) != file or place(function) != file:
        return False
    for part in function.__qualname__.split("."):
        owner = getattr(owner, part, None)
    return plain(owner)[0] is function


class Reporter(object):
    def __init__(self):
        self.run, self.told = None, set()

    @hook(tryfirst=True)
    def pytest_load_initial_conftests(self, early_config):
        self.run = Run(os.path.join(HERE, "channel"))
        try:
            self.manager = early_config.pluginmanager
            self.functions, self.hooks = Watch(WATCHED), self.implementations()
        except Exception:
            # This version of pytest is too different to be compared.
            self.functions, self.hooks = None, None

    def pytest_runtest_logreport(self, report):
        state = report.outcome
        if report.when == "teardown" or (report.when == "setup" and state == "passed") or self.run is None:
            return
        # Plugins report a failed try that they repeat in this way.
        if state == "rerun":
            state = "retried"
        if hasattr(report, "wasxfail"):
            state = "expected_to_fail"
        # The data of the product may decide how many subtests a test has.
        if state == "passed" and hasattr(report, "context"):
            return
        if state in ("passed", "failed", "skipped", "expected_to_fail", "retried"):
            self.run.test(report.nodeid, state)

    def pytest_runtest_logfinish(self):
        self.look()

    def pytest_collection_finish(self):
        self.look()

    @hook(trylast=True)
    def pytest_unconfigure(self):
        if self.run is not None:
            self.look()
            self.run.end()
            self.run = None

    def implementations(self):
        """Returns the functions that implement the hooks which decide about tests."""
        found = {}
        for name in HOOKS:
            for each in getattr(self.manager.hook, name).get_hookimpls():
                function = plain(each.function)[0]
                found[id(function)] = (name, function)
        return found

    def look(self):
        """Reports watched functions that were replaced, and hooks that were added, with their files."""
        if self.run is None or self.hooks is None:
            return
        for what in self.functions.replaced():
            self.tell(what)
        for key, (name, function) in self.implementations().items():
            if key not in self.hooks:
                self.hooks[key] = (name, function)
                if is_installed(function):
                    continue
                what, number = name + " in " + place(function), 1
                # Code may claim to be in a file that has such a hook.
                while what in self.told:
                    number += 1
                    what = "%s (%s) in %s" % (name, number, place(function))
                self.tell(what)

    def tell(self, what):
        if what not in self.told:
            self.told.add(what)
            self.run.changed(what)


def add_plugin():
    """Adds the plugin when pytest adds the plugins of the environment. Workers of xdist have none."""
    manager = runner.PytestPluginManager
    consider = manager.consider_env

    def consider_env(self):
        manager.consider_env = consider
        consider(self)
        ACTIVE.add("pytest")
        forget()
        if "PYTEST_XDIST_WORKER" not in os.environ:
            self.register(Reporter())

    manager.consider_env = consider_env


add_plugin()
