#!/usr/bin/env python3
"""Makes the seeds of the HTTP/2 fuzzer from the conversations in tests/h2.

usage: h2_seeds.py     rewrites tests/fuzz/corpus/h2/case-* (what fuzzers found stays)
"""
import glob
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "h2"))
import frames  # noqa: E402

OUT = os.path.join(HERE, "corpus", "h2")
BYTES_MAX = 3000
TIMES_MAX = 3  # of what a case repeats
HOW = b"\x03"  # the client reads, and work that was cancelled ends


class Recorder(frames.Connection):
    """What a client says, to nobody."""

    def __init__(self):
        self.encoder, self.said, self.next_id = frames.hpack.Encoder(), b"", 1

    def send(self, data):
        self.said += data


def sent(lines):
    conn = Recorder()
    for _, line in lines:
        sign, _, rest = line.partition(" ")
        if sign == ">":
            frames.say(conn, rest)
        elif sign == ">*":
            count, rest = rest.split(" ", 1)
            frames.say_many(conn, "%d %s" % (min(int(count), TIMES_MAX), rest))
    return conn.said


def main():
    os.makedirs(OUT, exist_ok=True)
    for path in glob.glob(os.path.join(OUT, "case-*")):
        os.remove(path)
    seen = set()
    for path in sorted(glob.glob(os.path.join(HERE, "..", "h2", "*.txt"))):
        if os.path.basename(path) == "CMakeLists.txt":
            continue
        for _, lines in frames.read_cases(path)[0]:
            data = sent(lines)
            if not data or len(data) > BYTES_MAX or data in seen or data.startswith(b"PRI"):
                continue
            seen.add(data)
            with open(os.path.join(OUT, "case-%03d" % len(seen)), "wb") as out:
                out.write(HOW + data)
    print("%d seeds" % len(seen))


if __name__ == "__main__":
    main()
