//! Tests of Python projects: the choice of interpreter, environment and tools.

use super::table;

#[test]
fn python_is_checked_in_its_environment_with_the_tools_that_it_configures() {
    let unittest = ("tests/test_a.py", "import unittest");
    let configured = "[tool.ruff.format]\n[tool.mypy]\nstrict = true\n[tool.black]\n[dependency-groups]\ndev = [\"pytest>=8\", \"ruff\", \"mypy\"]";
    insta::assert_snapshot!(table(&[
        ("unittest", &[("setup.py", ""), unittest], "python3"),
        ("unittest in a package", &[("setup.py", ""), unittest, ("tests/__init__.py", "")], "python3"),
        ("unittest in the root", &[("requirements.txt", ""), ("test_a.py", "from unittest import TestCase")], "python"),
        (
            "functions are pytest's",
            &[("setup.py", ""), ("tests/test_a.py", "def test_a(): pass")],
            "python3 pytest #!python3"
        ),
        ("pytest without its own program", &[("setup.py", ""), ("pytest.ini", "")], "python3 #!python3"),
        ("pytest of another interpreter", &[("setup.py", ""), ("pytest.ini", "")], "python3 pytest"),
        (
            "pytest of the path beside an environment",
            &[("setup.py", ""), ("pytest.ini", ""), (".venv/bin/python", "")],
            "python3 pytest"
        ),
        (
            "a manager whose project does not name pytest",
            &[("uv.lock", ""), ("setup.py", ""), ("conftest.py", "")],
            "uv pytest"
        ),
        (
            "functions beside unittest's",
            &[("setup.py", ""), unittest, ("tests/test_b.py", "def test_b(): pass")],
            "python3"
        ),
        ("pytest that is not there", &[("requirements.txt", "pytest==8 # tests"), unittest], "python3"),
        ("only in a comment", &[("requirements.txt", "pytest-cov\n# pytest"), unittest], "python3 pytest"),
        (
            "pytest in a virtual environment",
            &[("setup.py", ""), (".venv/bin/python", ""), (".venv/bin/pytest", "")],
            ""
        ),
        ("tools from the path", &[("pyproject.toml", configured)], "python3 pytest #!python3 ruff mypy"),
        ("uv", &[("pyproject.toml", configured), ("uv.lock", "")], "uv black"),
        ("poetry", &[("pyproject.toml", configured), ("poetry.lock", "")], "poetry"),
        ("uv that is not there", &[("pyproject.toml", "[tool.uv]"), ("uv.lock", ""), unittest], "python3"),
        (
            "mypy that knows its files",
            &[("mypy.ini", "[mypy]\nfiles = src"), ("setup.cfg", "[flake8]")],
            "mypy flake8 python3"
        ),
        ("no tests", &[("pyproject.toml", "[project]")], "python3 pytest"),
        (
            "dependencies that no environment has",
            &[
                ("pyproject.toml", "[project]\ndependencies = [\"attrs\"]"),
                ("requirements-dev.txt", "# none\n"),
                ("requirements.txt", "attrs"),
                unittest
            ],
            "python3"
        ),
        (
            "dependencies that an environment may have",
            &[("requirements.txt", "attrs"), (".venv/bin/python", ""), unittest],
            "python3"
        ),
        ("no python", &[("pyproject.toml", ""), unittest], ""),
        ("nothing but tests", &[("calc.py", ""), ("test_calc.py", "import unittest")], "python3"),
        ("nothing but tests of pytest", &[("tests/test_a.py", "def test_a(): pass")], "python3 #!python3"),
        ("tests beside a recipe", &[("Makefile", "test:\n\tsh t.sh\n"), unittest], "python3 make"),
        ("tests beside another stack", &[("Cargo.toml", ""), unittest], "python3 cargo"),
    ]));
}

#[test]
fn python_is_checked_in_an_environment_that_another_tool_has_made() {
    let unittest = ("tests/test_a.py", "import unittest");
    let source = ("src/a/__init__.py", "");
    let configured = "[tool.ruff.format]\n[tool.mypy]\nstrict = true\n[tool.black]\n[dependency-groups]\ndev = [\"pytest>=8\", \"ruff\", \"mypy\"]";
    insta::assert_snapshot!(table(&[
        (
            "tox",
            &[
                ("setup.py", ""),
                ("tests/test_a.py", "def test_a(): pass"),
                ("tox.ini", "[testenv]\ncommands = pytest -x {posargs}\n"),
                source,
                (".tox/lint/bin/python", ""),
                (".tox/py/bin/python", ""),
                (".tox/py/bin/pytest", "")
            ],
            "python3 pytest tox"
        ),
        (
            "an environment of nox with the project",
            &[
                ("noxfile.py", "def tests(session):\n    session.run('pytest')\n"),
                ("setup.py", ""),
                (".nox/cov/bin/python", ""),
                (".nox/cov/bin/pytest", ""),
                (".nox/tests-3-12/bin/python", ""),
                (".nox/tests-3-12/bin/pytest", "")
            ],
            "python3 nox"
        ),
        (
            "sources that pytest knows",
            &[("pyproject.toml", "[tool.pytest.ini_options]\npythonpath = ['src']\n"), source],
            "python3 #!python3"
        ),
        ("sources that unittest does not find", &[("setup.py", ""), unittest, source], "python3"),
        ("sources for its own pytest", &[("pytest.ini", ""), ("setup.py", ""), source], "python3 pytest"),
        (
            "uv beside an environment of pip",
            &[
                ("pyproject.toml", configured),
                ("uv.lock", ""),
                (".venv/pyvenv.cfg", "home = /usr/bin\n"),
                (".venv/bin/python", ""),
                (".venv/bin/pytest", "")
            ],
            "uv black"
        ),
        (
            "uv with its own environment",
            &[
                ("pyproject.toml", configured),
                ("uv.lock", ""),
                (".venv/pyvenv.cfg", "home = /usr/bin\nuv = 0.9\n"),
                (".venv/bin/python", ""),
                (".venv/bin/pytest", "")
            ],
            "uv black"
        ),
    ]));
}
