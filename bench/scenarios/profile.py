"""What sampling costs: CPU for each request with the profiler at 1 kHz, beside the same without."""
import os
import socket
import statistics

import measure
import report

CASES = [("GET / (text)", "", "/"), ("GET /users/:id (JSON)", "", "/users/123"),
         ("the typical stack", "stack.lua", "/articles/42?page=2&sort=title")]
CONNECTIONS = 64
RATE = 1000
COLUMNS = ["route", "us without", "us with", "cost (median of pairs)", "lowest", "highest"]

HOW = [
    "CPU time of the server's worker for each request while it is sampled %d times a second of its CPU time" % RATE,
    "(`srv flame --attach` does that), and while it is not: turns in pairs, the first of a pair by turns. The server on",
    "one CPU, `wrk -t1` on another. What is done once at the end (symbols, on the control thread) is not counted.",
]


def admin_socket(server):
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = os.path.join(runtime, "srv") if runtime else "/tmp/srv-%d" % os.geteuid()
    return os.path.join(folder, "%d.sock" % server.process.pid)


class Profiler:
    """The command `profile` of the admin socket, from begin to end."""

    def __init__(self, server):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(admin_socket(server))
        self.socket.sendall(b"profile %d\n" % RATE)
        if b"profiling" not in self.socket.recv(4096):
            raise measure.Failed("the server is not to be profiled")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.sendall(b"stop\n")
        while self.socket.recv(1 << 16):
            continue
        self.socket.close()


def plain_turn(server, path, options, connections):
    return measure.Turn(server, path, options.seconds, connections).us


def sampled_turn(server, path, options, connections):
    with Profiler(server):
        return measure.Turn(server, path, options.seconds, connections).us


def pairs_of(server, path, options, connections):
    plain_turn(server, path, options, connections)  # traces are compiled by then
    pairs = []
    for number in range(options.turns):
        order = [plain_turn, sampled_turn] if number % 2 == 0 else [sampled_turn, plain_turn]
        took = {turn: turn(server, path, options, connections) for turn in order}
        pairs.append((took[plain_turn], took[sampled_turn]))
    return pairs


def row_of(heading, pairs):
    costs = [100 * (sampled / plain - 1) for plain, sampled in pairs]
    return [heading] + ["%.2f" % statistics.median(column) for column in zip(*pairs)] + [
        "%+.1f %%" % cost for cost in (statistics.median(costs), min(costs), max(costs))]


def run(options):
    connections = options.connections or CONNECTIONS
    result = report.Result("What sampling costs", HOW + [
        "%d pairs of turns of %g s, %d connections." % (options.turns, options.seconds, connections)])
    rows = []
    for heading, app, path in CASES:
        with measure.start_srv(options, app=app) as server:
            rows.append(row_of(heading, pairs_of(server, path, options, connections)))
    result.table("CPU for each request", COLUMNS, rows)
    return result
