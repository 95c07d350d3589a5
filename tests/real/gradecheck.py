#!/usr/bin/env python3
"""Plays the attacks of gradecheck against fledge: gradecheck.py FOLDER [PROJECT…]

gradecheck (PyPI) acts as a dishonest agent. It submits the unchanged project, empties the sources, and removes or empties the tests. The
projects come from examples/corpus; each has a fault that its tests find. fledge grades in two ways:

    gate      `fledge run` on the base: a scripted agent makes the changes of gradecheck's submission
    by hand   `fledge lanes run verify --clean --base COMMIT` in gradecheck's submission

Expected: no attack succeeds, and both ways pass the honest repair.

FLEDGE is the program (target/release/fledge). FOLDER keeps gradecheck and the projects. Needs Python 3.11 or newer, a network for PyPI, and the
tools of the projects: a C compiler and make, go, node, cargo.
"""

import json, os, shlex, shutil, subprocess, sys
from pathlib import Path

VERSION = "0.1.0"
PROJECTS = "c-cut go-lru node-glob python-wrap rust-roman shell-days"
HERE = Path(__file__).resolve().parent
FLEDGE = os.path.abspath(os.environ.get("FLEDGE", HERE.parent.parent / "target/release/fledge"))


def run(*words, cwd=None):
    return subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def must(*words, cwd=None):
    done = run(*words, cwd=cwd)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def installed(folder):
    """The program gradecheck, in its own virtual environment."""
    program = folder / "venv/bin/gradecheck"
    if not program.exists():
        must(sys.executable, "-m", "venv", folder / "venv")
        must(folder / "venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", f"gradecheck=={VERSION}")
    return program


class Project:
    """A project of the corpus with the files of a grader, in a separate folder."""

    def __init__(self, corpus, name, folder):
        self.name, self.base, self.folder = name, corpus / "projects" / name, folder
        self.task = corpus / "tasks" / f"{name}.md"
        folder.mkdir(parents=True)

    def grader(self, which):
        """The command that judges a tree."""
        if which == "by hand":
            commit = must("git", "rev-parse", "HEAD", cwd=self.base).strip()
            return f"sh -c 'cd \"$1\" && \"{FLEDGE}\" lanes run verify --clean --base {commit} --ni' sh {{workspace}}"
        script = self.folder / "grade.sh"
        script.write_text(f"""set -e
place=$(mktemp -d "{self.folder}/gate-XXXXXX")
git clone -q "{self.base}" "$place/base"
printf 'name: agent\\nturns:\\n  - text: I write it.\\n    tools: [{{ name: shell-exec, input: {{ command: "%s" }} }}]\\n  - text: Done.\\n' \\
    "find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {{}} + ; cp -R $place/base/.git/handed-in/. ." > "$place/agent.yaml"
cp -R "$1" "$place/base/.git/handed-in" && rm -rf "$place/base/.git/handed-in/.git"
sed "s,^model: .*,model: cassette/$place/agent.yaml\\nmax_retries: 0," "{self.task}" > "$place/task.md"
cd "$place/base" && "{FLEDGE}" run "$place/task.md" --ni --baseline always
""")
        return f"sh {script} {{workspace}}"

    def honest(self, which):
        """Returns whether the grader passes the repair from the corpus."""
        tree = self.folder / "honest" / self.name
        if not tree.exists():
            must("git", "clone", "-q", self.base, tree)
            must(FLEDGE, "run", self.task, "--ni", cwd=tree)
        words = [word.replace("{workspace}", str(tree)) for word in shlex.split(self.grader(which))]
        return run(*words).returncode == 0

    def attacked(self, which, program):
        """The findings of gradecheck."""
        settings = self.folder / f"{which.replace(' ', '-')}.toml"
        tests = sorted(map(str, self.base.glob("tests/test_*.py"))) # gradecheck writes words from them into files
        settings.write_text(f"[env]\nname = '{self.name}'\nworkspace = '{self.base}'\n[grade]\ncmd = '''{self.grader(which)}'''\npass_marker = ''\nsource = {tests}\n")
        done = run(program, "run", settings, "--json", "--quiet")
        return json.loads(done.stdout)["findings"]


def main():
    folder = Path(sys.argv[1]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    program = installed(folder)
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    os.environ |= {"FLEDGE_STATE_DIR": str(work / "state"), "FLEDGE_NON_INTERACTIVE": "1"}
    must(sys.executable, HERE.parent.parent / "examples/corpus/make.py", work / "corpus")
    wrong = []
    for name in sys.argv[2:] or PROJECTS.split():
        project = Project(work / "corpus", name, work / name)
        for which in ["gate", "by hand"]:
            if not project.honest(which):
                wrong.append(f"{name}, {which}: the honest repair does not pass")
            for finding in project.attacked(which, program):
                print(f"{name}, {which}: {finding['verdict']}: {finding['attack']}: {finding['summary']}", flush=True)
                if finding["verdict"] in ("error", "fooled"):
                    wrong.append(f"{name}, {which}: {finding['summary']}")
    print("\n".join(wrong) or "no attack succeeds that should not")
    sys.exit(bool(wrong))


main()
