#!/usr/bin/env python3
"""The cost of a run in a large repository, beside `git status` and `cp -a` of the same files.

Makes a repository with N small files, and runs the release binary in it: a model of written answers changes one file in each of a few
turns, and a lane of one empty step judges the work. The times are those between the events of a run, so that of the gate is made of the
room, the empty step, the checks on what was written, and the removal of the room. The first run makes the checkout of the base, which
the following ones share. Prints medians of the rounds, in milliseconds, and ratios to `git status`.

    cargo build --release && python3 benches/rooms.py [--files 10000] [--runs 5] [--turns 10] [--binary target/release/fledge] [--json]

Machines differ and are noisy: compare within one call, not between calls.
"""

import argparse, json, os, shutil, statistics, subprocess, sys, tempfile, time
from datetime import datetime

TASK = "---\nmodel: cassette/answers.yaml\n---\nChange some files.\n"


def repository(root, files):
    for number in range(files):
        folder = f"{root}/src/m{number // 10_000}/p{number // 100}"
        if number % 100 == 0:
            os.makedirs(folder)
        open(f"{folder}/f{number}.txt", "w").write(f"file {number}\n" * 20)
    os.makedirs(f"{root}/lanes")
    open(f"{root}/lanes/verify.yaml", "w").write("steps: [{ name: check, run: /bin/true }]\n")
    git = ["git", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "user.name=t", "-c", "user.email=t@localhost"]
    for words in ["init -q .", "add -A", "commit -qm base"]:
        subprocess.run(git + words.split(), cwd=root, check=True)


def answers(turns, files):
    step = max(files // turns, 1)
    paths = [f"src/m{n * step // 10_000}/p{n * step // 100}/f{n * step}.txt" for n in range(turns)]
    turn = "  - tools: [{{ name: files-write, input: {{ path: {}, content: new }} }}]\n    expect: {{ tool_result: ok }}\n"
    first = "  - tools: [{{ name: files-write, input: {{ path: {}, content: new }} }}]\n"
    return "turns:\n" + first.format(paths[0]) + "".join(map(turn.format, paths[1:])) + "  - text: Done.\n    expect: { tool_result: ok }\n"


def timed(command, cwd):
    begun = time.monotonic()
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return 1000 * (time.monotonic() - begun), done.stdout


def parts(events, turns):
    """The milliseconds of each part of a run, from its events."""
    at = lambda event: datetime.fromisoformat(event["at"].replace("Z", "+00:00")).timestamp() * 1000
    begun = {event["data"]: at(event) for event in events if event["type"] == "state_changed"}
    return {"planning": begun["executing"] - begun["planning"],
            "a turn with one changed file": (begun["verifying"] - begun["executing"]) / turns,
            "gate": begun["reporting"] - begun["verifying"],
            "report": begun["idle"] - begun["reporting"]}


def run(binary, root, task, turns):
    wall, told = timed([binary, "run", task, "--json", "--ni"], root)
    found = parts([json.loads(line) for line in told.splitlines()], turns)
    subprocess.run(["git", "checkout", "-q", "."], cwd=root, check=True)
    return {"run": wall} | found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--binary", default="target/release/fledge")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    base = tempfile.mkdtemp(prefix="fledge-rooms-", dir=os.environ.get("TMPDIR", "/var/tmp"))
    os.environ["FLEDGE_STATE_DIR"] = f"{base}/state"
    try:
        root, binary = f"{base}/work", os.path.abspath(chosen.binary)
        os.makedirs(root)
        repository(root, chosen.files)
        task = f"{base}/task.md"
        open(task, "w").write(TASK)
        open(f"{base}/answers.yaml", "w").write(answers(chosen.turns, chosen.files))
        times = {f"first run: {name}": [value] for name, value in run(binary, root, task, chosen.turns).items()}
        for _ in range(chosen.runs):
            times.setdefault("git status", []).append(timed(["git", "status", "--porcelain"], root)[0])
            times.setdefault("cp -a", []).append(timed(["cp", "-a", root, f"{base}/copy"], base)[0])
            times.setdefault("rm -r", []).append(timed(["rm", "-r", f"{base}/copy"], base)[0])
            times.setdefault("lane in a room, by hand", []).append(timed([binary, "lanes", "run", "verify", "--clean"], root)[0])
            for name, value in run(binary, root, task, chosen.turns).items():
                times.setdefault(name, []).append(value)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    medians = {name: statistics.median(values) for name, values in times.items()}
    if chosen.json:
        return print(json.dumps(medians))
    print(f"{chosen.files} files, medians of {chosen.runs} runs")
    for name, value in medians.items():
        print(f"{value:10.0f} ms {value / medians['git status']:8.2f}  {name}")


main()
