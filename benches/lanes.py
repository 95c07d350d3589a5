#!/usr/bin/env python3
"""What running a lane costs beside its steps, as ratios to a floor that starts the same shells and does nothing else.

Runs the release binary and the floor in turn, in interleaved rounds, on the same work: one step; 100 in sequence; 200 independent ones, two
at once; a graph of 1,000; one step that floods its output, where `cat > file` stands beside the floor. Prints medians of wall time, CPU time
(user and system of the whole tree) and the runner's own peak memory; ratios are taken inside a round, then the median of them. The floor is a
few lines of C (posix_spawn of `sh -c STEP`, wait), compiled with cc; without a compiler it is Python's posix_spawn, and its own start counts.

    cargo build --release && python3 benches/lanes.py [--runs 7] [--flood MB] [--only NAME] [--binary target/release/fledge] [--json]

Steps are `/bin/true`, so that no shell answers by itself. Machines differ and are noisy: compare within one call, not between calls.
"""

import argparse, json, os, shutil, statistics, subprocess, sys, tempfile, time

FLOOR_C = r"""
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
extern char **environ;
int main(int argc, char **argv) {
  int jobs = atoi(argv[1]), running = 0, bad = 0, status; char *line = 0; size_t room = 0; ssize_t length; pid_t pid;
  FILE *steps = fopen(argv[2], "re");
  while (steps && (length = getline(&line, &room, steps)) > 0) {
    line[length - 1] = 0;
    if (running == jobs) { wait(&status); running--; bad |= status; }
    char *command[] = {"sh", "-c", line, 0};
    if (posix_spawn(&pid, "/bin/sh", 0, 0, command, environ)) return 3;
    running++;
  }
  while (running--) { wait(&status); bad |= status; }
  return !steps || bad;
}
"""
FLOOR_PY = """
import os, sys
jobs, running, bad = int(sys.argv[1]), 0, 0
def wait():
    global running, bad
    bad |= os.wait()[1]; running -= 1
for line in open(sys.argv[2]):
    if running == jobs: wait()
    os.posix_spawn("/bin/sh", ["sh", "-c", line.rstrip()], os.environ); running += 1
while running: wait()
sys.exit(bad != 0)
"""


def floor(base):
    """The command that a number of jobs and a file of steps are added to."""
    compiler, source, program = shutil.which("cc"), os.path.join(base, "floor.c"), os.path.join(base, "floor")
    if compiler:
        open(source, "w").write(FLOOR_C)
        subprocess.run([compiler, "-O2", "-o", program, source], check=True)
        return [program]
    open(program, "w").write(FLOOR_PY)
    return [sys.executable, "-S", "-E", program]


def graph():
    """1,000 steps in 20 layers of 50; each needs two of the layer before it."""
    needs = lambda layer, n: sorted({f"s{layer - 1}x{n}", f"s{layer - 1}x{(n * 7 + layer) % 50}"}) if layer else []
    return [(f"s{layer}x{n}", needs(layer, n)) for layer in range(20) for n in range(50)]


def cases(base, binary, flood_mb):
    """Name, folder, and for each contestant a command."""
    bare = floor(base)
    line = "0123456789abcdef" * 6 + "xyz"
    flood = f"yes {line} | head -c {flood_mb}000000"
    step = "{ run: /bin/true }"
    parallel = "jobs: 2\nsteps:\n  - parallel:\n" + 200 * f"    - {step}\n"
    nodes = "".join(f"  - {{ name: {name}, run: /bin/true, needs: {json.dumps(needs)} }}\n" for name, needs in graph())
    work = [("one step", f"steps: [{step}]\n", 1, ["/bin/true"]),
            ("100 in sequence", "steps:\n" + 100 * f"  - {step}\n", 1, 100 * ["/bin/true"]),
            ("200, two at once", parallel, 2, 200 * ["/bin/true"]),
            ("graph of 1,000", "jobs: 2\nsteps:\n" + nodes, 2, 1000 * ["/bin/true"]),
            (f"{flood_mb} MB of output", f"steps: [{{ run: {json.dumps(flood)} }}]\n", 1, [flood])]
    for number, (name, lane, jobs, steps) in enumerate(work):
        folder = os.path.join(base, str(number))
        os.makedirs(os.path.join(folder, "lanes"))
        open(os.path.join(folder, "lanes", "verify.yaml"), "w").write(lane)
        open(os.path.join(folder, "steps"), "w").write("".join(step + "\n" for step in steps))
        contest = {"floor": bare + [str(jobs), "steps"], "fledge": [binary, "lanes", "run", "verify", "--ni"]}
        if steps == [flood]:
            contest["cat > file"] = ["/bin/sh", "-c", f"{flood} | cat > file"]
        yield name, folder, contest


def measure(command, folder, env):
    """One whole process: wall s, CPU s of its tree, and its own peak MB (0 when it was too quick to be seen)."""
    begin = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.chdir(folder)
        os.execve(command[0], command, env)
    peak, status, usage = 0, None, None
    while status is None:
        peak = max(peak, peak_of(pid))
        time.sleep(0.002)
        done, code, usage = os.wait4(pid, os.WNOHANG)
        status = code if done else None
    assert os.waitstatus_to_exitcode(status) == 0, f"{command}: {status}"
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, peak


def peak_of(pid):
    """The most memory (MB) that a process had since its exec; getrusage would count the forked parent's."""
    try:
        fields = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status"))
        return int(fields["VmHWM"].split()[0]) / 1024 if fields["Name"].strip() != "python3" else 0
    except (OSError, KeyError):
        return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--flood", type=int, default=1000, metavar="MB")
    parser.add_argument("--only", default="", help="cases whose name has this")
    parser.add_argument("--binary", default="target/release/fledge")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = {}
    with tempfile.TemporaryDirectory() as base:
        env = {"PATH": os.environ["PATH"], "HOME": base, "FLEDGE_STATE_DIR": os.path.join(base, "state")}
        for name, folder, contest in cases(base, os.path.abspath(options.binary), options.flood):
            if options.only not in name:
                continue
            rounds = {who: [] for who in contest}
            for number in range(options.runs + 1):  # interleaved, and the first round is a warm-up
                for who, command in contest.items():
                    sample = measure(command, folder, env)
                    rounds[who] += [sample] if number else []
                    shutil.rmtree(env["FLEDGE_STATE_DIR"], ignore_errors=True)
            middle = lambda values: statistics.median(list(values))
            result[name] = {who: {
                "wall_ms": 1000 * middle(s[0] for s in rows), "cpu_ms": 1000 * middle(s[1] for s in rows),
                "peak_mb": max(s[2] for s in rows),
                "wall_ratio": middle(s[0] / f[0] for s, f in zip(rows, rounds["floor"])),
                "cpu_ratio": middle(s[1] / f[1] for s, f in zip(rows, rounds["floor"]))} for who, rows in rounds.items()}
    if options.json:
        print(json.dumps(result))
        return
    print(f"{'':20}{'':12}{'wall ms':>10}{'/ floor':>9}{'CPU ms':>10}{'/ floor':>9}{'peak MB':>9}")
    for name, rows in result.items():
        for who, row in rows.items():
            print(f"{name:20}{who:12}{row['wall_ms']:>10.1f}{row['wall_ratio']:>9.2f}{row['cpu_ms']:>10.1f}{row['cpu_ratio']:>9.2f}{row['peak_mb']:>9.1f}")


main()
