"""What a request costs over HTTP/2, beside HTTP/1.1: one connection of many streams, many connections of one."""
import re
import statistics
import subprocess

import measure
import report

STREAMS = 100
CASES = [("GET / (text)", "/"), ("GET /users/:id (JSON)", "/users/123")]

HOW = [
    "CPU time of the server (user and system, all of its processes and threads, by the scheduler's count)",
    "for each request. Server on one CPU, the load on another: `wrk -t1` for HTTP/1.1, `h2load` for HTTP/2, each",
    "with %d requests under way, in turns." % STREAMS,
]


class Turn:
    """CPU of SERVER while h2load had STREAMS requests under way on COUNT connections."""

    def __init__(self, server, path, seconds, count):
        command = ["h2load", "-t1", "-c%d" % count, "-m%d" % (STREAMS // count), "-D%g" % max(1, round(seconds)),
                   "http://127.0.0.1:%d%s" % (server.port, path)]
        before = server.cpu_ns()
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  preexec_fn=measure.pin_to(measure.cpus()[1]), timeout=seconds + 30, check=False)
        except FileNotFoundError:
            raise measure.Failed("h2load is not installed (apt-get install nghttp2-client)") from None
        spent = server.cpu_ns() - before
        told = re.search(r"(\d+) succeeded, 0 failed, 0 errored", done.stdout)
        if not told:
            raise measure.Failed("h2load:\n" + done.stdout)
        self.us = spent / int(told.group(1)) / 1000
        self.rate = float(re.search(r"([\d.]+) req/s", done.stdout).group(1))


def run(options):
    result = report.Result("HTTP/2 beside HTTP/1.1", HOW + ["%d turns of %g s." % (options.turns, options.seconds)])
    speakers = {
        "HTTP/1.1, %d connections" % STREAMS: lambda server, path: measure.Turn(server, path, options.seconds, STREAMS),
        "HTTP/2, %d streams of one" % STREAMS: lambda server, path: Turn(server, path, options.seconds, 1),
        "HTTP/2, 10 streams of 10": lambda server, path: Turn(server, path, options.seconds, 10),
        "HTTP/2, %d connections" % STREAMS: lambda server, path: Turn(server, path, options.seconds, STREAMS),
    }
    with measure.start_srv(options) as server:
        for heading, path in CASES:
            turns = {name: [] for name in speakers}
            for number in range(options.turns + 1):
                for name, speak in speakers.items():
                    turn = speak(server, path)
                    if number:  # the first does not count
                        turns[name].append(turn)
            base = [turn.us for turn in next(iter(turns.values()))]
            rows = []
            for name, took in turns.items():
                us = [turn.us for turn in took]
                rows.append([name, *report.low_and_median(us), "%.2f" % (min(us) / min(base)),
                             "%.2f" % (statistics.median(us) / statistics.median(base)),
                             "%.0f" % statistics.median(turn.rate for turn in took)])
            result.table(heading, ["spoken", "us min", "us median", "ratio of min", "ratio of median", "requests/s"], rows)
    return result
