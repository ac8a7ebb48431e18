#!/usr/bin/env python3
r"""Holds conversations with a server: what the wire looks like is data, not code.

usage: wire.py BINARY FILE...        BINARY: the app of tests/support/http1_app.c

A file is one conversation on one connection, line by line:

    # a comment; "# app: --body-ms 300" gives the app options (else all files share one app);
                                              {here} in them is the file's folder
    > GET / HTTP/1.1\r\nHost: a\r\n\r\n       send; \r \n \t \0 \\ \xHH as in C
    >* 1000 a                                 send "a" 1000 times
    < HTTP/1.1 200 OK                         this comes next, whatever stands before it
    <= \r\n\r\nok                             this comes next, and nothing before it
    ! HTTP/1.1 500                            this has not come, up to now
    = half-close                              end our direction
    = reset                                   end the connection by a reset
    = silent                                  nothing comes for 150 ms
    = open                                    the same, and the connection is still there
    = closed                                  the server ends the connection; nothing more came
    = new                                     go on with a new connection
    = beside                                  the same, and the one before stays open

A failing line is told with what was received instead.
"""
import codecs
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http1"))
from app_process import App  # noqa: E402

PATIENCE = 10      # seconds for what must come
SILENCE = 0.15     # seconds for what must not


class Failed(Exception):
    pass


def unescape(text):
    return codecs.escape_decode(text.encode("latin-1"))[0]


class Conversation:
    def __init__(self, port):
        self.port = port
        self.socket = None
        self.beside = []
        self.connect()

    def connect(self):
        self.close()
        self.socket = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""   # since the last expectation was met
        self.all = b""
        self.ended = False

    def close(self):
        if self.socket:
            self.socket.close()
            self.socket = None

    def read(self, seconds):
        """Waits for more. False: nothing came in time, or the end."""
        if self.ended:
            return False
        self.socket.settimeout(max(seconds, 0.001))
        try:
            data = self.socket.recv(65536)
        except socket.timeout:
            return False
        except ConnectionError:
            data = b""
        self.ended = not data
        self.received += data
        self.all += data
        return bool(data)

    def send(self, data):
        self.socket.settimeout(PATIENCE)
        try:
            self.socket.sendall(data)
        except ConnectionError:
            pass              # what the server said before it closed is what counts

    def expect(self, wanted, at_once):
        end = time.monotonic() + PATIENCE
        while True:
            at = self.received.find(wanted)
            if at == 0 or (at > 0 and not at_once):
                self.received = self.received[at + len(wanted):]
                return
            if at_once and not wanted.startswith(self.received[:len(wanted)]):
                raise Failed("something else came")
            if not self.read(end - time.monotonic()):
                raise Failed("it did not come")

    def be_silent(self):
        if self.received or self.read(SILENCE):
            raise Failed("something came")

    def state(self, word):
        if word == "half-close":
            self.socket.shutdown(socket.SHUT_WR)
        elif word == "reset":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close()
        elif word == "silent":
            self.be_silent()
        elif word == "open":
            self.be_silent()
            if self.ended:
                raise Failed("the connection is closed")
        elif word == "closed":
            end = time.monotonic() + PATIENCE
            while self.read(end - time.monotonic()):
                pass
            if not self.ended:
                raise Failed("the connection is not closed")
            if self.received:
                raise Failed("more came")
        elif word == "new":
            self.connect()
        elif word == "beside":
            self.beside.append(self.socket)
            self.socket = None
            self.connect()
        else:
            raise Failed("no such state")

    def play(self, line):
        kind, _, rest = line.partition(" ")
        if kind == ">":
            self.send(unescape(rest))
        elif kind == ">*":
            count, _, text = rest.partition(" ")
            self.send(unescape(text) * int(count))
        elif kind in ("<", "<="):
            self.expect(unescape(rest), kind == "<=")
        elif kind == "!":
            if unescape(rest) in self.all:
                raise Failed("it came")
        elif kind == "=":
            self.state(rest)
        else:
            raise Failed("no such command")


def play_file(path, port):
    talk = Conversation(port)
    try:
        with open(path, encoding="latin-1") as lines:
            for number, line in enumerate(lines, 1):
                line = line.rstrip("\n")
                if not line or line.startswith("#"):
                    continue
                try:
                    talk.play(line)
                except Failed as failed:
                    raise Failed("%s:%d: %s: %s\n    received: %r" % (
                        path, number, failed, line[:100], talk.received[-300:])) from None
    finally:
        talk.close()
        for other in talk.beside:
            other.close()


def options_of(path):
    with open(path, encoding="latin-1") as lines:
        for line in lines:
            if line.startswith("# app:"):
                here = os.path.dirname(os.path.abspath(path))
                return line[len("# app:"):].replace("{here}", here).split()
    return []


def main():
    binary, files = sys.argv[1], sorted(sys.argv[2:])
    failures = []
    shared = [path for path in files if not options_of(path)]
    groups = [([], shared)] + [(options_of(path), [path]) for path in files if path not in shared]
    for options, paths in groups:
        if not paths:
            continue
        with App(binary, *options) as app:
            for path in paths:
                try:
                    play_file(path, app.port)
                except (Failed, OSError) as failed:
                    failures.append(path)
                    print(failed)
    print("%d passed, %d failed" % (len(files) - len(failures), len(failures)))
    return 1 if failures or not files else 0


if __name__ == "__main__":
    sys.exit(main())
