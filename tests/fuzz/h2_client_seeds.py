#!/usr/bin/env python3
"""Makes the seeds of the HTTP/2 client's fuzzer: what servers say to a request, good and bad.

usage: h2_client_seeds.py     rewrites tests/fuzz/corpus/h2_client/case-* (what fuzzers found stays)
"""
import glob
import os
import struct
import sys

sys.path.append("/usr/lib/python3/dist-packages")
import hpack  # noqa: E402

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "h2_client")
ASK, ASK_WITH_BODY, WRITE, END_BODY, TAKE, CANCEL, PRODUCE = (8 * n for n in range(7))
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED, ACK = 1, 4, 8, 1


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def block(*fields):
    return hpack.Encoder().encode(list(fields), huffman=False)


def head(stream, status="200", *fields, flags=END_HEADERS):
    return frame(HEADERS, flags, stream, block((":status", status), *fields))


def numbers(*values):
    return struct.pack(">%dI" % len(values), *values)


def settings(*pairs):
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *pair) for pair in pairs))


def said(data, pad=True):
    """DATA as the fuzzer's input has it: pieces of a multiple of eight bytes, filled up by a frame nobody knows."""
    if pad and len(data) % 8:
        data += frame(0x77, 0, 0, b"\0" * ((-len(data) - 9) % 8))
    pieces = [data[at:at + 0x7f * 8] for at in range(0, len(data), 0x7f * 8)]
    return b"".join(bytes([0x80 + (len(piece) + 7) // 8]) + piece for piece in pieces)


HELLO = settings((3, 100), (4, 65535)) + frame(SETTINGS, ACK)
OK = head(1) + frame(DATA, END_STREAM, 1, b"hello")
CASES = [
    [HELLO + OK],
    [HELLO, ASK + 1, ASK + 2, PRODUCE, OK + head(3) + head(5, flags=5) + frame(DATA, 1, 3, b"x" * 100)],
    [HELLO, ASK_WITH_BODY + 1, PRODUCE, WRITE + 1, PRODUCE, frame(WINDOW, 0, 0, numbers(1 << 20)),
     frame(WINDOW, 0, 3, numbers(1 << 20)), PRODUCE, END_BODY + 1, PRODUCE, head(3, "204", flags=5)],
    [HELLO, ASK_WITH_BODY + 1, PRODUCE, head(3) + frame(DATA, 1, 3, b"early"), PRODUCE],
    [HELLO, head(1, "100") + head(1, "103", ("link", "</a>")) + OK],
    [HELLO + b"".join(head(1, "100") for _ in range(20))],
    [HELLO + head(1) + frame(DATA, 0, 1, b"a" * 5000) + frame(DATA, 0, 1, b"b" * 4999), TAKE, PRODUCE,
     frame(DATA, 1, 1, b"c")],
    [HELLO + head(1) + frame(DATA, 0, 1, b"a" * 10001)],
    [HELLO + head(1) + frame(DATA, PADDED, 1, b"\4abcd\0\0\0\0") + frame(HEADERS, 5, 1, block(("x-sum", "1")))],
    [HELLO + head(1, "200", ("content-length", "4")) + frame(DATA, 1, 1, b"abc")],
    [HELLO + head(1, "200", ("content-length", "4")) + frame(DATA, 1, 1, b"abcde")],
    [HELLO + head(1) + frame(DATA, 0, 1, b"X stop"), PRODUCE, frame(DATA, 1, 1, b"more")],
    [HELLO, CANCEL, PRODUCE, OK],
    [HELLO, ASK + 1, CANCEL + 1, PRODUCE, OK],
    [HELLO + frame(RST, 0, 1, numbers(7))],
    [HELLO + frame(RST, 0, 1, numbers(13))],
    [HELLO + head(1) + frame(RST, 0, 1, numbers(2))],
    [HELLO, ASK + 1, PRODUCE, frame(GOAWAY, 0, 0, numbers(1, 0)), ASK + 2, OK],
    [HELLO + frame(GOAWAY, 0, 0, numbers(0, 11) + b"calm down")],
    [frame(GOAWAY, 0, 0, numbers(0x7FFFFFFF, 0)) + HELLO + OK],
    [settings((3, 0)), ASK + 1, OK + settings((3, 5)), ASK + 1, PRODUCE, head(3, flags=5)],
    [settings((4, 0), (1, 0), (5, 16777215), (6, 10)), ASK_WITH_BODY + 1, PRODUCE, settings((4, 1)), PRODUCE, OK],
    [settings((4, 0x80000000))],
    [HELLO, ASK_WITH_BODY + 1, PRODUCE, frame(WINDOW, 0, 3, numbers(0x7FFFFFFF))],
    [HELLO + frame(PUSH, 4, 1, numbers(2) + block((":method", "GET"), (":path", "/"), (":scheme", "http")))],
    [HELLO + frame(PING, 0, 0, b"12345678"), PRODUCE, OK],
    [HELLO + head(2)], [HELLO + head(7)], [OK], [HELLO + frame(DATA, 1, 1, b"no head")],
    [HELLO + head(1, "200", ("Upper", "case"))], [HELLO + head(1, "200", ("connection", "close"))],
    [HELLO + head(1, "abc")], [HELLO + head(1, "099", flags=5)], [HELLO + frame(HEADERS, 5, 1, block(("x", "no status")))],
    [HELLO + head(1, "200", ("x", "a\r\nb"))], [HELLO + head(1, "101")], [HELLO + head(1) + head(1)],
    [HELLO + head(1, "200", *[("x-%d" % n, "v") for n in range(300)])],
    [HELLO + head(1, flags=0) + frame(CONTINUATION, 0, 1, block(("a", "b"))) + frame(CONTINUATION, 4, 1), OK],
    [HELLO + head(1, flags=0) + frame(PING, 0, 0, b"12345678")],
    [HELLO + frame(HEADERS, 5, 1, b"\xff\xff\xff\xff\xff")], [HELLO + frame(HEADERS, 5, 1, b"\x3f\xe1\xff\x03\x88")],
    [b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"],
]


def main():
    os.makedirs(OUT, exist_ok=True)
    for path in glob.glob(os.path.join(OUT, "case-*")):
        os.remove(path)
    for number, case in enumerate(CASES, 1):
        with open(os.path.join(OUT, "case-%03d" % number), "wb") as out:
            out.write(b"".join(bytes([step]) if isinstance(step, int) else said(step) for step in case))
    print("%d seeds" % len(CASES))


if __name__ == "__main__":
    main()
