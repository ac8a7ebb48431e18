#!/usr/bin/env python3
r"""Holds conversations in frames of HTTP/2 with a server: what the wire looks like is data, not code.

usage: frames.py BINARY FILE...      BINARY: the app of tests/support/http1_app.c

A file is many cases. Each has a connection of its own, on which the preface and an empty SETTINGS frame
were sent, unless it says "- no hello". Words are split as in a shell, and "\xHH" and the like as in C.

    # a comment; "# app: --body-ms 300" above all cases gives the app options
    == a title, which is a claim (RFC 9113, 8.1)
    > GET 1 /path name=value              HEADERS with END_STREAM, of any method; [more]: a body follows
    > FIELDS 1 :method=GET name=value     exactly these fields
    > CONTINUATION 1 name=value
    > DATA 1 text
    > RST_STREAM 1 CANCEL      > PRIORITY 1 0 16     > SETTINGS 4=1      > PING 12345678
    > GOAWAY 0 NO_ERROR        > WINDOW_UPDATE 1 100 > RAW type flags stream hex *100:be
    > BYTES PRI * HTTP/2.0\r\n
    >* 100 GET {id} /                     as often; {id} goes on with the next stream's number;
                                          " ; " parts what is said of one stream
                                          in DATA "*5000:a" is 5000 times "a"
      words in brackets change a frame: [end] [open] (no END_HEADERS) [more] (no END_STREAM)
      [pad=4] [ack] [flags=0x1] [len=5] (the length that its head says)
    < HEADERS 1 200 name=value            comes next of its kind; also: [end]
    < BODY 1 text                         all DATA of a stream, to its end
    < RST_STREAM 1 PROTOCOL_ERROR         < GOAWAY ENHANCE_YOUR_CALM    < PING [ack] 12345678
    < SETTINGS 3=128                      < WINDOW_UPDATE 1
      "or" between two of them: either. What stands before is passed over, but for what "!" names
    ! HEADERS 3                           has not come up to now
    = closed                              the server ends the connection
    = open                                it answers a PING
    = silent                              nothing comes for 150 ms but settings and windows
    = end                                 we end our direction

Status 77: python3-hpack is not here.
"""
import codecs
import os
import re
import shlex
import socket
import struct
import sys
import time

# The first python3 of PATH need not be Debian's, whose packages it can read all the same.
sys.path.append("/usr/lib/python3/dist-packages")
try:
    import hpack
except ImportError:
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http1"))
from app_process import App  # noqa: E402

PATIENCE = 10      # seconds for what must come
SILENCE = 0.15     # seconds for what must not
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

TYPES = ["DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH_PROMISE", "PING", "GOAWAY",
         "WINDOW_UPDATE", "CONTINUATION"]
CODES = ["NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
         "STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR",
         "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"]
END_STREAM, END_HEADERS, PADDED, ACK = 1, 4, 8, 1


class Failed(Exception):
    pass


def unescape(text):
    return codecs.escape_decode(text.encode("latin-1"))[0]


def text_of(word):
    times = re.fullmatch(r"\*(\d+):(.*)", word)
    return unescape(times.group(2)) * int(times.group(1)) if times else unescape(word)


def hex_of(word):
    times = re.fullmatch(r"\*(\d+):(.*)", word)
    return bytes.fromhex(times.group(2)) * int(times.group(1)) if times else bytes.fromhex(word)


def pairs_of(words):
    for word in words:
        name, value = re.fullmatch(r"(:?[^=]*)=(.*)", word, re.S).groups()
        yield unescape(name), text_of(value)


class Frame:
    def __init__(self, kind, flags, stream, payload):
        self.kind, self.flags, self.stream, self.payload = kind, flags, stream, payload
        self.fields = {}

    def __str__(self):
        told = dict(self.fields) or self.payload[:40]
        return "%s%s %d %s" % (self.kind, " [end]" if self.ends() else "", self.stream, told)

    def ends(self):
        return self.kind in ("DATA", "HEADERS") and self.flags & END_STREAM

    def code(self):
        at = 4 if self.kind == "GOAWAY" else 0
        return CODES[struct.unpack_from(">I", self.payload, at)[0]]


class Connection:
    """Frames out and in; keeps what came, and acknowledges settings and pings."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.decoder.max_header_list_size = 1 << 20
        self.bytes, self.frames, self.bodies, self.ended = b"", [], {}, False
        self.next_id = 1

    def close(self):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # what came before that is to be read yet

    def send_frame(self, kind, flags, stream, payload, length=None):
        length = len(payload) if length is None else length
        head = struct.pack(">I", length)[1:] + struct.pack(">BBI", kind, flags, stream)
        self.send(head + payload)

    def receive(self, timeout):
        """The next frame, or None: silence, or the end."""
        end = time.monotonic() + timeout
        while True:
            if len(self.bytes) >= 9:
                length = struct.unpack(">I", b"\0" + self.bytes[:3])[0]
                if len(self.bytes) >= 9 + length:
                    return self.take(length)
            left = end - time.monotonic()
            if self.ended or left <= 0:
                return None
            self.socket.settimeout(left)
            try:
                data = self.socket.recv(65536)
            except socket.timeout:
                return None
            except ConnectionResetError:
                data = b""
            self.ended = not data
            self.bytes += data

    def take(self, length):
        kind, flags, stream = struct.unpack(">BBI", self.bytes[3:9])
        name = TYPES[kind] if kind < len(TYPES) else str(kind)
        frame = Frame(name, flags, stream & 0x7fffffff, self.bytes[9:9 + length])
        self.bytes = self.bytes[9 + length:]
        self.note(frame)
        return frame

    def note(self, frame):
        if frame.kind == "HEADERS":
            frame.fields = dict(self.decoder.decode(frame.payload, raw=True))
        elif frame.kind == "DATA":
            self.bodies[frame.stream] = self.bodies.get(frame.stream, b"") + frame.payload
        elif frame.kind == "SETTINGS" and not frame.flags & ACK:
            self.send_frame(4, ACK, 0, b"")
        elif frame.kind == "PING" and not frame.flags & ACK:
            self.send_frame(6, ACK, 0, frame.payload)


# --- saying --------------------------------------------------------------------------------------------


class Sentence:
    """The words of a line, and those in brackets apart."""

    def __init__(self, line):
        self.words, self.marks = [], {}
        for word in shlex.split(line.replace("\\", "\\\\")):
            mark = re.fullmatch(r"\[(\w+)(?:=(\w+))?\]", word)
            if mark:
                self.marks[mark.group(1)] = int(mark.group(2) or "1", 0)
            else:
                self.words.append(word)
        self.verb = self.words.pop(0)


def block_of(conn, words, verb=None):
    fields = []
    if verb:
        path = [] if verb == "CONNECT" else [(b":scheme", b"http"), (b":path", text_of(words.pop(0)))]
        fields = [(b":method", verb.encode())] + path
        if not any(word.startswith(("host=", ":authority=")) for word in words):
            fields.append((b":authority", b"a"))
    pairs = list(pairs_of(words))
    fields += [pair for pair in pairs if pair[0].startswith(b":")] if verb else []
    fields += [pair for pair in pairs if not verb or not pair[0].startswith(b":")]
    return conn.encoder.encode(fields, huffman=False)


def padded(payload, marks):
    return bytes([marks["pad"]]) + payload + b"\0" * marks["pad"] if "pad" in marks else payload


def say_block(conn, sentence, kind, verb=None, ends=False):
    stream = int(sentence.words.pop(0))
    marks = sentence.marks
    ends = (ends or "end" in marks) and "more" not in marks and kind == 1
    flags = (END_STREAM if ends else 0) | (0 if "open" in marks else END_HEADERS)
    flags |= PADDED if "pad" in marks else 0
    payload = padded(block_of(conn, sentence.words, verb), marks)
    conn.send_frame(kind, marks.get("flags", flags), stream, payload, marks.get("len"))


def say_data(conn, sentence):
    marks = sentence.marks
    stream = int(sentence.words.pop(0))
    data = text_of(sentence.words[0]) if sentence.words else b""
    flags = (END_STREAM if "end" in marks else 0) | (PADDED if "pad" in marks else 0)
    payload = padded(data, marks)
    pieces = [payload[i:i + 16384] for i in range(0, len(payload), 16384)] or [b""]
    for piece in pieces[:-1]:
        conn.send_frame(0, 0, stream, piece)
    conn.send_frame(0, marks.get("flags", flags), stream, pieces[-1], marks.get("len"))


def say(conn, line):
    sentence = Sentence(line)
    verb, words, marks = sentence.verb, sentence.words, sentence.marks
    if verb == "BYTES":
        conn.send(unescape(line.split(" ", 1)[1]))
    elif verb == "RAW":
        payload = b"".join(hex_of(word) for word in words[3:])
        conn.send_frame(int(words[0], 0), int(words[1], 0), int(words[2]), payload, marks.get("len"))
    elif verb == "FIELDS":
        say_block(conn, sentence, 1)
    elif verb == "CONTINUATION":
        say_block(conn, sentence, 9)
    elif verb == "DATA":
        say_data(conn, sentence)
    elif verb == "RST_STREAM":
        conn.send_frame(3, 0, int(words[0]), struct.pack(">I", CODES.index(words[1])), marks.get("len"))
    elif verb == "PRIORITY":
        payload = struct.pack(">IB", int(words[1]), int(words[2]))
        conn.send_frame(2, 0, int(words[0]), payload, marks.get("len"))
    elif verb == "SETTINGS":
        entries = [word.split("=") for word in words]
        payload = b"".join(struct.pack(">HI", int(k), int(v)) for k, v in entries)
        conn.send_frame(4, ACK if "ack" in marks else 0, 0, payload, marks.get("len"))
    elif verb == "PING":
        conn.send_frame(6, ACK if "ack" in marks else 0, 0, unescape(words[0]), marks.get("len"))
    elif verb == "GOAWAY":
        conn.send_frame(7, 0, 0, struct.pack(">II", int(words[0]), CODES.index(words[1])))
    elif verb == "WINDOW_UPDATE":
        conn.send_frame(8, 0, int(words[0]), struct.pack(">I", int(words[1])), marks.get("len"))
    elif verb.isupper():
        say_block(conn, sentence, 1, verb, True)
    else:
        raise Failed("what is %r?" % verb)


def say_many(conn, line):
    count, line = line.split(" ", 1)
    for _ in range(int(count)):
        for part in line.replace("{id}", str(conn.next_id)).split(" ; "):
            say(conn, part)
        conn.next_id += 2


# --- hearing --------------------------------------------------------------------------------------------


def has_fields(frame, words):
    for name, value in pairs_of(words):
        if frame.fields.get(name) != value:
            return False
    return True


def is_meant(conn, frame, line):
    """Whether FRAME is what LINE names."""
    sentence = Sentence(line)
    verb, words = sentence.verb, list(sentence.words)
    if verb == "BODY":
        if not (frame.stream == int(words[0]) and frame.ends()):
            return False
        body, want = conn.bodies.get(frame.stream, b""), text_of(words[1]) if len(words) > 1 else b""
        if body != want:
            raise Failed("the body is %r, not %r" % (body[:200], want[:200]))
        return True
    if frame.kind != verb or ("end" in sentence.marks and not frame.ends()):
        return False
    if verb == "PING":
        return bool(frame.flags & ACK) == ("ack" in sentence.marks) and frame.payload == unescape(words[0])
    if verb == "SETTINGS":
        entries = dict(struct.iter_unpack(">HI", frame.payload))
        return ("ack" in sentence.marks) == bool(frame.flags & ACK) and all(
            entries.get(int(k)) == int(v) for k, v in (word.split("=") for word in words))
    if verb == "GOAWAY":
        last = struct.unpack_from(">I", frame.payload)[0]
        return frame.code() == words[0] and (len(words) < 2 or last == int(words[1]))
    if frame.stream != int(words.pop(0)):
        return False
    if verb == "RST_STREAM":
        return frame.code() == words[0]
    if verb == "HEADERS" and words:
        status = frame.fields.get(b":status", b"").decode()
        if "=" in words[0]:
            return has_fields(frame, words)
        return status == words[0] and has_fields(frame, words[1:])
    return True


def hear(conn, line, passed):
    choices = re.split(r" or ", line)
    end = time.monotonic() + PATIENCE
    while True:
        frame = conn.receive(end - time.monotonic())
        if frame is None:
            raise Failed("has not come: %s\n    the connection is %s; passed over: %s" % (
                line, "closed" if conn.ended else "silent", "; ".join(map(str, passed[-8:]))))
        if any(is_meant(conn, frame, choice) for choice in choices):
            return
        passed.append(frame)


def claim(conn, what, passed):
    if what == "end":
        conn.socket.shutdown(socket.SHUT_WR)
    elif what == "open":
        conn.send_frame(6, 0, 0, b"stillhere"[:8])
        hear(conn, "PING [ack] stillher", passed)
    elif what == "closed":
        while conn.receive(PATIENCE):
            pass
        if not conn.ended:
            raise Failed("the connection is open still")
    elif what == "silent":
        frame = conn.receive(SILENCE)
        while frame and frame.kind in ("SETTINGS", "WINDOW_UPDATE"):
            frame = conn.receive(SILENCE)
        if frame or conn.ended:
            raise Failed("not silent: %s" % (frame or "closed"))
    else:
        raise Failed("what is %r?" % what)


def deny(line, passed, conn):
    for frame in passed:
        if is_meant(conn, frame, line):
            raise Failed("has come: %s" % frame)


# --- cases -----------------------------------------------------------------------------------------------


def read_cases(path):
    """[title, [(number, line)]] of a file, and the app's options."""
    cases, options = [], []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\n").strip()
            if line.startswith("# app:"):
                options = line[6:].split()
            elif line.startswith("== "):
                cases.append((line[3:], []))
            elif line and not line.startswith("#"):
                cases[-1][1].append((number, line))
    return cases, options


def hold(port, lines):
    conn = Connection(port)
    passed = []
    number = 0
    try:
        if not any(line == "- no hello" for _, line in lines):
            conn.send(PREFACE)
            conn.send_frame(4, 0, 0, b"")
        for number, line in lines:
            sign, _, rest = line.partition(" ")
            if sign == ">":
                say(conn, rest)
            elif sign == ">*":
                say_many(conn, rest)
            elif sign == "<":
                hear(conn, rest, passed)
            elif sign == "!":
                deny(rest, passed, conn)
            elif sign == "=":
                claim(conn, rest, passed)
            elif line != "- no hello":
                raise Failed("what is %r?" % line)
    except Failed as failed:
        return "line %d: %s" % (number, failed)
    finally:
        conn.close()
    return None


def run_file(binary, path):
    cases, options = read_cases(path)
    failures = 0
    with App(binary, *options) as app:
        for title, lines in cases:
            failure = hold(app.port, lines)
            if failure:
                failures += 1
                print("FAILED %s: %s\n    %s" % (os.path.basename(path), title, failure))
    return len(cases), failures


def main():
    binary, paths = sys.argv[1], sys.argv[2:]
    done = failed = 0
    for path in paths:
        count, failures = run_file(binary, path)
        done, failed = done + count, failed + failures
    print("%d passed, %d failed" % (done - failed, failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
