#!/usr/bin/env python3
"""What a batch costs: runs per second and memory by `--jobs`, with and without worktrees, and the time from SIGINT to the end.

Runs the release binary against the scripted server of process.py, which thinks for a while about each of four turns (three read a file). Prints
runs per second, CPU time per run, and the most memory of fledge's own process; then, with so many runs waiting for a model that never answers,
their memory and how long a SIGINT takes to end all of them. Memory without worktrees is that of one job at a time, since others need them.

    cargo build --release && python3 benches/batch.py [--runs 64] [--jobs 1,4,16,64] [--think 0.05] [--sandbox off] [--binary target/release/fledge]

Machines differ and are noisy: compare within one call, not between calls.
"""

import argparse, os, resource, signal, subprocess, tempfile, threading, time
from http.server import ThreadingHTTPServer

from process import Model

TURNS = 4


class Thinking(Model):
    """The same server, that takes its time, or for ever."""

    think = 0.0
    asked = 0
    guard = threading.Lock()

    def do_POST(self):
        with Thinking.guard:
            Thinking.asked += 1
        if Thinking.think is None:
            threading.Event().wait()
        time.sleep(Thinking.think)
        super().do_POST()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


def status(pid, key):
    """A figure of a process in kB, else 0."""
    try:
        lines = open(f"/proc/{pid}/status").read().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(key)), 0)


def place(base, name, runs):
    """A project with that many tasks, and what to start in it."""
    work = os.path.join(base, name)
    os.makedirs(os.path.join(work, "lanes"))
    os.makedirs(os.path.join(work, "tasks"))
    open(os.path.join(work, "a.txt"), "w").write("line\n" * 1000)
    open(os.path.join(work, "lanes", "verify.yaml"), "w").write("steps:\n  - { name: t, run: 'true' }\n")
    for number in range(runs):
        open(os.path.join(work, "tasks", f"t{number:03}.md"), "w").write(f"Look at line {number}.\n")
    git = ["git", "-c", "user.name=b", "-c", "user.email=b@localhost"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "base"]):
        subprocess.run(git + arguments, cwd=work, check=True)
    return work


def batch(options, env, work, flags):
    command = [os.path.abspath(options.binary), "run", "tasks", "--ni", "--quiet", "--sandbox", options.sandbox, *flags]
    return subprocess.Popen(command, cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def peak(process):
    """The most memory in MB that it had, once it is over."""
    most = 0
    while process.poll() is None:
        most = max(most, status(process.pid, "VmHWM"))
        time.sleep(0.01)
    return most / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=64)
    parser.add_argument("--jobs", default="1,4,16,64")
    parser.add_argument("--think", type=float, default=0.05)
    parser.add_argument("--sandbox", default="off")
    parser.add_argument("--binary", default="target/release/fledge")
    options = parser.parse_args()
    server = Server(("127.0.0.1", 0), Thinking)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Model.turns = TURNS
    cases = [("in place, 1", ["--isolation", "in-place", "--jobs", "1"])]
    cases += [(f"worktrees, {jobs}", ["--jobs", jobs]) for jobs in options.jobs.split(",")]
    print(f"{'':18}{'runs/s':>10}{'CPU ms/run':>12}{'peak MB':>10}")
    with tempfile.TemporaryDirectory() as base:
        env = {"PATH": os.environ["PATH"], "HOME": base, "ANTHROPIC_API_KEY": "none",
               "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_port}"}
        for at, (name, flags) in enumerate(cases):
            work = place(base, f"w{at}", options.runs)
            Thinking.think = options.think
            before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            process = batch(options, env, work, flags)
            most = peak(process)
            took, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
            assert process.returncode == 0, f"{name}: exit {process.returncode}: {process.stderr.read().decode()}"
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(f"{name:18}{options.runs / took:>10.1f}{1000 * cpu / options.runs:>12.1f}{most:>10.1f}", flush=True)
        work = place(base, "stop", options.runs)
        Thinking.think, Thinking.asked = None, 0
        process = batch(options, env, work, ["--jobs", str(options.runs)])
        while Thinking.asked < options.runs and process.poll() is None:
            time.sleep(0.01)
        most, begin = status(process.pid, "VmRSS") / 1024, time.perf_counter()
        process.send_signal(signal.SIGINT)
        code = process.wait()
        print(f"{options.runs} active runs: {most:.1f} MB; from SIGINT to the end: {time.perf_counter() - begin:.2f} s, exit {code}")


if __name__ == "__main__":
    main()
