#!/usr/bin/env python3
"""Runs a script of this folder against the bare wire: run_app.py SCRIPT BINARY [the script's options]

The script gets HOST PORT and its options. A skipped case of run_ws.py fails: the app can do it all.
"""
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "http1"))
from app_process import App  # noqa: E402


def main():
    script, binary, *options = sys.argv[1:]
    with App(binary) as app:
        done = subprocess.run([sys.executable, os.path.join(here, script), "127.0.0.1", str(app.port), *options],
                              stdout=subprocess.PIPE, text=True)
    sys.stdout.write(done.stdout)
    return done.returncode or (1 if " skipped" in done.stdout else 0)


if __name__ == "__main__":
    sys.exit(main())
