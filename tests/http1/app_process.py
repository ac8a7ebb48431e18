"""Starts tests/support/http1_app.c for a test, waits for its line, and always ends it.

    with App("build/release/tests/http1_app", "--body-ms", "5000") as app:
        socket.create_connection(("127.0.0.1", app.port))

Leaving the block drains the app by SIGTERM; an exit status other than 0 (a sanitizer's report, a
crash, a drain that does not end) fails the test.
"""
import re
import signal
import subprocess
import sys

DRAIN_SECONDS = 20


class App:
    def __init__(self, binary, *options):
        self.process = subprocess.Popen([binary, *options], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, errors="replace")
        line = self.process.stdout.readline()
        found = re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)\n", line)
        if not found:
            self.process.kill()
            raise RuntimeError("the app did not start: %r %s" % (line, self.process.stderr.read()))
        self.port = int(found.group(1))

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.process.send_signal(signal.SIGTERM)
        try:
            _, told = self.process.communicate(timeout=DRAIN_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise RuntimeError("the app did not end within %d s" % DRAIN_SECONDS) from error
        if self.process.returncode != 0:
            sys.stderr.write(told[-20000:])
            raise RuntimeError("the app ended with status %d" % self.process.returncode) from error
