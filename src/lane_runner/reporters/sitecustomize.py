"""Python imports this module at its start. It adds reporters to test runners, and then runs the
`sitecustomize` of the environment. Without a test runner it changes nothing."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# The module of a runner, and the reporter that is loaded after it.
REPORTERS = {"_pytest.config": "pytest_reporter.py", "unittest.runner": "unittest_reporter.py"}
# The runner that reports its tests in this process.
ACTIVE = set()


class Finder(object):
    """Finds the modules of runners, and loads their reporters after them."""

    def __init__(self):
        self.busy = set()

    def find_spec(self, name, path=None, target=None):
        if name not in REPORTERS or name in self.busy:
            return None
        import importlib.util

        self.busy.add(name)
        try:
            spec = importlib.util.find_spec(name)
            load = spec.loader.exec_module
        except (ImportError, AttributeError, ValueError):
            return None

        def load_both(module):
            load(module)
            add_reporter(REPORTERS[name], module)

        spec.loader.exec_module = load_both
        return spec


def add_reporter(file, runner):
    """Runs a reporter. Its errors never reach the runner."""
    try:
        path = os.path.join(HERE, file)
        with open(path) as text:
            code = compile(text.read(), path, "exec")
        names = {"__name__": os.path.splitext(file)[0], "runner": runner}
        names.update(HERE=HERE, ACTIVE=ACTIVE, forget=forget)
        exec(code, names)
    except Exception:
        pass


def forget():
    """Removes this folder from the environment, so that the tests and their processes see none of it."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    rest = os.pathsep.join(path for path in paths if path != HERE)
    if rest:
        os.environ["PYTHONPATH"] = rest
    else:
        os.environ.pop("PYTHONPATH", None)


def give_way():
    """Runs the `sitecustomize` of the environment, if there is one."""
    sys.path[:] = [path for path in sys.path if path != HERE]
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        if "sitecustomize" not in sys.modules and own is not None:
            sys.modules["sitecustomize"] = own


if sys.version_info >= (3, 6):
    sys.meta_path.insert(0, Finder())
give_way()
