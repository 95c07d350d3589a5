#!/usr/bin/env python3
"""Writes the corpus: small projects with a planted fault each, every one a git repository, with a task and a model's written answers.

    python3 examples/corpus/make.py FOLDER [--seed N] [--only 'python-*']…

FOLDER must not be there yet. In it are then `projects/NAME`, `tasks/NAME.md`, `tasks/answers/NAME.yaml` (a cassette), `batch.yaml`, which is all
of them for `fledge run`, and `corpus.json`, which says of each project its language, its fault and how a run with the written answers ends. The same
seed gives the same files; another one asks for other cases. Python's standard library and git are all that this needs; running the tests needs the
languages' own tools. Another model than the written answers is tried by `--model`.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import random
import subprocess
import sys

sys.dont_write_bytecode = True
import domains_of_numbers
import domains_of_texts
from domains import DOMAINS
from languages import LANGUAGES, tests
from plans import answers, ending

HERE = pathlib.Path(__file__).resolve().parent
MARKS = {"-|": "faulty", "~|": "tried", "+|": "right"}


def main():
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("folder", type=pathlib.Path)
    said.add_argument("--seed", type=int, default=1)
    said.add_argument("--only", action="append", default=[], metavar="GLOB")
    given = said.parse_args()
    projects = [read(path) for path in sorted((HERE / "projects").glob("*.txt"))]
    names = [project["name"] for project in projects]
    unknown = [glob for glob in given.only if not fnmatch.filter(names, glob)]
    if unknown:
        said.error(f"no such project: {', '.join(unknown)}; there are: {', '.join(names)}")
    if given.folder.exists():
        said.error(f"{given.folder} is there already; name a folder that is not")
    chosen = [project for project in projects if any(fnmatch.fnmatch(project["name"], glob) for glob in given.only or ["*"])]
    for project in chosen:
        write(project, given.folder, random.Random(f"{given.seed} {project['name']}"))
    table = [{key: project[key] for key in ("name", "language", "tool", "fault", "plan", "ends")} for project in chosen]
    (given.folder / "corpus.json").write_text(json.dumps(table, indent=1) + "\n")
    (given.folder / "batch.yaml").write_text(batch([project["name"] for project in chosen]))
    print(f"{len(chosen)} projects in {given.folder}/projects, seed {given.seed}")


def read(path):
    """Reads a project from its description: keys, then `== task` and `== file PATH` with their text."""
    head, *sections = path.read_text().split("\n== ")
    project = {"name": path.stem, **dict(line.split(": ", 1) for line in head.split("\n"))}
    texts = dict(section.split("\n", 1) for section in sections)
    project["task"] = texts.pop("task").strip()
    project["files"] = {name.removeprefix("file "): text.rstrip("\n") + "\n" for name, text in texts.items()}
    project["sources"] = list(project["files"])
    project["tool"] = LANGUAGES[project["language"]]["tool"]
    project["run"] = LANGUAGES[project["language"]]["run"]
    project["ends"] = ending(project)
    return project


def version(text, which):
    """Returns one version of a source. `-|` marks faulty lines, `~|` lines of a first attempt that fails, `+|` correct lines."""
    made, block = [], []
    for line in [*text.split("\n"), ""]:
        if line[:2] in MARKS:
            block.append((MARKS[line[:2]], line[2:]))
            continue
        tried = which == "tried" and not any(mark == "tried" for mark, _ in block)
        made += [rest for mark, rest in block if mark == ("faulty" if tried else which)]
        block = []
        made.append(line)
    return "\n".join(made[:-1])


def edits(text, before, after):
    """Returns the edits between two versions, as pairs of a text that occurs once and its replacement."""
    old, new = version(text, before).split("\n"), version(text, after).split("\n")
    first = next((at for at, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
    last = next((at for at, (a, b) in enumerate(zip(reversed(old), reversed(new))) if a != b), 0)
    last = min(last, len(old) - first, len(new) - first)
    # An addition needs a neighbouring line as context, and a repeated text needs more lines to be unique.
    while "\n".join(old).count("\n".join(old[first : len(old) - last])) != 1 or first == len(old) - last:
        first -= 1
    return "\n".join(old[first : len(old) - last]), "\n".join(new[first : len(new) - last])


def write(project, folder, chance):
    """Writes a project with one commit, its task and its answers."""
    home = folder / "projects" / project["name"]
    facts = LANGUAGES[project["language"]]
    files = {path: version(text, "faulty") for path, text in project["files"].items()}
    files.update(tests(project, DOMAINS[project["domain"]].cases(chance)))
    files["lanes/verify.yaml"] = lane(project, facts)
    files["README.md"] = f"# {project['name']}\n\n`{facts['run']}` runs the tests.\n"
    if "ignored" in facts:
        files[".gitignore"] = facts["ignored"] + "\n"
    for path, text in files.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
    git(home, "init", "--quiet", "--initial-branch", "main", ".")
    git(home, "add", "--all")
    git(home, "commit", "--quiet", "--message", f"{project['name']}, as it is in use")
    tasks = folder / "tasks"
    (tasks / "answers").mkdir(parents=True, exist_ok=True)
    (tasks / f"{project['name']}.md").write_text(task(project))
    (tasks / "answers" / f"{project['name']}.yaml").write_text(answers(project, version, edits))


def lane(project, facts):
    """Returns the lane that judges the work."""
    lines = ["description: What every change must pass", "timeout: 5m"]
    if "canary" in facts or project.get("canary"):
        lines.append(f"canary: {facts.get('canary') or facts['canary_for_some']}")
    if "cache" in facts:
        lines.append(f"cache: [{facts['cache']}]")
    return "\n".join([*lines, "steps:", f"  - {{ name: test, run: {facts['run']}, timeout: 2m }}", ""])


def task(project):
    """Returns the task, which uses the written answers as its model."""
    lines = [f"title: {project['title']}", f"model: cassette/answers/{project['name']}.yaml", "budget: { turns: 20, time: 10m }"]
    if "expect" in project:
        lines.append(f"expect: {project['expect']}")
    if project["language"] == "shell":  # the gate protects a script that the tests run like the tests, unless the task allows edits to it
        lines.append(f"allow_edit: [{project['sources'][0]}]")
    if project["plan"] in ("gives-up", "cheats"):
        lines.append("max_retries: 1")
    return "\n".join(["---", *lines, "---", project["task"], ""])


def batch(names):
    """Returns a batch that runs each task in its project."""
    repositories = [f"  - projects/{name}" for name in names]
    pairs = [f"    - {{ task: {name}, repository: {name} }}" for name in names]
    return "\n".join(["tasks: tasks/*.md", "repositories:", *repositories, "matrix:", "  include:", *pairs, ""])


def git(home, *words):
    settings = ["user.name=corpus", "user.email=corpus@localhost", "commit.gpgsign=false", "core.autocrlf=false", "core.hooksPath=/dev/null"]
    when = dict.fromkeys(["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"], "2026-01-05T09:00:00Z")
    inside = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", home, *(word for setting in settings for word in ("-c", setting)), *words]
    subprocess.run(command, check=True, env=inside | when)


if __name__ == "__main__":
    main()
