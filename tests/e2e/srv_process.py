"""Starts the real binary for an end-to-end test, waits for its line, and always ends it.

    with Srv("tests/apps/hello.lua") as srv:
        answer = srv.get("/")

Standard library only. The binary is $SRV_BIN, or build/release/srv. Every server takes a free port
on loopback and is killed with its process group when the test ends, however it ends.
"""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("SRV_BIN", os.path.join(ROOT, "build", "release", "srv"))
PATIENCE = float(os.environ.get("SRV_TEST_PATIENCE", "30"))  # seconds; for sanitizer builds


def write_app(folder, files):
    """Writes {relative path: text} below FOLDER; returns FOLDER."""
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
    return folder


def wait_until(claim, what, patience=PATIENCE):
    """Asks CLAIM again and again until it holds; for events that another process makes."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        value = claim()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError("in vain: " + what)


class Srv:
    """A running server. `lines` collects what it prints; wait_line() awaits one that matches."""

    def __init__(self, app, *flags, env=None, workers=1, port=0):
        command = [BIN, app, "--port", str(port), *flags]
        if workers:  # else as its config.lua says
            command += ["--workers", str(workers)]
        environment = {k: v for k, v in os.environ.items()
                       if not k.startswith("SRV_") and k not in ("PORT", "HOST", "DATABASE_URL")}
        environment.update(env or {})
        self.lines = []
        self.changed = threading.Condition()
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment, text=True,
                                        errors="replace", stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        start_new_session=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        try:
            line = self.wait_line(r"listening on (https?://\S+|unix:\S+)")
        except BaseException:
            self.kill()
            raise
        self.url = line.group(1)
        self.port = int(self.url.rsplit(":", 1)[1]) if self.url.startswith("http") else None

    def _read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.lines.append(None)
            self.changed.notify_all()

    @property
    def output(self):
        with self.changed:
            return "\n".join(line for line in self.lines if line is not None)

    def wait_line(self, pattern, start=0, patience=PATIENCE):
        """The first match of PATTERN in a line from number START on."""
        end = time.monotonic() + patience
        with self.changed:
            at = start
            while True:
                while at < len(self.lines):
                    line = self.lines[at]
                    if line is None:
                        raise AssertionError("ended without /%s/:\n%s" % (pattern, "\n".join(self.lines[:-1])))
                    match = re.search(pattern, line)
                    if match:
                        return match
                    at += 1
                if not self.changed.wait(end - time.monotonic()) and time.monotonic() >= end:
                    raise AssertionError("no line /%s/ in time:\n%s" % (pattern, "\n".join(filter(None, self.lines))))

    def children(self):
        """Process ids of the server below the supervisor."""
        with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as f:
            return [int(pid) for pid in f.read().split()]

    def connect(self, timeout=PATIENCE):
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def request(self, method, path, body=None, headers=None, timeout=PATIENCE):
        """(status, headers, body) over a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def get(self, path, headers=None):
        return self.request("GET", path, None, headers)

    def signal(self, number):
        os.kill(self.process.pid, number)

    def wait_exit(self, patience=PATIENCE):
        return self.process.wait(patience)

    def stop(self):
        """SIGTERM; the exit status."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        status = self.wait_exit()
        self.reader.join(PATIENCE)
        return status

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.reader.join(PATIENCE)
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


def run_to_end(*args, env=None, patience=PATIENCE):
    """Runs the binary to its end: (exit status, output)."""
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith("SRV_") and k not in ("PORT", "HOST")}
    environment["PORT"] = "0"  # what should fail must not fail because 8080 is taken
    environment.update(env or {})
    done = subprocess.run([BIN, *args], cwd=ROOT, env=environment, text=True, timeout=patience,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def json_lines(text):
    """The JSON objects among the lines."""
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            found.append(json.loads(line))
    return found
