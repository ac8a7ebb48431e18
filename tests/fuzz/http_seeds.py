#!/usr/bin/env python3
"""Makes the seeds of the HTTP/1 fuzzers from the conversations in tests/http1/cases.json.

usage: http_seeds.py     rewrites tests/fuzz/corpus/http1/case-* (what fuzzers found stays)
"""
import glob
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "corpus", "http1")
BYTES_MAX = 1500


def sent(case):
    """The bytes of a case's sending steps; what is repeated is repeated twice."""
    out = b""
    for step in case["send"]:
        if isinstance(step, str):
            out += step.encode("latin-1")
        elif "repeat" in step:
            out += step["repeat"].encode("latin-1") * min(step["n"], 2)
        elif "count" in step:
            out += b"".join(step["count"].replace("%d", str(i)).encode("latin-1") for i in range(2))
        elif "frag" in step:
            out += step["frag"].encode("latin-1")
        elif "drip" in step:
            out += step["drip"].encode("latin-1") * 2
    return out


def main():
    os.makedirs(OUT, exist_ok=True)
    for path in glob.glob(os.path.join(OUT, "case-*")):
        os.remove(path)
    seen = set()
    with open(os.path.join(HERE, "..", "http1", "cases.json"), encoding="utf-8") as file:
        for case in json.load(file)["cases"]:
            data = sent(case)
            if not data or len(data) > BYTES_MAX or data in seen:
                continue
            seen.add(data)
            with open(os.path.join(OUT, "case-" + case["id"]), "wb") as out:
                out.write(data)
    print("%d seeds" % len(seen))


if __name__ == "__main__":
    main()
