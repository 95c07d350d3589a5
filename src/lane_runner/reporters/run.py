"""A run of a test runner that reports to fledge. Its last record proves that the run itself ended:
the record has a secret of this process, and a digest of all records with that secret."""
import hashlib
import json
import os
import threading

# A record with a name of this length is written in one piece (`PIPE_BUF`).
LONGEST = 700


class Run(object):
    def __init__(self, channel, _open=os.open, _write=os.write, _close=os.close, _pid=os.getpid):
        self.files = (_open, _write, _close, _pid)
        self.channel, self.pid, self.lock = channel, _pid(), threading.Lock()
        self.name, self.secret = os.urandom(8).hex(), os.urandom(16).hex()
        self.chain = hashlib.sha256(self.secret.encode())
        self.encode = json.JSONEncoder(ensure_ascii=False).encode
        self.send({"begin": hashlib.sha256(self.secret.encode()).hexdigest()})

    def test(self, name, state):
        name = name.encode("utf-8", "replace").decode("utf-8")
        if len(name) > LONGEST:
            name = name[:LONGEST] + hashlib.sha256(name.encode("utf-8")).hexdigest()
        self.send({"test": name, "state": state})

    def changed(self, what):
        self.send({"changed": what.encode("utf-8", "replace").decode("utf-8")[:LONGEST]})

    def end(self):
        self.send({"end": self.secret, "digest": self.chain.hexdigest()})

    def send(self, record):
        """Writes a record in one piece. A process that this one forked writes none."""
        opens, write, close, pid = self.files
        if pid() != self.pid:
            return
        line = (self.encode(dict(record, run=self.name)) + "\n").encode("utf-8")
        with self.lock:
            if "end" not in record:
                self.chain.update(line)
            try:
                file = opens(self.channel, os.O_WRONLY | os.O_CLOEXEC)
                try:
                    write(file, line)
                finally:
                    close(file)
            except OSError:
                pass
