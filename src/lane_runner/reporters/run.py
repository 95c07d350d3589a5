"""A run of a test runner that reports to fledge. Its last record proves that the run itself ended:
the record has a secret of this process, and a digest of all records with that secret."""
import hashlib
import json
import os
import sys
import threading
import unittest.case

# A record with a name of this length is written in one piece (`PIPE_BUF`).
LONGEST = 700


# Functions of unittest that decide about tests. Runners may run its tests with them.
OF_UNITTEST = {
    "unittest.case": ["_AssertRaisesContext.__exit__", "_Outcome.testPartExecutor"] + [
        "TestCase." + name
        for name in vars(unittest.case.TestCase)
        if name.startswith(("assert", "fail", "run", "skip", "_call", "__call"))
    ],
    "unittest.suite": ["TestSuite.run"],
}


def plain(function):
    """Returns a function without the decoration of its class, and its code."""
    function = getattr(function, "__func__", function)
    return function, getattr(function, "__code__", None)


def place(function):
    """Returns the file of a function, from the folder of the tests."""
    code = getattr(function, "__code__", None)
    module = sys.modules.get(getattr(function, "__module__", ""))
    file = getattr(code, "co_filename", None) or getattr(module, "__file__", None) or ""
    folder = os.getcwd() + os.sep
    return file[len(folder):] if file.startswith(folder) else file


class Watch(object):
    """Functions that must be the same before and after the tests, by their modules."""

    def __init__(self, names):
        self.names = list(names.items()) + list(OF_UNITTEST.items())
        self.before = self.found()

    def found(self):
        found = {}
        for module, names in self.names:
            for name in names:
                owner = sys.modules.get(module)
                *classes, last = name.split(".")
                for part in classes:
                    owner = getattr(owner, part, None)
                if owner is not None and last in vars(owner):
                    found[module + "." + name] = plain(vars(owner)[last])
        return found

    def replaced(self):
        """Returns the functions that are others now, each with its file."""
        now, found = self.found(), []
        for name, before in self.before.items():
            after = now.get(name, (None, None))
            if after[0] is not before[0] or after[1] is not before[1]:
                found.append(name + " in " + place(after[0]))
        return found


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
