# Prints the modules that Python's test runners import or try to import. It reads the import
# statements in their sources and in the standard library.
import ast
import importlib.util
import os
import sys

RUNNERS = ["pytest", "_pytest", "pluggy", "iniconfig", "packaging", "unittest", "doctest", "runpy", "site"]
# Packages of applications and demonstrations; no runner loads their modules.
APART = {"__main__", "test", "idlelib", "turtledemo", "lib2to3"}


def sources(name):
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return
    if spec is None or not (spec.origin or "").endswith(".py"):
        return
    for place in spec.submodule_search_locations or []:
        for folder, _, files in os.walk(place):
            yield from (os.path.join(folder, file) for file in files if file.endswith(".py") and "test" not in folder[len(place):])
    yield spec.origin


def imports(path):
    with open(path, encoding="utf-8") as file:
        nodes = ast.walk(ast.parse(file.read()))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module


seen, left = set(APART), list(RUNNERS)
while left:
    name = left.pop().split(".")[0]
    if name not in seen:
        seen.add(name)
        if name in RUNNERS or name in sys.stdlib_module_names:
            left.extend(found for path in sources(name) for found in imports(path))
print("\n".join(sorted(seen - APART - set(sys.builtin_module_names))))
