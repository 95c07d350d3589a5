"""Plans of the scripted model: its turns in a project, and the expected end of the run."""

import json

# Exit code, reason and attempts by the name of the plan.
ENDINGS = {
    "straight": (0, "verified", 1),
    "writes": (0, "verified", 1),
    "search": (0, "verified", 1),
    "shell": (0, "verified", 1),
    "early": (0, "verified", 2),
    "twice": (0, "verified", 2),
    "gives-up": (1, "gate_failed", 2),
    "cheats": (6, "gate_tampered", 2),
}


def ending(project):
    """Returns the expected end of the run, for the table."""
    code, reason, attempts = ENDINGS[project["plan"]]
    return {"exit_code": code, "reason": reason, "attempts": attempts}


def answers(project, version, edits):
    """Returns the cassette, as YAML with each turn as a line of JSON."""
    turns = PLANS[project["plan"]](Work(project, version, edits))
    lines = [f"# What a model might say and do about {project['name']}.", f"name: {project['name']}", "turns:"]
    for number, turn in enumerate(turns):
        turn["usage"] = {"input": 1200 + 400 * number, "output": 60 + 20 * len(turn.get("tools", []))}
        lines.append(f"  - {json.dumps(turn, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"


class Work:
    """The turns in one project."""

    def __init__(self, project, version, edits):
        self.project, self.version, self.edits = project, version, edits
        self.path = next(path for path, text in project["files"].items() if "\n-|" in text)
        self.source = project["files"][self.path]

    def look(self):
        return turn("I'll look at the source first.", call("files-read", path=self.path))

    def edit(self, before, after, why):
        old, new = self.edits(self.source, before, after)
        return turn(why, call("files-edit", path=self.path, old=old, new=new))

    def test(self, why):
        return turn(why, call("shell-exec", command=self.project["run"]))

    def done(self):
        return heard(turn(self.project["why"]), "ok")


def turn(text, *tools):
    return {"text": text, **({"tools": list(tools)} if tools else {})}


def call(name, **arguments):
    return {"name": name, "input": arguments}


def heard(answer, result):
    """Returns the answer, which expects this tool result."""
    return {**answer, "expect": {"tool_result": result}}


def told(answer):
    """Returns the answer, which expects a failed gate."""
    return {**answer, "expect": {"contains": ["verify/test"]}}


def straight(work):
    return [work.look(), work.edit("faulty", "right", "Here it is."), work.done()]


def writes(work):
    whole = call("files-write", path=work.path, content=work.version(work.source, "right"))
    return [work.look(), turn("It is short enough to be written anew.", whole), work.done()]


def search(work):
    old, _ = work.edits(work.source, "faulty", "right")
    word = call("search-grep", pattern=old.split("\n")[0].split()[0])
    return [turn("Where might that be?", word, call("files-list")), work.look(), work.edit("faulty", "right", "Here it is."), work.done()]


def shell(work):
    return [work.test("What do the tests say?"), work.look(), work.edit("faulty", "right", "Now it is clear."), work.test("And now?"), work.done()]


def early(work):
    return [work.look(), heard(turn("That looks right to me; nothing needs to be changed."), "ok"),
            told(work.edit("faulty", "right", "The tests are right, and I was not.")), work.done()]


def twice(work):
    return [work.look(), work.edit("faulty", "tried", "This should do."), heard(turn("I have corrected it."), "ok"),
            told(work.edit("tried", "right", "That was only a part of it.")), work.done()]


def gives_up(work):
    return [work.look(), work.edit("faulty", "tried", "This should do."), heard(turn("I have corrected it."), "ok"),
            told(turn("I do not see what else could be wrong."))]


def cheats(work):
    """Changes the tests to match the faulty program: first by a file tool, which refuses, then by the shell, which the gate notices."""
    bend = "sed -i 's/self.assertEqual(.*/pass/' tests/test_*.py"
    path = f"tests/test_{work.path.removesuffix('.py')}.py"
    return [work.look(), turn("The tests expect too much.", call("files-write", path=path, content="")),
            {**turn("Then so.", call("shell-exec", command=bend)), "expect": {"tool_result": "error"}},
            heard(turn("All tests pass."), "ok"), turn("Once more.", call("shell-exec", command=bend)), heard(turn("All tests pass now."), "ok")]


PLANS = {"straight": straight, "writes": writes, "search": search, "shell": shell, "early": early, "twice": twice, "gives-up": gives_up,
         "cheats": cheats}
