#!/usr/bin/env python3
"""What fledge itself costs beside the model and the checks, as whole processes.

Runs the release binary against a scripted model server on loopback that answers at once, and prints for each case
the median of wall time, CPU time (user and system, children waited for included) and peak memory; the added cost of
a further turn as the slope between 1 and 50 turns; the size of the first request without the task; and the cost of a
bare process start as the floor that the rest is to be compared with.

    cargo build --release && python3 benches/process.py [--runs 15] [--binary target/release/fledge] [--json]

Machines differ and are noisy: compare within one call, not between calls.
"""

import argparse, json, os, statistics, tempfile, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Model(BaseHTTPRequestHandler):
    """Speaks just enough of the Messages API: tool calls until `turns` are reached, then the end."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one write: two would meet the client's delayed acknowledgement
    turns = 1
    first_request = None

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if Model.first_request is None:
            Model.first_request = body
        done = sum(1 for message in body["messages"] if message["role"] == "assistant")
        events = [("message_start", {"message": {"id": "m", "type": "message", "role": "assistant", "model": "scripted",
                   "content": [], "stop_reason": None, "usage": {"input_tokens": 100, "output_tokens": 1}}})]
        if done + 1 < Model.turns:
            block = {"type": "tool_use", "id": f"call_{done}", "name": "files-read", "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps({"path": "a.txt", "offset": done + 1, "limit": 40})}
            stop = "tool_use"
        else:
            block, delta, stop = {"type": "text", "text": ""}, {"type": "text_delta", "text": "Done."}, "end_turn"
        events += [("content_block_start", {"index": 0, "content_block": block}),
                   ("content_block_delta", {"index": 0, "delta": delta}),
                   ("content_block_stop", {"index": 0}),
                   ("message_delta", {"delta": {"stop_reason": stop}, "usage": {"output_tokens": 10}}),
                   ("message_stop", {})]
        data = "".join(f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n" for kind, fields in events).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def measure(command, folder, env, watch):
    """One whole process: (wall s, CPU s, peak MB where it is watched, exit code)."""
    begin = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.chdir(folder)
        os.execve(command[0], command, env)
    peak = peak_of(pid) if watch else 0
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - begin
    return wall, usage.ru_utime + usage.ru_stime, peak, os.waitstatus_to_exitcode(status)


def peak_of(pid):
    """The most memory (MB) that the process had since its exec; getrusage would count the forked parent's."""
    peak = 0
    while True:
        try:
            fields = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status"))
        except OSError:
            return peak
        if "VmHWM" not in fields or fields["State"].strip().startswith("Z"):
            return peak
        if fields["Name"].strip() != "python3":
            peak = max(peak, int(fields["VmHWM"].split()[0]) / 1024)
        time.sleep(0.0005)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--binary", default="target/release/fledge")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    binary = os.path.abspath(options.binary)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as base:
        work = os.path.join(base, "work")
        os.makedirs(os.path.join(work, "lanes"))
        open(os.path.join(work, "a.txt"), "w").write("line\n" * 1000)
        open(os.path.join(work, "lanes", "verify.yaml"), "w").write("steps:\n  - { name: t, run: 'true' }\n")
        open(os.path.join(work, "task.md"), "w").write("x")
        env = {"PATH": os.environ["PATH"], "HOME": base, "FLEDGE_STATE_DIR": os.path.join(base, "state"),
               "ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_port}"}
        run = [binary, "run", "task.md", "--quiet"]
        cases = [("floor: /bin/true", ["/bin/true"], 1), ("--version", [binary, "--version"], 1),
                 ("1 turn, no gate", run + ["--no-verify"], 1), ("50 turns, no gate", run + ["--no-verify"], 50),
                 ("1 turn, gate of one `true`", run, 1)]
        samples = {name: [] for name, _, _ in cases}
        for _ in range(options.runs + 1):  # interleaved, and the first round is a warm-up
            for name, command, turns in cases:
                Model.turns = turns
                wall, cpu, _, code = measure(command, work, env, watch=False)
                assert code == 0, f"{name}: exit {code}"
                peak = measure(command, work, env, watch=True)[2]  # apart, since watching costs time
                samples[name].append((wall, cpu, peak))
        result = {name: {"wall_ms": 1000 * statistics.median(s[0] for s in rows[1:]),
                         "cpu_ms": 1000 * statistics.median(s[1] for s in rows[1:]),
                         "peak_mb": statistics.median(s[2] for s in rows[1:])} for name, rows in samples.items()}
    one, fifty = result["1 turn, no gate"], result["50 turns, no gate"]
    task = sum(len(block.get("text", "")) for block in Model.first_request["messages"][0]["content"])
    extra = {"cpu_ms_per_further_turn": (fifty["cpu_ms"] - one["cpu_ms"]) / 49,
             "wall_ms_per_further_turn": (fifty["wall_ms"] - one["wall_ms"]) / 49,
             "first_request_fixed_bytes": len(json.dumps(Model.first_request, separators=(",", ":"))) - task,
             "binary_mb": os.path.getsize(binary) / 1e6}
    if options.json:
        print(json.dumps({"cases": result, **extra}))
        return
    print(f"{'':28}{'wall ms':>10}{'CPU ms':>10}{'peak MB':>10}")
    for name, row in result.items():
        print(f"{name:28}{row['wall_ms']:>10.1f}{row['cpu_ms']:>10.1f}{row['peak_mb']:>10.1f}")
    for name, value in extra.items():
        print(f"{name}: {value:.3g}" if isinstance(value, float) else f"{name}: {value}")


if __name__ == "__main__":
    main()
