"""Reports each test of a runner of unittest by name."""
import os

with open(os.path.join(HERE, "run.py")) as text:
    exec(compile(text.read(), "run.py", "exec"))

open_runs, told = [], set()
functions = Watch({})


def add_reports():
    """Wraps the runner's `run`, and the methods of its results."""
    test_run = runner.TextTestRunner.run

    def run(self, test):
        # The tests of a runner may run others. pytest reports its tests itself.
        if open_runs or ACTIVE:
            return test_run(self, test)
        forget()
        open_runs.append(Run(os.path.join(HERE, "channel")))
        try:
            result = test_run(self, test)
            look()
            open_runs[0].end()
            return result
        finally:
            open_runs.clear()

    runner.TextTestRunner.run = run
    states = {
        "addSuccess": "passed", "addError": "failed", "addFailure": "failed", "addSkip": "skipped",
        "addExpectedFailure": "expected_to_fail", "addUnexpectedSuccess": "expected_to_fail",
    }
    for name, state in states.items():
        wrap(name, state)


def look():
    """Reports the functions that were replaced."""
    for what in functions.replaced():
        if what not in told:
            told.add(what)
            open_runs[0].changed(what)


def wrap(name, state):
    method = getattr(runner.TextTestResult, name)

    def reported(self, test, *args, **kwargs):
        if open_runs:
            look()
            open_runs[0].test(test.id(), state)
        return method(self, test, *args, **kwargs)

    setattr(runner.TextTestResult, name, reported)


add_reports()
