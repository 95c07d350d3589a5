"""An MCP server for tests. Its first argument selects how it misbehaves; `good` behaves correctly."""
import json
import os
import subprocess
import sys
import threading
import time

mode = sys.argv[1] if len(sys.argv) > 1 else "good"
OBJECT = {"type": "object", "properties": {"text": {"type": "string"}}}
lock = threading.Lock()


def write(text):
    with lock:
        sys.stdout.write(text)
        sys.stdout.flush()


def say(message):
    write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def note(text):
    if len(sys.argv) > 2:
        with open(sys.argv[2], "a") as notes:
            notes.write(text + "\n")


def tool(name, **more):
    return {"name": name, "description": f"Does {name}.", "inputSchema": OBJECT, **more}


def tools(params):
    if mode == "pages":
        page = int((params or {}).get("cursor", 0))
        return {"tools": [tool(f"p{page}")], **({"nextCursor": str(page + 1)} if page < 2 else {})}
    if mode == "endless pages":
        page = int((params or {}).get("cursor", 0))
        return {"tools": [tool(f"p{page}")], "nextCursor": str(page + 1)}
    if mode == "doubles":
        return {"tools": [tool("echo"), tool("echo"), tool("a.b"), tool("a-b")]}
    if mode == "many":
        return {"tools": [tool(f"t{number}") for number in range(10_000)]}
    if mode == "schemas":
        deep = {}
        for _ in range(35):
            deep = {"properties": {"a": deep}}
        wrong = [{"type": "string"}, {"type": "object", "x": deep}, {"type": "object", "description": "x" * 100_000}]
        return {"tools": [tool("echo")] + [tool(f"w{n}", inputSchema=schema) for n, schema in enumerate(wrong)]}
    return {"tools": [tool(name) for name in ["echo", "fail", "crash", "env", "write", "net", "image"]]}


def call(name, text):
    if mode == "hang":
        time.sleep(600)
    if mode == "frozen":
        subprocess.Popen(["setsid", "sleep", text], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        os.kill(os.getpid(), __import__("signal").SIGSTOP)
    if mode == "crash" or name == "crash":
        sys.stderr.write("out of luck\n")
        os._exit(3)
    if mode == "huge":
        return "x" * 100_000_000 if text == "big" else text
    if mode == "daemon":
        subprocess.Popen(["setsid", "sleep", text], stdin=subprocess.DEVNULL)
    if mode == "gone":  # its child keeps its streams open
        subprocess.Popen(["setsid", "sleep", text])
        os._exit(0)
    if name == "fail":
        raise ValueError("no " + text)
    if name == "env":
        return "\n".join(sorted(os.environ))
    if name == "write":
        with open(text, "w") as file:
            file.write("from a server")
    if name == "net":
        import socket
        host, port = text.split(":")
        socket.create_connection((host, int(port)), timeout=5).close()
    return text


def content(name, text):
    if name == "image":
        return {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}], "structuredContent": {"a": 1}}
    try:
        return {"content": [{"type": "text", "text": call(name, text)}]}
    except Exception as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}


def result(message):
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
    if method == "tools/list":
        return tools(params)
    if method == "tools/call":
        return content(params["name"], (params.get("arguments") or {}).get("text", ""))
    return None


def flood(kind):
    params = {"progressToken": 1, "progress": 1, "message": "x" * 100}
    news = {"method": "notifications/progress", "params": params}
    if kind == "questions":
        news = {"id": 7, "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
    text = (json.dumps({"jsonrpc": "2.0", **news}) + "\n") * 100
    for _ in range(100):
        write(text)


def serve():
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        note(method or "answer")
        if "id" not in message or method is None:
            continue
        number = message["id"]
        found = result(message)
        if found is None and mode == "ignores":
            continue
        if found is None and mode in ("ends", "ends late"):
            time.sleep(2 if mode == "ends late" else 0)
            sys.exit(1)
        if found is None:
            say({"id": number, "error": {"code": -32601, "message": "no such method"}})
            continue
        if method == "tools/call":
            if mode in ("news", "questions"):
                flood(mode)
            if mode == "noise":
                write("garbage\n{}\n{\"level\": \"info\"}\n[1, 2\n\xff\x1b[31m\n{\"jsonrpc\": 5}\n")
            if mode == "wrong ids":
                say({"id": 4711, "result": found})
                say({"id": "x", "result": found})
                continue
            if mode == "half":
                write("{\"jsonrpc\": \"2.0\", \"id\": %d, \"result\": {\"content\": [}\n" % number)
                continue
            if mode == "bomb":
                write("{\"jsonrpc\": \"2.0\", \"id\": %d, \"result\": %s}\n" % (number, "[" * 200_000))
                continue
        say({"id": number, "result": found})


def serve_http():
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def reply(self, status, body=b"", kind="application/json"):
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.send_header("mcp-session-id", "s1")
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self):
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            note((message.get("method") or "answer") + " " + str(self.headers.get("authorization")))
            if "id" not in message or "method" not in message:
                return self.reply(202)
            if mode == "redirect":
                self.send_response(307)
                self.send_header("location", "http://127.0.0.1:1/")
                self.send_header("content-length", "0")
                return self.end_headers()
            if mode == "html" and message["method"] == "tools/call":
                return self.reply(500, b"<h1>oops</h1>", "text/html")
            found = result(message)
            answer = {"error": {"code": -32601, "message": "no such method"}} if found is None else {"result": found}
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}).encode()
            if mode == "stream":
                return self.reply(200, b": hello\n\nevent: message\ndata: " + body + b"\n\n", "text/event-stream")
            self.reply(200, body)

        def do_GET(self):
            self.reply(405)

        def do_DELETE(self):
            note("DELETE")
            if mode == "slow end":
                time.sleep(600)
            self.reply(200)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if mode == "deaf":
    signal = __import__("signal")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
if mode == "no start":
    sys.stderr.write("cannot find my data\n")
    sys.exit(1)
if mode == "silent":
    time.sleep(600)
if os.environ.get("HTTP_MODE"):
    serve_http()
else:
    serve()
if mode == "deaf":
    time.sleep(600)
