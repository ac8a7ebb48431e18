#!/usr/bin/env python3
"""Holds the conversations of cases.json with the bare wire: usage: run_app.py BINARY [run.py's options]"""
import os
import subprocess
import sys

from app_process import App

# What the cases expect of the app (times in ms): head 3 s, body 5 s, idle 4 s.
SETTINGS = ["--head-ms", "3000", "--body-ms", "5000", "--keep-alive-ms", "4000"]


def main():
    runner = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.py")
    with App(sys.argv[1], *SETTINGS) as app:
        return subprocess.call([sys.executable, runner, "127.0.0.1", str(app.port), *sys.argv[2:]])


if __name__ == "__main__":
    sys.exit(main())
