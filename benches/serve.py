#!/usr/bin/env python3
"""What a server costs: answers per second over 10,000 runs, the page, the time from a wish to its first event, and memory.

Runs the release binary against the scripted model server of process.py. Prints the memory at rest; answers per second of lists, one request
after the other and by several connections; the time until the page and all that it refers to is there; the time from a wish until its answer,
until its first event and until its end; then, with so many runs at once and as many streams, the time, the memory at its most and how many
streams have seen their end.

    cargo build --release && python3 benches/serve.py [--runs 10000] [--crowd 32] [--seconds 3] [--binary target/release/fledge]

Of the many runs one is real; the rows of the others are copies of its own. Machines differ and are noisy: compare within one call.
"""

import argparse, http.client, json, os, re, signal, sqlite3, statistics, subprocess, tempfile, threading, time, uuid
from http.server import ThreadingHTTPServer

from process import Model

TOKEN = "t0ken-of-the-bench-0123456789"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


class Thinking(Model):
    """The same server, that takes its time."""

    think = 0.0

    def do_POST(self):
        time.sleep(Thinking.think)
        super().do_POST()


class Models(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


def memory(pid, key):
    """A figure of a process in MB."""
    lines = open(f"/proc/{pid}/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024


def place(base):
    work = os.path.join(base, "work")
    os.makedirs(os.path.join(work, "lanes"))
    open(os.path.join(work, "a.txt"), "w").write("line\n" * 1000)
    open(os.path.join(work, "lanes", "verify.yaml"), "w").write("steps:\n  - { name: t, run: 'true' }\n")
    git = ["git", "-c", "user.name=b", "-c", "user.email=b@localhost"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "base"]):
        subprocess.run(git + arguments, cwd=work, check=True)
    return work


def multiply(state, runs):
    """Copies the row of the one run that there is."""
    folder = next(entry.path for entry in os.scandir(state) if os.path.exists(os.path.join(entry.path, "fledge.db")))
    db = sqlite3.connect(os.path.join(folder, "fledge.db"))
    columns = [row[1] for row in db.execute("PRAGMA table_info(runs)") if row[1] not in ("no", "id", "run_key")]
    names = ", ".join(columns)
    rows = [(str(uuid.uuid4()),) for _ in range(runs - 1)]
    db.executemany(f"INSERT INTO runs (id, {names}) SELECT ?, {names} FROM runs WHERE no = 1", rows)
    db.execute("INSERT INTO tasks (run, text, settings) SELECT no, '', '{}' FROM runs WHERE no > 1")
    db.commit()
    db.close()


class Server:
    def __init__(self, binary, work, env, sandbox, crowd):
        command = [binary, "serve", "--listen", "127.0.0.1:0", "--max-runs", str(crowd)]
        self.process = subprocess.Popen(command, cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+)\s*$", self.process.stdout.readline()).group(1))
        self.code = re.search(r"code=(\S+)", self.process.stdout.readline()).group(1)

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def ask(self, connection, path, body=None, headers=BEARER):
        if body is None:
            connection.request("GET", path, headers=headers)
        else:
            connection.request("POST", path, json.dumps(body), {**headers, "Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer

    def rate(self, path, connections, seconds):
        """Answers per second, and the slowest of a hundred in ms."""
        took, until = [], time.perf_counter() + seconds

        def work():
            connection = self.connect()
            while time.perf_counter() < until:
                begin = time.perf_counter()
                status, _, _ = self.ask(connection, path)
                assert status == 200, f"{path}: {status}"
                took.append(time.perf_counter() - begin)

        threads = [threading.Thread(target=work) for _ in range(connections)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        return len(took) / seconds, 1000 * sorted(took)[int(len(took) * 0.99)]

    def page(self):
        """Until all is there that the page refers to, in ms; how many files, and their bytes."""
        connection = self.connect()
        _, _, answer = self.ask(connection, f"/enter?code={self.code}", headers={})
        cookie = {"Cookie": answer.getheader("set-cookie").split(";")[0]}
        begin, seen, wanted, size = time.perf_counter(), set(), ["/"], 0
        while wanted:
            path = wanted.pop()
            seen.add(path)
            status, body, _ = self.ask(connection, path, headers=cookie)
            assert status == 200, f"{path}: {status}"
            size += len(body)
            text = body.decode(errors="replace")
            found = re.findall(r"[\"'](/assets/[\w./-]+)[\"']", text)
            found += [path.rsplit("/", 1)[0] + "/" + name for name in re.findall(r"from \"\./([\w.-]+)\"", text)]
            wanted += [path for path in found if path not in seen and path not in wanted]
        return 1000 * (time.perf_counter() - begin), len(seen), size

    def follow(self, run):
        """Reads the events of a run to their end: when the first came, when the last."""
        connection, first = self.connect(), None
        connection.request("GET", f"/v1/runs/{run}/events", headers=BEARER)
        answer = connection.getresponse()
        while line := answer.readline():
            if line.startswith(b"data:") and first is None:
                first = time.perf_counter()
            if line.startswith(b"event: end"):
                return first, time.perf_counter()
        raise SystemExit(f"the events of {run} break off")

    def begin(self, connection, number):
        status, body, _ = self.ask(connection, "/v1/runs", {"task": f"Look at line {number}."})
        assert status == 201, body
        return json.loads(body)["id"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--crowd", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--think", type=float, default=0.2)
    parser.add_argument("--sandbox", default="off")
    parser.add_argument("--binary", default="target/release/fledge")
    options = parser.parse_args()
    models = Models(("127.0.0.1", 0), Thinking)
    threading.Thread(target=models.serve_forever, daemon=True).start()
    Model.turns = 3
    binary = os.path.abspath(options.binary)
    with tempfile.TemporaryDirectory() as base:
        work, state = place(base), os.path.join(base, "state")
        os.makedirs(os.path.join(base, ".config", "fledge"))
        open(os.path.join(base, ".config", "fledge", "config.yaml"), "w").write(f"sandbox: '{options.sandbox}'\n")
        env = {"PATH": os.environ["PATH"], "HOME": base, "FLEDGE_STATE_DIR": state, "FLEDGE_SERVE_TOKEN": TOKEN,
               "ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{models.server_port}"}
        subprocess.run([binary, "run", "-", "--ni", "--quiet"], input=b"Look.", cwd=work, env=env, check=True)
        multiply(state, options.runs)
        server = Server(binary, work, env, options.sandbox, options.crowd)
        print(f"at rest: {memory(server.process.pid, 'VmRSS'):.1f} MB")
        for path in ("/v1/runs?limit=50", "/v1/runs?state=running", "/v1/runs?outcome=verified", "/v1/runs?q=nothing-like-it", "/healthz"):
            for connections in (1, 4):
                rate, slow = server.rate(path, connections, options.seconds)
                print(f"{path:28}{connections} connections{rate:>9.0f}/s   99 of 100 within {slow:.1f} ms", flush=True)
        took, files, size = server.page()
        print(f"page: {files} files, {size / 1024:.0f} KiB in {took:.1f} ms")
        connection, accepted, first, whole = server.connect(), [], [], []
        Thinking.think = 0.0
        for number in range(10):
            begin = time.perf_counter()
            run = server.begin(connection, number)
            accepted.append(1000 * (time.perf_counter() - begin))
            came, ended = server.follow(run)
            first.append(1000 * (came - begin))
            whole.append(1000 * (ended - begin))
        medians = [statistics.median(all) for all in (accepted, first, whole)]
        print("a wish: answered after {:.1f} ms, first event after {:.1f} ms, over after {:.1f} ms (medians of 10)".format(*medians))
        Thinking.think, begin, ends, most = options.think, time.perf_counter(), [], 0.0
        runs = [server.begin(connection, number) for number in range(options.crowd)]
        threads = [threading.Thread(target=lambda run=run: ends.append(server.follow(run))) for run in runs]
        [thread.start() for thread in threads]
        while any(thread.is_alive() for thread in threads):
            most = max(most, memory(server.process.pid, "VmRSS"))
            time.sleep(0.02)
        took = time.perf_counter() - begin
        print(f"{options.crowd} runs with a stream each: {took:.2f} s, {len(ends)} ends seen, {most:.1f} MB at most")
        begin = time.perf_counter()
        server.process.send_signal(signal.SIGTERM)
        code = server.process.wait()
        print(f"from SIGTERM to the end: {time.perf_counter() - begin:.2f} s, exit {code}")


if __name__ == "__main__":
    main()
